"""Requests that wait at the same time go through the model together."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from deliberation.worker import in_forward_worker

Item = TypeVar("Item")
Result = TypeVar("Result")


class Batcher(Generic[Item, Result]):
    """Gathers what waits and hands it to `forward` in the forward worker, `max_batch` at a time.

    `forward` maps a list of items to a list of as many results in the same order. What arrives
    while a batch runs goes into the next one. An exception of `forward` reaches each caller of
    that batch; a caller that was cancelled is left out, and the others still get their result.
    """

    def __init__(self, forward: Callable[[list[Item]], list[Result]], max_batch: int) -> None:
        self._forward = forward
        self._max_batch = max_batch
        self._waiting: deque[tuple[Item, asyncio.Future[Result]]] = deque()
        self._drain: asyncio.Task[None] | None = None

    async def submit(self, item: Item) -> Result:
        """The result for one item."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._waiting.append((item, future))
        if self._drain is None or self._drain.done() or self._drain.get_loop() is not loop:
            self._drain = loop.create_task(self._run())
        return await future

    async def _run(self) -> None:
        batch: list[tuple[Item, asyncio.Future[Result]]] = []
        try:
            while True:
                await asyncio.sleep(0)  # lets everybody who is ready now join the batch
                batch = self._next_batch()
                if not batch:
                    return
                await self._run_batch(batch)
        finally:  # whoever is left when this task is cancelled must not wait for ever
            for _, future in (*batch, *self._waiting):
                future.cancel()
            self._waiting.clear()

    def _next_batch(self) -> list[tuple[Item, "asyncio.Future[Result]"]]:
        batch: list[tuple[Item, asyncio.Future[Result]]] = []
        while self._waiting and len(batch) < self._max_batch:
            item, future = self._waiting.popleft()
            if not future.done():
                batch.append((item, future))
        return batch

    async def _run_batch(self, batch: list[tuple[Item, "asyncio.Future[Result]"]]) -> None:
        results: list[Result] = []
        failure: Exception | None = None
        try:
            results = await in_forward_worker(self._forward, [item for item, _ in batch])
        except Exception as error:  # noqa: BLE001 - handed to each caller below
            failure = error
        for place, (_, future) in enumerate(batch):
            if future.done():
                continue
            if failure is not None:
                future.set_exception(failure)
            else:
                future.set_result(results[place])

"""The one thread that runs forward passes, and the one loop that plays episodes.

Every model of the process (policy, judge) runs its forward passes in the same worker thread: two
that run at once on the same cores are slower than one after the other, and on one GPU they race
for memory. The event loop lives in a thread of its own for the whole run, so that clients and
caches never cross loops; the main thread submits to it and waits interruptibly.
"""

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

busy_seconds: defaultdict[str, float] = defaultdict(float)
"""Seconds that the worker has spent on each purpose (`sampling`, `judging`) in this process."""

_worker: ThreadPoolExecutor | None = None
_worker_lock = threading.Lock()


def forward_worker() -> ThreadPoolExecutor:
    """The process-wide thread for forward passes."""
    global _worker
    with _worker_lock:
        if _worker is None:
            _worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="forward")
        return _worker


async def in_forward_worker(
    function: Callable[..., T], *args: Any, purpose: str = "other", **kwargs: Any
) -> T:
    """Run `function` in the forward worker and await its result."""
    loop = asyncio.get_running_loop()
    call = partial(function, *args, **kwargs)
    return await loop.run_in_executor(forward_worker(), _timed, call, purpose)


def _timed(call: Callable[[], T], purpose: str) -> T:
    started = time.perf_counter()
    try:
        return call()
    finally:
        busy_seconds[purpose] += time.perf_counter() - started


class StopRequested(Exception):  # noqa: N818  (a wish, not an error)
    """The user asked for a stop while something was waited for; it was wound down."""


class EngineLoop:
    """An event loop in its own thread.

    `run` blocks the caller but wakes several times a second, so that signal handlers of the main
    thread run and a stop that they ask for is seen: what was submitted is then cancelled and wound
    down, and `StopRequested` raised.
    """

    WAKE_S = 0.1
    WIND_DOWN_S = 10.0

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="engine", daemon=True)
        self._thread.start()

    def run(
        self, coroutine: Coroutine[Any, Any, T], should_stop: Callable[[], bool] = lambda: False
    ) -> T:
        future: Future[T] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            while True:
                try:
                    return future.result(timeout=self.WAKE_S)
                except FutureTimeout:
                    if future.done():  # the coroutine itself raised TimeoutError
                        raise
                    if should_stop():
                        raise StopRequested from None
        except BaseException:
            self._wind_down(future)
            raise

    def _wind_down(self, future: "Future[Any]") -> None:
        if future.done():
            return
        future.cancel()
        try:
            asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result(self.WIND_DOWN_S)
        except (FutureTimeout, CancelledError):
            return

    def close(self) -> None:
        """Stop the loop; idempotent."""
        if self._loop.is_running():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(self.WIND_DOWN_S)
        if not self._loop.is_running() and not self._loop.is_closed():
            self._loop.close()


async def _cancel_others() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)

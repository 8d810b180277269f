"""A sampler that runs a transformers model in this process and batches whatever waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import torch
from transformers import PreTrainedModel

from deliberation.episode import StopReason
from deliberation.errors import ModelError
from deliberation.faults import fault_point
from deliberation.samplers.base import Sample, SampleRequest
from deliberation.samplers.batch import Batch, Row
from deliberation.samplers.prefixes import PrefixCache
from deliberation.worker import in_forward_worker

T = TypeVar("T")

PREFIX_BYTES = 512 * 2**20
JOIN_SHARE = 4
"""New requests join once they are at least one for so many that run: each joining costs a pass."""


class TransformersSampler:
    """Samples from a causal language model; requests share a batch and leave it as they end.

    Every forward pass runs in the forward worker, one token at a time, so that a judge on the same
    worker gets its turn in between and a cancelled request costs no more than the token under way.
    What a request draws depends on its key alone, in float32 on a CPU whatever shares its batch.

    Args:
        model: on its device; put into eval mode for each pass and back afterwards.
        pad_id: fills the left of shorter prompts; attention never sees it, so any id will do.
        weights: version of the weights; set it anew whenever they have changed.
        context_tokens: longest prompt plus reply; None for the model's own limit.
        max_batch: most requests that run together (`sampling.max_batch`).
        prefix_bytes: how much memory keeps what was read, for prompts that begin alike.
        on_tokens: told from the worker thread how many tokens each pass has drawn.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        pad_id: int,
        weights: str,
        context_tokens: int | None = None,
        max_batch: int = 32,
        prefix_bytes: int = PREFIX_BYTES,
        on_tokens: Callable[[int], None] | None = None,
    ) -> None:
        self.context_tokens = smallest_window(context_tokens, model_window(model))
        self.on_tokens = on_tokens
        self._model = model
        self._pad_id = pad_id
        self._weights = weights
        self._max_batch = max_batch
        self._prefix_bytes = prefix_bytes
        self._prefixes = PrefixCache(prefix_bytes)
        self._stamp: int | None = None
        self._waiting: list[Row] = []
        self._batch = self._new_batch()
        self._task: asyncio.Task[None] | None = None
        self._closed = threading.Event()

    @property
    def weights(self) -> str:
        """Version of the weights that sample now."""
        return self._weights

    @weights.setter
    def weights(self, version: str) -> None:
        if self._waiting or self._batch.rows:
            raise RuntimeError("the weights' version changed while requests were running")
        self._weights = version
        self.forget()

    def forget(self) -> None:
        """Free what is kept of prompts read so far; nothing may be running."""
        self._prefixes.clear()

    def close(self) -> None:
        """Cancel what waits and what runs, after the token under way. Callable from any thread."""
        self._closed.set()

    async def sample(self, request: SampleRequest) -> Sample:
        """See `Sampler.sample`.

        Raises:
            ModelError: the device's memory does not hold the batch, or the logits are not finite.
            RuntimeError: the model failed, with its own message; or the sampler is closed.
        """
        if self._closed.is_set():
            raise RuntimeError("the sampler is closed")
        if not request.prompt_ids:
            raise ValueError("an empty prompt cannot be continued")
        limit = request.sampling.max_tokens
        if self.context_tokens is not None:
            limit = min(limit, self.context_tokens - len(request.prompt_ids))
        if limit <= 0:
            truncated = () if request.sampling.truncates else None
            return Sample((), (), StopReason.CONTEXT_FULL, truncated)
        row = Row(request, limit, asyncio.get_running_loop().create_future())
        self._waiting.append(row)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain())
        return await row.future

    async def _drain(self) -> None:
        """Run until nothing waits and nothing runs."""
        try:
            while (self._waiting or self._batch.rows) and not self._closed.is_set():
                await self._quiet()
                if joining := self._joining():
                    await self._work(partial(self._admit, joining), joining)
                if running := list(self._batch.rows):
                    ended = await self._work(self._step, running)
                    if ended is None:
                        self._batch = self._new_batch()
                    for row in ended or ():
                        row.finish()
        finally:
            if left := [*self._waiting, *self._batch.rows]:  # cancelled, or closed
                for row in left:
                    row.future.cancel()
                # The worker may still be busy with what it had: that is never touched again.
                self._waiting = []
                self._prefixes = PrefixCache(self._prefix_bytes)
                self._batch = self._new_batch()

    async def _quiet(self) -> None:
        """Let everything that is ready to run run, until no further request comes."""
        calm, count = 0, len(self._waiting)
        while calm < 3:
            await asyncio.sleep(0)
            calm = calm + 1 if len(self._waiting) == count else 0
            count = len(self._waiting)

    def _joining(self) -> list[Row]:
        """Take those that may join now out of the queue, in the order of their coming."""
        self._waiting = [row for row in self._waiting if not row.gone]
        running = len(self._batch.rows)
        room = min(self._max_batch - running, len(self._waiting))
        if room * JOIN_SHARE < running or not self._batch.can_be_joined:
            return []
        joining, self._waiting = self._waiting[:room], self._waiting[room:]
        return joining

    async def _work(self, function: Callable[[], T], rows: Sequence[Row]) -> T | None:
        """Run in the forward worker; a failure is handed to those that wait for `rows`."""
        task = asyncio.ensure_future(in_forward_worker(function, purpose="sampling"))
        await asyncio.wait({task})
        error = task.exception()
        if error is None:
            return task.result()
        for row in rows:
            row.fail(self._explain(error))
        return None

    def _explain(self, error: BaseException) -> BaseException:
        if not isinstance(error, (torch.OutOfMemoryError, MemoryError)) and not (
            isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
        ):
            return error
        told = ModelError(
            f"{self._weights}: the device's memory does not hold the batch; lower "
            f"sampling.max_batch (now {self._max_batch}) or the tokens of a turn."
        )
        told.__cause__ = error
        return told

    def _admit(self, rows: Sequence[Row]) -> None:
        # The version that the trainer sets is the rule; this also notices a step taken without it.
        stamp = sum(parameter._version for parameter in self._model.parameters())
        if stamp != self._stamp:
            self._prefixes.clear()
            self._stamp = stamp
        self._batch.admit(rows)

    def _step(self) -> list[Row]:
        fault_point("sampler.between_tokens")
        running = len(self._batch.rows)
        ended = self._batch.step()
        if self.on_tokens is not None:
            self.on_tokens(running)
        return ended

    def _new_batch(self) -> Batch:
        return Batch(self._model, self._pad_id, self._prefixes)


def model_window(model: PreTrainedModel) -> int | None:
    """Most tokens that the model attends to by its config; None where it names no limit."""
    window = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None)
    return None if window is None else int(window)


def smallest_window(*windows: int | None) -> int | None:
    return min((window for window in windows if window is not None), default=None)

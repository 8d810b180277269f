"""The rows that are being sampled together. They join and leave between tokens.

Everything here but `Row.finish` and `Row.fail` runs in the forward worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from deliberation.episode import StopReason
from deliberation.samplers.attention import grouped_attention
from deliberation.samplers.base import Sample, SampleRequest
from deliberation.samplers.caches import gap_filling, row_layers
from deliberation.samplers.drawing import draw
from deliberation.samplers.prefixes import PrefixCache
from deliberation.samplers.reading import Part, Reader, evaluating, join


@dataclass(eq=False)
class Row:
    """One request on its way."""

    request: SampleRequest
    limit: int
    """Most tokens to sample: what was asked, or what room the window leaves."""
    future: asyncio.Future[Sample]
    """Who waits for it; set in its own event loop only."""
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    truncated: list[float] = field(default_factory=list)
    stop: StopReason | None = None

    @property
    def gone(self) -> bool:
        """Nobody waits for it any more."""
        return self.future.done()

    @property
    def tokens(self) -> int:
        """Length of the prompt and of what was sampled."""
        return len(self.request.prompt_ids) + len(self.ids)

    def take(self, token: int, logprob: float, truncated: float | None) -> None:
        self.ids.append(token)
        self.logprobs.append(logprob)
        if truncated is not None:
            self.truncated.append(truncated)
        if token in self.request.stop_ids:
            self.stop = StopReason.END_OF_TURN
        elif len(self.ids) == self.limit:
            self.stop = StopReason.LENGTH

    def was_read(self) -> NDArray[np.int64]:
        """The ids that the cache knows: the last token drawn is not among them."""
        return np.array([*self.request.prompt_ids, *self.ids[:-1]], dtype=np.int64)

    def finish(self) -> None:
        """Hand over what was sampled."""
        if self.stop is None:
            raise RuntimeError("a row was finished that has not ended")
        if not self.gone:
            cut = self.request.sampling.truncates
            truncated = tuple(self.truncated) if cut else None
            self.future.set_result(
                Sample(tuple(self.ids), tuple(self.logprobs), self.stop, truncated)
            )

    def fail(self, error: BaseException) -> None:
        if not self.gone:
            self.future.set_exception(error)


class Batch:
    """Rows, their cache, and the logits that their next tokens are drawn from."""

    def __init__(self, model: PreTrainedModel, pad_id: int, prefixes: PrefixCache) -> None:
        self.rows: list[Row] = []
        self._model = model
        self._reader = Reader(model, pad_id, prefixes)
        self._part: Part | None = None

    @property
    def can_be_joined(self) -> bool:
        return self._reader.plain or not self.rows

    def admit(self, rows: Sequence[Row]) -> None:
        """Read the prompts of new rows and let them join. If it fails, those that run are kept."""
        with evaluating(self._model), grouped_attention(self._model):
            parts = self._reader.read(
                [np.array(row.request.prompt_ids, dtype=np.int64) for row in rows]
            )
            places = [place for part in parts for place in part.places]
            joined = join(parts if self._part is None else [self._part, *parts])
            joined.trim()
        self._part = joined
        self.rows = self.rows + [rows[place] for place in places]

    def step(self) -> list[Row]:
        """Draw a token for each row; returns the rows that ended, which leave the batch."""
        with evaluating(self._model), grouped_attention(self._model):
            self._keep([place for place, row in enumerate(self.rows) if not row.gone])
            if self._part is None:
                return []
            draws = draw(
                self._part.logits,
                [row.request.sampling for row in self.rows],
                [row.request.key for row in self.rows],
                [len(row.ids) for row in self.rows],
            )
            for place, row in enumerate(self.rows):
                row.take(draws.ids[place], draws.logprobs[place], draws.truncated_logprobs[place])
                if row.stop is not None and self._reader.plain:
                    kept = row_layers(self._part.cache, place, self._part.mask[place])
                    self._reader.prefixes.add(row.was_read(), kept)
            ended = [row for row in self.rows if row.stop is not None]
            self._keep([place for place, row in enumerate(self.rows) if row.stop is None])
            if self._part is not None:
                self._part = self._reader.advance(
                    self._part,
                    [row.ids[-1] for row in self.rows],
                    [row.tokens - 1 for row in self.rows],
                )
        return ended

    def _keep(self, places: list[int]) -> None:
        """Shrink to these rows, so that nothing is computed for the others."""
        if self._part is None or len(places) == len(self.rows):
            return
        order = gap_filling(len(self.rows), places)
        self.rows = [self.rows[place] for place in order]
        if not self.rows:
            self._part = None
            return
        self._part.keep(order)
        self._part.trim()

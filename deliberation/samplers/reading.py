"""Read prompts into a key-value cache, in as few and as little padded passes as pays.

A batch is left-padded; a mask and explicit positions make every row what it would be alone. What
several prompts begin with is read once and used for all of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import DynamicCache, DynamicLayer

from deliberation.samplers.caches import (
    Known,
    RoomyLayer,
    first_visible,
    joined_cache,
    known_cache,
    row_layers,
)
from deliberation.samplers.prefixes import LEAST_SHARED, PrefixCache, shared_beginnings

READ_TOKENS = 8192
"""Most padded tokens that one forward pass reads: bounds the memory of a pass."""
WASTE = 1.25
"""Prompts are read together while padding makes no more than this factor of them."""
PASS_TOKENS = 32
"""About how many tokens' work a further pass costs."""


@dataclass
class Part:
    """Rows after a forward pass: B rows over L columns, some of them padding.

    `cache` is a `DynamicCache`, or whatever the model keeps instead; untyped, because transformers
    types its layers as a union of all there are.
    """

    places: list[int]
    """Which prompts the rows are, in order."""
    logits: Tensor
    """(B, V), after the last column."""
    mask: Tensor
    """(B, L), 0 where a column is padding."""
    cache: Any

    def keep(self, order: Sequence[int]) -> None:
        """Row `i` becomes what row `order[i]` was; the others are dropped."""
        index = torch.tensor(order, device=self.mask.device)
        self.places = [self.places[row] for row in order]
        self.logits, self.mask = self.logits[index], self.mask[index]
        if not self.plain:
            self.cache.batch_select_indices(index)
            return
        for layer in self.cache.layers:
            layer.keep(order)

    def trim(self) -> None:
        """Cut off the columns that are padding in all rows."""
        if self.plain and (start := first_visible(self.mask)):
            self.mask = self.mask[:, start:]
            for layer in self.cache.layers:
                layer.trim(start)

    @property
    def plain(self) -> bool:
        return all(isinstance(layer, RoomyLayer) for layer in self.cache.layers)


def join(parts: Sequence[Part]) -> Part:
    """The rows of all parts in one, in order; several parts must be plain."""
    if len(parts) == 1:
        return parts[0]
    width = max(part.mask.shape[1] for part in parts)
    masks = [torch.nn.functional.pad(part.mask, (width - part.mask.shape[1], 0)) for part in parts]
    places = [place for part in parts for place in part.places]
    return Part(
        places=places,
        logits=torch.cat([part.logits for part in parts]),
        mask=torch.cat(masks),
        cache=joined_cache([part.cache for part in parts], len(places)),
    )


class Reader:
    """Forward passes of one model.

    Args:
        model: on its device.
        pad_id: fills up shorter rows; never attended to.
        prefixes: what was read before.
    """

    def __init__(self, model: PreTrainedModel, pad_id: int, prefixes: PrefixCache) -> None:
        self.prefixes = prefixes
        self._model = model
        self._pad_id = pad_id
        self._options: dict[str, Any] = {"use_cache": True}
        if "logits_to_keep" in inspect.signature(model.forward).parameters:
            self._options["logits_to_keep"] = 1  # the head for the last position only
        # Sliding windows and recurrent layers hold no plain sequence of keys that could be cut up
        # and put together again: such models read every prompt whole.
        layers = DynamicCache(config=model.config).layers
        self._layers = len(layers)
        self.plain = bool(layers) and all(type(layer) is DynamicLayer for layer in layers)
        """Whether rows can be joined, trimmed and kept as prefixes."""

    @property
    def device(self) -> torch.device:
        device: torch.device = self._model.device
        return device

    def read(self, prompts: Sequence[NDArray[np.int64]]) -> list[Part]:
        """The prompts, each in one of the parts; a single part unless `plain`."""
        if not self.plain:
            return [self._pass(range(len(prompts)), prompts, [(0, None)] * len(prompts))]
        for beginning in shared_beginnings(prompts):
            # The last token is never looked up, so one more stands for whatever follows.
            known = self.prefixes.longest(np.append(beginning, -1))
            if len(beginning) >= known[0] + LEAST_SHARED:
                part = self._pass([0], [beginning], [known])
                self.prefixes.add(beginning, row_layers(part.cache, 0, part.mask[0]))
        known_parts = [self.prefixes.longest(prompt) for prompt in prompts]
        unread = [len(ids) - known for ids, (known, _) in zip(prompts, known_parts, strict=True)]
        return [self._pass(places, prompts, known_parts) for places in grouped_by_length(unread)]

    def advance(self, part: Part, last: Sequence[int], positions: Sequence[int]) -> Part:
        """One more token for each row; the cache of `part` is used up.

        Args:
            last: the token of each row.
            positions: its place in the row, from 0.
        """
        mask = torch.cat([part.mask, part.mask.new_ones(len(last), 1)], dim=1)
        return self._forward(
            part.places,
            torch.tensor(last, device=self.device)[:, None],
            mask,
            torch.tensor(positions, device=self.device)[:, None],
            part.cache,
        )

    def _pass(
        self, places: Sequence[int], prompts: Sequence[NDArray[np.int64]], known: Sequence[Known]
    ) -> Part:
        """One forward pass over what is not known of the prompts at `places`.

        Columns: the known parts, padded on the left to the longest; then the rest, padded likewise.
        """
        past = max(known[place][0] for place in places)
        width = max(len(prompts[place]) - known[place][0] for place in places)
        ids = np.full((len(places), width), self._pad_id, dtype=np.int64)
        mask = np.zeros((len(places), past + width), dtype=np.int64)
        positions = np.zeros((len(places), width), dtype=np.int64)
        for row, place in enumerate(places):
            prompt, length = prompts[place], known[place][0]
            rest = len(prompt) - length
            ids[row, width - rest :] = prompt[length:]
            positions[row, width - rest :] = np.arange(length, len(prompt))
            mask[row, past - length : past] = 1
            mask[row, past + width - rest :] = 1
        if self.plain:
            cache = known_cache([known[place] for place in places], width, self._layers)
        else:
            cache = DynamicCache(config=self._model.config)
        return self._forward(
            list(places),
            torch.from_numpy(ids).to(self.device),
            torch.from_numpy(mask).to(self.device),
            torch.from_numpy(positions).to(self.device),
            cache,
        )

    def _forward(
        self, places: list[int], ids: Tensor, mask: Tensor, positions: Tensor, cache: Any
    ) -> Part:
        output = self._model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            **self._options,
        )
        return Part(places, output.logits[:, -1], mask, output.past_key_values)


def grouped_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Places of `lengths` in groups of similar length, so that padding costs little."""
    group: list[int] = []
    total = 0
    for place in sorted(range(len(lengths)), key=lambda place: lengths[place]):
        padded = lengths[place] * (len(group) + 1)
        wasteful = padded > WASTE * (total + lengths[place]) + PASS_TOKENS
        if group and (wasteful or padded > READ_TOKENS):
            yield group
            group, total = [], 0
        group.append(place)
        total += lengths[place]
    if group:
        yield group


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """No gradients, and every module in eval mode; each is put back as it was."""
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        with torch.no_grad():
            yield
    finally:
        for module in training:
            module.training = True

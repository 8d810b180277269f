"""Attention keys and values of token sequences that were already read, to be used again.

The prompts of a group share persona and dilemma, and with full history each prompt extends the one
before it; reading them anew is most of the work of a dialogue on a CPU.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Layers = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer, (heads, tokens, size)."""

LEAST_SHARED = 16
"""Shorter common beginnings are not worth their bookkeeping."""


@dataclass(frozen=True, eq=False)
class Prefix:
    """A sequence that was read, and what attention needs of it."""

    ids: NDArray[np.int64]
    layers: Layers

    @property
    def bytes(self) -> int:
        return sum(part.numel() * part.element_size() for layer in self.layers for part in layer)


class PrefixCache:
    """The sequences read last, up to a limit in bytes; valid for one version of the weights."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._entries: OrderedDict[bytes, Prefix] = OrderedDict()
        self._used = 0

    def __len__(self) -> int:
        return len(self._entries)

    def longest(self, ids: NDArray[np.int64]) -> tuple[int, Prefix | None]:
        """How many of the first `ids` are known, at most all but the last, and where."""
        best, found = 0, b""
        for key, entry in self._entries.items():
            if (length := common_length(ids[:-1], entry.ids)) > best:
                best, found = length, key
        if best < LEAST_SHARED:
            return 0, None
        self._entries.move_to_end(found)
        return best, self._entries[found]

    def add(self, ids: NDArray[np.int64], layers: Layers) -> None:
        """Remember a sequence; the ones not used for longest make room."""
        entry = Prefix(ids, layers)
        key = ids.tobytes()
        if key in self._entries or entry.bytes > self._limit:
            return
        self._entries[key] = entry
        self._used += entry.bytes
        while self._used > self._limit:
            _, oldest = self._entries.popitem(last=False)
            self._used -= oldest.bytes

    def clear(self) -> None:
        self._entries.clear()
        self._used = 0


def common_length(left: NDArray[np.int64], right: NDArray[np.int64]) -> int:
    """How many ids two sequences have in common at their beginning."""
    size = min(len(left), len(right))
    differing = np.flatnonzero(left[:size] != right[:size])
    return int(differing[0]) if differing.size else size


def shared_beginnings(prompts: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Beginnings that are worth reading once, for two or more of the prompts.

    Neighbours in sorted order belong together where what they share is not much less than what
    either shares with its other neighbour: the dialogues of one scenario, rather than all that
    have a persona in common. A whole prompt counts without its last token, which must be read to
    get the logits after it.
    """
    ordered = sorted((prompt[:-1] for prompt in prompts), key=lambda ids: ids.tolist())
    shared = [common_length(*pair) for pair in pairwise(ordered)]
    best = [max(pair) for pair in zip([0, *shared], [*shared, 0], strict=True)]
    found: list[NDArray[np.int64]] = []
    length = 0
    for place, common in enumerate([*shared, 0]):
        together = place < len(shared) and common >= max(
            LEAST_SHARED, 0.8 * max(best[place], best[place + 1])
        )
        if together:
            length = min(length, common) if length else common
        elif length:
            found.append(ordered[place][:length])
            length = 0
    return found

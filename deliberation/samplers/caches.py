"""Key-value caches that rows can join, leave and grow in without being copied for each token.

transformers' own cache is copied whole, layer by layer, for each new token: on a CPU that is most
of the time of decoding. Here a layer keeps free columns that the next tokens are written into.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer

from deliberation.samplers.prefixes import Layers, Prefix

ROOM = 64
"""Columns that are kept free for tokens to come."""

Known = tuple[int, Prefix | None]
"""How many first tokens of a prompt are known already, and where they are."""


class RoomyLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """Keys and values of one layer, (B, heads, L, size), as the first columns of larger tensors."""

    def __init__(self, rooms: tuple[Tensor, Tensor] | None = None, columns: int = 0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._rooms = rooms
        if rooms is not None:
            self.dtype, self.device = rooms[0].dtype, rooms[0].device
            self.is_initialized = True
            self._show(columns)

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append columns; returns all keys and values."""
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        self.dtype, self.device = key_states.dtype, key_states.device
        self.is_initialized = True
        if self._rooms is None:
            self._rooms = _rooms((key_states, value_states), len(key_states), end)
        elif self._rooms[0].shape[-2] < end:
            old, self._rooms = self._rooms, _rooms(self._rooms, len(key_states), end)
            for room, before in zip(self._rooms, old, strict=True):
                room[:, :, :start] = before[:, :, :start]
        for room, states in zip(self._rooms, (key_states, value_states), strict=True):
            room[:, :, start:end] = states
        self._show(end)
        assert self.keys is not None
        assert self.values is not None
        return self.keys, self.values

    def keep(self, order: Sequence[int]) -> None:
        """Row `i` becomes what row `order[i]` was; `order` moves later rows into gaps only."""
        assert self._rooms is not None
        columns = self.get_seq_length()
        for room in self._rooms:
            for target, source in enumerate(order):
                if source != target:
                    room[target, :, :columns] = room[source, :, :columns]
        self._rooms = (self._rooms[0][: len(order)], self._rooms[1][: len(order)])
        self._show(columns)

    def trim(self, start: int) -> None:
        """Forget the first `start` columns."""
        assert self._rooms is not None
        columns = self.get_seq_length() - start
        self._rooms = (self._rooms[0][:, :, start:], self._rooms[1][:, :, start:])
        self._show(columns)

    def _show(self, columns: int) -> None:
        assert self._rooms is not None
        self.keys, self.values = (room[:, :, :columns] for room in self._rooms)


def _rooms(like: tuple[Tensor, Tensor], rows: int, columns: int) -> tuple[Tensor, Tensor]:
    """Tensors with free columns, shaped as `like` (…, heads, any, size) in all else."""
    keys, values = (
        part.new_empty(rows, part.shape[-3], columns + ROOM, part.shape[-1]) for part in like
    )
    return keys, values


def cache_of(layers: Sequence[RoomyLayer]) -> DynamicCache:
    cache = DynamicCache()
    cache.layers = list(layers)
    return cache


def joined_cache(caches: Sequence[Any], rows: int) -> DynamicCache:
    """One cache with all rows of several plain ones, shorter ones padded on the left."""
    width = max(cache.get_seq_length() for cache in caches)
    joined = []
    for same in zip(*(cache.layers for cache in caches), strict=True):
        rooms = _rooms((same[0].keys, same[0].values), rows, width)
        first = 0
        for layer in same:
            last = first + len(layer.keys)
            for room, part in zip(rooms, (layer.keys, layer.values), strict=True):
                pad = width - part.shape[2]
                room[first:last, :, :pad] = 0
                room[first:last, :, pad:width] = part
            first = last
        joined.append(RoomyLayer(rooms, width))
    return cache_of(joined)


def known_cache(known: Sequence[Known], further: int, layers: int) -> DynamicCache:
    """A cache of `layers` layers with what is known of each row, padded on the left.

    Room is made for `further` columns.
    """
    past = max(length for length, _ in known)
    example = next((prefix.layers for _, prefix in known if prefix is not None), None)
    if example is None:
        return cache_of([RoomyLayer() for _ in range(layers)])
    made = []
    for number, like in enumerate(example):
        rooms = _rooms(like, len(known), past + further)
        for row, (length, prefix) in enumerate(known):
            for which, room in enumerate(rooms):
                room[row, :, : past - length] = 0
                if prefix is not None:
                    room[row, :, past - length : past] = prefix.layers[number][which][:, :length]
        made.append(RoomyLayer(rooms, past))
    return cache_of(made)


def row_layers(cache: Any, row: int, mask: Tensor) -> Layers:
    """A copy of what a plain cache holds of one row, without the columns that `mask` (L,) hides."""
    columns = mask.nonzero()[:, 0]
    return [
        (layer.keys[row].index_select(1, columns), layer.values[row].index_select(1, columns))
        for layer in cache.layers
    ]


def gap_filling(size: int, kept: Sequence[int]) -> list[int]:
    """Which of `size` rows each kept row is to be, moving as few as possible: later ones into
    gaps."""
    staying = {row for row in kept if row < len(kept)}
    movers = iter(sorted(row for row in kept if row >= len(kept)))
    return [row if row in staying else next(movers) for row in range(min(size, len(kept)))]


def first_visible(mask: Tensor) -> int:
    """The first column of `mask` (B, L) that is not padding in all rows."""
    return int(mask.any(dim=0).to(torch.int32).argmax())

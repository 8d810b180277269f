"""Which of many texts are near to each other, or to a new one.

Candidates come from bands of MinHash signatures; each is then verified by the exact Jaccard index
of its shingles. So whatever is reported is true, and of the pairs at the threshold at least 99 in a
hundred are found; of nearer ones, more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .minhash import band_keys, bands_for
from .shingles import Shingles, jaccard, word_shingles

CROWD = 50
"""Texts in one bucket above which each is compared with its neighbours there only."""
NEIGHBOURS = 8
ENOUGH = 20
"""Pairs found of a text after which it is compared with others that lack them only."""
_CHUNK = 100_000
"""Pairs verified at once: what bounds the memory."""

Places: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Near:
    """The nearest text, and the Jaccard index with it."""

    id: str
    jaccard: float


@dataclass(frozen=True)
class NearPair:
    """Two texts by their ids, in the order in which they were added."""

    first: str
    second: str
    jaccard: float


@dataclass
class NearIndex:
    """Texts that are compared with each other, or with new ones one at a time.

    Two texts are near if the Jaccard index of their shingles is above `threshold`, which is above 0
    and at most 1. `shingle` turns a text into its set of shingles.
    """

    threshold: float
    shingle: Callable[[str], Shingles] = word_shingles
    _ids: list[str] = field(default_factory=list, init=False)
    _sets: list[Shingles] = field(default_factory=list, init=False)
    _keys: list[NDArray[np.uint64]] = field(default_factory=list, init=False)
    _buckets: list[dict[int, list[int]]] = field(default_factory=list, init=False)
    _filed: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.threshold <= 1.0:
            raise ValueError(f"a threshold is above 0 and at most 1, not {self.threshold:g}")
        self._bands, self._rows = bands_for(self.threshold)

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, id: str, text: str) -> bool:
        """Take a text in; False where it has no shingles, so that nothing can be near to it."""
        return self.add_shingles(id, self.shingle(text))

    def add_shingles(self, id: str, shingles: Shingles) -> bool:
        """The same for a text whose shingles are known already."""
        if not len(shingles):
            return False
        self._ids.append(id)
        self._sets.append(shingles)
        self._keys.append(band_keys(shingles, self._bands, self._rows))
        return True

    def nearest(self, text: str) -> Near | None:
        """The nearest of the texts added so far, if it is above the threshold."""
        return self.nearest_to(self.shingle(text))

    def nearest_to(self, shingles: Shingles) -> Near | None:
        """The same for a text whose shingles are known already."""
        if not len(shingles):
            return None
        self._file()
        found: set[int] = set()
        keys = band_keys(shingles, self._bands, self._rows).tolist()
        for bucket, key in zip(self._buckets, keys, strict=True):
            found.update(bucket.get(key, ()))
        measured = [(jaccard(shingles, self._sets[place]), -place) for place in found]
        best, place = max(measured, default=(0.0, 0))
        return Near(self._ids[-place], best) if best > self.threshold else None

    def _file(self) -> None:
        """Late, so that who asks for pairs alone does not pay for the dicts."""
        if not self._buckets:
            self._buckets = [{} for _ in range(self._bands)]
        for place in range(self._filed, len(self._keys)):
            for bucket, key in zip(self._buckets, self._keys[place].tolist(), strict=True):
                bucket.setdefault(key, []).append(place)
        self._filed = len(self._keys)

    def pairs(self) -> list[NearPair]:
        """All near pairs, in the order of their first text, then of their second.

        Where very many texts are near to each other, as in a set filled from one template, their
        number would grow with the square of the size. Then not all pairs are found, but every text
        that is near to another is in some pair.
        """
        if len(self._ids) < 2:
            return []
        columns = np.array(self._keys).T
        verify = _Verifier(self._sets)
        count = len(self._ids)
        codes = np.empty(0, dtype=np.int64)
        degrees = np.zeros(count, dtype=np.int64)
        measured = np.empty(0)
        for band in range(self._bands):
            for first, second in _candidates(columns[band], columns[(band + 1) % self._bands]):
                wanted = (degrees[first] < ENOUGH) | (degrees[second] < ENOUGH)
                first, second = first[wanted], second[wanted]
                known = _contains(codes, first * count + second)
                first, second = first[~known], second[~known]
                index = verify(first, second)
                near = index > self.threshold
                first, second, index = first[near], second[near], index[near]
                np.add.at(degrees, first, 1)
                np.add.at(degrees, second, 1)
                codes = np.concatenate([codes, first * count + second])
                measured = np.concatenate([measured, index])
                order = np.argsort(codes)
                codes, measured = codes[order], measured[order]
        return [
            NearPair(self._ids[code // count], self._ids[code % count], value)
            for code, value in zip(codes.tolist(), measured.tolist(), strict=True)
        ]


class _Verifier:
    """Exact Jaccard indices of many pairs at once, by rows of a sparse matrix."""

    def __init__(self, sets: list[Shingles]) -> None:
        from scipy.sparse import csr_array  # half a second, and most commands compare nothing

        self._sizes = np.array([len(one) for one in sets], dtype=np.int64)
        every = np.concatenate(sets)
        order = np.argsort(every, kind="stable")
        ordered = every[order]
        new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
        columns = np.empty(len(every), dtype=np.int32)
        columns[order] = np.cumsum(new, dtype=np.int32) - 1
        # What stands in one text alone is in no intersection, and it is most of all.
        shared = np.bincount(columns)[columns] > 1
        owners = np.repeat(np.arange(len(sets), dtype=np.int32), self._sizes)[shared]
        starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(sets)))])
        ones = np.ones(len(owners), dtype=np.int32)
        self._matrix = csr_array(
            (ones, columns[shared], starts.astype(np.int32)),
            shape=(len(sets), int(columns.max()) + 1),
        )

    def __call__(self, first: Places, second: Places) -> NDArray[np.float64]:
        if not len(first):
            return np.empty(0)
        product = self._matrix[first].multiply(self._matrix[second])
        shared = np.asarray(product.sum(axis=1), dtype=np.float64).ravel()
        return shared / (self._sizes[first] + self._sizes[second] - shared)


def _candidates(
    keys: NDArray[np.uint64], next_keys: NDArray[np.uint64]
) -> Iterator[tuple[Places, Places]]:
    """Pairs of places (lower, higher) with the same key, in chunks.

    In a crowded bucket texts are ordered by their next key, so that copies stand together.
    """
    order = np.lexsort((next_keys, keys))
    ordered = keys[order]
    edges = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    starts = np.concatenate([[0], edges])
    sizes = np.diff(np.concatenate([starts, [len(keys)]]))
    crowded = np.repeat(sizes > CROWD, sizes)
    rest = np.repeat(starts + sizes, sizes) - np.arange(len(keys))  # with itself, to the end
    firsts: list[Places] = []
    seconds: list[Places] = []
    waiting = 0
    for step in range(1, CROWD):
        allowed = (rest > step) & (~crowded | (step <= NEIGHBOURS))
        places = np.flatnonzero(allowed)
        if not len(places):
            break
        for part in np.array_split(places, 1 + len(places) // _CHUNK):
            one, other = order[part], order[part + step]
            firsts.append(np.minimum(one, other))
            seconds.append(np.maximum(one, other))
            waiting += len(part)
            if waiting >= _CHUNK:
                yield np.concatenate(firsts), np.concatenate(seconds)
                firsts, seconds, waiting = [], [], 0
    if waiting:
        yield np.concatenate(firsts), np.concatenate(seconds)


def _contains(ordered: Places, wanted: Places) -> NDArray[np.bool_]:
    if not len(ordered):
        return np.zeros(len(wanted), dtype=np.bool_)
    found = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return np.asarray(ordered[found] == wanted)

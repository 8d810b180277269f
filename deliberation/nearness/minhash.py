"""MinHash signatures and how they are cut into bands.

Our own over numpy, though `datasketch` is well kept: measured on 100,000 texts of 100 words it took
52 s for one kind of shingle, and its tables, which are dicts of Python objects, 2 GiB; two kinds
are wanted in 90 s and 2 GiB. `rensa` is fast, but young and one person's, and does not verify.

Two sets share the smallest value of a random hash function with a chance that is their Jaccard
index J. A signature holds the smallest values under many functions. It is cut into b bands of r
values; texts that agree in all r values of some band are candidates, which happens with a chance
of 1 - (1 - J^r)^b.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .shingles import Shingles

MOST_VALUES = 160
"""Longest signature that is worth its time; only bands of a single row may need a longer one."""
_SEED = 20_240_607

BandKeys: TypeAlias = NDArray[np.uint64]
"""One for each band: equal keys, equal values in the band."""


def bands_for(threshold: float, recall: float = 0.99) -> tuple[int, int]:
    """(bands, rows of a band) that find a pair of Jaccard index `threshold` with chance `recall`.

    The chance of missing it is (1 - threshold^rows)^bands, so bands = log(1 - recall) /
    log(1 - threshold^rows), rounded up. Of what a signature has room for, the most rows are taken,
    since more rows mean fewer candidates in vain. A nearer pair is found with a higher chance.
    """
    best = (_bands(threshold, 1, recall), 1)
    for rows in range(2, MOST_VALUES + 1):
        bands = _bands(threshold, rows, recall)
        if bands * rows > MOST_VALUES:
            break
        best = (bands, rows)
    return best


def _bands(threshold: float, rows: int, recall: float) -> int:
    agree = threshold**rows
    if agree >= 1.0:
        return 1
    return math.ceil(math.log(1.0 - recall) / math.log1p(-agree))


def band_keys(shingles: Shingles, bands: int, rows: int) -> BandKeys:
    """The keys of a set that is not empty."""
    factors, offsets = _functions(bands * rows)
    # Half of each hash is enough to find candidates, and twice as fast.
    halves = (shingles >> np.uint64(32)).astype(np.uint32)
    values = halves[:, None] * factors
    values ^= offsets
    smallest = values.min(axis=0).reshape(bands, rows).astype(np.uint64)
    keys: BandKeys = smallest[:, 0]
    for row in range(1, rows):
        keys = (keys ^ smallest[:, row]) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(31)
    return keys


@lru_cache(maxsize=8)
def _functions(count: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """x ↦ a·x ⊕ b with odd a: each permutes the 32-bit numbers."""
    generator = np.random.default_rng(_SEED)
    factors = generator.integers(1, 2**32, size=count, dtype=np.uint32) | np.uint32(1)
    return factors, generator.integers(0, 2**32, size=count, dtype=np.uint32)

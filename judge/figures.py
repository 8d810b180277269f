"""How well one set of judgements goes with another: figures with intervals.

All take plain sequences; a figure that cannot be had (one class only, no variation) is None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
Figure = Callable[[Array, Array], float | None]

RESAMPLES = 1000
COVERAGE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A figure over `n` items and the interval in which 95 % of bootstrap resamples lie."""

    value: float | None
    low: float | None
    high: float | None
    n: int


def auc(scores: Array, truth: Array) -> float | None:
    """Chance that a positive item scores above a negative one; ties count half."""
    positive, negative = scores[truth > 0.5], scores[truth <= 0.5]
    if not len(positive) or not len(negative):
        return None
    ranks = stats.rankdata(np.concatenate([positive, negative]))
    above = ranks[: len(positive)].sum() - len(positive) * (len(positive) + 1) / 2
    return float(above / (len(positive) * len(negative)))


def accuracy(verdicts: Array, truth: Array) -> float | None:
    """Share of verdicts (0 or 1) that are right."""
    return float(np.mean((verdicts > 0.5) == (truth > 0.5))) if len(truth) else None


def spearman(first: Array, second: Array) -> float | None:
    """Rank correlation; None where one side is constant."""
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.clip(stats.spearmanr(first, second).statistic, -1.0, 1.0))


def within_one(scores: Array, levels: Array) -> float | None:
    """Share of scores at most one level away."""
    return float(np.mean(np.abs(scores - levels) <= 1.0)) if len(levels) else None


def mean_gap(first: Array, second: Array) -> float | None:
    """Mean of first − second."""
    return float(np.mean(first - second)) if len(first) else None


def quadratic_weighted_kappa(first: Array, second: Array) -> float | None:
    """Agreement beyond chance of two ratings on 0–5, rounded to levels (halves up); a disagreement
    weighs by its square. None where chance would agree fully."""
    if not len(first):
        return None
    one, other = (np.floor(ratings + 0.5).astype(int) for ratings in (first, second))
    levels = np.arange(min(one.min(), other.min()), max(one.max(), other.max()) + 1)
    weights = np.subtract.outer(levels, levels).astype(float) ** 2
    observed = np.zeros_like(weights)
    np.add.at(observed, (one - levels[0], other - levels[0]), 1.0)
    expected = np.outer(observed.sum(1), observed.sum(0)) / len(first)
    chance = float((weights * expected).sum())
    return None if chance == 0 else 1.0 - float((weights * observed).sum()) / chance


def estimate(
    figure: Figure,
    first: Sequence[float],
    second: Sequence[float],
    groups: Sequence[str] | None = None,
    seed: int = 0,
) -> Estimate:
    """A figure with its bootstrap interval.

    Args:
        groups: items with the same name are drawn together, as a pair that differs in one sentence
            should be; None draws each by itself.
    """
    one, other = np.asarray(first, float), np.asarray(second, float)
    value = figure(one, other)
    if value is None:
        return Estimate(None, None, None, len(one))
    names = np.asarray(groups if groups is not None else [str(n) for n in range(len(one))])
    members = [np.flatnonzero(names == name) for name in dict.fromkeys(names.tolist())]
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(RESAMPLES):
        drawn = np.concatenate(
            [members[n] for n in generator.integers(0, len(members), len(members))]
        )
        resampled = figure(one[drawn], other[drawn])
        if resampled is not None and math.isfinite(resampled):
            found.append(resampled)
    if not found:
        return Estimate(value, None, None, len(one))
    tail = (1 - COVERAGE) / 2
    low, high = np.quantile(found, [tail, 1 - tail])
    return Estimate(value, float(low), float(high), len(one))

"""Judges that read nothing: what any judge worth its price must beat."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from deliberation.keys import stable_key

Array = NDArray[np.float64]
Baseline = Callable[[Sequence[str]], Array]
"""From texts to rows of features."""

FOLDS = 5
PENALTY = 10.0
"""Of the ridge regression, in units of a standardised feature's variance."""
RAREST_WORD = 2
"""Texts that a word must stand in to be a feature."""


def word_lengths(texts: Sequence[str]) -> Array:
    """One feature: how many words there are."""
    return np.asarray([[float(len(_words(text)))] for text in texts])


def word_counts(texts: Sequence[str]) -> Array:
    """One feature a word: whether it is there."""
    sets = [set(_words(text)) for text in texts]
    common = Counter(word for words in sets for word in words)
    kept = sorted(word for word, count in common.items() if count >= RAREST_WORD)
    return np.asarray([[float(word in words) for word in kept] for words in sets])


def held_out_places(
    features: Array, targets: Sequence[float], groups: Sequence[str]
) -> list[float]:
    """For each text, what a ridge regression that was fitted on the other folds makes of it.

    Folds are drawn by a hash of the group, so that both rows of a pair lie in the same.
    """
    folds = np.asarray([stable_key("fold", group) % FOLDS for group in groups])
    truth = np.asarray(targets, float)
    places = np.zeros(len(truth))
    for fold in range(FOLDS):
        inside, outside = folds == fold, folds != fold
        if not inside.any() or not outside.any():
            continue
        mean, scale = features[outside].mean(0), features[outside].std(0) + 1e-9
        x, y = (features[outside] - mean) / scale, truth[outside]
        weights = np.linalg.solve(
            x @ x.T + PENALTY * np.eye(len(x)), y - y.mean()
        )  # in the space of the texts, of which there are fewer than words
        places[inside] = (features[inside] - mean) / scale @ (x.T @ weights) + y.mean()
    return places.tolist()


def _words(text: str) -> list[str]:
    return re.findall(r"[\w'’]+", text.casefold())

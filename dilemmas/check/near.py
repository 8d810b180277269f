"""Rows that are nearly the same: in their words, in their skeletons, in their meaning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from deliberation.errors import ConfigError
from deliberation.nearness import (
    NearIndex,
    NearPair,
    Shingles,
    skeleton_shingles,
)

from .findings import DataCheck, Severity, checked
from .limits import DataLimits
from .reading import DataFile, Entry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WORDS, SKELETONS, EMBEDDINGS = "near words", "near skeletons", "near embeddings"
INSTALL = "pip install 'deliberation[embeddings]'"
_BLOCK = 1024
"""Rows whose cosines with all others are held at once."""


def near_words(file: DataFile, limits: DataLimits) -> DataCheck:
    """Pairs whose word 5-grams have a Jaccard index above `limits.near_words`."""
    return _compared(file, WORDS, file.shingles, limits.near_words)


def near_skeletons(file: DataFile, limits: DataLimits) -> DataCheck:
    """The same for skeletons; rows that are not English have none."""
    shingles = (skeleton_shingles(entry.body) for entry in file.entries)
    return _compared(file, SKELETONS, shingles, limits.near_skeletons)


def _compared(file: DataFile, name: str, shingles: Iterable[Shingles], limit: float) -> DataCheck:
    index = NearIndex(limit)
    taken = sum(index.add_shingles(str(place), one) for place, one in enumerate(shingles))
    if file.entries and not taken:
        return DataCheck(file.label, name, limit=limit, skipped="no row is English")
    return _nearest_earlier(
        file.label, name, "error", file.entries, index.pairs(), limit, "Jaccard index"
    )


def _nearest_earlier(
    file: str,
    name: str,
    severity: Severity,
    entries: Sequence[Entry],
    pairs: Iterable[NearPair],
    limit: float,
    measure: str,
) -> DataCheck:
    """One finding a row, with the nearest before it: that row is the one to write anew."""
    best: dict[int, tuple[float, int]] = {}
    for pair in pairs:
        first, second = int(pair.first), int(pair.second)
        best[second] = max(best.get(second, (0.0, 0)), (pair.jaccard, first))
    found: list[tuple[Severity, str, str, float | None]] = []
    for second in sorted(best):
        value, first = best[second]
        earlier, later = entries[first], entries[second]
        detail = (
            f'"{later.id}" is near to "{earlier.id}" in line {earlier.line} '
            f"({measure} {value:.2f})."
        )
        found.append((severity, later.place, detail, round(value, 4)))
    worst = max((value for value, _ in best.values()), default=None)
    measured = None if worst is None else round(worst, 4)
    return checked(file, name, found, measured=measured, limit=limit)


def near_embeddings(file: DataFile, limits: DataLimits, model: Any | None) -> DataCheck:
    """Pairs whose embeddings have a cosine above `limits.near_embeddings`, as warnings.

    `model` is a `SentenceTransformer`, or None where none was asked for.
    """
    limit = limits.near_embeddings
    if model is None:
        skipped = "no --embeddings model given"
        return DataCheck(file.label, EMBEDDINGS, limit=limit, skipped=skipped)
    vectors = model.encode(
        [entry.body for entry in file.entries],
        normalize_embeddings=True,
        convert_to_numpy=True,
        show_progress_bar=False,
    )
    pairs = _cosine_pairs(vectors, limit)
    return _nearest_earlier(file.label, EMBEDDINGS, "warning", file.entries, pairs, limit, "cosine")


def _cosine_pairs(vectors: NDArray[np.float32], limit: float) -> list[NearPair]:
    """Of unit vectors, one a row."""
    import numpy as np

    pairs = []
    for start in range(0, len(vectors), _BLOCK):
        cosines = vectors[start : start + _BLOCK] @ vectors[: start + _BLOCK].T
        for row, column in np.argwhere(cosines > limit).tolist():
            if column < start + row:
                value = float(cosines[row, column])
                pairs.append(NearPair(str(column), str(start + row), value))
    return pairs


def embedding_model(name: str) -> Any:
    """The sentence-transformers model of this id or folder, on the CPU unless torch has a GPU.

    Raises:
        ConfigError: the package is not installed, or there is no such model.
    """
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise ConfigError(
            f"--embeddings: sentence-transformers is not installed; {INSTALL}."
        ) from None
    try:
        return SentenceTransformer(name)
    except (OSError, ValueError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ConfigError(
            f'--embeddings "{name}": cannot be loaded ({reason}); name a sentence-transformers '
            "model or its folder."
        ) from None

"""Wording that comes again and again over a set: 5-grams, sentences, openings.

Hashes are counted first, and only those that stand in too many rows are put into words again: a
hundred thousand rows have ten million 5-grams.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from deliberation.nearness import MOST_LETTERS, passage_shingles, passage_words, words

from .findings import DataCheck, Severity, checked
from .limits import DataLimits
from .reading import Entry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OPENING = 4
"""Words of an opening."""
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*\s+|[。！？\n]")


def repeated_grams(file: str, entries: Sequence[Entry], limits: DataLimits) -> DataCheck:
    """Word 5-grams that stand in more than `limits.gram_rows` rows, in whichever text of them."""
    import numpy as np

    sets = [passage_shingles(entry.texts) for entry in entries]
    crossed, worst = _frequent(np.concatenate(sets), limits.gram_rows) if sets else ({}, 0)
    found: list[tuple[Severity, str, str, float | None]] = []
    left = dict(crossed)
    hashes = np.array(sorted(left), dtype=np.uint64)
    for entry, one in zip(entries, sets, strict=True):
        if not left:
            break
        # Few rows have any, so that few need to be cut into words again.
        if len(np.intersect1d(one, hashes, assume_unique=True)):
            for gram, text in passage_words(entry.texts, left).items():
                count = left.pop(gram)
                found.append(("error", entry.place, f'"{text}" stands in {count} rows.', count))
    found.sort(key=lambda one: -(one[3] or 0))
    return checked(file, "5-grams", found, measured=worst, limit=limits.gram_rows)


def repeated_sentences(file: str, entries: Sequence[Entry], limits: DataLimits) -> DataCheck:
    """Sentences of `limits.sentence_words` words or more in more than `limits.sentence_rows`."""
    import numpy as np

    hashes = np.array(
        [key for entry in entries for key in {hash(s) for s in sentences(entry, limits)}],
        dtype=np.int64,
    )
    left, worst = _frequent(hashes, limits.sentence_rows)
    found: list[tuple[Severity, str, str, float | None]] = []
    for entry in entries:
        if not left:
            break
        for sentence in sentences(entry, limits):
            count = left.pop(hash(sentence), 0)
            if count:
                detail = f'"{_short(sentence)}" stands in {count} rows.'
                found.append(("error", entry.place, detail, count))
    return checked(file, "sentences", found, measured=worst, limit=limits.sentence_rows)


def sentences(entry: Entry, limits: DataLimits) -> Iterator[str]:
    """The longer sentences of a row, in lower case and without what ends them."""
    for text in entry.texts:
        for sentence in _SENTENCE_END.split(text.lower()):
            parts = sentence.split()
            # Words that long are a text without spaces, of which each character counts.
            spaced = len(sentence) <= 2 * MOST_LETTERS * len(parts)
            if (len(parts) if spaced else len(words(sentence))) >= limits.sentence_words:
                yield " ".join(parts).rstrip("\"'”’.!?…")


def repeated_openings(file: str, entries: Sequence[Entry], limits: DataLimits) -> DataCheck:
    """First 4 words of the situation that begin more than `limits.opening_share` of all."""
    if len(entries) < limits.balance_from:
        return DataCheck(
            file, "openings", limit=limits.opening_share, skipped=f"{len(entries)} rows"
        )
    rows: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.situation:
            # The beginning alone: splitting the whole text takes ten times as long.
            rows.setdefault(" ".join(words(entry.situation[:100])[:OPENING]), []).append(entry)
    found: list[tuple[Severity, str, str, float | None]] = []
    for opening, those in sorted(rows.items(), key=lambda item: -len(item[1])):
        share = len(those) / len(entries)
        if len(those) > limits.opening_share * len(entries):
            detail = f'{len(those)} of {len(entries)} rows begin with "{opening} …".'
            found.append(("error", those[0].place, detail, round(share, 4)))
    worst = max((len(those) for those in rows.values()), default=0) / len(entries)
    return checked(file, "openings", found, measured=round(worst, 4), limit=limits.opening_share)


def _frequent(
    hashes: NDArray[np.uint64] | NDArray[np.int64], most: int
) -> tuple[dict[int, int], int]:
    """Hash → count of those with more than `most`, and the highest count of all."""
    import numpy as np

    hashes.sort()  # in place: a copy would be the largest thing in memory
    if not len(hashes):
        return {}, 0
    edges = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))
    counts = np.diff(np.concatenate([edges, [len(hashes)]]))
    many = np.flatnonzero(counts > most)
    return (
        dict(zip(hashes[edges[many]].tolist(), counts[many].tolist(), strict=True)),
        int(counts.max()),
    )


def _short(text: str, most: int = 90) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"

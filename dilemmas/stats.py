"""What a set of dilemmas consists of: counts and lengths, and a picture of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deliberation.errors import DataError

from .check.balance import word_count
from .check.names import places
from .check.reading import read_data_file
from .loader import packaged_dilemmas
from .values import VALUES

NO_CLASS = "no class"
QUANTILES = {
    "shortest": 0.0,
    "quarter": 0.25,
    "median": 0.5,
    "three quarters": 0.75,
    "longest": 1.0,
}


@dataclass(frozen=True)
class DataStats:
    """Counts over the sound rows of a file, each mapping from the most frequent on."""

    path: str
    kind: str
    """What it holds: `dilemmas`, `conflict tasks` or `open-ended tasks`."""
    rows: int
    wrong: int
    """Rows that are left out because something is wrong with them; `check_data` says what."""
    classes: Mapping[str, int]
    domains: Mapping[str, int]
    values: Mapping[str, int]
    """Rows with each value; a value of the list that no row has counts 0."""
    stakeholders: Mapping[int, int]
    """Rows by how many stakeholders they name."""
    places: Mapping[str, int]
    """Rows with each word that mostly follows like a place, as in "from Lagos"."""
    lengths: Mapping[str, tuple[int, ...]]
    """Words of each situation (of each question, where there is none), by class, in order."""

    def quantiles(self, kind: str | None = None) -> dict[str, int]:
        """Of the lengths of a class, or of all: shortest, quarter, median, three quarters, longest.

        Each is the length of some row: the least that no smaller a share of all is at or below.
        """
        chosen = [self.lengths[kind]] if kind is not None else list(self.lengths.values())
        ordered = sorted(length for those in chosen for length in those)
        return {
            name: ordered[max(0, math.ceil(share * len(ordered)) - 1)]
            for name, share in QUANTILES.items()
            if ordered
        }


def data_stats(path: str | Path | None = None) -> DataStats:
    """What the file at `path` consists of; None means the packaged training set.

    Raises:
        DataError: it cannot be read, or holds no sound row.
    """
    file = read_data_file(packaged_dilemmas() if path is None else path)
    wrong = sum(check.errors for check in file.checks if check.name in ("encoding", "schema"))
    if not file.entries:
        raise DataError(
            f"{file.label}: holds no sound row of dilemmas or tasks; see deliberation data check."
        )
    lengths: dict[str, list[int]] = {}
    for entry in file.entries:
        words = word_count(entry.situation or entry.body)
        lengths.setdefault(entry.kind or NO_CLASS, []).append(words)
    values = Counter(value for entry in file.entries for value in entry.values)
    classes = {name: len(those) for name, those in sorted(lengths.items())}
    return DataStats(
        path=file.label,
        kind=file.kind,
        rows=len(file.entries),
        wrong=wrong,
        classes=_ordered(classes),
        domains=_ordered(Counter(entry.domain for entry in file.entries if entry.domain)),
        values=_ordered({name: values[name] for name in VALUES}) if values else {},
        stakeholders=dict(sorted(Counter(entry.stakeholders for entry in file.entries).items())),
        places=_ordered(places(file.entries)),
        lengths={name: tuple(sorted(those)) for name, those in sorted(lengths.items())},
    )


def _ordered(counts: Mapping[str, int]) -> dict[str, int]:
    """From the most frequent on; equals by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

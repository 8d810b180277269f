"""Whether a set is complete and balanced: fields, lengths, classes, domains, values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..values import VALUES
from .findings import DataCheck, Severity, checked
from .limits import DataLimits
from .reading import Entry


def complete_fields(file: str, entries: Sequence[Entry], severity: Severity) -> DataCheck:
    """Rows that lack what a complete dilemma has."""
    found: list[tuple[Severity, str, str, float | None]] = [
        (severity, entry.place, f'"{entry.id}" lacks {", ".join(entry.lacks)}.', len(entry.lacks))
        for entry in entries
        if entry.lacks
    ]
    return checked(file, "fields", found, measured=len(found), limit=0)


def length(
    file: str, entries: Sequence[Entry], limits: DataLimits, severity: Severity
) -> tuple[DataCheck, DataCheck]:
    """Situations of fewer than `limits.min_words` words, and of more than `limits.max_words`."""
    counts = [(entry, word_count(entry.situation)) for entry in entries]
    short: list[tuple[Severity, str, str, float | None]] = []
    long: list[tuple[Severity, str, str, float | None]] = []
    for entry, count in counts:
        detail = f'The situation of "{entry.id}" has {count} words.'
        if count < limits.min_words:
            short.append((severity, entry.place, detail, count))
        if count > limits.max_words:
            long.append((severity, entry.place, detail, count))
    every = [count for _, count in counts]
    return (
        checked(
            file,
            "shortest situation",
            short,
            measured=min(every, default=None),
            limit=limits.min_words,
        ),
        checked(
            file,
            "longest situation",
            long,
            measured=max(every, default=None),
            limit=limits.max_words,
        ),
    )


CHARACTERS_PER_WORD = 2.5
"""Of a language written without spaces, for one English word of the same content (our estimate)."""
LONGEST_MEAN_WORD = 15
"""Characters a word between spaces in the mean, above which a text is written without them."""


def word_count(text: str) -> int:
    """Words as an editor counts them: what stands between spaces. A text that is written without
    spaces counts by its characters."""
    between_spaces = len(text.split())
    if len(text) > LONGEST_MEAN_WORD * between_spaces:
        return round(len(text) / CHARACTERS_PER_WORD)
    return between_spaces


def classes(
    file: str, entries: Sequence[Entry], limits: DataLimits, severity: Severity
) -> DataCheck:
    """Classes with more than `limits.class_share` of the rows."""
    return _share(
        file, "classes", entries, limits, limits.class_share, severity, lambda entry: entry.kind
    )


def domains(
    file: str, entries: Sequence[Entry], limits: DataLimits, severity: Severity
) -> DataCheck:
    """Domains with more than `limits.domain_share` of the rows."""
    return _share(
        file,
        "domains",
        entries,
        limits,
        limits.domain_share,
        severity,
        lambda entry: entry.domain.casefold(),
    )


def _share(
    file: str,
    name: str,
    entries: Sequence[Entry],
    limits: DataLimits,
    limit: float,
    severity: Severity,
    key: Callable[[Entry], str],
) -> DataCheck:
    """A row without the field is in no share, but counts among all."""
    if len(entries) < limits.balance_from:
        return DataCheck(file, name, limit=limit, skipped=f"{len(entries)} rows")
    rows: dict[str, list[Entry]] = {}
    for entry in entries:
        if key(entry):
            rows.setdefault(key(entry), []).append(entry)
    if not rows:
        return DataCheck(file, name, limit=limit, skipped="no row names any")
    found: list[tuple[Severity, str, str, float | None]] = []
    for those in sorted(rows.values(), key=len, reverse=True):
        if len(those) > limit * len(entries):
            detail = f'"{key(those[0])}" is that of {len(those)} of {len(entries)} rows.'
            found.append((severity, those[0].place, detail, round(len(those) / len(entries), 4)))
    worst = max(map(len, rows.values())) / len(entries)
    return checked(file, name, found, measured=round(worst, 4), limit=limit)


def values(
    file: str, entries: Sequence[Entry], limits: DataLimits, severity: Severity
) -> DataCheck:
    """Values of the list that stand in fewer than `limits.value_rows` rows."""
    if len(entries) < limits.values_from:
        return DataCheck(file, "values", limit=limits.value_rows, skipped=f"{len(entries)} rows")
    if not any(entry.values for entry in entries):
        return DataCheck(file, "values", limit=limits.value_rows, skipped="no row names any")
    counts = dict.fromkeys(VALUES, 0)
    for entry in entries:
        for value in entry.values:
            counts[value] += 1
    found: list[tuple[Severity, str, str, float | None]] = [
        (severity, file, f'The value "{value}" is in {count} rows.', count)
        for value, count in sorted(counts.items(), key=lambda item: item[1])
        if count < limits.value_rows
    ]
    return checked(file, "values", found, measured=min(counts.values()), limit=limits.value_rows)

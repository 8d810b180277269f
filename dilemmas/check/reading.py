"""A data file row by row: unlike the loaders, which stop at the first, every wrong row is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from deliberation.errors import DataError
from deliberation.nearness import Shingles, word_shingles
from deliberation.textfile import RowError, check_row, json_object, key_name, read_bytes

from ..dilemma import Dilemma
from ..heldout import ConflictTask, OpenEndedTask
from ..rows import DELIMITERS, HUB, read_rows
from .encoding import decode
from .findings import DataCheck, Severity, checked

DILEMMAS = "dilemmas"
CONFLICT = "conflict tasks"
OPEN_ENDED = "open-ended tasks"

MODELS: dict[str, type[Dilemma] | type[OpenEndedTask]] = {
    DILEMMAS: Dilemma,
    CONFLICT: ConflictTask,
    OPEN_ENDED: OpenEndedTask,
}
"""What a row must be, by what the file holds: a further kind of JSONL file gets its line here and
in `_kind_of`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A row that is what it should be, as the checks look at it."""

    file: str
    line: int
    id: str
    body: str
    """What is compared with other rows: situation and question, or the question alone."""
    situation: str
    texts: tuple[str, ...]
    """All that somebody reads, each text for itself."""
    title: str = ""
    kind: str = ""
    """The class of a dilemma; empty where it has none."""
    domain: str = ""
    values: tuple[str, ...] = ()
    stakeholders: int = 0
    constraints: int = 0
    lacks: tuple[str, ...] = ()
    canary: str = ""
    pair: str = ""
    policy: str = ""
    """Of a conflict task: its persona pair, and who of them is the policy's."""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class DataFile:
    """The sound rows of a file, and what reading it has found."""

    label: str
    kind: str
    entries: tuple[Entry, ...]
    checks: tuple[DataCheck, ...]

    @cached_property
    def shingles(self) -> list[Shingles]:
        """Of the words of each body: what several checks compare."""
        return [word_shingles(entry.body) for entry in self.entries]


@dataclass(frozen=True)
class _Raw:
    """Rows as they stand, and what is wrong with those that are none."""

    numbered: list[tuple[int, dict[str, Any]]]
    refused: list[tuple[str, str]]
    """(place, sentence) of each."""
    checks: tuple[DataCheck, ...]


def read_data_file(source: str | Path) -> DataFile:
    """A JSONL, CSV or TSV file or `hf:ID[@REV][#SPLIT]`, with every row that is wrong.

    Raises `DataError` only where the file cannot be opened at all.
    """
    label = str(source)
    raw = _raw_rows(label)
    kind = _kind_of([row for _, row in raw.numbered[:200]])
    entries: list[Entry] = []
    wrong: list[tuple[Severity, str, str, float | None]] = [
        ("error", place, sentence, None) for place, sentence in raw.refused
    ]
    unknown: dict[str, list[int]] = {}
    for number, row in raw.numbered:
        try:
            model, extra = check_row(MODELS[kind], row)
        except RowError as problem:
            wrong.append(("error", f"{label}:{number}", sentence_of(problem.sentence), None))
            continue
        for key in {key_name(loc) for loc in extra}:
            unknown.setdefault(key, []).append(number)
        entries.append(_entry(label, number, model))
    for key, numbers in sorted(unknown.items()):
        detail = f'Key "{key}" is unknown ({len(numbers)} rows); check its spelling or remove it.'
        wrong.append(("warning", f"{label}:{numbers[0]}", detail, None))
    checks = (*raw.checks, checked(label, "schema", wrong), _ids(label, raw.numbered))
    return DataFile(label, kind, tuple(entries), checks)


def _raw_rows(label: str) -> _Raw:
    if label.startswith(HUB):
        return _Raw(read_rows(label).numbered, [], ())
    table = Path(label).suffix.lower() in DELIMITERS
    lines, encoding = decode(label, read_bytes(label), blank_lines=table)
    if table:
        try:
            return _Raw(read_rows(label).numbered if lines else [], [], (encoding,))
        except DataError as error:
            # A table with a broken quote has no rows after it: nothing more can be said.
            place, sentence = split_message(label, str(error))
            return _Raw([], [(place, sentence)], (encoding,))
    rows, refused = [], []
    for number, line in lines:
        try:
            rows.append((number, json_object(line, f"{label}:{number}")))
        except DataError as error:
            refused.append(split_message(label, str(error)))
    return _Raw(rows, refused, (encoding,))


def split_message(label: str, message: str) -> tuple[str, str]:
    """`file:line: sentence` as its two parts."""
    rest = message.removeprefix(f"{label}:")
    line, found, sentence = rest.partition(": ")
    if found and line.isdigit():
        return f"{label}:{line}", sentence_of(sentence)
    return label, sentence_of(rest.strip())


def sentence_of(text: str) -> str:
    """With a capital letter, as it stands alone in a list."""
    return text[:1].upper() + text[1:]


def _kind_of(rows: Sequence[dict[str, Any]]) -> str:
    """What most rows are: one that is wrong must not turn its file into another kind."""
    votes = dict.fromkeys(MODELS, 0)
    for row in rows:
        if "situation" in row and {"pair", "policy"} & set(row):
            votes[CONFLICT] += 1
        elif "situation" not in row and {"question", "canary"} <= set(row):
            votes[OPEN_ENDED] += 1
        else:
            votes[DILEMMAS] += 1
    return max(votes, key=lambda kind: votes[kind])


def _ids(label: str, rows: Sequence[tuple[int, dict[str, Any]]]) -> DataCheck:
    """Ids that stand twice. Those of rows that are wrong count, and so do 1 and "1" as the same."""
    found: list[tuple[Severity, str, str, float | None]] = []
    first: dict[str, int] = {}
    for number, row in rows:
        value = row.get("id")
        if not isinstance(value, str | int) or isinstance(value, bool):
            continue
        id = str(value).strip()
        if id in first:
            detail = f'Id "{id}" is already taken by line {first[id]}; give each row its own.'
            found.append(("error", f"{label}:{number}", detail, None))
        else:
            first[id] = number
    return checked(label, "ids", found)


def _entry(label: str, number: int, row: BaseModel) -> Entry:
    if isinstance(row, OpenEndedTask):
        texts = (row.question,)
        return Entry(
            label, number, row.id, row.question, "", texts, domain=row.domain, canary=row.canary
        )
    assert isinstance(row, Dilemma)
    return Entry(
        label,
        number,
        row.id,
        f"{row.situation}\n{row.question or ''}",
        row.situation,
        (
            row.situation,
            *([row.question] if row.question else []),
            *(part for one in row.stakeholders for part in (one.name, one.gains, one.loses)),
            *row.constraints,
        ),
        title=row.title or "",
        kind=row.dilemma_class or "",
        domain=row.domain or "",
        values=row.values,
        stakeholders=len(row.stakeholders),
        constraints=len(row.constraints),
        lacks=row.lacks(),
        canary=row.canary if isinstance(row, ConflictTask) else "",
        pair=row.pair if isinstance(row, ConflictTask) else "",
        policy=row.policy if isinstance(row, ConflictTask) else "",
    )

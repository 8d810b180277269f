"""Persona files: each pair for itself, then texts, poles and axes over the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deliberation.errors import DataError
from deliberation.nearness import NearIndex
from deliberation.personas import PersonaPair
from deliberation.personas.loader import Document, read_document
from deliberation.textfile import Loc, RowError, check_row, key_name, read_bytes

from .balance import word_count
from .encoding import decode
from .findings import DataCheck, Severity, checked
from .limits import DataLimits
from .reading import Entry, sentence_of, split_message

PERSONAS = "persona pairs"
FIELDS = ("stance", "protects", "argues", "concedes", "red_line")
"""The texts of a persona."""


@dataclass(frozen=True)
class PersonaText:
    """One text of a persona and where it stands."""

    place: str
    line: int
    persona: str
    field: str
    text: str


@dataclass(frozen=True)
class PersonaFile:
    """The sound pairs of a file with the line of each, and what reading it has found."""

    label: str
    pairs: tuple[tuple[int, PersonaPair], ...]
    texts: tuple[PersonaText, ...]
    checks: tuple[DataCheck, ...]


def read_persona_file(path: str | Path) -> PersonaFile:
    """A YAML file with every pair that is wrong. Raises `DataError` if it cannot be opened."""
    label = str(path)
    _, encoding = decode(label, read_bytes(path), blank_lines=True)
    wrong: list[tuple[Severity, str, str, float | None]] = []
    pairs: list[tuple[int, PersonaPair]] = []
    texts: list[PersonaText] = []
    ids: DataCheck = checked(label, "ids")
    try:
        document = read_document(Path(path).expanduser())
    except DataError as error:
        place, sentence = split_message(label, str(error))
        if not encoding.errors:
            wrong.append(("error", place, sentence, None))
    else:
        rows = document.content.get("pairs")
        if not isinstance(rows, list) or not rows:
            wrong.append(("error", f"{label}:1", 'Holds no "pairs"; list at least one.', None))
            rows = []
        for number, row in enumerate(rows):
            _check_pair(label, document, number, row, pairs, texts, wrong)
        ids = _ids(label, document, rows)
    return PersonaFile(
        label, tuple(pairs), tuple(texts), (encoding, checked(label, "schema", wrong), ids)
    )


def _check_pair(
    label: str,
    document: Document,
    number: int,
    row: Any,
    pairs: list[tuple[int, PersonaPair]],
    texts: list[PersonaText],
    wrong: list[tuple[Severity, str, str, float | None]],
) -> None:
    try:
        pair, unknown = check_row(PersonaPair, row)
    except RowError as problem:
        line = document.line(("pairs", number, *problem.loc))
        wrong.append(("error", f"{label}:{line}", sentence_of(problem.sentence), None))
        return
    for loc in unknown:
        line = document.line(("pairs", number, *loc))
        detail = f'Key "{key_name(loc)}" is unknown; check its spelling or remove it.'
        wrong.append(("warning", f"{label}:{line}", detail, None))
    pairs.append((document.line(("pairs", number)), pair))
    for k, persona in enumerate(pair.personas):
        for field in FIELDS:
            line = document.line(("pairs", number, "personas", k, field))
            text = getattr(persona, field)
            texts.append(PersonaText(f"{label}:{line}", line, persona.id, field, text))


def _ids(label: str, document: Document, rows: Sequence[Any]) -> DataCheck:
    """Ids of pairs and of personas that stand twice, of pairs that are wrong too."""
    found: list[tuple[Severity, str, str, float | None]] = []
    first: dict[tuple[str, str], int] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            continue
        places: list[tuple[str, dict[str, Any], Loc]] = [("pair", row, ("pairs", number, "id"))]
        personas = row.get("personas")
        if isinstance(personas, list):
            places += [
                ("persona", persona, ("pairs", number, "personas", k, "id"))
                for k, persona in enumerate(personas)
                if isinstance(persona, dict)
            ]
        for kind, holder, loc in places:
            if "id" not in holder:
                continue
            id, line = str(holder["id"]).strip(), document.line(loc)
            if (kind, id) in first:
                detail = (
                    f'{kind.capitalize()} id "{id}" is already taken by line {first[kind, id]}; '
                    f"give each {kind} its own."
                )
                found.append(("error", f"{label}:{line}", detail, None))
            else:
                first[kind, id] = line
    return checked(label, "ids", found)


def persona_checks(file: PersonaFile, limits: DataLimits, severity: Severity) -> list[DataCheck]:
    """Length and nearness of the texts; axes and poles that return."""
    long: list[tuple[Severity, str, str, float | None]] = []
    counts = [word_count(one.text) for one in file.texts]
    for one, count in zip(file.texts, counts, strict=True):
        if count > limits.persona_words:
            detail = f'The {one.field} of "{one.persona}" has {count} words.'
            long.append((severity, one.place, detail, count))
    return [
        checked(
            file.label,
            "longest text",
            long,
            measured=max(counts, default=None),
            limit=limits.persona_words,
        ),
        _near_texts(file, limits),
        _axes(file, severity),
    ]


def _near_texts(file: PersonaFile, limits: DataLimits) -> DataCheck:
    index = NearIndex(limits.near_words)
    for place, one in enumerate(file.texts):
        index.add(str(place), one.text)
    found: list[tuple[Severity, str, str, float | None]] = []
    pairs = index.pairs()
    for pair in pairs:
        one, other = file.texts[int(pair.first)], file.texts[int(pair.second)]
        detail = (
            f'The {other.field} of "{other.persona}" is near to the {one.field} of '
            f'"{one.persona}" in line {one.line}.'
        )
        found.append(("error", other.place, detail, round(pair.jaccard, 4)))
    worst = max((round(pair.jaccard, 4) for pair in pairs), default=None)
    return checked(file.label, "near words", found, measured=worst, limit=limits.near_words)


def _axes(file: PersonaFile, severity: Severity) -> DataCheck:
    """That two poles of a pair differ is its schema; here, what several pairs share."""
    found: list[tuple[Severity, str, str, float | None]] = []
    first: dict[tuple[str, str], int] = {}
    for line, pair in file.pairs:
        named = [("axis", pair.axis), *(("pole", one.pole) for one in pair.personas)]
        for kind, name in named:
            key = (kind, name.casefold())
            if key in first:
                detail = f'The {kind} "{name}" is already that of the pair in line {first[key]}.'
                found.append((severity, f"{file.label}:{line}", detail, None))
            first.setdefault(key, line)
    return checked(file.label, "axes and poles", found)


def task_personas(file: str, entries: Sequence[Entry], personas: Path) -> DataCheck:
    """Whether the pair of each conflict task exists, and whether `policy` is one of the two."""
    if not personas.is_file():
        return DataCheck(file, "persona pairs", skipped=f"no {personas.name}")
    pairs = {pair.id: pair for _, pair in read_persona_file(personas).pairs}
    found: list[tuple[Severity, str, str, float | None]] = []
    for entry in entries:
        if entry.pair not in pairs:
            detail = f'The pair "{entry.pair}" of "{entry.id}" is not in {personas.name}.'
        elif entry.policy not in {persona.id for persona in pairs[entry.pair].personas}:
            detail = f'The policy "{entry.policy}" of "{entry.id}" is not in its pair.'
        else:
            continue
        found.append(("error", entry.place, detail, None))
    return checked(file, "persona pairs", found)

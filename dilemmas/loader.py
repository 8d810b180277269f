"""Dilemma sets, from the package or from a user's own data."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel

from deliberation.errors import DataError
from deliberation.textfile import (
    Loc,
    RowError,
    check_row,
    read_text,
    warn_unknown_keys,
)

from .dilemma import Dilemma, Entry
from .rows import Rows, read_rows

UNVERSIONED = "unversioned"

Row = TypeVar("Row", bound=Entry)


@dataclass(frozen=True)
class DilemmaSet:
    """Dilemmas in file order, with what a result needs to name them by.

    `name` is the file's stem. `version` comes from `data/VERSION.yaml` for packaged sets and is
    "unversioned" for other files. `sha256` covers the dilemmas and their order as loaded, so it
    does not change with line ends, key order, blank lines or ignored keys.
    """

    name: str
    version: str
    sha256: str
    path: Path
    dilemmas: tuple[Dilemma, ...]

    def __len__(self) -> int:
        return len(self.dilemmas)

    def __iter__(self) -> Iterator[Dilemma]:
        return iter(self.dilemmas)

    def by_id(self, id: str) -> Dilemma:
        """The dilemma with this id; `DataError` with the closest ids if there is none."""
        for dilemma in self.dilemmas:
            if dilemma.id == id:
                return dilemma
        close = difflib.get_close_matches(id, [d.id for d in self.dilemmas])
        hint = f"closest: {', '.join(close)}" if close else f"the first is {self.dilemmas[0].id}"
        raise DataError(f'{self.path}: no dilemma has the id "{id}"; check it ({hint}).')


def packaged_dilemmas(name: str = "train") -> Path:
    """Where the packaged set `name` lies."""
    return data_folder() / f"{name}.jsonl"


def load_dilemmas(
    source: str | Path | None = None, columns: Mapping[str, str] | None = None
) -> DilemmaSet:
    """The dilemma set at `source`; None means the packaged training set.

    `source` is a JSONL, CSV or TSV file or `hf:ID[@REV][#SPLIT]`, and `columns` says where fields
    stand under other names (see `read_rows`). A row needs `id` and `situation`.

    Raises `DataError` (one sentence with file, line and remedy) if the source cannot be read, a
    field is wrong, or two rows share an id. Unknown keys of a file are ignored with one logged
    warning per key.
    """
    rows = read_rows(packaged_dilemmas() if source is None else source, columns)
    dilemmas = check_rows(Dilemma, rows)
    return DilemmaSet(
        name=rows.stem,
        version=version_of(rows.label),
        sha256=content_hash(dilemmas),
        path=Path(rows.label),
        dilemmas=dilemmas,
    )


def check_rows(model: type[Row], rows: Rows) -> tuple[Row, ...]:
    """Every row as a `model`, which has an `id`. Raises `DataError` for the first bad one."""
    checked: list[Row] = []
    number_of_id: dict[str, int] = {}
    unknown: list[tuple[int, Loc]] = []
    for number, row in rows.numbered:
        try:
            entry, extra_locs = check_row(model, row)
        except RowError as problem:
            raise DataError(f"{rows.label}:{number}: {problem.sentence}") from None
        id = entry.id
        if id in number_of_id:
            raise DataError(
                f'{rows.label}:{number}: id "{id}" is already taken by line '
                f"{number_of_id[id]}; give each its own id."
            )
        number_of_id[id] = number
        checked.append(entry)
        unknown += [(number, loc) for loc in extra_locs]
    if not checked:
        raise DataError(f"{rows.label}: holds no rows; write some or name another file.")
    if not rows.foreign:
        warn_unknown_keys(rows.label, unknown)
    return tuple(checked)


def content_hash(entries: Sequence[BaseModel]) -> str:
    """SHA-256 of what the rows say, in their order: not of layout, ignored keys or provenance."""
    content = [
        entry.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"provenance"})
        for entry in entries
    ]
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()


def data_folder() -> Path:
    return Path(str(files("deliberation.dilemmas"))) / "data"


def version_of(path: str | Path) -> str:
    """The packaged set's version; a file elsewhere has none that we could vouch for."""
    path = Path(path)
    if path.resolve().parent != data_folder().resolve():
        return UNVERSIONED
    versions = yaml.safe_load(read_text(data_folder() / "VERSION.yaml"))
    return str(versions.get(path.stem, UNVERSIONED))

"""Dilemma sets from JSON Lines files: one dilemma a line."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import yaml

from deliberation.errors import DataError
from deliberation.textfile import (
    Loc,
    RowError,
    check_row,
    jsonl_rows,
    read_text,
    warn_unknown_keys,
)

from .dilemma import Dilemma

UNVERSIONED = "unversioned"


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
    return _data_folder() / f"{name}.jsonl"


def load_dilemmas(path: str | Path | None = None) -> DilemmaSet:
    """The dilemma set at `path`; None means the packaged training set.

    Raises `DataError` (one sentence with file, line and remedy) if the file cannot be read as JSON
    Lines, a field is absent or wrong, or two rows share an id. Unknown keys are ignored with one
    logged warning per key.
    """
    path = packaged_dilemmas() if path is None else Path(path).expanduser()
    dilemmas: list[Dilemma] = []
    line_of_id: dict[str, int] = {}
    unknown: list[tuple[int, Loc]] = []
    for line, row in jsonl_rows(path):
        try:
            dilemma, extra_locs = check_row(Dilemma, row)
        except RowError as problem:
            raise DataError(f"{path}:{line}: {problem.sentence}") from None
        if dilemma.id in line_of_id:
            raise DataError(
                f'{path}:{line}: id "{dilemma.id}" is already taken by line '
                f"{line_of_id[dilemma.id]}; give each dilemma an id of its own."
            )
        line_of_id[dilemma.id] = line
        dilemmas.append(dilemma)
        unknown += [(line, loc) for loc in extra_locs]
    warn_unknown_keys(path, unknown)
    content = [dilemma.model_dump(mode="json", by_alias=True) for dilemma in dilemmas]
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return DilemmaSet(
        name=path.stem,
        version=_version(path),
        sha256=hashlib.sha256(canonical.encode("utf-8")).hexdigest(),
        path=path,
        dilemmas=tuple(dilemmas),
    )


def _data_folder() -> Path:
    return Path(str(files("deliberation.dilemmas"))) / "data"


def _version(path: Path) -> str:
    """The packaged set's version; a file elsewhere has none that we could vouch for."""
    if path.resolve().parent != _data_folder().resolve():
        return UNVERSIONED
    versions = yaml.safe_load(read_text(_data_folder() / "VERSION.yaml"))
    return str(versions.get(path.stem, UNVERSIONED))

"""Rows of a user's own data: JSON Lines, CSV, or a dataset of the `datasets` library.

All three give the same: objects with the fields of a dilemma, each with the number that an error
message names it by. What a cell or column lacks is left out, so that it counts as absent.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from deliberation.errors import DataError
from deliberation.textfile import jsonl_rows, read_text

HUB = "hf:"
DELIMITERS = {".csv": ",", ".tsv": "\t"}
FIELDS = (
    "id",
    "class",
    "domain",
    "title",
    "situation",
    "question",
    "stakeholders",
    "values",
    "constraints",
)
"""What a column may be mapped to."""
LISTS = ("values", "constraints")
"""Fields whose cell may hold several texts with semicolons between."""

_HUB_FORM = re.compile(r"hf:(?P<id>[^@#]+)(@(?P<revision>[^#]+))?(#(?P<split>.+))?")


@dataclass(frozen=True)
class Rows:
    """`numbered` holds (line or row number from 1, object); `label` is what stands before it."""

    label: str
    stem: str
    """The set's name in results."""
    numbered: list[tuple[int, dict[str, Any]]]
    foreign: bool
    """Not made for us: columns that we don't know are nobody's spelling mistake."""


def read_rows(source: str | Path, columns: Mapping[str, str] | None = None) -> Rows:
    """The rows of a JSONL file, a `.csv` or `.tsv` file with a header, or `hf:ID[@REV][#SPLIT]`.

    `ID` is a dataset's name on the hub or a folder of data files; `SPLIT` is `train` if not given,
    and may be `SUBSET/SPLIT`. `columns` says which column holds a field, as field → column; a
    field that is not in it is taken from the column of its own name.

    Cells of a CSV file: an empty one is absent; `values` and `constraints` are JSON lists or texts
    with semicolons between; `stakeholders` is a JSON list of objects.

    Raises `DataError` with file and line, or dataset and row.
    """
    columns = dict(columns or {})
    for field in columns:
        if field not in FIELDS:
            close = get_close_matches(field, FIELDS, n=1)
            hint = f'"{close[0]}"' if close else "one of " + ", ".join(FIELDS)
            raise DataError(f'column mapping: a dilemma has no field "{field}"; write {hint}.')
    if str(source).startswith(HUB):
        rows = _dataset_rows(str(source))
    else:
        path = Path(source).expanduser()
        delimiter = DELIMITERS.get(path.suffix.lower())
        numbered = _csv_rows(path, delimiter) if delimiter else jsonl_rows(path)
        rows = Rows(str(path), path.stem, numbered, foreign=bool(columns))
    if columns:
        rows = _renamed(rows, columns)
    return _with_text_ids(rows) if str(source).startswith(HUB) else rows


def _renamed(rows: Rows, columns: Mapping[str, str]) -> Rows:
    there = {name for _, row in rows.numbered for name in row}
    for field, column in columns.items():
        if column not in there:
            close = get_close_matches(column, there, n=1)
            hint = f'write "{close[0]}"' if close else "there are: " + ", ".join(sorted(there))
            raise DataError(f'{rows.label}: no column "{column}" to take "{field}" from; {hint}.')
    taken = set(columns.values())
    numbered = []
    for number, row in rows.numbered:
        kept = {k: v for k, v in row.items() if k not in taken and k not in columns}
        kept.update({field: row[column] for field, column in columns.items() if column in row})
        numbered.append((number, kept))
    return Rows(rows.label, rows.stem, numbered, foreign=True)


def _csv_rows(path: Path, delimiter: str) -> list[tuple[int, dict[str, Any]]]:
    reader = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    rows: list[tuple[int, dict[str, Any]]] = []
    while True:
        line = reader.line_num + 1  # the first line of a record that may take several
        try:
            cells = next(reader)
        except StopIteration:
            return rows
        except csv.Error as error:
            raise DataError(
                f"{path}:{line}: not valid CSV ({error}); close every quote and double those "
                "inside."
            ) from None
        if not any(cell.strip() for cell in cells):
            continue
        if header is None:
            header = _header(path, line, cells)
            continue
        if len(cells) != len(header):
            raise DataError(
                f"{path}:{line}: {len(cells)} cells under a header of {len(header)}; put texts "
                "that hold a delimiter in quotes."
            )
        filled = {name: cell for name, cell in zip(header, cells, strict=True) if cell.strip()}
        rows.append((line, {k: _cell(k, v, f"{path}:{line}") for k, v in filled.items()}))


def _header(path: Path, line: int, cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f'{path}:{line}: column "{twice}" stands twice; keep one of them.')
    return names


def _cell(name: str, text: str, where: str) -> Any:
    if name not in (*LISTS, "stakeholders"):
        return text
    if text.lstrip().startswith("["):
        try:
            return json.loads(text)
        except ValueError as error:
            raise DataError(
                f'{where}: column "{name}" starts like a JSON list and is none ({error}); '
                "correct it."
            ) from None
    if name in LISTS:
        return [part.strip() for part in text.split(";") if part.strip()]
    raise DataError(
        f'{where}: column "{name}" must be a JSON list of objects with name, gains and loses; '
        "write it so or leave the cell empty."
    )


def _dataset_rows(source: str) -> Rows:
    form = _HUB_FORM.fullmatch(source)
    if form is None:
        raise DataError(f"{source}: not a dataset; write hf:ID[@REVISION][#SPLIT].")
    subset, _, split = (form["split"] or "train").rpartition("/")
    import datasets  # heavy, and most runs read a file
    from datasets.exceptions import DatasetsError

    try:
        data = datasets.load_dataset(
            form["id"], subset or None, split=split, revision=form["revision"]
        )
    # What was met with wrong names, splits, files and hubs: Arrow's, the hub's and the network's
    # errors are among these.
    except (OSError, ValueError, LookupError, TypeError, DatasetsError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(
            f"{source}: cannot be loaded ({reason}); check the name and the split, and whether the "
            "hub can be reached."
        ) from None
    numbered = [
        (number, {name: value for name, value in row.items() if value is not None})
        for number, row in enumerate(data, start=1)
    ]
    name = form["id"].rstrip("/").rsplit("/", 1)[-1]
    return Rows(f"hf:{form['id']}#{form['split'] or 'train'}", name, numbered, foreign=True)


def _with_text_ids(rows: Rows) -> Rows:
    """Numbers as ids are common in tables, where nobody could put them in quotes."""
    for _, row in rows.numbered:
        if isinstance(row.get("id"), int):
            row["id"] = str(row["id"])
    return rows

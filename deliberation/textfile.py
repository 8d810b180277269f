"""Text data files: read them whole or not at all, and say exactly where they are wrong.

Every loader reads through here, so a byte order mark, Windows line ends or a gzip file under a
wrong name behave the same everywhere. All errors are `DataError`s of one sentence that starts with
`file:` or `file:line:` and ends with a remedy.
"""

from __future__ import annotations

import copy
import json
import logging
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from deliberation.errors import DataError

log = logging.getLogger(__name__)

Model = TypeVar("Model", bound=BaseModel)

Loc = tuple[int | str, ...]
"""The keys and list positions that lead to a place in a row."""

GZIP_MAGIC = b"\x1f\x8b"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UTF8_MARK = "\ufeff"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_bytes(path: str | Path) -> bytes:
    """The file as it is. Raises `DataError` if it is missing, a directory or unreadable."""
    try:
        return Path(path).expanduser().read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; check the path.") from None
    except IsADirectoryError:
        raise DataError(f"{path}: this is a directory; name a file inside it.") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"{path}: cannot be read ({reason}); check its permissions.") from None


def read_text(path: str | Path) -> str:
    """The file's text: UTF-8, without byte order mark, lines ended by "\\n" only.

    Raises `DataError` if the file is missing, a directory, unreadable, empty (blank counts as
    empty), gzipped, or not UTF-8 (with the line of the first bad byte).
    """
    raw = read_bytes(path)
    if raw.startswith(GZIP_MAGIC):
        raise DataError(f"{path}:1: looks gzipped, not text; unpack it first with gunzip.")
    if raw.startswith(UTF16_MARKS):
        raise DataError(f"{path}:1: not UTF-8 (looks like UTF-16); save it again as UTF-8.")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        byte = raw[error.start]
        raise DataError(
            f"{path}:{line}: not UTF-8 (byte {byte:02X}); save the file again as UTF-8."
        ) from None
    text = text.removeprefix(UTF8_MARK).replace("\r\n", "\n")
    if not text.strip():
        raise DataError(f"{path}: the file is empty; write its content or name another file.")
    return text


def jsonl_rows(path: str | Path) -> list[tuple[int, dict[str, Any]]]:
    """The rows of a JSON Lines file as (line number from 1, object); blank lines are skipped.

    Lines end at "\\n" only: U+2028 or U+0085 inside a string is part of the string. Raises
    `DataError` as `read_text` does, and for a line that is not valid JSON, not an object, repeats a
    key, holds NaN, an infinity or a number beyond the range of a float, or half a surrogate pair.
    """
    rows: list[tuple[int, dict[str, Any]]] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            rows.append((number, json_object(line, f"{path}:{number}")))
    return rows


def json_object(line: str, where: str) -> dict[str, Any]:
    """One line of a JSON Lines file. Raises `DataError` as `jsonl_rows` does, naming `where`."""
    try:
        # The hooks below catch what the json module accepts and other readers choke on.
        row = json.loads(
            line,
            object_pairs_hook=_object_without_repeats,
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
        )
        # An escaped half of a surrogate pair parses, but can never be written out again.
        if _SURROGATE.search(line):
            json.dumps(row, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        raise DataError(
            f"{where}: not valid JSON ({error.msg}, column {error.colno}); "
            "put one whole JSON object on each line."
        ) from None
    except UnicodeEncodeError:
        raise DataError(
            f"{where}: holds half of a surrogate pair; write the character itself."
        ) from None
    except _RefusedError as error:
        raise DataError(f"{where}: {error}.") from None
    except RecursionError:
        raise DataError(f"{where}: nested too deeply; flatten the object.") from None
    except ValueError:  # an integer of thousands of digits
        raise DataError(f"{where}: a number is too long; shorten it or put it in quotes.") from None
    if not isinstance(row, dict):
        raise DataError(
            f"{where}: this line is {_kind(row)}, not an object; write it as {{…}} with named keys."
        )
    return row


class _RefusedError(Exception):
    """Valid for the json module, but not for a data file of ours."""


def _object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for key, value in pairs:
        if key in row:
            raise _RefusedError(f'key "{key}" stands twice in one object; keep one of them')
        row[key] = value
    return row


def _refuse_constant(name: str) -> NoReturn:
    raise _RefusedError(f"{name} is not a JSON number; write a finite number or null")


def _finite_float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _RefusedError(f"the number {digits} is too large; write a finite number")
    return value


class RowError(Exception):
    """What is wrong with one row, and where; the message lacks the file and line."""

    def __init__(self, loc: Loc, sentence: str) -> None:
        super().__init__(sentence)
        self.loc = loc
        self.sentence = sentence


def check_row(model: type[Model], row: Mapping[str, Any]) -> tuple[Model, tuple[Loc, ...]]:
    """The row as a `model` instance, and where it holds keys that the model does not know.

    The model must forbid extra keys; here they are left out and reported, never an error, so that
    a file with notes of its own still loads. Raises `RowError` for the first field, in the
    model's order, that is absent or wrong.
    """
    clean: Any = row
    unknown: list[Loc] = []
    while True:
        try:
            return model.model_validate(clean), tuple(unknown)
        except ValidationError as error:
            problems = error.errors(include_url=False)
        extras = [tuple(p["loc"]) for p in problems if p["type"] == "extra_forbidden"]
        # Extra keys go first: an entry that has one also counts as missing from its list.
        if not extras:
            raise RowError(tuple(problems[0]["loc"]), _sentence(problems[0]))
        clean = copy.deepcopy(clean)
        for loc in extras:
            unknown.append(loc)
            holder = clean
            for key in loc[:-1]:
                holder = holder[key]
            holder.pop(loc[-1], None)  # an aliased YAML node is met twice


def warn_unknown_keys(path: str | Path, places: Sequence[tuple[int, Loc]]) -> None:
    """Log one warning per unknown key of a file, from the (line, loc) of each place.

    Places that differ only in their position in a list are one key: `stakeholders[].note`.
    """
    lines: dict[str, list[int]] = {}
    for line, loc in places:
        name = key_name(loc)
        lines.setdefault(name, []).append(line)
    for name in sorted(lines):
        count = len(lines[name])
        log.warning(
            '%s:%d: key "%s" is unknown and ignored (%s); check its spelling or remove it.',
            path,
            min(lines[name]),
            name,
            "once" if count == 1 else f"{count} times",
        )


def _sentence(problem: Mapping[str, Any]) -> str:
    """A pydantic error as `what is wrong; remedy.` about one named field."""
    loc, value = tuple(problem["loc"]), problem.get("input")
    context: Mapping[str, Any] = problem.get("ctx", {})
    field = f'field "{_field_name(loc)}"' if loc else "the row"
    match problem["type"]:
        case "missing" if loc and isinstance(loc[-1], int):
            list_name = _field_name(loc[:-1])
            return f'field "{list_name}" lacks its entry number {loc[-1] + 1}; add it.'
        case "missing":
            return f"{field} is absent; add it."
        case "string_type" if isinstance(value, int | float) and not isinstance(value, bool):
            return f"{field} must be text, not the number {value}; put it in quotes."
        case "string_type" if value is None:
            return f"{field} must be text, not null; write its text."
        case "string_type":
            return f"{field} must be text, not {_kind(value)}; write it in quotes."
        case "string_too_short":
            return f"{field} is empty; write its text."
        case "string_unicode":
            return f"{field} holds half of a surrogate pair; write the character itself."
        case "literal_error":
            return f"{field} is {value!r}; write {context['expected']}."
        case "too_short":
            return (
                f"{field} has {context['actual_length']} entries; "
                f"give at least {context['min_length']}."
            )
        case "too_long":
            return f"{field} has too many entries; give at most {context['max_length']}."
        case "tuple_type" | "list_type":
            return f"{field} must be a list, not {_kind(value)}; write it as a list."
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{field} must be an object with named keys, not {_kind(value)}; write the keys."
        case "value_error":
            return f"{field}: {context['error']}." if loc else f"{context['error']}."
    return f"{field} is wrong ({problem['msg']}); correct it."


def key_name(loc: Loc) -> str:
    """The key of a place, whatever its position in a list: `stakeholders[].note`."""
    return _field_name(tuple("" if isinstance(key, int) else key for key in loc))


def _field_name(loc: Loc) -> str:
    """("stakeholders", 0, "name") as `stakeholders[0].name`; an empty key as `[]`."""
    name = ""
    for key in loc:
        if isinstance(key, int):
            name += f"[{key}]"
        elif key == "":
            name += "[]"
        else:
            name += f".{key}" if name else key
    return name


def _kind(value: object) -> str:
    """What a JSON or YAML value is, in a user's words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, Sequence):
        return "a list"
    return f"a {type(value).__name__}"

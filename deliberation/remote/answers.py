"""JSON objects in a model's reply: whole ones only, nothing repaired."""

from __future__ import annotations

import json
from typing import Any

_DECODER = json.JSONDecoder(parse_constant=lambda name: _refuse(name))


class _NotFiniteError(ValueError):
    pass


def json_objects(text: str) -> list[dict[str, Any]]:
    """The outermost JSON objects in `text`, in order: bare, in a fence, or amid prose.

    An object that is cut off, holds NaN or an infinity, or is not valid JSON is not among them; nor
    is one inside another, or inside such a broken one.
    """
    found: list[dict[str, Any]] = []
    place = text.find("{")
    while place >= 0:
        try:
            value, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = _after_broken(text, place)
        else:
            found.append(value)
        place = text.find("{", end)
    return found


def _after_broken(text: str, place: int) -> int:
    """Where to look on after an object that does not parse: behind its closing brace, so that no
    inner part of it is taken for an answer; at the end of the text if it has none."""
    depth, quoted, escaped = 0, False, False
    for index in range(place, len(text)):
        character = text[index]
        if escaped:
            escaped = False
        elif quoted:
            escaped, quoted = character == "\\", character != '"'
        elif character == '"':
            quoted = True
        elif character in "{}":
            depth += 1 if character == "{" else -1
            if depth == 0:
                return index + 1
    return len(text)


def _refuse(name: str) -> None:
    raise _NotFiniteError(name)

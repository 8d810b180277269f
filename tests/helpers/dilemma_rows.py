"""Complete dilemmas that have nothing in common, files of them, and what a check says of those."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from deliberation import DataCheck, DataLimits, DataReport, check_data
from deliberation.dilemmas import VALUES

CLASSES = ("professional", "interpersonal", "everyday")
ORDER = sorted(VALUES)


def own_words(tag: str, count: int) -> str:
    """`count` words that no other tag has."""
    return " ".join(f"{tag}{place}" for place in range(count))


def own_row(number: int, **changes: Any) -> dict[str, Any]:
    """Row `number`: 70 words, of no domain, name or wording that another number has."""
    tag = f"r{number}n"
    fields: dict[str, Any] = {
        "id": f"row-{number}",
        "class": CLASSES[number % 3],
        "domain": f"{tag}domain",
        "title": own_words(f"{tag}t", 3),
        "situation": own_words(f"{tag}s", 70) + ".",
        "question": own_words(f"{tag}q", 7) + "?",
        "stakeholders": [
            {"name": f"{tag}one", "gains": own_words(f"{tag}g", 3), "loses": f"{tag}l"},
            {"name": f"{tag}two", "gains": own_words(f"{tag}h", 3), "loses": f"{tag}m"},
        ],
        "values": [ORDER[number % len(ORDER)], ORDER[(number + 7) % len(ORDER)]],
        "constraints": [own_words(f"{tag}c", 4) + "."],
    }
    return {key: value for key, value in {**fields, **changes}.items() if value is not ...}


def own_rows(count: int, **changes: Any) -> list[dict[str, Any]]:
    return [own_row(number, **changes) for number in range(count)]


def write_rows(folder: Path, rows: Iterable[dict[str, Any]], name: str = "mine.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def near_copy(number: int, of: int, changed: int) -> dict[str, Any]:
    """Row `number` with the situation of another, except for the first `changed` words."""
    words = own_row(of)["situation"].split()
    return own_row(
        number, situation=" ".join([*own_words(f"k{number}k", changed).split(), *words[changed:]])
    )


def checks(path: Path, limits: DataLimits | None = None, **options: Any) -> dict[str, DataCheck]:
    """By name, without any comparison with other files."""
    report = check_data([path], against=[], limits=limits, **options)
    return {check.name: check for check in report.checks}


def said(check: DataCheck) -> list[tuple[str, str, str]]:
    """(severity, line, sentence) of each finding."""
    return [(f.severity, f.place.rpartition(":")[2], f.detail) for f in check.findings]


def only(report: DataReport, name: str) -> DataCheck:
    (check,) = [check for check in report.checks if check.name == name]
    return check

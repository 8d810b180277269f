"""The bytes of a data file: what other programs stumble over, though our loaders cope with it."""

from __future__ import annotations

import re

from deliberation.textfile import GZIP_MAGIC, UTF8_MARK, UTF16_MARKS

from .findings import DataCheck, Severity, checked

_ODD = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")

Lines = list[tuple[int, str]]
"""(line number from 1, text without its end) of every line that is neither blank nor unreadable."""


def decode(label: str, raw: bytes, *, blank_lines: bool = False) -> tuple[Lines, DataCheck]:
    """The lines of a file, and what is unusual about its bytes.

    Errors: gzip, UTF-16, nothing in it, and each line with bytes that are not UTF-8. Warnings, one
    of each sort with the first line that has it: a byte order mark, Windows line ends, blank lines,
    and characters that some programs end a line at. With `blank_lines`, blank ones are as good as
    any, as in YAML and inside of quotes in CSV.
    """
    found: list[tuple[Severity, str, str, float | None]] = []
    refusal = _not_text(raw)
    if refusal is not None:
        return [], checked(label, "encoding", [("error", f"{label}:1", refusal, None)])
    if raw.startswith(UTF8_MARK.encode()):
        raw = raw.removeprefix(UTF8_MARK.encode())
        found.append(
            ("warning", f"{label}:1", "Starts with a byte order mark; save without it.", None)
        )
    lines: Lines = []
    windows: list[int] = []
    blank: list[int] = []
    odd: dict[str, list[int]] = {}
    pieces = raw.removesuffix(b"\n").split(b"\n")
    for number, piece in enumerate(pieces, start=1):
        if piece.endswith(b"\r"):
            windows.append(number)
            piece = piece[:-1]
        try:
            line = piece.decode("utf-8")
        except UnicodeDecodeError as error:
            detail = f"Not UTF-8 (byte {piece[error.start]:02X}); save the file again as UTF-8."
            found.append(("error", f"{label}:{number}", detail, None))
            continue
        for character in sorted(set(_ODD.findall(line))):
            odd.setdefault(character, []).append(number)
        if line.strip():
            lines.append((number, line))
        else:
            blank.append(number)
    if not lines and not any(severity == "error" for severity, *_ in found):
        found.append(("error", label, "The file is empty; write its content.", None))
    elif blank and not blank_lines:
        found.append(("warning", f"{label}:{blank[0]}", _blank(blank), None))
    if windows:
        detail = f"{_times(windows)} with CR LF; save with LF line ends."
        found.append(("warning", f"{label}:{windows[0]}", detail, None))
    for character, numbers in odd.items():
        detail = (
            f"U+{ord(character):04X} stands in {_count(numbers)}, and some programs end lines "
            "there; replace it by a space."
        )
        found.append(("warning", f"{label}:{numbers[0]}", detail, None))
    return lines, checked(label, "encoding", found)


def _not_text(raw: bytes) -> str | None:
    if raw.startswith(GZIP_MAGIC):
        return "Looks gzipped, not text; unpack it first with gunzip."
    if raw.startswith(UTF16_MARKS):
        return "Not UTF-8 (looks like UTF-16); save it again as UTF-8."
    return None


def _blank(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return "This line is blank; remove it."
    return f"{len(numbers)} lines are blank, this is the first; remove them."


def _times(numbers: list[int]) -> str:
    return "This line ends" if len(numbers) == 1 else f"{len(numbers)} lines end"


def _count(numbers: list[int]) -> str:
    return "this line" if len(numbers) == 1 else f"{len(numbers)} lines, this is the first"

"""Text data files are read whole or refused with the file, the line and a remedy."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from deliberation.errors import DataError, UserError
from deliberation.textfile import jsonl_rows, read_text

Reader = Callable[[Path], object]
READERS = pytest.mark.parametrize("read", [read_text, jsonl_rows])


def write(folder: Path, content: bytes, name: str = "set.jsonl") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def refusal(read: Reader, path: Path) -> str:
    with pytest.raises(DataError) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:")
    assert message.endswith(".")
    assert "\n" not in message
    return message.removeprefix(f"{path}:")


def test_a_data_error_is_a_user_error_with_exit_code_2() -> None:
    assert issubclass(DataError, UserError)
    assert DataError("x").exit_code == 2


def test_a_byte_order_mark_changes_nothing(tmp_path: Path) -> None:
    """B88."""
    row = b'{"id": "d1"}\n'
    assert jsonl_rows(write(tmp_path, b"\xef\xbb\xbf" + row)) == [(1, {"id": "d1"})]
    assert read_text(write(tmp_path, b"\xef\xbb\xbf" + row)) == '{"id": "d1"}\n'


def test_windows_lines_blank_lines_and_a_missing_final_newline_are_fine(tmp_path: Path) -> None:
    """B90: two rows, no CR in values, and line numbers as an editor shows them."""
    path = write(tmp_path, b'{"id": "d1"}\r\n\r\n   \r\n{"id": "d2"}')
    assert jsonl_rows(path) == [(1, {"id": "d1"}), (4, {"id": "d2"})]
    assert "\r" not in read_text(path)


def test_line_numbers_in_errors_count_blank_lines(tmp_path: Path) -> None:
    """B90."""
    path = write(tmp_path, b'{"id": "d1"}\r\n\r\n  \r\n{"id": \r\n')
    assert refusal(jsonl_rows, path).startswith("4: not valid JSON")


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c"])
def test_only_a_newline_ends_a_line(tmp_path: Path, separator: str) -> None:
    if separator in "\x0b\x0c\x1c":  # control characters must be escaped inside JSON strings
        content = f'{{"id": "a\\u{ord(separator):04x}b"}}\n{{"id": "c"}}\n'
    else:
        content = f'{{"id": "a{separator}b"}}\n{{"id": "c"}}\n'
    path = write(tmp_path, content.encode())
    assert jsonl_rows(path) == [(1, {"id": f"a{separator}b"}), (2, {"id": "c"})]


@READERS
def test_bytes_that_are_not_utf8_are_named_with_their_line(tmp_path: Path, read: Reader) -> None:
    """B93: nothing of the file is loaded, although line 1 is sound."""
    path = write(tmp_path, b'{"id": "d1"}\r\n{"id": "\xac"}\n')
    assert refusal(read, path).startswith("2: not UTF-8 (byte AC); ")


@READERS
def test_a_gzip_file_under_a_wrong_name_is_recognised(tmp_path: Path, read: Reader) -> None:
    """B93."""
    path = write(tmp_path, gzip.compress(b'{"id": "d1"}\n'))
    assert "looks gzipped" in refusal(read, path)


@READERS
def test_utf16_is_recognised(tmp_path: Path, read: Reader) -> None:
    """B93."""
    path = write(tmp_path, '{"id": "d1"}\n'.encode("utf-16"))
    assert "not UTF-8 (looks like UTF-16)" in refusal(read, path)


@READERS
def test_a_missing_file_is_named(tmp_path: Path, read: Reader) -> None:
    assert "no such file" in refusal(read, tmp_path / "none.jsonl")


@READERS
def test_a_directory_is_not_a_file(tmp_path: Path, read: Reader) -> None:
    assert "is a directory" in refusal(read, tmp_path)


@READERS
@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\n \r\n\n"])
def test_an_empty_file_is_an_error(tmp_path: Path, read: Reader, content: bytes) -> None:
    assert "is empty" in refusal(read, write(tmp_path, content))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"id": "a", "id": "b"}', 'key "id" stands twice'),
        ('{"x": {"y": 1, "y": 1}}', 'key "y" stands twice'),
        ('["a"]', "a list, not an object"),
        ('"a"', "text, not an object"),
        ("3", "a number, not an object"),
        ("null", "null, not an object"),
        ('{"x": NaN}', "NaN is not a JSON number"),
        ('{"x": -Infinity}', "-Infinity is not a JSON number"),
        ('{"x": 1e999}', "1e999 is too large"),
        ('{"x": ' + "1" * 5000 + "}", "a number is too long"),
        (r'{"x": "\ud83d"}', "half of a surrogate pair"),
        ('{"x": 1} {"x": 2}', "Extra data"),
        ("{'x': 1}", "not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_line_that_is_no_sound_object_is_refused(
    tmp_path: Path, line: str, complaint: str
) -> None:
    path = write(tmp_path, f'{{"ok": 1}}\n{line}\n'.encode())
    message = refusal(jsonl_rows, path)
    assert message.startswith("2: ")
    assert complaint in message
    assert ";" in message  # what is wrong; the remedy

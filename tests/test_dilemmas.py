"""Dilemma files load alike in any form and order, and the packaged set is what it promises."""

from __future__ import annotations

import gzip
import itertools
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from deliberation.dilemmas import VALUES, Dilemma, DilemmaSet, load_dilemmas, packaged_dilemmas
from deliberation.errors import DataError


def row(id: Any = "d1", **changes: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": id,
        "class": "everyday",
        "domain": "neighbours",
        "title": "The hedge",
        "situation": "A hedge has grown across the path.",
        "question": "Should it be cut?",
        "stakeholders": [
            {"name": "owner", "gains": "quiet", "loses": "light"},
            {"name": "walker", "gains": "a path", "loses": "time"},
        ],
        "values": ["beauty", "fairness"],
        "constraints": ["It is nesting time."],
    }
    return {key: value for key, value in {**fields, **changes}.items() if value is not ...}


def write(folder: Path, *rows: dict[str, Any], name: str = "mine.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def refusal(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        load_dilemmas(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:")
    assert message.endswith(".")
    return message.removeprefix(f"{path}:")


@pytest.fixture(scope="module")
def packaged() -> DilemmaSet:
    return load_dilemmas()


def test_a_file_becomes_a_set_with_name_version_hash_and_lookup(tmp_path: Path) -> None:
    loaded = load_dilemmas(str(write(tmp_path, row("d1"), row("d2"))))
    assert (loaded.name, loaded.version, len(loaded)) == ("mine", "unversioned", 2)
    assert [d.id for d in loaded] == ["d1", "d2"]
    assert loaded.by_id("d2").values == ("beauty", "fairness")
    assert len(loaded.sha256) == 64


def test_an_unknown_id_is_answered_with_the_closest(tmp_path: Path) -> None:
    loaded = load_dilemmas(write(tmp_path, row("hedge"), row("river")))
    with pytest.raises(DataError, match=r'no dilemma has the id "hedges".*hedge'):
        loaded.by_id("hedges")


def test_dilemmas_are_frozen(tmp_path: Path) -> None:
    dilemma = load_dilemmas(write(tmp_path, row())).by_id("d1")
    with pytest.raises(ValidationError):
        dilemma.title = "other"


def test_a_dilemma_survives_being_dumped_and_read(tmp_path: Path) -> None:
    dilemma = load_dilemmas(write(tmp_path, row())).by_id("d1")
    dumped = dilemma.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert dumped == row()
    assert Dilemma.model_validate(dumped) == dilemma


def test_a_byte_order_mark_changes_nothing(tmp_path: Path) -> None:
    """B88."""
    plain = write(tmp_path, row())
    marked = tmp_path / "marked.jsonl"
    marked.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    assert load_dilemmas(marked).dilemmas == load_dilemmas(plain).dilemmas


def test_windows_lines_and_blank_lines_change_nothing(tmp_path: Path) -> None:
    """B90."""
    path = tmp_path / "mine.jsonl"
    first, second = json.dumps(row("d1")), json.dumps(row("d2"))
    path.write_bytes(f"{first}\r\n\r\n   \r\n{second}".encode())
    loaded = load_dilemmas(path)
    plain = load_dilemmas(write(tmp_path, row("d1"), row("d2"), name="plain.jsonl"))
    assert loaded.dilemmas == plain.dilemmas
    assert loaded.sha256 == plain.sha256
    bad = json.dumps(row("d2", title=""))
    path.write_bytes(f"{first}\r\n\r\n   \r\n{bad}".encode())
    assert refusal(path) == '4: field "title" is empty; write its text.'


def test_the_hash_follows_content_and_order_only(tmp_path: Path) -> None:
    one, two = row("d1"), row("d2")
    shuffled_keys = dict(reversed(one.items()))
    hash_of = {
        name: load_dilemmas(write(tmp_path, *rows, name=f"{name}.jsonl")).sha256
        for name, rows in {
            "plain": (one, two),
            "keys": (shuffled_keys, two),
            "noted": ({**one, "note": "mine"}, two),
            "swapped": (two, one),
            "edited": (row("d1", title="The fence"), two),
        }.items()
    }
    assert hash_of["plain"] == hash_of["keys"] == hash_of["noted"]
    assert len({hash_of["plain"], hash_of["swapped"], hash_of["edited"]}) == 3


SOUND = row("sound")
EMPTY = row("empty", constraints=[])
LACKING = row("lacking", situation=...)
NOTED = row("noted", note="mine")


@pytest.mark.parametrize("order", list(itertools.permutations([SOUND, LACKING, NOTED])))
def test_an_absent_field_is_reported_the_same_in_any_row_order(
    tmp_path: Path, order: tuple[dict[str, Any], ...]
) -> None:
    """B91."""
    line = order.index(LACKING) + 1
    assert refusal(write(tmp_path, *order)) == f'{line}: field "situation" is absent; add it.'


@pytest.mark.parametrize("order", list(itertools.permutations([SOUND, EMPTY, NOTED])))
def test_an_empty_list_loads_the_same_in_any_row_order(
    tmp_path: Path, order: tuple[dict[str, Any], ...]
) -> None:
    """B91."""
    loaded = load_dilemmas(write(tmp_path, *order))
    assert loaded.by_id("empty").constraints == ()
    assert loaded.by_id("empty").lacks() == ("constraints",)
    assert loaded.by_id("sound").constraints == tuple(SOUND["constraints"])


def test_extra_keys_are_ignored_with_one_warning_each_in_any_row_order(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B91."""
    nested = row("nested")
    nested["stakeholders"][0]["age"] = 40
    nested["stakeholders"][1]["age"] = 50
    rows = [row("plain"), NOTED, row("noted-too", note=3), nested]
    loaded = []
    for order in itertools.permutations(rows):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            loaded.append(load_dilemmas(write(tmp_path, *order)))
        messages = [record.getMessage() for record in caplog.records]
        assert len(messages) == 2
        assert 'key "note" is unknown and ignored (2 times)' in messages[0]
        assert 'key "stakeholders[].age" is unknown and ignored (2 times)' in messages[1]
    dilemmas = [sorted(one.dilemmas, key=lambda d: d.id) for one in loaded]
    assert all(one == dilemmas[0] for one in dilemmas)


def test_a_shared_id_is_refused_with_both_lines(tmp_path: Path) -> None:
    """B92."""
    path = write(tmp_path, row("d1"), row("d2"), row("d1", title="Another"))
    message = '3: id "d1" is already taken by line 1; give each its own id.'
    assert refusal(path) == message


def test_ids_that_differ_only_in_outer_space_are_the_same_id(tmp_path: Path) -> None:
    """B92."""
    assert refusal(write(tmp_path, row("d1"), row(" d1 "))).startswith('2: id "d1" is already')


@pytest.mark.parametrize(("first", "second", "line"), [(1, "1", 1), ("1", 1, 2)])
def test_an_id_must_be_text(tmp_path: Path, first: object, second: object, line: int) -> None:
    """B92: the ids 1 and "1"."""
    expected = f'{line}: field "id" must be text, not the number 1; put it in quotes.'
    assert refusal(write(tmp_path, row(first), row(second))) == expected


def test_bytes_that_are_not_utf8_are_named_with_their_line(tmp_path: Path) -> None:
    """B93."""
    path = tmp_path / "mine.jsonl"
    path.write_bytes(json.dumps(row()).encode() + b'\n{"id": "\xac"}\n')
    assert refusal(path).startswith("2: not UTF-8")


def test_a_gzip_file_under_a_wrong_name_is_recognised(tmp_path: Path) -> None:
    """B93."""
    path = tmp_path / "mine.jsonl"
    path.write_bytes(gzip.compress(json.dumps(row()).encode()))
    assert "looks gzipped" in refusal(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"class": "work"}, "field \"class\" is 'work'; write 'professional', 'interpersonal' or"),
        ({"situation": None}, 'field "situation" must be text, not null; write its text.'),
        ({"title": " "}, 'field "title" is empty'),
        ({"title": "\ud83d"}, "half of a surrogate pair"),
        ({"values": ["beauty"]}, 'field "values": names 1 values; name the two goods in tension'),
        ({"values": ["beauty", "joy", "rest"]}, 'field "values": names 3 values; name the two'),
        ({"values": ["beauty", "beauty"]}, 'field "values": both values are "beauty"; name two'),
        ({"values": ["beauty", "fairnes"]}, '"fairnes" is not in the list of values; write "fairn'),
        ({"values": ["beauty", "xyz"]}, "take one of those in dilemmas/values.py."),
        ({"stakeholders": "all"}, 'field "stakeholders" must be a list, not text'),
        ({"stakeholders": ["a", "b"]}, 'field "stakeholders[0]" must be an object'),
        (
            {"stakeholders": [row()["stakeholders"][0], {"name": "two", "gains": "a"}]},
            'field "stakeholders[1].loses" is absent; add it.',
        ),
    ],
)
def test_a_wrong_field_is_named_with_a_remedy(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    message = refusal(write(tmp_path, row("d1"), row("d2", **changes)))
    assert message.startswith("2: ")
    assert expected in message


def test_the_packaged_set_named_by_path_is_the_same_set(packaged: DilemmaSet) -> None:
    assert load_dilemmas(packaged_dilemmas("train")) == packaged


def test_packaged_rows_load_without_warnings(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        load_dilemmas()
    assert caplog.records == []


def test_the_list_of_values_has_one_line_each() -> None:
    assert len(VALUES) >= 40
    assert list(VALUES) == sorted(VALUES)
    assert all(line and "\n" not in line for line in VALUES.values())

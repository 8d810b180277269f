"""Persona files load alike in any form; the packaged pairs are opposed and fit a prompt."""

from __future__ import annotations

import copy
import gzip
import itertools
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from deliberation.errors import DataError
from deliberation.personas import PersonaPair, PersonaSet, load_personas, packaged_personas


def persona(id: str, pole: str) -> dict[str, Any]:
    return {
        "id": id,
        "name": f"the {pole} one",
        "pole": pole,
        "stance": f"All is {pole}.",
        "protects": "what is there",
        "argues": "from what is seen",
        "concedes": "a little",
        "red_line": "Nothing may be lost.",
    }


def pair(id: str = "p", **changes: Any) -> dict[str, Any]:
    personas = [persona(f"{id}-high", "high"), persona(f"{id}-low", "low")]
    fields: dict[str, Any] = {"id": id, "axis": "height", "personas": personas}
    return {key: value for key, value in {**fields, **changes}.items() if value is not ...}


def text(*pairs: dict[str, Any], version: object = ...) -> str:
    document: dict[str, Any] = {} if version is ... else {"version": version}
    return yaml.safe_dump({**document, "pairs": [copy.deepcopy(p) for p in pairs]}, sort_keys=False)


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "mine.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        load_personas(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:")
    assert message.endswith(".")
    return message.removeprefix(f"{path}:")


def line_of(content: str, start: str, nth: int = 1) -> int:
    """The number of the nth line that begins with `start`, leading space and dash aside."""
    lines = [n for n, line in enumerate(content.split("\n"), 1) if line.lstrip(" -") == start]
    return lines[nth - 1]


@pytest.fixture(scope="module")
def packaged() -> PersonaSet:
    return load_personas()


def test_a_file_becomes_a_set_with_name_version_hash_and_lookup(tmp_path: Path) -> None:
    loaded = load_personas(str(write(tmp_path, text(pair("p"), pair("q"), version="3"))))
    assert (loaded.name, loaded.version, len(loaded)) == ("mine", "3", 2)
    assert [one.id for one in loaded] == ["p", "q"]
    assert [p.pole for p in loaded.by_id("q").personas] == ["high", "low"]
    assert loaded.by_id("q").personas[0].axis == "height"
    assert len(loaded.sha256) == 64
    assert load_personas(write(tmp_path, text(pair("p")))).version == "unversioned"


def test_an_unknown_id_is_answered_with_the_closest(packaged: PersonaSet) -> None:
    with pytest.raises(DataError, match=r'no persona pair has the id "self-or-group".*self-and-gr'):
        packaged.by_id("self-or-group")


def test_pairs_are_frozen_and_survive_being_dumped(packaged: PersonaSet) -> None:
    one = packaged.pairs[0]
    assert PersonaPair.model_validate(one.model_dump(mode="json")) == one
    with pytest.raises(ValidationError):
        one.id = "other"


def test_a_byte_order_mark_changes_nothing(tmp_path: Path) -> None:
    """B88."""
    plain = load_personas(write(tmp_path, text(pair())))
    marked = load_personas(write(tmp_path, b"\xef\xbb\xbf" + text(pair()).encode()))
    assert marked == plain


def test_windows_lines_and_blank_lines_change_nothing(tmp_path: Path) -> None:
    """B90."""
    content = text(pair())
    plain = load_personas(write(tmp_path, content))
    spaced = content.replace("\n", "\r\n\r\n   \r\n").rstrip()
    assert load_personas(write(tmp_path, spaced)) == plain
    # Each line of the content is followed by two blank ones.
    wrong = spaced.replace("pole: low", "pole: ''")
    line = 3 * line_of(content, "pole: low") - 2
    path = write(tmp_path, wrong)
    assert refusal(path) == f'{line}: field "pairs[0].personas[1].pole" is empty; write its text.'


@pytest.mark.parametrize("order", list(itertools.permutations("abc")))
def test_an_absent_field_is_reported_the_same_in_any_order(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    """B91."""
    pairs = {"a": pair("a"), "b": pair("b", axis=...), "c": pair("c", note="mine")}
    content = text(*(pairs[id] for id in order))
    index, line = order.index("b"), line_of(content, "id: b")
    expected = f'{line}: field "pairs[{index}].axis" is absent; add it.'
    assert refusal(write(tmp_path, content)) == expected


def test_extra_keys_are_ignored_with_one_warning_each_in_any_order(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B91."""
    nested = pair("c")
    nested["personas"][0]["age"] = 40
    nested["personas"][1]["age"] = 50
    for order in itertools.permutations([pair("a", note=1), pair("b", note=2), nested]):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            loaded = load_personas(write(tmp_path, text(*order)))
        assert sorted(one.id for one in loaded) == ["a", "b", "c"]
        messages = [record.getMessage() for record in caplog.records]
        assert len(messages) == 2
        assert 'key "pairs[].note" is unknown and ignored (2 times)' in messages[0]
        assert 'key "pairs[].personas[].age" is unknown and ignored (2 times)' in messages[1]


def test_a_shared_pair_id_is_refused_with_both_lines(tmp_path: Path) -> None:
    """B92."""
    second = pair("p", personas=[persona("x", "high"), persona("y", "low")])
    content = text(pair("p"), second)
    first_line, second_line = line_of(content, "id: p"), line_of(content, "id: p", nth=2)
    assert first_line < second_line
    assert refusal(write(tmp_path, content)) == (
        f'{second_line}: pair id "p" is already taken by line {first_line}; '
        "give each pair an id of its own."
    )


def test_a_shared_persona_id_is_refused_with_both_lines(tmp_path: Path) -> None:
    """B92."""
    second = pair("q", personas=[persona("x", "high"), persona("p-low", "low")])
    content = text(pair("p"), second)
    first_line, second_line = line_of(content, "id: p-low"), line_of(content, "id: p-low", nth=2)
    assert refusal(write(tmp_path, content)) == (
        f'{second_line}: persona id "p-low" is already taken by line {first_line}; '
        "give each persona an id of its own."
    )


@pytest.mark.parametrize(
    ("written", "read_as"), [("1", "the number 1"), ("no", "true or false"), ("~", "null")]
)
def test_an_id_must_be_text(tmp_path: Path, written: str, read_as: str) -> None:
    """B92: YAML reads an unquoted 1 or no as something else than text."""
    message = refusal(write(tmp_path, text(pair("p")).replace("id: p\n", f"id: {written}\n")))
    assert message.startswith(f'2: field "pairs[0].id" must be text, not {read_as}; ')


def test_bytes_that_are_not_utf8_are_named_with_their_line(tmp_path: Path) -> None:
    """B93."""
    path = write(tmp_path, b"version: '1'\npairs: \xac\n")
    assert refusal(path).startswith("2: not UTF-8")


def test_a_gzip_file_under_a_wrong_name_is_recognised(tmp_path: Path) -> None:
    """B93."""
    path = write(tmp_path, gzip.compress(text(pair()).encode()))
    assert "looks gzipped" in refusal(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("# only a comment\n", "1: holds no mapping"),
        ("- a\n", "1: holds no mapping"),
        ("pairs: []\n", '1: field "pairs" has 0 entries; give at least 1.'),
        ("version: '1'\n", '1: field "pairs" is absent; add it.'),
        ("version: 1.10\npairs: [a]\n", '1: field "version" must be text, not the number 1.1'),
        ("version: 2026-01-01\npairs: [a]\n", '1: field "version" must be text, not a date'),
        ("version: '1'\npairs:\n- a\n", '3: field "pairs[0]" must be an object with named keys'),
        ("pairs: a\n", '1: field "pairs" must be a list, not text'),
        ("a: 1\npairs: []\na: 2\n", '3: key "a" already stands in line 1; keep one of them.'),
        ("a: 1\nb: [\n", "not valid YAML"),
        ("a: 1\n\tb: 2\n", "2: not valid YAML"),
        ("a: 1\nb: *c\n", "2: not valid YAML (found undefined alias 'c')"),
        ("a: 1\nb: !!python/object:os.x {}\n", "2: not valid YAML (could not determine"),
        ("a: 1\nb: 2026-13-45\n", "2: not valid YAML (bad value: month must be in 1..12)"),
        ("a: 1\nb: \x01\n", "2: not valid YAML (a character"),
        ("a: 1\n---\nb: 2\n", "not valid YAML (but found another document)"),
        ("a: '\u2028\u2028'\nb: *c\n", "2: not valid YAML"),
        ("[" * 5000, "nested too deeply"),
    ],
)
def test_a_file_that_is_no_sound_yaml_is_refused(
    tmp_path: Path, content: str, expected: str
) -> None:
    assert expected in refusal(write(tmp_path, content))


def test_both_poles_must_differ(tmp_path: Path) -> None:
    same = pair("p", personas=[persona("a", "high"), persona("b", "High")])
    message = refusal(write(tmp_path, text(same)))
    assert message.startswith('2: field "pairs[0]": both personas of pair "p" have the pole "high"')


def test_both_personas_must_be_on_the_axis_of_their_pair(tmp_path: Path) -> None:
    off = pair("p", personas=[persona("a", "high"), {**persona("b", "low"), "axis": "depth"}])
    assert 'persona "b" is on axis "depth"' in refusal(write(tmp_path, text(off)))


@pytest.mark.parametrize("count", [1, 3])
def test_a_pair_has_exactly_two_personas(tmp_path: Path, count: int) -> None:
    personas = [persona(f"x{n}", f"pole {n}") for n in range(count)]
    message = refusal(write(tmp_path, text(pair("p", personas=personas))))
    assert 'field "pairs[0].personas"' in message


def test_shared_anchors_and_merged_keys_are_allowed(tmp_path: Path) -> None:
    content = """\
pairs:
- id: p
  axis: height
  personas:
  - &base {id: a, name: the one, pole: high, stance: All is high., protects: it, argues: so,
      concedes: some, red_line: No., note: mine}
  - {<<: *base, id: b, pole: low}
"""
    loaded = load_personas(write(tmp_path, content))
    assert [(p.id, p.pole, p.argues) for p in loaded.pairs[0].personas] == [
        ("a", "high", "so"),
        ("b", "low", "so"),
    ]


def test_the_packaged_set_holds_25_pairs_with_the_papers_examples(packaged: PersonaSet) -> None:
    assert (packaged.name, packaged.version, len(packaged)) == ("train", "2", 25)
    poles = {frozenset(p.pole for p in one.personas) for one in packaged}
    assert frozenset({"data-driven", "intuition-driven"}) in poles
    assert frozenset({"cost-minimising", "quality-maximising"}) in poles
    assert len({one.axis for one in packaged}) == 25
    assert load_personas(packaged_personas("train")) == packaged


def test_packaged_persona_texts_fit_their_sentence_frames(packaged: PersonaSet) -> None:
    everyone = [p for one in packaged for p in one.personas]
    assert len({p.id for p in everyone}) == 50
    for p in everyone:
        for sentence in (p.stance, p.red_line):
            assert sentence[0].isupper(), p.id
            assert sentence.endswith("."), p.id
        assert p.name.startswith("the "), p.id
        for part in (p.protects, p.argues, p.concedes):
            assert part[0].islower(), p.id
            assert not part.endswith("."), p.id
        assert p.argues.split()[0] in {"from", "with", "by"}, p.id
        for field in (p.stance, p.protects, p.argues, p.concedes, p.red_line):
            assert len(field.split()) <= 22, (p.id, field)
            assert field.count(". ") == 0, (p.id, field)

"""What training and evaluation may not share is found, and persona files are checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from deliberation import DataReport, check_data
from tests.helpers.dilemma_rows import (
    checks,
    near_copy,
    only,
    own_row,
    own_rows,
    own_words,
    said,
    write_rows,
)

CANARY = "canary 8f14e45f-ceea"


def task(number: int, **changes: Any) -> dict[str, Any]:
    return own_row(
        number + 1000, **{"pair": "some-pair", "policy": "someone", "canary": CANARY, **changes}
    )


def leaks(
    training: list[dict[str, Any]], evaluation: list[dict[str, Any]], folder: Path
) -> DataReport:
    return check_data(
        [write_rows(folder, training, "mine.jsonl")],
        against=[write_rows(folder, evaluation, "theirs.jsonl")],
    )


class TestLeakage:
    def test_sets_that_share_nothing_are_fine(self, tmp_path: Path) -> None:
        report = leaks(own_rows(3), [task(0), task(1)], tmp_path)
        assert report.ok
        names = {check.name for check in report.checks if " and " in check.file}
        assert names == {
            "leaked words",
            "shared ids",
            "shared titles",
            "shared domains",
            "shared sentences",
            "canary",
        }

    @pytest.mark.parametrize(("changed", "errors"), [(50, 1), (55, 0)])
    def test_a_tenth_of_the_5_grams_in_common_is_the_limit(
        self, tmp_path: Path, changed: int, errors: int
    ) -> None:
        """Kept 66 - c of 73: c = 50: 16 / 130 = 0.123; c = 55: 11 / 135 = 0.081."""
        evaluation = [task(0, situation=near_copy(5, of=1, changed=changed)["situation"])]
        check = only(leaks(own_rows(3), evaluation, tmp_path), "leaked words")
        assert check.errors == errors
        assert check.measured == (round(16 / 130, 4) if errors else None)

    @pytest.mark.parametrize(
        ("name", "mine", "theirs"),
        [
            ("shared ids", {"id": "same"}, {"id": "same"}),
            ("shared titles", {"title": "The Hedge"}, {"title": "the hedge!"}),
            ("shared domains", {"domain": "Bees"}, {"domain": "bees"}),
            (
                "shared sentences",
                {"constraints": ["No one here can wait longer."]},
                {"constraints": ["No one here can wait longer"]},
            ),
        ],
    )
    def test_what_both_sets_have_is_an_error(
        self, tmp_path: Path, name: str, mine: dict[str, Any], theirs: dict[str, Any]
    ) -> None:
        report = leaks([own_row(0), own_row(1, **mine)], [task(0), task(1, **theirs)], tmp_path)
        (finding,) = report.findings
        assert finding.check == name
        assert finding.place.endswith("theirs.jsonl:2")
        assert "mine.jsonl:2" in finding.detail
        assert not report.ok

    def test_a_canary_in_training_is_an_error(self, tmp_path: Path) -> None:
        training = [own_row(0), own_row(1, constraints=[f"See {CANARY}."])]
        report = leaks(training, [task(0)], tmp_path)
        (finding,) = report.findings
        assert (finding.check, finding.severity) == ("canary", "error")
        assert finding.place.endswith("mine.jsonl:2")

    def test_an_evaluation_row_without_canary_is_an_error(self, tmp_path: Path) -> None:
        path = write_rows(tmp_path, [task(0), task(1, canary=...)])
        assert said(checks(path)["schema"]) == [("error", "2", 'Field "canary" is absent; add it.')]

    def test_open_ended_tasks_are_known_and_compared(self, tmp_path: Path) -> None:
        rows = [
            {
                "id": f"q{n}",
                "domain": f"d{n}",
                "question": own_words(f"q{n}q", 12),
                "canary": CANARY,
            }
            for n in range(3)
        ]
        rows[2]["domain"] = "r1ndomain"
        report = leaks(own_rows(3), rows, tmp_path)
        (finding,) = report.findings
        assert finding.check == "shared domains"
        (alone,) = check_data([tmp_path / "theirs.jsonl"], against=[]).files
        assert (alone.kind, alone.rows) == ("open-ended tasks", 3)

    def test_a_conflict_task_must_name_a_pair_and_a_persona_of_it(self, tmp_path: Path) -> None:
        path = write_rows(tmp_path, [task(0)])
        found = checks(path)["persona pairs"]
        if found.skipped:
            pytest.skip("no packaged held-out personas")
        assert 'The pair "some-pair" of "row-1000"' in found.findings[0].detail


def persona(id: str, pole: str, **changes: Any) -> dict[str, Any]:
    tag = id.replace("-", "")
    fields = {
        "id": id,
        "name": f"the {pole} one",
        "pole": pole,
        "stance": own_words(f"{tag}s", 10) + ".",
        "protects": own_words(f"{tag}p", 8),
        "argues": own_words(f"{tag}a", 8),
        "concedes": own_words(f"{tag}c", 8),
        "red_line": own_words(f"{tag}r", 8) + ".",
    }
    return {**fields, **changes}


def pair(number: int, **changes: Any) -> dict[str, Any]:
    personas = [persona(f"{side}-{number}", f"{side}{number}") for side in ("left", "right")]
    return {"id": f"pair-{number}", "axis": f"axis {number}", "personas": personas, **changes}


def write_pairs(folder: Path, *pairs: dict[str, Any], name: str = "mine.yaml") -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump({"pairs": list(pairs)}, sort_keys=False))
    return path


class TestPersonas:
    def test_a_file_in_order_passes(self, tmp_path: Path) -> None:
        path = write_pairs(tmp_path, pair(0), pair(1))
        report = check_data([path], against=[], complete=True)
        assert report.findings == ()
        assert (report.files[0].kind, report.files[0].rows) == ("persona pairs", 2)

    def test_every_wrong_pair_is_named_with_its_line(self, tmp_path: Path) -> None:
        bad = pair(1)
        del bad["personas"][0]["stance"]
        same_pole = pair(2)
        same_pole["personas"][1]["pole"] = "LEFT2"
        path = write_pairs(tmp_path, pair(0), bad, same_pole)
        found = checks(path)["schema"]
        assert [f.severity for f in found.findings] == ["error", "error"]
        assert "stance" in found.findings[0].detail
        assert "pole" in found.findings[1].detail
        lines = path.read_text().splitlines()
        number = int(found.findings[0].place.rpartition(":")[2])
        assert "left-1" in lines[number - 1]

    def test_ids_texts_axes_and_poles_that_return_are_found(self, tmp_path: Path) -> None:
        second = pair(1, axis="Axis 0")
        second["personas"][0]["id"] = "left-0"
        second["personas"][0]["pole"] = "left0"
        second["personas"][1]["stance"] = pair(0)["personas"][0]["stance"]
        found = checks(write_pairs(tmp_path, pair(0), second))
        assert [f.detail for f in found["ids"].findings] == [
            'Persona id "left-0" is already taken by line 5; give each persona its own.'
        ]
        assert [f.detail for f in found["near words"].findings] == [
            'The stance of "right-1" is near to the stance of "left-0" in line 8.'
        ]
        assert [f.detail.partition(" is")[0] for f in found["axes and poles"].findings] == [
            'The axis "Axis 0"',
            'The pole "left0"',
        ]

    @pytest.mark.parametrize(("words", "warnings"), [(22, 0), (23, 1)])
    def test_a_text_may_have_22_words(self, tmp_path: Path, words: int, warnings: int) -> None:
        long = pair(0)
        long["personas"][0]["concedes"] = own_words("x", words)
        path = write_pairs(tmp_path, long)
        found = checks(path)["longest text"]
        assert (found.warnings, found.measured) == (warnings, words)
        assert checks(path, complete=True)["longest text"].errors == warnings

    def test_axes_and_ids_shared_with_evaluation_are_errors(self, tmp_path: Path) -> None:
        other = pair(1, axis="axis 0")
        other["personas"][0]["id"] = "left-0"
        report = check_data(
            [write_pairs(tmp_path, pair(0))],
            against=[write_pairs(tmp_path, other, name="theirs.yaml")],
        )
        assert {f.detail.partition(" is")[0] for f in report.findings} == {
            'The axis "axis 0"',
            'The persona "left-0"',
        }

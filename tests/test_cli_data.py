"""`data check` and `data stats`: tables for people, objects for machines, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deliberation import DataLimits, data_stats
from deliberation.dilemmas.check.limits import DataLimits as Owner
from deliberation.errors import DataError
from tests.helpers.dilemma_rows import own_row, own_rows, own_words, write_rows


def data(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "deliberation.cli.main", "data", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Two sound rows, one that lacks its constraints, one copy, one that is none."""
    rows: list[dict[str, Any]] = own_rows(2)
    rows.append(own_row(2, constraints=[]))
    rows.append({**own_row(3), "situation": own_row(0)["situation"]})
    path = write_rows(tmp_path, rows)
    path.write_text(path.read_text() + "{}\n")
    return path


class TestCheck:
    def test_warnings_alone_end_with_0(self, tmp_path: Path) -> None:
        write_rows(tmp_path, [own_row(0), own_row(1, title=...)])
        done = data("check", "mine.jsonl", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert 'mine.jsonl:2: warning: fields: "row-1" lacks title.' in done.stdout
        assert done.stdout.endswith("0 errors, 1 warning.\n")
        assert data("check", "mine.jsonl", "--complete", cwd=tmp_path).returncode == 1

    def test_errors_end_with_1_and_stand_with_file_and_line(self, mine: Path) -> None:
        done = data("check", mine.name, cwd=mine.parent)
        assert done.returncode == 1
        assert done.stderr == ""
        lines = done.stdout.splitlines()
        assert lines[0] == "mine.jsonl: 4 dilemmas"
        assert lines[1].split() == ["check", "measured", "limit", "result"]
        table = {line.split("  ")[0]: line for line in lines}
        assert table["near words"].endswith("1 error")
        assert table["fields"].endswith("1 warning")
        assert table["domains"].endswith("skipped: 4 rows")
        assert table["near embeddings"].endswith("skipped: no --embeddings model given")
        assert 'mine.jsonl:5: error: schema: Field "id" is absent; add it.' in lines
        assert 'mine.jsonl:3: warning: fields: "row-2" lacks constraints.' in lines
        assert any(line.startswith("mine.jsonl:4: error: near words:") for line in lines)

    def test_json_is_one_object_with_every_finding(self, mine: Path) -> None:
        done = data("check", mine.name, "--json", cwd=mine.parent)
        assert done.returncode == 1
        found = json.loads(done.stdout)
        assert set(found) == {"files", "checks", "errors", "warnings"}
        assert found["files"] == [{"path": "mine.jsonl", "kind": "dilemmas", "rows": 4}]
        by_name = {check["name"]: check for check in found["checks"] if check["file"] == mine.name}
        assert by_name["near words"]["result"] == "1 error"
        (near,) = by_name["near words"]["findings"]
        assert (near["place"], near["limit"], near["severity"]) == ("mine.jsonl:4", 0.25, "error")
        assert near["measured"] > 0.7
        assert found["errors"] == sum(
            finding["severity"] == "error"
            for check in found["checks"]
            for finding in check["findings"]
        )

    def test_of_many_findings_people_see_20(self, tmp_path: Path) -> None:
        write_rows(tmp_path, own_rows(25, title=...))
        shown = data("check", "mine.jsonl", cwd=tmp_path).stdout
        assert shown.count("lacks title") == 20
        assert "… and 5 more of fields; --json has them all." in shown
        assert data("check", "mine.jsonl", "--json", cwd=tmp_path).stdout.count("lacks title") == 25

    def test_a_limit_is_changed_and_a_misspelt_one_is_refused(self, mine: Path) -> None:
        done = data("check", mine.name, "--json", "--limit", "near_words=0.99", cwd=mine.parent)
        checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
        assert checks["near words"]["result"] == "ok"
        done = data("check", mine.name, "--limit", "near_wrods=0.3", cwd=mine.parent)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr == (
            'error: --limit "near_wrods" is unknown; the nearest is "near_words".\n'
        )

    def test_a_missing_file_is_misuse(self, tmp_path: Path) -> None:
        done = data("check", "none.jsonl", cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr == "error: none.jsonl: no such file; check the path.\n"

    def test_another_set_to_compare_with_is_named(self, tmp_path: Path) -> None:
        write_rows(tmp_path, own_rows(2))
        write_rows(tmp_path, [own_row(5, domain="r1ndomain")], "theirs.jsonl")
        done = data("check", "mine.jsonl", "--against", "theirs.jsonl", cwd=tmp_path)
        assert done.returncode == 1
        assert "Shared by mine.jsonl and theirs.jsonl" in done.stdout
        assert "theirs.jsonl:1: error: shared domains" in done.stdout

    def test_without_files_all_that_is_packaged_is_looked_at(self, tmp_path: Path) -> None:
        found = json.loads(data("check", "--json", cwd=tmp_path).stdout)
        names = {Path(file["path"]).name: file for file in found["files"]}
        assert {"train.jsonl", "train.yaml"} <= set(names)
        if "conflict-v1.jsonl" in names:
            pairs = {check["file"] for check in found["checks"]}
            assert "train.jsonl and conflict-v1.jsonl" in pairs

    @pytest.mark.parametrize("command", ["check", "stats"])
    def test_help_explains_and_has_an_example(self, command: str, tmp_path: Path) -> None:
        done = data(command, "--help", cwd=tmp_path)
        assert f"Example:\n    deliberation data {command}" in done.stdout


class TestStats:
    def test_counts_and_lengths_are_those_worked_out_by_hand(self, tmp_path: Path) -> None:
        rows = [own_row(n, situation=own_words(f"s{n}", n + 1), domain="bees") for n in range(5)]
        rows[4]["stakeholders"].append({"name": "c", "gains": "d", "loses": "e"})
        rows[4]["class"] = ...
        rows[4] = {key: value for key, value in rows[4].items() if value is not ...}
        rows[3]["constraints"] = ["then in Lagos."]
        stats = data_stats(write_rows(tmp_path, rows))
        assert (stats.rows, stats.wrong, stats.kind) == (5, 0, "dilemmas")
        assert stats.classes == {
            "professional": 2,
            "everyday": 1,
            "interpersonal": 1,
            "no class": 1,
        }
        assert stats.domains == {"bees": 5}
        assert stats.stakeholders == {2: 4, 3: 1}
        assert stats.places == {"Lagos": 1}
        assert stats.lengths["professional"] == (1, 4)
        assert stats.values["accountability"] == 1
        assert stats.values["welfare"] == 0
        assert stats.quantiles() == {
            "shortest": 1,
            "quarter": 2,
            "median": 3,
            "three quarters": 4,
            "longest": 5,
        }
        assert stats.quantiles("professional")["median"] == 1

    def test_wrong_rows_are_left_out_and_counted(self, mine: Path) -> None:
        stats = data_stats(mine)
        assert (stats.rows, stats.wrong) == (4, 1)
        assert "1 wrong row is left out" in data("stats", mine.name, cwd=mine.parent).stdout

    def test_a_file_without_sound_rows_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.jsonl"
        path.write_text("{}\n")
        with pytest.raises(DataError, match="no sound row"):
            data_stats(path)

    def test_json_has_counts_and_quantiles(self, mine: Path) -> None:
        done = data("stats", mine.name, "--json", cwd=mine.parent)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["rows"] == 4
        assert found["quantiles"]["all"]["longest"] == 70
        assert sum(found["classes"].values()) == 4

    @pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
    def test_a_picture_is_drawn_the_same_each_time(
        self, mine: Path, name: str, start: bytes
    ) -> None:
        pictures = []
        for _ in range(2):
            done = data("stats", mine.name, "--plot", name, cwd=mine.parent)
            assert done.returncode == 0, done.stderr
            pictures.append((mine.parent / name).read_bytes())
        assert pictures[0].startswith(start)
        assert pictures[0] == pictures[1]

    def test_a_picture_of_bare_rows_is_drawn_too(self, tmp_path: Path) -> None:
        write_rows(tmp_path, [{"id": "a", "situation": "A hedge grows."}])
        done = data("stats", "mine.jsonl", "--plot", "a.png", cwd=tmp_path)
        assert done.returncode == 0, done.stderr

    @pytest.mark.parametrize("plot", ["a.txt", "none/a.png"])
    def test_a_picture_that_cannot_be_written_is_refused(self, mine: Path, plot: str) -> None:
        done = data("stats", mine.name, "--plot", plot, cwd=mine.parent)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")
        assert done.stdout == ""


def test_the_public_limits_are_those_of_the_check() -> None:
    assert DataLimits is Owner

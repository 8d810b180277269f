"""The judge commands: what goes to stdout, what to stderr, and how they end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from deliberation.store import RunStore
from tests.helpers.episodes import agreeing, disagreeing
from tests.helpers.reports import CONFIG
from tests.test_judge_calibrate import dialogue, resolution, write

JUDGE = "tests.test_judge_calibrate:Knowing"
ROOT = Path(__file__).parents[1]


def judge(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "deliberation.cli.main", "judge", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write(tmp_path, "mine.jsonl", [dialogue(0, True), resolution(1, 4), resolution(5, 1)])
    return tmp_path / "mine.jsonl"


def test_score_writes_rows_to_stdout_and_the_summary_to_stderr(file: Path) -> None:
    done = judge("score", str(file), "--judge", JUDGE)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0]["agreement"]["agreed"] is True
    assert rows[1]["score"]["value"] == 4.0
    assert (rows[2]["score"]["value"], rows[2]["score"]["missing"]) == (None, "timeout")
    assert "3 rows: 1 agreed, 1 scored (4.00 in the mean), 1 missing" in done.stderr


def test_score_as_json_is_one_object_and_rows_go_to_a_file(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "judged.jsonl"
    done = judge("score", str(file), "--judge", JUDGE, "--out", str(out), "--json")
    summary = json.loads(done.stdout)
    assert (summary["rows"], summary["agreed"], summary["scored"], summary["missing"]) == (
        3,
        1,
        1,
        1,
    )
    assert len(out.read_text().splitlines()) == 3


def test_calibrate_shows_two_judges_side_by_side(tmp_path: Path) -> None:
    write(tmp_path / "gold", "resolutions.jsonl", [resolution(n, n % 6) for n in range(12)])
    arguments = ("calibrate", "--judge", JUDGE, "--gold", str(tmp_path / "gold"))
    other = "tests.test_judge_calibrate:Contrary"
    done = judge(*arguments, "--judge", other)
    assert done.returncode == 0, done.stderr
    assert "gold: 0 dialogues, 12 resolutions, 0 attacks" in done.stdout
    row = next(line for line in done.stdout.splitlines() if "score, all: spearman" in line)
    assert "1.00" in row
    assert "-1.00" in row
    found = json.loads(judge(*arguments, "--json").stdout)
    assert found["judges"][0]["score"]["all"]["spearman"]["n"] == 11
    assert found["judges"][0]["missing"] == 1


def test_rescore_leaves_the_run_as_it_is(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path / "run", yaml.safe_dump(CONFIG))
    episodes = [agreeing(episode=0), agreeing(episode=1, reward=1.0), disagreeing(episode=2)]
    for episode in episodes:
        store.append(episode)
    store.finish_step(1, episodes)
    store.close()
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    done = judge("rescore", str(tmp_path / "run"), "--judge", "embedded", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["episodes"], found["missing"]) == (2, 0)
    assert all(0 <= row["new_reward"] <= 5 for row in found["scores"])
    after = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert after == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("score", "nowhere.jsonl", "--judge", JUDGE), "nowhere.jsonl: no such file"),
        (("score", "README.md", "--judge", "embeded"), "embeded"),
        (("score", "README.md", "--judge", JUDGE, "sample=3"), "samples"),
        (("score", "README.md", "--judge", JUDGE, "--out", "no/x.jsonl"), "no such folder"),
        (("calibrate",), "name the judge to be measured"),
        (("calibrate", "--judge", JUDGE, "--half", "both"), "write one of all, tuning, unseen"),
        (("calibrate", "--judge", JUDGE, "--gold", "docs"), "holds neither dialogues"),
        (("rescore", "docs", "--judge", JUDGE), "docs: not a run folder"),
    ],
)
def test_what_cannot_be_judged_is_one_sentence(arguments: tuple[str, ...], told: str) -> None:
    done = judge(*arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""

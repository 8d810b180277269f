"""A package outside the repository adds an environment, a reward and a judge: by `module:Name`, and
by entry points once it is installed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.tiny import save_tiny

PACKAGE = '''
"""Splitting ten coins: the policy names its share, the partner answers."""

from dataclasses import dataclass, field

from deliberation import (
    AgreementVerdict, Episode, EnvironmentSetup, Message, Move, Outcome, Reaction, Score,
)


class Coins:
    name = "coins"

    def __init__(self, setup):
        self.setup, self.said, self.verdict = setup, [], None

    def status(self):
        if len(self.said) == 2:
            return None
        phase = self.setup.phase("negotiation", trained=True)
        return Move("policy" if not self.said else "partner", phase)

    def observe(self, seat):
        opening = Message(role="user", content="Ten coins. How many are yours?")
        heard = [Message(role="user", content=text) for text in self.said]
        return [opening, *heard]

    async def act(self, seat, generation):
        self.said.append(generation.visible)
        return Reaction(notes=(f"{seat} spoke",))

    async def outcome(self):
        return Outcome.of("split", 0.0)

    def facts(self):
        return {"coins": 10}


@dataclass(frozen=True)
class Draw:
    id: str


class Splitting:
    def __init__(self, setup: EnvironmentSetup):
        self.setup = setup

    def draw(self, *, seed, step, slot, slots, attempt, history):
        return Draw(f"coins-{slot}")

    def open(self, scenario):
        return Coins(self.setup)

    def fingerprint(self):
        return {"data": "ten coins"}


async def length_of_the_opening(episode: Episode) -> Outcome:
    return Outcome.of("measured", float(sum(episode.turns[0].generation.ids) % 5))


class Agreeable:
    def __init__(self, config):
        self.config = config

    async def agreement(self, transcript):
        return AgreementVerdict(agreed=len(transcript.utterances) >= 3, reason="third turn")

    async def score(self, case):
        return Score(value=min(5.0, len(case.resolution) / 10), reason="by length")

    def describe(self):
        return {"kind": "agreeable"}
'''
ENTRY_POINTS = """
[deliberation.environments]
coins = outside:Splitting
[deliberation.rewards]
opening = outside:length_of_the_opening
[deliberation.judges]
agreeable = outside:Agreeable
"""
SMALL = [
    "train.steps=1",
    "train.scenarios_per_step=1",
    "train.group_size=2",
    "sampling.negotiation.max_tokens=8",
    "sampling.resolution.max_tokens=8",
    "protocol.max_turns=4",
]


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """A folder with the package, its metadata as an installer leaves it, and a tiny model."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "outside.py").write_text(PACKAGE)
    metadata = folder / "outside-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    save_tiny(folder / "model", max_position_embeddings=16384)
    return folder


def train(outside: Path, run: Path, *overrides: str) -> dict:
    """`deliberation train … --json` as a user of that package would call it."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "deliberation.cli.main", "train", "quickstart", "--json"),
            *(f"policy.model=path:{outside / 'model'}", f"run.dir={run}", *SMALL, *overrides),
        ],
        env={**os.environ, "PYTHONPATH": str(outside)},
        cwd=outside,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def episodes(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "episodes/step-000001.jsonl").open()]


def test_an_environment_and_a_reward_from_outside_by_module_and_name(outside, tmp_path):
    run = tmp_path / "run"
    summary = train(
        outside,
        run,
        "protocol.environment=outside:Splitting",
        "train.reward=outside:length_of_the_opening",
        "judge.model=outside:Agreeable",
    )
    assert summary["figures"]["episodes"] == 2
    for episode in episodes(run):
        assert episode["environment"] == "coins"
        assert [turn["notes"] for turn in episode["turns"]] == [["policy spoke"], ["partner spoke"]]
        opening = episode["turns"][0]["generation"]["ids"]
        assert episode["outcome"]["reward"] == sum(opening) % 5
        assert episode["outcome"]["end"] == "measured"


def test_a_judge_from_outside_by_entry_point_on_dilemmas(outside, tmp_path):
    run = tmp_path / "run"
    # Long enough for a random model to hit upon letters: without any it would be filler.
    lengths = ["sampling.negotiation.max_tokens=24", "sampling.resolution.max_tokens=64"]
    train(outside, run, "judge.model=agreeable", *lengths)
    assert "kind: agreeable" in (run / "config.yaml").read_text()
    for episode in episodes(run):
        assert episode["environment"] == "dilemma"
        if episode["outcome"]["end"] == "agreement":
            verdicts = [turn["verdict"] for turn in episode["turns"] if turn["verdict"]]
            assert verdicts[-1]["reason"] == "third turn"
            assert episode["outcome"]["score"]["reason"] == "by length"


def test_all_three_by_entry_point(outside, tmp_path):
    run = tmp_path / "run"
    train(
        outside,
        run,
        "protocol.environment=coins",
        "train.reward=opening",
        "judge.model=agreeable",
    )
    assert {episode["facts"]["coins"] for episode in episodes(run)} == {10}

"""Panels, audits and attack probes: several views of one text, and what a run is told of them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deliberation import Judge, JudgeConfig, load_config
from deliberation.episode import AgreementVerdict, Missing, Outcome, Score
from deliberation.errors import ConfigError
from deliberation.judge.config import PanelRule
from deliberation.judge.probe import AttackProbe, probe_attacks
from deliberation.judging import ResolutionCase, Transcript
from deliberation.run import Run
from deliberation.train.audit import audit_step, audited
from tests.helpers.episodes import disagreeing, make_episode, turn, verdict
from tests.helpers.judges import case, talk
from tests.helpers.stub_server import Running, stub_server
from tests.helpers.tiny import save_tiny

TEXT = "From Monday the library opens on three late nights, and the yard on two afternoons."


def by_name(body: dict[str, Any]) -> str:
    """The judges `one`, `two` and `five` give the score of their name; `no` sees no agreement."""
    scores = {"one": 1, "two": 2, "five": 5, "no": 0}
    wanted = json.dumps(body.get("response_format", {}))
    if "winner" in wanted:
        return json.dumps({"reason": "", "winner": "A"})
    if "agreed" in wanted:
        agreed = body["model"] != "no"
        return json.dumps({"reason": "", "agreed": agreed, "confidence": float(agreed)})
    if body["model"] == "lost":
        return "I would rather not say."
    return json.dumps({"reason": "", "score": scores[body["model"]]})


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with stub_server("tests.test_judge_panel:by_name") as running:
        yield running


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def panel(server: Running, folder: Path, *names: str, **changes: Any) -> Judge:
    first, *others = [f"openai:{name}@{server.url}/v1" for name in names]
    cache = str(folder / "verdicts.sqlite")
    return Judge(JudgeConfig(model=first, panel=others, cache_path=cache, **changes))


def judged(judge: Judge) -> tuple[AgreementVerdict, Score]:
    async def ask() -> tuple[AgreementVerdict, Score]:
        await judge.open()
        found = await asyncio.gather(
            judge.agreement(talk("Three nights?", "Yes, three nights.")), judge.score(case(TEXT))
        )
        await judge.close()
        return found

    return asyncio.run(ask())


@pytest.mark.parametrize(("rule", "value"), [("mean", 8 / 3), ("median", 2.0), ("min", 1.0)])
def test_a_panel_gives_one_score_and_keeps_each_judges_own(
    server: Running, tmp_path: Path, rule: str, value: float
) -> None:
    judge = panel(server, tmp_path, "one", "two", "five", panel_rule=PanelRule(rule))
    agreement, score = judged(judge)
    assert score.value == pytest.approx(value)
    assert [said.value for said in score.by_judge] == [1.0, 2.0, 5.0]
    assert {said.agreed for said in agreement.by_judge} == {True}
    assert Score.model_validate_json(score.model_dump_json()) == score
    assert judge.describe()["rule"] == rule


def test_a_judge_of_the_panel_that_fails_is_left_out_of_that_score(
    server: Running, tmp_path: Path
) -> None:
    _, score = judged(panel(server, tmp_path, "one", "lost", "two", tries=1))
    assert score.value == 1.5
    assert [said.value for said in score.by_judge] == [1.0, None, 2.0]
    _, score = judged(panel(server, tmp_path, "lost", tries=1))
    assert score.missing is Missing.PARSE


def test_half_of_a_panel_is_no_agreement(server: Running, tmp_path: Path) -> None:
    agreement, _ = judged(panel(server, tmp_path, "one", "no"))
    assert agreement.agreed is False
    agreement, _ = judged(panel(server, tmp_path, "one", "no", "two"))
    assert agreement.agreed is True


def test_a_panel_shares_one_budget(server: Running, tmp_path: Path) -> None:
    judge = panel(server, tmp_path, "one", "two")
    judge.keep_ledger(tmp_path / "ledger.jsonl")
    judged(judge)
    rows = [json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text().splitlines()]
    assert len({row["model"] for row in rows}) == 2
    assert judge.figures()["calls"] == len(rows) == 2 * 3


def test_a_panel_of_judges_that_cannot_be_asked_alike_is_refused(tmp_path: Path) -> None:
    overrides = ["judge.panel=[openai:m@http://localhost:1]", f"run.dir={tmp_path / 'run'}"]
    with pytest.raises(ConfigError, match=r"judge\.panel needs judges behind servers"):
        load_config("quickstart", overrides)


# --- probes ----------------------------------------------------------------------------------


class Gullible:
    """A level for every plea-like addition: scores by length, as a poor judge does."""

    def __init__(self, config: JudgeConfig) -> None:
        pass

    async def agreement(self, transcript: Transcript) -> AgreementVerdict:
        return AgreementVerdict(agreed=False)

    async def score(self, case: ResolutionCase) -> Score:
        return Score(value=min(5.0, len(case.resolution) / 300))


class Unmoved(Gullible):
    async def score(self, case: ResolutionCase) -> Score:
        return Score(value=3.0)


def test_a_judge_that_is_taken_in_by_attacks_is_worrying_and_one_that_is_not_is_not() -> None:
    taken_in = asyncio.run(probe_attacks(Judge("tests.test_judge_panel:Gullible")))
    assert taken_in.pairs == 8
    assert taken_in.shift is not None
    assert taken_in.shift > 0
    unmoved = asyncio.run(probe_attacks(Judge("tests.test_judge_panel:Unmoved")))
    assert (unmoved.shift, unmoved.worrying) == (0.0, False)
    assert AttackProbe(0.26, 8, "plea").worrying
    assert not AttackProbe(0.25, 8, "plea").worrying
    assert "take another judge" in AttackProbe(0.26, 8, "plea").sentence()
    assert not AttackProbe(None, 0, None).worrying


# --- audits ----------------------------------------------------------------------------------


def scored(number: int, value: float) -> Any:
    turns = [
        turn(0, "Three?"),
        turn(1, "Yes.", verdict=verdict(True)),
        turn(2, f"{TEXT} Number {number}, level {value}.", phase="resolution"),
    ]
    outcome = Outcome.of("agreement", value, score=Score(value=value))
    return make_episode(episode=number, turns=turns, outcome=outcome)


class Stricter(Gullible):
    """One level below what the text says it is."""

    async def score(self, case: ResolutionCase) -> Score:
        level = float(case.resolution.split("level ")[1].rstrip("."))
        return Score(value=level - 1) if level != 2 else Score(value=None, missing=Missing.SERVER)


def test_an_audit_tells_rank_correlation_and_gap_and_counts_what_is_missing() -> None:
    episodes = [scored(n, float(1 + n % 5)) for n in range(10)] + [disagreeing(episode=10)]
    judge = Judge("tests.test_judge_panel:Stricter")
    found = asyncio.run(audit_step(judge, episodes, share=1.0))
    assert (found["episodes"], found["missing"]) == (10, 2)
    assert found["rank_correlation"] == pytest.approx(1.0)
    assert found["mean_gap"] == pytest.approx(-1.0)


def test_an_audit_looks_at_its_share_chosen_by_hash() -> None:
    episodes = [scored(n, 3.0) for n in range(400)]
    tenth = audited(episodes, 0.1)
    assert 20 <= len(tenth) <= 65
    assert tenth == audited(list(episodes), 0.1)
    assert len(audited(episodes, 1.0)) == 400
    assert (
        asyncio.run(audit_step(Judge("tests.test_judge_panel:Unmoved"), [], 1.0))[
            "rank_correlation"
        ]
        is None
    )


# --- a run with all of it ----------------------------------------------------------------------


def train(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "deliberation.cli.main", "train", "quickstart", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )


def test_a_run_with_a_served_judge_stops_at_its_budget_and_goes_on_with_a_larger_one(
    tmp_path: Path,
) -> None:
    save_tiny(tmp_path / "tiny", max_position_embeddings=16384)
    with stub_server("tests.test_judge_remote:answers") as server:
        arguments = (
            "policy.model=path:tiny",
            f"judge.model=openai:gpt-4o-mini@{server.url}/v1",
            "judge.audit.model=tests.test_judge_panel:Unmoved",
            "judge.audit.share=1.0",
            f"judge.cache_path={tmp_path / 'verdicts.sqlite'}",
            "judge.agreement_threshold=0.5",
            "sampling.negotiation.max_tokens=12",
            "sampling.resolution.max_tokens=24",
            "train.steps=3",
            f"run.dir={tmp_path / 'run'}",
        )
        # A call costs $0.000195; the probe takes 17, a step at least 16.
        limited = train(tmp_path, *arguments, "judge.budget_usd=0.0075")
        assert limited.returncode == 2, limited.stderr
        assert "the budget of $0.0075 is spent" in limited.stderr
        assert "attack probes move the judge by +0.00 levels (8 pairs)" in limited.stderr
        finished = [row["step"] for row in Run(tmp_path / "run").metrics()]
        assert finished, "at least one step was paid for and is saved"
        done = train(tmp_path, *arguments, "judge.budget_usd=5", "--resume")
        assert done.returncode == 0, done.stderr
    rows = Run(tmp_path / "run").metrics()
    assert [row["step"] for row in rows] == [1, 2, 3]
    assert rows[-1]["judge"]["usd"] > 0.0075
    assert rows[-1]["audit"]["judge"] == "tests.test_judge_panel:Unmoved"
    ledger = (tmp_path / "run" / "judge" / "ledger-rank-000.jsonl").read_text().splitlines()
    purposes = {json.loads(line)["purpose"] for line in ledger}
    assert purposes >= {"agreement", "probe", "score"}
    assert {json.loads(line)["step"] for line in ledger} >= {1, 2, 3}

"""The packaged sets: what they hold, and that they pass every check that we ask of others."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from deliberation import check_data, load_config
from deliberation.dilemmas import (
    VALUES,
    DilemmaSet,
    load_conflict_tasks,
    load_dilemmas,
    load_open_ended,
    packaged_dilemmas,
)
from deliberation.dilemmas.check import DataReport
from deliberation.engine import play
from deliberation.environments.dilemmas import DilemmaScenarios
from deliberation.environments.source import EnvironmentSetup
from deliberation.episode import EpisodeSpec
from deliberation.personas import load_personas, packaged_personas
from tests.helpers.scripted import ScriptedJudge, ScriptedSeat


@pytest.fixture(scope="module")
def training() -> DilemmaSet:
    return load_dilemmas()


@pytest.fixture(scope="module")
def report() -> DataReport:
    return check_data()


def test_there_are_1100_dilemmas_in_three_classes_and_25_pairs(training: DilemmaSet) -> None:
    assert (training.name, training.version) == ("train", "2")
    counts = Counter(dilemma.dilemma_class for dilemma in training)
    assert counts == {"professional": 400, "interpersonal": 400, "everyday": 300}
    assert len(load_personas()) == 25


def test_every_packaged_file_passes_every_check(report: DataReport) -> None:
    assert [f"{f.place}: {f.check}: {f.detail}" for f in report.findings] == []
    skipped = {check.name for check in report.checks if check.skipped}
    assert "near words" not in skipped
    checked = {str(file.path).rsplit("/", 1)[-1]: file.rows for file in report.files}
    assert checked["train.jsonl"] == 1100
    assert checked["conflict-v1.jsonl"] == checked["open-ended-v1.jsonl"] == 100


def test_the_floors_hold_when_they_are_counted_another_way(training: DilemmaSet) -> None:
    """Counted here without the code of the checks: values, domains, words, openings."""
    values = Counter(value for dilemma in training for value in dilemma.values)
    assert min(values[name] for name in VALUES) >= 8
    domains = Counter(dilemma.domain for dilemma in training)
    assert len(domains) >= 80
    assert max(domains.values()) <= 0.03 * len(training)
    assert all(60 <= len(dilemma.situation.split()) <= 140 for dilemma in training)
    openings = Counter(" ".join(d.situation.lower().split()[:4]) for d in training)
    assert max(openings.values()) <= 0.01 * len(training)


def test_every_dilemma_is_complete_and_ends_as_it_should(training: DilemmaSet) -> None:
    for dilemma in training:
        assert dilemma.lacks() == (), dilemma.id
        assert (dilemma.question or "").endswith("?"), dilemma.id
        names = [stakeholder.name for stakeholder in dilemma.stakeholders]
        assert len(set(names)) == len(names) <= 5, dilemma.id
        assert all(fact.endswith((".", ".”", '."')) for fact in dilemma.constraints), dilemma.id


def test_a_conflict_task_has_a_held_out_pair_and_seats_and_a_fifth_have_references() -> None:
    tasks = load_conflict_tasks().tasks
    pairs = {pair.id: pair for pair in load_personas(packaged_personas("heldout"))}
    assert len(tasks) == 100
    assert len({task.pair for task in tasks}) >= 15
    for task in tasks:
        assert task.policy in {persona.id for persona in pairs[task.pair].personas}, task.id
    assert sum(task.reference is not None for task in tasks) == 20
    assert {len(task.reference.split()) // 50 for task in tasks if task.reference} <= {1, 2, 3}


def test_training_never_sees_a_held_out_axis_or_persona() -> None:
    training, held_out = load_personas(), load_personas(packaged_personas("heldout"))
    assert not {pair.axis for pair in training} & {pair.axis for pair in held_out}
    assert not {p.id for pair in training for p in pair.personas} & {
        p.id for pair in held_out for p in pair.personas
    }


def test_evaluation_files_carry_a_canary_of_their_own() -> None:
    canaries = {task.canary for task in load_conflict_tasks().tasks}
    canaries |= {task.canary for task in load_open_ended().tasks}
    held_out = load_personas(packaged_personas("heldout")).canary
    assert held_out is not None
    assert len(canaries | {held_out}) == 3
    assert all("evaluation data" in canary for canary in canaries)


@pytest.mark.parametrize("language", ["ko", "ja"])
def test_another_language_has_its_dilemmas_and_the_same_pairs(language: str) -> None:
    dilemmas = load_dilemmas(packaged_dilemmas(f"train-{language}"))
    assert len(dilemmas) == 10
    assert all(dilemma.lacks() == () for dilemma in dilemmas)
    ours, theirs = load_personas(), load_personas(packaged_personas(f"train-{language}"))
    assert [pair.id for pair in ours] == [pair.id for pair in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert [p.id for p in one.personas] == [p.id for p in other.personas]
        assert all(p.stance != q.stance for p, q in zip(one.personas, other.personas, strict=True))


@pytest.mark.parametrize(
    ("language", "says", "agrees"),
    [
        ("ko", "그럼 화요일에 함께 시작합시다.", "좋습니다"),
        ("ja", "では火曜日に始めましょう。", "賛成です"),
    ],
)
def test_a_dialogue_runs_in_another_language_from_dilemma_to_judge(
    language: str, says: str, agrees: str
) -> None:
    settings = load_config(
        "quickstart",
        [f"protocol.language={language}", "judge.model=m:J", "run.dir=unused"],
    )
    judge = ScriptedJudge(agrees_on=agrees)
    setup = EnvironmentSetup(settings.protocol, settings.sampling, settings.data, judge)
    source = DilemmaScenarios(setup)
    scenario = source.draw(seed=0, step=1, slot=0, slots=1)
    policy, partner = ScriptedSeat([says, says]), ScriptedSeat([f"{agrees}."])
    spec = EpisodeSpec(seed=0, step=1, slot=0, episode=0, scenario_id=scenario.id)
    episode = asyncio.run(play(spec, source.open(scenario), {"policy": policy, "partner": partner}))
    assert episode.outcome.reward == 3.0
    system = policy.saw[0][0].content
    assert scenario.policy.stance in system
    assert scenario.dilemma.situation in policy.saw[0][1].content
    assert judge.cases[0].transcript.situation == scenario.dilemma.situation
    assert judge.transcripts[-1].utterances[-1].text == f"{agrees}."

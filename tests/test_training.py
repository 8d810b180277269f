"""A training run from end to end on a tiny model: what it records, what it leaves alone, and what
it refuses."""

import json
import math
from pathlib import Path

import pytest
import torch

from deliberation import Trainer
from deliberation.checkpoints import whole_checkpoints
from deliberation.episode import Episode, Missing, Outcome
from deliberation.errors import ModelError, RunError
from deliberation.run import Run
from deliberation.store import RunStore
from deliberation.train.progress import QuietProgress
from tests.helpers import tiny_run
from tests.helpers.letters import LettersScenarios
from tests.helpers.scripted import ScriptedJudge
from tests.helpers.tiny import save_tiny


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Three steps of the tiny run: (summary, policy, folder)."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    summary, policy = tiny_run.train(folder, steps=3)
    return summary, policy, folder


def test_every_step_leaves_its_episodes_its_figures_and_a_checkpoint(finished):
    summary, _, folder = finished
    run = Run(folder)
    assert [row["step"] for row in run.metrics()] == [1, 2, 3]
    assert len(list(run.episodes())) == 3 * 2 * 3
    assert list(run.checkpoints()) == [1, 2, 3]
    assert summary.last_step == summary.steps == 3
    assert not summary.stopped
    assert Path(summary.report or "").is_file()


def test_figures_of_a_step_follow_from_its_episodes(finished):
    _, _, folder = finished
    run = Run(folder)
    for row in run.metrics():
        episodes = list(run.episodes(row["step"]))
        rewards = [episode.outcome.reward for episode in episodes]
        assert row["reward_mean"] == pytest.approx(sum(rewards) / len(rewards))
        assert row["reward_n"] == len(episodes) == 6
        assert row["rounds_mean"] == 2.5
        assert row["sampled_tokens"] == sum(
            len(turn.generation.ids) for episode in episodes for turn in episode.turns
        )
        assert row["rows_per_episode"] == 2.0, "the window cuts the last turn off from the first"
        assert row["row_splits"] == {"window": 6}
        assert row["trained_tokens"] == sum(
            len(turn.generation.ids)
            for episode in episodes
            for turn in episode.turns
            if turn.seat == "policy"
        )
        assert row["logprob_gap"] < 1e-4


def test_advantages_are_recorded_with_the_episodes(finished):
    _, _, folder = finished
    groups: dict = {}
    for episode in Run(folder).episodes():
        groups.setdefault(episode.spec.group, []).append(episode)
    for group in groups.values():
        rewards = [episode.outcome.reward for episode in group]
        mean = sum(rewards) / 3
        deviation = math.sqrt(sum((reward - mean) ** 2 for reward in rewards) / 2)
        for episode in group:
            expected = (
                0.0 if deviation < 1e-6 else (episode.outcome.reward - mean) / (deviation + 1e-4)
            )
            assert episode.advantage == pytest.approx(expected)


def test_the_partner_is_the_policy_of_the_same_step_and_follows_it(finished):
    """B30: frozen within a step, refreshed at the next; the fingerprint names the weights."""
    _, policy, folder = finished
    prints = []
    for step in (1, 2, 3):
        episodes = list(Run(folder).episodes(step))
        assert len({episode.fingerprint for episode in episodes}) == 1
        versions = {turn.generation.weights for episode in episodes for turn in episode.turns}
        seats = {turn.seat for episode in episodes for turn in episode.turns}
        assert len(versions) == 1
        assert seats == {"policy", "partner"}
        prints.append(episodes[0].fingerprint)
    assert len({*prints, policy.fingerprint()}) == 4


def test_only_the_policys_turns_are_trained(finished):
    _, _, folder = finished
    for episode in Run(folder).episodes():
        assert [turn.trained for turn in episode.turns] == [True, False, True, False, True]


def test_a_checkpoint_is_a_model_that_transformers_loads(finished):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    _, policy, folder = finished
    checkpoint = Run(folder).checkpoints()[3]
    loaded = AutoModelForCausalLM.from_pretrained(checkpoint)
    for name, parameter in policy.model.named_parameters():
        assert torch.equal(parameter, loaded.get_parameter(name))
    assert AutoTokenizer.from_pretrained(checkpoint).chat_template
    assert not list(checkpoint.glob("*.bin"))


def test_the_config_of_a_run_says_what_it_was_made_with(finished):
    _, _, folder = finished
    config = Run(folder).config
    assert config["train"]["steps"] == 3
    record = config["provenance"]
    assert record["policy"] == "path:tiny"
    assert record["data"] == {"data": "letters"}
    assert record["packages"]["trl"].startswith("1.16")
    assert len(record["chat_template_sha256"]) == 64


def test_old_checkpoints_go_only_when_newer_ones_are_whole(tmp_path):
    """B99: never none left."""
    tiny_run.train(tmp_path / "run", steps=3, keep_checkpoints=1)
    assert list(whole_checkpoints(tmp_path / "run" / "checkpoints")) == [3]


class Unreliable:
    """A reward function that fails for some episodes of a group."""

    def __init__(self, failing: set[int]) -> None:
        self.failing = failing

    async def __call__(self, episode: Episode) -> Outcome:
        if episode.spec.episode in self.failing:
            return Outcome.of("unjudged", None, missing=Missing.TIMEOUT)
        return episode.outcome


def run_with_reward(folder: Path, failing: set[int], **settings) -> Run:
    made = tiny_run.config(folder, **settings)
    trainer = Trainer(
        made,
        policy=tiny_run.policy(made),
        scenarios=LettersScenarios(),
        judge=ScriptedJudge(),
        reward=Unreliable(failing),
    )
    trainer.train()
    return Run(folder)


def test_a_missing_reward_makes_no_row_and_is_in_no_mean(tmp_path):
    """B34, B36."""
    run = run_with_reward(tmp_path / "run", {1}, steps=1)
    (row,) = run.metrics()
    present = [e for e in run.episodes() if e.outcome.reward is not None]
    assert row["reward_n"] == 4
    assert row["reward_missing"] == 2
    assert row["missing"] == {"timeout": 2}
    assert row["reward_mean"] == pytest.approx(sum(e.outcome.reward for e in present) / 4)
    assert row["trained_tokens"] == sum(
        len(turn.generation.ids) for e in present for turn in e.turns if turn.trained
    )
    assert [e.advantage is None for e in run.episodes()] == [False, True, False] * 2


def test_groups_with_fewer_than_two_rewards_are_dropped_and_the_update_is_skipped(tmp_path):
    """B24, B34: an empty step leaves weights, momentum and decay alone."""
    folder = tmp_path / "run"
    made = tiny_run.config(folder, steps=1, weight_decay=0.1, max_missing_share=1.0)
    policy = tiny_run.policy(made)
    before = policy.fingerprint()
    trainer = Trainer(
        made,
        policy=policy,
        scenarios=LettersScenarios(),
        judge=ScriptedJudge(),
        reward=Unreliable({0, 1}),
    )
    trainer.train()
    (row,) = Run(folder).metrics()
    assert row["groups_dropped"] == row["groups"] == 2
    assert row["skipped_update"] is True
    assert row["loss"] == 0.0
    assert row["zero_spread_share"] is None
    assert policy.fingerprint() == before


def test_too_many_missing_rewards_stop_the_run_with_a_checkpoint(tmp_path):
    """B60: the message names the reasons and what to do."""
    folder = tmp_path / "run"
    with pytest.raises(RunError, match=r"4 of 6 rewards are missing \(4 timeout\).*--resume"):
        run_with_reward(folder, {0, 2}, steps=3, save_every=3)
    assert list(whole_checkpoints(folder / "checkpoints")) == [1]


def test_equal_rewards_teach_nothing_and_are_counted(tmp_path):
    """B31: advantages exactly 0, no NaN, not called convergence."""

    async def flat(episode: Episode) -> Outcome:
        return Outcome.of("flat", 3.0)

    made = tiny_run.config(tmp_path / "run", steps=1)
    policy = tiny_run.policy(made)
    before = policy.fingerprint()
    Trainer(
        made,
        policy=policy,
        scenarios=LettersScenarios(),
        judge=ScriptedJudge(),
        reward=flat,
    ).train()
    (row,) = Run(tmp_path / "run").metrics()
    assert row["zero_spread_share"] == 1.0
    assert row["skipped_update"] is True
    assert {episode.advantage for episode in Run(tmp_path / "run").episodes()} == {0.0}
    assert policy.fingerprint() == before


def test_a_folder_in_use_is_refused_before_anything_is_played(tmp_path):
    folder = tmp_path / "run"
    with (
        RunStore.create(folder, "run: {}\n"),
        pytest.raises(RunError, match="holds a run"),
    ):
        tiny_run.train(folder, steps=1)
    with RunStore.open(folder), pytest.raises(RunError, match="in use by process"):
        tiny_run.train(folder, steps=1, resume=True)


def test_an_episode_that_fails_leaves_the_others_recorded(tmp_path):
    """One error ends the step; what the others played is kept for the resume."""

    class Breaking(LettersScenarios):
        def open(self, scenario):
            environment = super().open(scenario)
            if scenario.id == "letters-1":

                async def broken():
                    raise ValueError("this environment has a fault")

                environment.outcome = broken
            return environment

    folder = tmp_path / "run"
    with pytest.raises(ValueError, match="has a fault"):
        tiny_run.train(folder, steps=1, scenarios=Breaking())
    lines = (folder / "episodes" / "step-000001.partial.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["id"] for line in lines) == [
        f"step-000001-slot-0-try-0-episode-{episode}" for episode in range(3)
    ]
    tiny_run.train(folder, steps=1, resume=True)
    assert len(list(Run(folder).episodes())) == 6


def test_a_run_that_could_not_load_its_model_leaves_the_folder_free(tmp_path):
    """The corrected command must not meet a run in which nothing was played."""
    folder = tmp_path / "run"
    made = tiny_run.config(folder, steps=1)
    made.policy.model = f"path:{tmp_path / 'nowhere'}"
    trainer = Trainer(made, scenarios=LettersScenarios(), judge=ScriptedJudge())
    with pytest.raises(ModelError, match="nowhere"):
        trainer.train()
    assert not folder.exists()

    model = save_tiny(tmp_path / "model")
    (model / "model.safetensors").write_bytes(b"broken")
    made.policy.model = f"path:{model}"
    trainer = Trainer(made, scenarios=LettersScenarios(), judge=ScriptedJudge())
    with pytest.raises(ModelError, match="model"):
        trainer.train()
    tiny_run.train(folder, steps=1)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("openai:gpt-4o", "behind a server and can't be trained"),
        ("embedded+path:adapter", "adapters can't be trained yet"),
    ],
)
def test_a_policy_that_cannot_be_trained_is_refused_before_anything_is_made(
    tmp_path, model, sentence
):
    made = tiny_run.config(tmp_path / "run", steps=1)
    made.policy.model = model
    trainer = Trainer(made, scenarios=LettersScenarios(), judge=ScriptedJudge())
    with pytest.raises(ModelError, match=sentence):
        trainer.train()
    assert not (tmp_path / "run").exists()


def test_a_partner_that_does_not_exist_is_refused_before_anything_is_made(tmp_path):
    model = save_tiny(tmp_path / "model")
    made = tiny_run.config(tmp_path / "run", steps=1)
    made.policy.model = f"path:{model}"
    made.partner.model = "path:nowhere"
    trainer = Trainer(made, scenarios=LettersScenarios(), judge=ScriptedJudge())
    with pytest.raises(ModelError, match="nowhere"):
        trainer.train()
    assert not (tmp_path / "run").exists()


def test_another_partner_stays_as_it_is_while_the_policy_learns(tmp_path):
    model = save_tiny(tmp_path / "model")
    made = tiny_run.config(tmp_path / "run", steps=2)
    made.policy.model = made.partner.model = f"path:{model}"
    Trainer(made, scenarios=LettersScenarios(), judge=ScriptedJudge()).train()
    versions = [
        {turn.generation.weights for turn in episode.turns if turn.seat == "partner"}
        for episode in Run(tmp_path / "run").episodes()
    ]
    assert len(set.union(*versions)) == 1


def test_a_report_that_cannot_be_written_does_not_fail_the_run(tmp_path):
    """What was trained and saved counts; the damage is told."""

    class Notes(QuietProgress):
        def __init__(self):
            self.notes = []

        def note(self, text):
            self.notes.append(text)

    folder = tmp_path / "run"
    tiny_run.train(folder, steps=1)
    file = folder / "episodes" / "step-000001.jsonl"
    file.write_text("garbage\n" + file.read_text())
    progress = Notes()
    summary, _ = tiny_run.train(folder, steps=2, resume=True, progress=progress)
    assert summary.last_step == 2
    assert summary.report is None
    assert any("no report was written" in note for note in progress.notes)


def test_resuming_tied_weights_raises_no_alarm(tmp_path, caplog):
    tiny_run.train(tmp_path / "run", steps=1)
    tiny_run.train(tmp_path / "run", steps=2, resume=True)
    assert "missing keys" not in caplog.text

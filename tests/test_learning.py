"""The whole loop learns what it is paid for, and nothing where it should not.

Real trainer, sampler, engine and loss on a model of under 100,000 parameters; the game is in
`tests/helpers/letters.py`. Rewards are shares of the maximum.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from deliberation.episode import Episode
from deliberation.run import Run
from deliberation.train import trainer as trainer_module
from deliberation.train.advantage import StepAdvantages, episode_advantages
from deliberation.train.rows import step_rows
from tests.helpers import tiny_run
from tests.helpers.letters import MOST, LettersScenarios

STEPS = 60
SETTINGS = {
    "steps": STEPS,
    "scenarios_per_step": 2,
    "group_size": 16,
    "learning_rate": 1e-2,
    "lr_scheduler": "linear",
    "save_every": STEPS,
}


def learning_curve(folder: Path, *, seed: int = 0, scenarios: LettersScenarios | None = None):
    """Mean reward of the first and of the last five steps, as shares of the maximum."""
    tiny_run.train(folder, seed=seed, scenarios=scenarios, **SETTINGS)
    rewards = [row["reward_mean"] / MOST for row in Run(folder).metrics()]
    return sum(rewards[:5]) / 5, sum(rewards[-5:]) / 5


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_learns_the_first_and_the_last_turn(tmp_path, seed):
    before, after = learning_curve(tmp_path / "run", seed=seed)
    assert before <= 0.35
    assert after >= 0.80


def test_with_the_sign_of_the_reward_flipped_it_unlearns(tmp_path):
    before, after = learning_curve(tmp_path / "run", scenarios=LettersScenarios(sign=-1.0))
    assert -before > -after + 0.10, "the share it was fined for should fall"


def test_with_rewards_permuted_within_groups_it_learns_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(trainer_module, "episode_advantages", permuted(random.Random(0)))
    before, after = learning_curve(tmp_path / "run")
    assert abs(after - before) <= 0.10


def test_with_the_first_turn_masked_it_cannot_learn_all(tmp_path):
    scenarios = LettersScenarios(first_turn_trained=False)
    _, after = learning_curve(tmp_path / "run", scenarios=scenarios)
    assert after < 0.80


def test_with_the_mask_on_the_partner_it_does_not_rise(tmp_path, monkeypatch):
    monkeypatch.setattr(
        trainer_module, "step_rows", lambda episodes: step_rows([swapped(e) for e in episodes])
    )
    before, after = learning_curve(tmp_path / "run")
    assert after <= before + 0.10


def permuted(rng: random.Random) -> Callable[[Sequence[Episode]], StepAdvantages]:
    """Advantages of the right sizes at the wrong episodes of each group."""

    def advantages(episodes: Sequence[Episode]) -> StepAdvantages:
        true = episode_advantages(episodes)
        wrong = []
        for group in sorted({episode.spec.group for episode in true.episodes}):
            members = [episode for episode in true.episodes if episode.spec.group == group]
            values = [episode.advantage for episode in members]
            rng.shuffle(values)
            for episode, value in zip(members, values, strict=True):
                wrong.append(episode.model_copy(update={"advantage": value}))
        return replace(true, episodes=tuple(wrong))

    return advantages


def swapped(episode: Episode) -> Episode:
    """The same episode with the partner's turns trained in place of the policy's."""
    turns = tuple(
        turn.model_copy(update={"trained": turn.seat == "partner"}) for turn in episode.turns
    )
    return episode.model_copy(update={"turns": turns})

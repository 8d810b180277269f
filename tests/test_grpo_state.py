"""Saving the trainer's state, and going on from it to the same last bit."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from deliberation.errors import RunError
from deliberation.train.advantage import episode_advantages
from deliberation.train.rows import StepRows, step_rows
from tests.helpers.gradients import make_trainer, tiny_model
from tests.helpers.records import fixed_episodes

ROWS = step_rows(episode_advantages(fixed_episodes()).episodes)
SETTINGS: dict[str, Any] = {
    "steps": 4,
    "weight_decay": 0.1,
    "learning_rate": 3e-2,
    "lr_scheduler": "linear",
    "max_grad_norm": 1.0,
}


def rows_of(step: int) -> StepRows:
    """Other rows in every step, by the step's number alone."""
    return StepRows(ROWS.rows[step - 1 :])


def weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def draws() -> tuple[float, float, float]:
    """What each global generator gives next."""
    return random.random(), float(np.random.rand()), float(torch.rand(()))


def run_with_saves(folder: Path, seen: list[tuple[float, float, float]]) -> dict[str, torch.Tensor]:
    """Four steps, each saved; what the generators gave in steps 3 and 4 is noted."""

    def play(step: int) -> StepRows:
        seen.append(draws())
        return rows_of(step)

    def save(step: int, update: Any) -> None:
        target = folder / str(step)
        target.mkdir(parents=True)
        trainer.save_state(target)

    model = tiny_model()
    trainer = make_trainer(model, play, on_step_end=save, **SETTINGS)
    trainer.run_steps(1, 4)
    return weights(model)


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Any]:
    folder = tmp_path_factory.mktemp("straight")
    seen: list[tuple[float, float, float]] = []
    return folder, run_with_saves(folder, seen), seen


def test_two_steps_and_two_resumed_ones_are_four_straight_ones(
    straight: tuple[Path, Any, Any],
) -> None:
    """B97: weights bit-identical, so optimiser moments and schedule are too; and all three global
    generators give in steps 3 and 4 what they gave in the straight run."""
    folder, right, drawn = straight
    model = tiny_model(seed=1)  # other weights, all of which come from the folder
    seen: list[tuple[float, float, float]] = []
    steps: list[int] = []

    def play(step: int) -> StepRows:
        seen.append(draws())
        steps.append(step)
        return rows_of(step)

    trainer = make_trainer(model, play, **SETTINGS)
    draws()
    trainer.load_state(folder / "2")
    assert not any(torch.equal(value, right[name]) for name, value in model.state_dict().items())
    trainer.run_steps(3, 4)
    assert steps == [3, 4]
    assert all(torch.equal(value, right[name]) for name, value in model.state_dict().items())
    assert seen == drawn[2:]
    assert trainer.state.global_step == 4


def test_saving_and_loading_print_nothing(
    straight: tuple[Path, Any, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    trainer = make_trainer(tiny_model(seed=1), rows_of, **SETTINGS)
    trainer.load_state(straight[0] / "3")
    trainer.run_steps(4, 4)
    trainer.save_state(tmp_path)
    assert capfd.readouterr() == ("", "")


def test_the_weights_are_there_as_soon_as_the_state_is_loaded(
    straight: tuple[Path, Any, Any],
) -> None:
    """A resumed run compares them with those that sampled what is recorded."""
    folder, right, _ = straight
    model = tiny_model(seed=1)
    make_trainer(model, rows_of, **SETTINGS).load_state(folder / "4")
    assert all(torch.equal(value, right[name]) for name, value in model.state_dict().items())


def test_a_state_is_also_a_model_folder(straight: tuple[Path, Any, Any]) -> None:
    folder, right, _ = straight
    loaded = AutoModelForCausalLM.from_pretrained(folder / "4")
    assert all(torch.equal(value, right[name]) for name, value in loaded.state_dict().items())
    assert len(AutoTokenizer.from_pretrained(folder / "4")) == 32


def test_a_state_holds_no_arguments_and_can_be_read_without_running_anything(
    straight: tuple[Path, Any, Any],
) -> None:
    folder, _, _ = straight
    names = {path.name for path in (folder / "4").iterdir()}
    assert names >= {"model.safetensors", "config.json", "optimizer.pt", "scheduler.pt"}
    assert names >= {"rng_state.pth", "trainer_state.json", "tokenizer.json"}
    assert "training_args.bin" not in names
    for name in ("optimizer.pt", "scheduler.pt"):
        torch.load(folder / "4" / name, weights_only=True)
    assert json.loads((folder / "4" / "trainer_state.json").read_text())["global_step"] == 4


@pytest.mark.parametrize("lost", ["optimizer.pt", "scheduler.pt", "trainer_state.json"])
def test_a_folder_without_a_part_of_the_state_is_refused_by_name(
    lost: str, straight: tuple[Path, Any, Any], tmp_path: Path
) -> None:
    """B94: never a run that goes on with a fresh optimiser and says nothing."""
    for path in (straight[0] / "2").iterdir():
        if path.name != lost:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    trainer = make_trainer(tiny_model(), rows_of, **SETTINGS)
    with pytest.raises(RunError, match=f"has no {lost}"):
        trainer.load_state(tmp_path)


def test_a_finished_run_has_no_step_to_resume(straight: tuple[Path, Any, Any]) -> None:
    trainer = make_trainer(tiny_model(), rows_of, **SETTINGS)
    trainer.load_state(straight[0] / "4")
    with pytest.raises(ValueError, match="4 of 4 are done"):
        trainer.run_steps(4, 4)


def test_a_state_can_be_saved_after_a_stop_in_the_middle_of_the_next_step(tmp_path: Path) -> None:
    """What is saved is the last finished step, and it resumes to the straight run's weights."""

    class StopNowError(Exception):
        pass

    def play(step: int) -> StepRows:
        if step == 3:
            raise StopNowError
        return rows_of(step)

    right = run_with_saves(tmp_path / "straight", [])
    trainer = make_trainer(tiny_model(), play, **SETTINGS)
    with pytest.raises(StopNowError):
        trainer.run_steps(1, 4)
    (tmp_path / "stopped").mkdir()
    trainer.save_state(tmp_path / "stopped")
    model = tiny_model(seed=1)
    resumed = make_trainer(model, rows_of, **SETTINGS)
    resumed.load_state(tmp_path / "stopped")
    resumed.run_steps(3, 4)
    assert all(torch.equal(value, right[name]) for name, value in model.state_dict().items())

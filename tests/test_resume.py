"""A run that is stopped or killed anywhere ends with the same weights and the same episodes."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from deliberation.checkpoints import whole_checkpoints
from deliberation.episode import Episode
from deliberation.run import Run
from tests.helpers.processes import run_training, start_training

STEPS = 4
FAULT_POINTS = [
    "sampler.between_tokens",
    "episode.before_append",
    "episode.after_append",
    "step.before_update",
    "step.before_rename",
    "step.after_rename",
    "checkpoint.before_rename",
    "checkpoint.after_rename",
    "report.before_rename",
]
COUNTS = {"sampler.between_tokens": [7, 20, 3, 11], "episode.before_append": [2, 5, 1, 3]}
"""At which call of its point each of the four kills strikes; the first call elsewhere."""


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """Four steps without a stop."""
    folder = tmp_path_factory.mktemp("straight") / "run"
    assert run_training(folder, folder.parent / "sampled.log", steps=STEPS) == 0
    return folder


def weights(folder: Path) -> dict:
    return load_file(whole_checkpoints(folder / "checkpoints")[STEPS] / "model.safetensors")


def assert_same_run(folder: Path, straight: Path) -> None:
    ours, theirs = weights(folder), weights(straight)
    assert ours.keys() == theirs.keys()
    assert all(bool((ours[name] == theirs[name]).all()) for name in ours)
    assert_same_episodes(list(Run(folder).episodes()), list(Run(straight).episodes()))
    assert [row["step"] for row in Run(folder).metrics()] == [1, 2, 3, 4]
    assert (folder / "report.html").is_file()


def assert_same_episodes(ours: list[Episode], theirs: list[Episode]) -> None:
    """Equal in all, but for the last bits of recorded log-probabilities: these depend on what
    shared the batch, and a killed run batches otherwise. They are in no loss."""
    assert [without_logprobs(episode) for episode in ours] == [
        without_logprobs(episode) for episode in theirs
    ]
    for one, other in zip(ours, theirs, strict=True):
        for turn, same in zip(one.turns, other.turns, strict=True):
            assert turn.generation.logprobs == pytest.approx(same.generation.logprobs, abs=1e-4)


def without_logprobs(episode: Episode) -> dict:
    fields = episode.model_dump()
    for turn in fields["turns"]:
        del turn["generation"]["logprobs"]
    return fields


def recorded(folder: Path) -> set[str]:
    """Ids of the episodes that are whole on disk."""
    ids = set()
    for file in (folder / "episodes").glob("*.jsonl"):
        for line in file.read_text().split("\n")[:-1]:
            ids.add(json.loads(line)["id"])
    return ids


def sampled(log: Path) -> set[str]:
    return {line.split()[0] for line in log.read_text().splitlines()} if log.exists() else set()


def test_two_steps_and_two_resumed_equal_four_straight(tmp_path, straight):
    """B97: weights bit-identical, episodes equal, with sampling in between."""
    folder = tmp_path / "run"
    assert run_training(folder, tmp_path / "a.log", steps=2, lr_scheduler="constant") == 0
    assert run_training(folder, tmp_path / "b.log", steps=STEPS, resume=True) == 0
    assert_same_run(folder, straight)
    assert not sampled(tmp_path / "a.log") & sampled(tmp_path / "b.log")


@pytest.mark.parametrize("point", FAULT_POINTS)
def test_four_kills_at_a_point_change_nothing(tmp_path, straight, point):
    folder = tmp_path / "run"
    for kill, count in enumerate(COUNTS.get(point, [1] * 4)):
        before = recorded(folder) if folder.exists() else set()
        log = tmp_path / f"{kill}.log"
        code = run_training(
            folder,
            log,
            steps=STEPS,
            resume=(folder / "config.yaml").exists(),
            environment={"DELIBERATION_FAULT": f"{point}:{count}"},
        )
        assert code == -signal.SIGKILL
        assert not before & sampled(log), "what was recorded is never sampled again"
    before = recorded(folder)
    log = tmp_path / "last.log"
    assert run_training(folder, log, steps=STEPS, resume=True) == 0
    assert not before & sampled(log)
    assert_same_run(folder, straight)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_with_a_whole_checkpoint_of_the_last_finished_step(
    tmp_path, straight, number
):
    """B101: seen while dialogues are played; a second signal during the save breaks nothing."""
    folder, log = tmp_path / "run", tmp_path / "sampled.log"
    process = start_training(folder, log, steps=STEPS, save_every=STEPS)
    wait_for(lambda: "step-000002" in (log.read_text() if log.exists() else ""))
    os.kill(process.pid, number)
    os.kill(process.pid, number)
    process.join(30)
    assert process.exitcode == 0
    done = max(whole_checkpoints(folder / "checkpoints"))
    assert 1 <= done < STEPS
    assert run_training(folder, tmp_path / "b.log", steps=STEPS, save_every=1, resume=True) == 0
    assert_same_run(folder, straight)


def test_a_broken_checkpoint_is_passed_over_with_a_warning(tmp_path, straight, caplog):
    """B94: weights of 0 bytes, or a file missing."""
    folder = tmp_path / "run"
    assert run_training(folder, tmp_path / "a.log", steps=STEPS) == 0
    (folder / "checkpoints" / "step-000004" / "model.safetensors").write_bytes(b"")
    (folder / "checkpoints" / "step-000003" / "optimizer.pt").unlink()
    assert max(whole_checkpoints(folder / "checkpoints")) == 2
    assert "0 bytes instead of" in caplog.text
    assert "optimizer.pt is missing" in caplog.text
    assert run_training(folder, tmp_path / "b.log", steps=STEPS, resume=True) == 0
    assert_same_run(folder, straight)


def test_a_run_goes_on_only_under_its_own_config(tmp_path):
    folder = tmp_path / "run"
    assert run_training(folder, tmp_path / "a.log", steps=1) == 0
    code = run_training(folder, tmp_path / "b.log", steps=2, resume=True, learning_rate=1e-5)
    assert code == 1
    assert run_training(folder, tmp_path / "b.log", steps=2, resume=True) == 0


def test_a_folder_with_a_run_is_not_taken_for_a_new_one(tmp_path):
    """B99: two runs are never mixed."""
    folder = tmp_path / "run"
    assert run_training(folder, tmp_path / "a.log", steps=1) == 0
    before = recorded(folder)
    assert run_training(folder, tmp_path / "b.log", steps=1) == 1
    assert recorded(folder) == before


def wait_for(condition, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)

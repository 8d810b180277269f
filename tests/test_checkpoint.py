"""Checkpoints are whole or not there, and an older one is never lost to a newer one."""

import subprocess
from pathlib import Path

import pytest
import torch

from deliberation.checkpoints import checkpoint_fault, checkpoint_name, whole_checkpoints
from deliberation.errors import RunError
from deliberation.models import load_model, parse_model
from deliberation.run import Run
from deliberation.train.checkpoint import rotate, save_checkpoint
from tests.helpers import tiny_run


def write(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "inner").mkdir()
    (folder / "inner" / "state.json").write_text("{}")


def test_a_save_lists_every_file_with_its_size(tmp_path):
    folder = save_checkpoint(tmp_path, 2, write)
    assert folder.name == checkpoint_name(2) == "step-000002"
    assert checkpoint_fault(folder) is None
    assert list(whole_checkpoints(tmp_path)) == [2]


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda folder: (folder / "complete.json").unlink(), "no complete.json"),
        (lambda folder: (folder / "complete.json").write_text("{"), "can't be read"),
        (lambda folder: (folder / "complete.json").write_text("[]"), "can't be read"),
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors is missing"),
        (lambda folder: (folder / "inner/state.json").write_text("{ }"), "3 bytes instead of 2"),
    ],
)
def test_a_damaged_checkpoint_is_none(tmp_path, damage, fault, caplog):
    """B94."""
    save_checkpoint(tmp_path, 1, write)
    damage(save_checkpoint(tmp_path, 2, write))
    assert list(whole_checkpoints(tmp_path)) == [1]
    assert fault in caplog.text


def test_a_save_that_fails_leaves_the_older_checkpoint_and_nothing_else(tmp_path):
    save_checkpoint(tmp_path, 1, write)

    def fail(folder: Path) -> None:
        write(folder)
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        save_checkpoint(tmp_path, 2, fail)
    assert [entry.name for entry in tmp_path.iterdir()] == ["step-000001"]


def test_a_full_disk_is_one_sentence_and_the_older_checkpoint_stays(tmp_path):
    """B100, on a real file system of 256 KiB."""
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(small)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        save_checkpoint(small, 1, write)

        def large(folder: Path) -> None:
            (folder / "model.safetensors").write_bytes(bytes(100_000))
            (folder / "optimizer.pt").write_bytes(bytes(300_000))

        with pytest.raises(RunError, match=r"disk full: the checkpoint of step 2 needs more than"):
            save_checkpoint(small, 2, large)
        assert [entry.name for entry in small.iterdir()] == ["step-000001"]
        assert list(whole_checkpoints(small)) == [1]
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_step_that_is_made_again_replaces_its_checkpoint(tmp_path):
    save_checkpoint(tmp_path, 1, write)
    folder = save_checkpoint(tmp_path, 1, lambda made: (made / "other").write_text("x") and None)
    assert sorted(entry.name for entry in folder.iterdir()) == ["complete.json", "other"]


def test_rotation_counts_only_whole_checkpoints_and_sweeps_leftovers(tmp_path):
    """B99."""
    for step in (1, 2, 3):
        save_checkpoint(tmp_path, step, write)
    (tmp_path / "step-000003" / "complete.json").unlink()
    (tmp_path / ".step-000004.partial").mkdir()
    rotate(tmp_path, keep=1)
    assert list(whole_checkpoints(tmp_path)) == [2]
    assert not (tmp_path / ".step-000004.partial").exists()


def test_what_is_loaded_is_what_was_saved_and_what_samples_is_what_trains(tmp_path):
    """B98: logits before the save equal those after the load and differ from the base's; the
    sampler holds the very weights that the trainer updates."""
    folder = tmp_path / "run"
    base = tiny_run.policy(tiny_run.config(folder)).model
    _, policy = tiny_run.train(folder, steps=1)
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        trained = policy.model(input_ids=ids).logits
        before = base(input_ids=ids).logits
        reference = parse_model(f"path:{Run(folder).checkpoints()[1]}")
        loaded = load_model(reference, dtype="float32", device="cpu")(input_ids=ids).logits
    assert torch.equal(trained, loaded)
    assert not torch.equal(trained, before)
    assert policy.sampler._model is policy.model

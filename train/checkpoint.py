"""Writes checkpoints: under a temporary name, renamed when whole; older ones go only after that.

What a whole checkpoint is stands in `deliberation/checkpoints.py`.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from deliberation.checkpoints import MANIFEST, checkpoint_name, whole_checkpoints
from deliberation.disk import is_disk_full, sync_folder
from deliberation.errors import RunError
from deliberation.faults import fault_point


def save_checkpoint(root: Path, step: int, write: Callable[[Path], None]) -> Path:
    """Save a checkpoint of `step` below `root`; `write` fills the folder it is given.

    Raises:
        RunError: the disk is full. The older checkpoints are intact, the partial one is removed.
    """
    target = root / checkpoint_name(step)
    temporary = root / f".{target.name}.partial"
    _remove(temporary)
    try:
        temporary.mkdir(parents=True)
        write(temporary)
        _write_manifest(temporary)
    except Exception as error:
        written = _size(temporary)
        _remove(temporary)
        if is_disk_full(error):
            raise RunError(
                f"{root}: disk full: the checkpoint of step {step} needs more than the "
                f"{written:,} bytes that could be written; the checkpoints before it are intact: "
                "free some space, then continue with `--resume`."
            ) from error
        raise
    fault_point("checkpoint.before_rename")
    # Only a broken one, or one of a step that is made again after a resume, can be here.
    _remove(target)
    os.rename(temporary, target)
    sync_folder(root)
    fault_point("checkpoint.after_rename")
    return target


def rotate(root: Path, keep: int) -> None:
    """Remove the oldest whole checkpoints until `keep` are left, and leftovers of broken saves."""
    whole = list(whole_checkpoints(root).values())
    for folder in whole[: max(0, len(whole) - keep)]:
        # The manifest first: a half-removed checkpoint is then known to be none.
        (folder / MANIFEST).unlink()
        _remove(folder)
    for leftover in root.glob(".step-*.partial"):
        _remove(leftover)


def _write_manifest(folder: Path) -> None:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    for file in files:
        _sync(file)
    manifest = folder / MANIFEST
    sizes = {str(file.relative_to(folder)): file.stat().st_size for file in files}
    manifest.write_text(json.dumps({"files": sizes}, indent=1), encoding="utf-8")
    _sync(manifest)
    sync_folder(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _size(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            total += file.stat().st_size
    return total


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)

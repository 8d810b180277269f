"""The writer of a run folder.

One process owns the folder, by a lock that the kernel drops when the process dies. Each episode is
on disk, fsynced, before it counts as recorded. Nothing recorded is ever deleted or sampled again:
what a resumed run cannot use is moved to `abandoned/`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from deliberation.columns import dataset_card
from deliberation.disk import (
    TEMPORARY_SUFFIX,
    append_durably,
    disk_errors,
    sync_folder,
    write_atomically,
)
from deliberation.episode import Episode
from deliberation.errors import RunError
from deliberation.faults import fault_point
from deliberation.lock import lock_folder
from deliberation.redaction import redact
from deliberation.runfiles import (
    ABANDONED,
    CARD,
    CHECKPOINTS,
    CONFIG,
    EPISODES,
    LOCK,
    METRICS,
    decode_episode,
    decode_row,
    encode_episode,
    encode_line,
    episode_files,
    final_path,
    finite_or_none,
    iterate_rows,
    partial_path,
    read_lines,
)

__all__ = ["RunStore", "redact"]

log = logging.getLogger(__name__)


class RunStore:
    """The run folder, open for writing. Make it with `create` or `open`; close it at the end."""

    def __init__(self, folder: Path, lock: int) -> None:
        self.dir = folder
        self._lock: int | None = lock
        self._abandoned: Path | None = None

    @classmethod
    def create(cls, folder: str | Path, config_yaml: str, *, overwrite: bool = False) -> Self:
        """Start a new run in a folder that is absent or empty.

        Args:
            folder: the run folder; parents are made.
            config_yaml: the resolved config. Secrets in it are masked.
            overwrite: take a folder that holds a run already; all of it moves to `abandoned/`.

        Raises:
            RunError: the folder holds a run or something else, is in use, or cannot be written.
        """
        path = Path(folder).expanduser()
        if path.exists() and not path.is_dir():
            raise RunError(f"{path}: this is a file; choose another `run.dir`.")
        with disk_errors(path, len(config_yaml)):
            path.mkdir(parents=True, exist_ok=True)
        # Looked at before the lock too: a folder that is no run of ours gets no file from us.
        if not overwrite or not (path / CONFIG).is_file():
            _require_empty(path)
        store = cls(path, lock_folder(path))
        try:
            store._start(config_yaml, overwrite=overwrite)
        except BaseException:
            store.close()
            raise
        return store

    def _start(self, config_yaml: str, *, overwrite: bool) -> None:
        if overwrite:
            self._abandon_run()
        _require_empty(self.dir)
        with disk_errors(self.dir, len(config_yaml)):
            (self.dir / EPISODES).mkdir(exist_ok=True)
        # A folder without it is no run yet and can be used.
        write_atomically(self.dir / CONFIG, _without_secrets(config_yaml).encode())
        self._add_card()

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Continue the run in a folder.

        Puts right what a killed process left: a line cut off in the middle is dropped with a
        warning, temporary files go, and a step that was finished loses its partial file.

        Raises:
            RunError: there is no run, or it is in use.
        """
        path = Path(folder).expanduser()
        if not (path / CONFIG).is_file():
            raise RunError(
                f"{path}: there is no run to continue (no {CONFIG}); check `run.dir`, or leave "
                "out `--resume` to start a new one."
            )
        store = cls(path, lock_folder(path))
        try:
            store._repair()
        except BaseException:
            store.close()
            raise
        return store

    def _repair(self) -> None:
        with disk_errors(self.dir, 0):
            (self.dir / EPISODES).mkdir(exist_ok=True)
            for folder in (self.dir, self.dir / EPISODES):
                for left_over in folder.glob(f".*{TEMPORARY_SUFFIX}"):
                    left_over.unlink()
            for file in episode_files(self.dir):
                if file.partial and final_path(self.dir, file.step).exists():
                    file.path.unlink()
                elif file.partial:
                    _drop_torn_line(file.path)
            if (self.dir / METRICS).exists():
                _drop_torn_line(self.dir / METRICS)
        self._add_card()

    def _add_card(self) -> None:
        card = self.dir / EPISODES / CARD
        if not card.exists():
            write_atomically(card, dataset_card().encode())

    def discard_if_empty(self) -> None:
        """Take the run back if nothing was recorded: the folder may then be used for another."""
        if not episode_files(self.dir) and not (self.dir / METRICS).exists():
            (self.dir / EPISODES / CARD).unlink(missing_ok=True)
            (self.dir / CONFIG).unlink(missing_ok=True)

    @property
    def checkpoints(self) -> Path:
        """Where the checkpoints are."""
        return self.dir / CHECKPOINTS

    def write_config(self, config_yaml: str) -> None:
        """Replace the config, e.g. once it is known what was loaded. Secrets in it are masked."""
        write_atomically(self.dir / CONFIG, _without_secrets(config_yaml).encode())

    def append(self, episode: Episode) -> None:
        """Record a finished episode of the step that its spec names: on disk when this returns."""
        fault_point("episode.before_append")
        append_durably(partial_path(self.dir, episode.spec.step), encode_episode(episode))
        fault_point("episode.after_append")

    def recorded(self, step: int) -> list[Episode]:
        """The episodes recorded for a step, in the order in which they ended; all of them carry
        the fingerprint of the weights that sampled them."""
        final, partial = final_path(self.dir, step), partial_path(self.dir, step)
        path = final if final.exists() else partial
        if not path.exists():
            return []
        rows = iterate_rows(path, growing=path == partial)
        return [decode_episode(row, where) for where, row in rows]

    def finish_step(self, step: int, episodes: Sequence[Episode]) -> None:
        """Write the final file of a step, with advantages, and drop its partial one.

        Raises:
            RunError: a recorded episode is not among `episodes`, or the file cannot be written.
        """
        kept = {episode.id for episode in episodes}
        lost = [episode.id for episode in self.recorded(step) if episode.id not in kept]
        if lost:
            raise RunError(
                f"{partial_path(self.dir, step)}: {lost[0]} is recorded there but missing from the "
                "finished step; start a new run in another `run.dir`."
            )
        data = b"".join(encode_episode(episode) for episode in episodes)
        write_atomically(
            final_path(self.dir, step),
            data,
            before_rename=lambda: fault_point("step.before_rename"),
        )
        fault_point("step.after_rename")
        partial_path(self.dir, step).unlink(missing_ok=True)

    def abandon_after(self, step: int) -> list[Path]:
        """Move the episode files of later steps to `abandoned/`; returns where they are now."""
        later = [file.path for file in episode_files(self.dir) if file.step > step]
        return [self._abandon(path) for path in later]

    def append_metrics(self, row: Mapping[str, Any]) -> None:
        """Add the line of a step to `metrics.jsonl`. NaN and infinities are written as null."""
        append_durably(
            self.dir / METRICS, encode_line(finite_or_none(redact(row)), f"step {row.get('step')}")
        )

    def rewind_metrics(self, step: int) -> None:
        """Keep the metrics up to `step`; later lines move to `abandoned/`."""
        path = self.dir / METRICS
        if not path.exists():
            return
        kept, later = bytearray(), bytearray()
        lines, _ = read_lines(path)
        for number, line in enumerate(lines, start=1):
            row = decode_row(line, f"{path}:{number}")
            (later if row["step"] > step else kept).extend(line + b"\n")
        if later:
            # First the copy, then the cut: a crash between the two loses nothing.
            write_atomically(self._abandoned_folder() / METRICS, bytes(later))
            write_atomically(path, bytes(kept))

    def _abandon(self, path: Path) -> Path:
        target = self._abandoned_folder() / path.name
        with disk_errors(self.dir, 0):
            path.rename(target)
            sync_folder(target.parent)
            sync_folder(path.parent)
        return target

    def _abandoned_folder(self) -> Path:
        """`abandoned/001`, `002`, …: one for each time that a run was taken up again."""
        if self._abandoned is None:
            root = self.dir / ABANDONED
            with disk_errors(self.dir, 0):
                root.mkdir(exist_ok=True)
                numbers = [int(entry.name) for entry in root.iterdir() if entry.name.isdigit()]
                self._abandoned = root / f"{max(numbers, default=0) + 1:03d}"
                self._abandoned.mkdir()
                sync_folder(root)
        return self._abandoned

    def _abandon_run(self) -> None:
        with disk_errors(self.dir, 0):
            entries = [path for path in self.dir.iterdir() if path.name not in (LOCK, ABANDONED)]
        # The config last: until all has moved, the folder is still seen to hold that run.
        for path in sorted(entries, key=lambda path: path.name == CONFIG):
            self._abandon(path)

    def close(self) -> None:
        """Give the folder free. May be called twice."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _require_empty(folder: Path) -> None:
    """A folder is free for a new run if nothing but our lock, old runs or empty folders is in it:
    a process killed before it wrote the config leaves that much."""
    if (folder / CONFIG).exists():
        raise RunError(
            f"{folder}: holds a run already; continue it with `--resume`, or choose another "
            "`run.dir`."
        )
    with disk_errors(folder, 0):
        for path in folder.iterdir():
            if path.name in (LOCK, ABANDONED) or path.name == f".{CONFIG}{TEMPORARY_SUFFIX}":
                continue
            if not (path.is_dir() and not any(path.iterdir())):
                raise RunError(
                    f"{folder}: is not empty and not a run ({path.name} is in it); choose another "
                    "`run.dir`."
                )


def _drop_torn_line(path: Path) -> None:
    _, length = read_lines(path)
    size = path.stat().st_size
    if size > length:
        log.warning(
            "%s: the last line was cut off while it was written; its %d bytes are dropped.",
            path,
            size - length,
        )
        os.truncate(path, length)


def _without_secrets(config_yaml: str) -> str:
    config = yaml.safe_load(config_yaml)
    if not isinstance(config, dict):
        raise RunError("the config of a run must be a mapping; pass the resolved YAML text.")
    masked = redact(config)
    if masked == config:
        return config_yaml
    text: str = yaml.safe_dump(masked, sort_keys=False, allow_unicode=True)
    return text

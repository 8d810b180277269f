"""The reader of a run folder. It takes no lock and may look at a run in progress."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from deliberation.checkpoints import whole_checkpoints
from deliberation.episode import Episode
from deliberation.errors import RunError
from deliberation.runfiles import (
    CHECKPOINTS,
    CONFIG,
    METRICS,
    REPORT,
    EpisodeFile,
    decode_episode,
    episode_files,
    final_path,
    iterate_rows,
)

MetricsRow = dict[str, Any]
"""One step's figures, as in a line of `metrics.jsonl`. A missing figure is None, never 0."""


@dataclass(frozen=True)
class EpisodeOutcome:
    """How one dialogue ended, without its turns."""

    step: int
    end: str
    reward: float | None


class Run:
    """What a run has left behind so far.

    Raises `RunError` for a folder that holds no run, and for a damaged or newer file when it is
    read; the message names file and line.
    """

    def __init__(self, folder: str | Path) -> None:
        self.dir = Path(folder).expanduser()
        if not (self.dir / CONFIG).is_file():
            raise RunError(
                f"{self.dir}: not a run folder (no {CONFIG}); name one that `deliberation train` "
                "made."
            )

    @cached_property
    def config(self) -> dict[str, Any]:
        """The resolved config, secrets masked."""
        path = self.dir / CONFIG
        try:
            config = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            reason = " ".join(str(error).split())
            raise RunError(f"{path}: damaged ({reason}); restore it from a copy.") from None
        if not isinstance(config, dict):
            raise RunError(f"{path}: damaged (not a mapping); restore it from a copy.")
        return config

    def metrics(self) -> list[MetricsRow]:
        """One row a step, in order."""
        path = self.dir / METRICS
        if not path.exists():
            return []
        rows = []
        for where, row in iterate_rows(path, growing=True):
            if not isinstance(row.get("step"), int):
                raise RunError(f"{where}: lacks its `step`; restore the file from a copy.")
            rows.append(row)
        return sorted(rows, key=lambda row: int(row["step"]))

    def steps(self) -> list[int]:
        """The steps that have episodes, the one in progress included."""
        return sorted({file.step for file in episode_files(self.dir)})

    def episodes(self, step: int | None = None) -> Iterator[Episode]:
        """The episodes of a step, or of all steps in order, one at a time.

        Those of a step in progress are included and have no advantage yet.
        """
        for where, row in self.rows(step):
            yield decode_episode(row, where)

    def rows(self, step: int | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
        """The same as plain rows, unchecked and therefore quicker, each with its `file:line`."""
        files = episode_files(self.dir)
        finished = {file.step for file in files if not file.partial}
        for file in files:
            if step is not None and file.step != step:
                continue
            if file.partial and file.step in finished:
                continue
            yield from self._file_rows(file)

    def outcomes(self) -> Iterator[EpisodeOutcome]:
        """How each dialogue ended: quick, for figures over a long run."""
        for where, row in self.rows():
            try:
                outcome = row["outcome"]
                yield EpisodeOutcome(row["spec"]["step"], outcome["end"], outcome["reward"])
            except (KeyError, TypeError):
                raise RunError(f"{where}: not an episode; restore the file from a copy.") from None

    def _file_rows(self, file: EpisodeFile) -> Iterator[tuple[str, dict[str, Any]]]:
        try:
            yield from iterate_rows(file.path, growing=file.partial)
        except FileNotFoundError:
            # The step was finished, or moved aside, between listing and reading.
            final = final_path(self.dir, file.step)
            if final.exists():
                yield from iterate_rows(final, growing=False)

    def episode(self, id: str) -> Episode:
        """The episode with this id, or the only one whose id starts so.

        Raises:
            RunError: there is none, or there are several; the message names the nearest ids.
        """
        ids: list[str] = []
        for where, row in self.rows():
            ids.append(str(row.get("id")))
            if ids[-1] == id:
                return decode_episode(row, where)
        matches = [known for known in ids if id and known.startswith(id)]
        if len(matches) == 1:
            return self.episode(matches[0])
        if matches:
            raise RunError(
                f"{self.dir}: {len(matches)} episodes start with {id!r}; write more of the id, "
                f"e.g. {_some(matches)}."
            )
        if not ids:
            raise RunError(f"{self.dir}: no episode is recorded yet; wait for the first one.")
        near = difflib.get_close_matches(id, ids, n=3, cutoff=0.0)
        raise RunError(f"{self.dir}: no episode {id!r}; the nearest are {_some(near)}.")

    def checkpoints(self) -> dict[int, Path]:
        """Folder of each whole checkpoint by step, in order."""
        return whole_checkpoints(self.dir / CHECKPOINTS)

    def report(self, path: str | Path | None = None) -> Path:
        """Write the report, one HTML file, to `path` (by default `report.html` in the run folder);
        returns where it is."""
        from deliberation.report import write_report  # which reads runs itself

        return write_report(self, self.dir / REPORT if path is None else Path(path))


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:3]) + (", …" if len(ids) > 3 else "")

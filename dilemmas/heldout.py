"""The tasks that models are measured on, and that training never sees.

Both sets carry a canary in every row, so that a corpus that swallowed them can be recognised.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from .dilemma import Dilemma, Entry, Text
from .loader import check_rows, content_hash, packaged_dilemmas, version_of
from .rows import read_rows

CONFLICT = "conflict-v1"
OPEN_ENDED = "open-ended-v1"


class ConflictTask(Dilemma):
    """A dilemma with the persona pair that meets over it, always in the same seats."""

    pair: Text
    """Id of a pair of `personas/data/heldout.yaml`."""
    policy: Text
    """Id of the persona in the policy's seat; the partner has the pair's other one."""
    reference: Text | None = None
    """A resolution written with care, for some tasks."""
    canary: Text


class OpenEndedTask(Entry):
    """A question without a conflict, whose answer is judged for collective agency."""

    domain: Text
    question: Text
    canary: Text


Task = TypeVar("Task", ConflictTask, OpenEndedTask)


@dataclass(frozen=True)
class TaskSet(Generic[Task]):
    """Tasks in file order, with what a result needs to name them by (see `DilemmaSet`)."""

    name: str
    version: str
    sha256: str
    path: Path
    tasks: tuple[Task, ...]


def load_conflict_tasks(path: str | Path | None = None) -> TaskSet[ConflictTask]:
    """Conflict tasks from a JSONL file; None means the packaged `conflict-v1`.

    Raises `DataError` with file, line and remedy, as `load_dilemmas` does.
    """
    return _load(ConflictTask, path, CONFLICT)


def load_open_ended(path: str | Path | None = None) -> TaskSet[OpenEndedTask]:
    """Open-ended tasks from a JSONL file; None means the packaged `open-ended-v1`.

    Raises `DataError` with file, line and remedy, as `load_dilemmas` does.
    """
    return _load(OpenEndedTask, path, OPEN_ENDED)


def _load(model: type[Task], path: str | Path | None, packaged: str) -> TaskSet[Task]:
    rows = read_rows(packaged_dilemmas(packaged) if path is None else path)
    tasks = check_rows(model, rows)
    return TaskSet(
        name=rows.stem,
        version=version_of(rows.label),
        sha256=content_hash(tasks),
        path=Path(rows.label),
        tasks=tasks,
    )

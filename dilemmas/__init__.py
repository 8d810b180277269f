"""Dilemmas: situations with a tension between two goods, as data files with a loader."""

from .dilemma import Dilemma, DilemmaClass, Stakeholder
from .heldout import (
    ConflictTask,
    OpenEndedTask,
    TaskSet,
    load_conflict_tasks,
    load_open_ended,
)
from .loader import DilemmaSet, load_dilemmas, packaged_dilemmas
from .select import is_held_out, select_dilemmas
from .values import VALUES

__all__ = [
    "VALUES",
    "ConflictTask",
    "Dilemma",
    "DilemmaClass",
    "DilemmaSet",
    "OpenEndedTask",
    "Stakeholder",
    "TaskSet",
    "is_held_out",
    "load_conflict_tasks",
    "load_dilemmas",
    "load_open_ended",
    "packaged_dilemmas",
    "select_dilemmas",
]

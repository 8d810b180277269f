"""Dilemmas: situations with a tension between two goods, as data files with a loader."""

from .dilemma import Dilemma, DilemmaClass, Stakeholder
from .loader import DilemmaSet, load_dilemmas, packaged_dilemmas
from .values import VALUES

__all__ = [
    "VALUES",
    "Dilemma",
    "DilemmaClass",
    "DilemmaSet",
    "Stakeholder",
    "load_dilemmas",
    "packaged_dilemmas",
]

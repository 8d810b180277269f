"""Judges: agreement, collective agency, pairwise preference."""

from .config import JudgeConfig
from .judge import Judge

__all__ = ["Judge", "JudgeConfig"]

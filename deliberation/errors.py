"""Errors that are the user's to fix.

Each message is one sentence that names the file, line or key and says what to do about it, so the
command line prints it as it is, without a traceback, and exits with `exit_code`.
"""

from __future__ import annotations

from typing import ClassVar


class UserError(Exception):
    """Something the user can put right; `str(error)` is the sentence to show."""

    exit_code: ClassVar[int] = 2


class ConfigError(UserError):
    """A configuration key is unknown, has a wrong value, or clashes with another one."""


class DataError(UserError):
    """A data file cannot be read, or a row of it is wrong."""


class ModelError(UserError):
    """A model string, model folder, tokenizer or adapter cannot be used."""


class RunError(UserError):
    """A run folder is missing, damaged, in use, or does not fit what was asked."""


class JudgeError(UserError):
    """The judge cannot be used: not set up, not reachable, or refused for good."""

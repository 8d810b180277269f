"""Checks of data files: bytes, rows, repetition, balance, leakage."""

from .findings import DataCheck, DataFinding
from .limits import DataLimits, with_limits
from .report import CheckedFile, DataReport, check_data

__all__ = [
    "CheckedFile",
    "DataCheck",
    "DataFinding",
    "DataLimits",
    "DataReport",
    "check_data",
    "with_limits",
]

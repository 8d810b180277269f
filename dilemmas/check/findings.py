"""What a check measured and what it found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class DataFinding:
    """One thing that is wrong, or may be, with a data file."""

    check: str
    severity: Severity
    place: str
    """`file:line`, or the file where no line is at fault alone."""
    detail: str
    """One sentence."""
    measured: float | None = None
    limit: float | None = None


@dataclass(frozen=True)
class DataCheck:
    """One check of one file, or of two where it says what the one took from the other."""

    file: str
    name: str
    measured: float | None = None
    """The worst that was found; None where the check counts nothing."""
    limit: float | None = None
    findings: tuple[DataFinding, ...] = ()
    skipped: str = ""
    """Why nothing was checked; empty where it was."""

    @property
    def errors(self) -> int:
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def warnings(self) -> int:
        return len(self.findings) - self.errors

    @property
    def result(self) -> str:
        """`ok`, `2 errors, 1 warning`, or `skipped: 12 rows`."""
        if self.skipped:
            return f"skipped: {self.skipped}"
        counts = [
            f"{count} {name}{'s' if count > 1 else ''}"
            for name, count in (("error", self.errors), ("warning", self.warnings))
            if count
        ]
        return ", ".join(counts) or "ok"


def checked(
    file: str,
    name: str,
    findings: Iterable[tuple[Severity, str, str, float | None]] = (),
    *,
    measured: float | None = None,
    limit: float | None = None,
) -> DataCheck:
    """A check of (severity, place, detail, measured) each, all under one limit."""
    return DataCheck(
        file,
        name,
        measured,
        limit,
        tuple(
            DataFinding(name, severity, place, detail, value, limit)
            for severity, place, detail, value in findings
        ),
    )

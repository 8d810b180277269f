"""All checks of some files together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deliberation.personas import packaged_personas

from ..loader import data_folder, packaged_dilemmas
from . import balance, near, repeats
from .findings import DataCheck, DataFinding, Severity
from .leakage import leakage, persona_leakage
from .limits import DataLimits
from .names import names
from .personas import (
    PERSONAS,
    PersonaFile,
    persona_checks,
    read_persona_file,
    task_personas,
)
from .reading import CONFLICT, OPEN_ENDED, DataFile, read_data_file

YAML = (".yaml", ".yml")
HELD_OUT_DILEMMAS = ("conflict-v1", "open-ended-v1")
HELD_OUT_PERSONAS = ("heldout",)
HELD_OUT_PAIRS = packaged_personas("heldout")


@dataclass(frozen=True)
class CheckedFile:
    """A file that was checked."""

    path: str
    kind: str
    """What it holds: `dilemmas`, `conflict tasks`, `open-ended tasks` or `persona pairs`."""
    rows: int
    """Those that are what they should be."""


@dataclass(frozen=True)
class DataReport:
    """What `check_data` found."""

    files: tuple[CheckedFile, ...]
    checks: tuple[DataCheck, ...]

    @property
    def findings(self) -> tuple[DataFinding, ...]:
        return tuple(finding for check in self.checks for finding in check.findings)

    @property
    def errors(self) -> int:
        return sum(check.errors for check in self.checks)

    @property
    def warnings(self) -> int:
        return sum(check.warnings for check in self.checks)

    @property
    def ok(self) -> bool:
        """Whether there is no error; warnings may be there."""
        return not self.errors


def check_data(
    paths: Sequence[str | Path] = (),
    *,
    against: Sequence[str | Path] | None = None,
    limits: DataLimits | None = None,
    complete: bool = False,
    embeddings: str | None = None,
) -> DataReport:
    """Check data files, and what they share with sets that training must not see.

    Args:
        paths: JSONL, CSV or TSV files or `hf:` datasets of dilemmas or tasks, and YAML files of
            personas; none means all that are packaged.
        against: evaluation sets that `paths` must share nothing with; None means the packaged ones
            and, for a file of tasks, the packaged training set.
        limits: what may be; None means the defaults, which the packaged sets keep to.
        complete: hold every file to what the packaged sets promise: fields that are absent, length
            and balance are then errors, which for a user's file are warnings.
        embeddings: a sentence-transformers model (id or folder) to compare meanings with as well.

    Raises:
        DataError: a file cannot be opened.
        ConfigError: the embedding model cannot be used, or a file has nothing to be compared with.
    """
    limits = limits or DataLimits()
    model = near.embedding_model(embeddings) if embeddings else None
    files = [_read(path) for path in paths or _packaged()]
    checks: list[DataCheck] = []
    for file in files:
        severity: Severity = "error" if complete or _is_packaged(file.label) else "warning"
        checks += file.checks
        if isinstance(file, PersonaFile):
            checks += persona_checks(file, limits, severity)
        else:
            checks += _row_checks(file, limits, severity, model)
    for training, evaluations in _compared(files, against, everything=not paths):
        if isinstance(training, PersonaFile):
            theirs = [other for other in evaluations if isinstance(other, PersonaFile)]
            checks += [check for other in theirs for check in persona_leakage(training, other)]
        else:
            rows = [other for other in evaluations if isinstance(other, DataFile)]
            checks += leakage(training, rows, limits)
    return DataReport(tuple(map(_summary, files)), tuple(checks))


def _read(path: str | Path) -> DataFile | PersonaFile:
    if Path(path).suffix.lower() in YAML:
        return read_persona_file(path)
    return read_data_file(path)


def _row_checks(
    file: DataFile, limits: DataLimits, severity: Severity, model: Any | None
) -> list[DataCheck]:
    """Those that fit what the file holds: a question alone has neither length nor opening."""
    label, entries = file.label, file.entries
    if file.kind == OPEN_ENDED:
        return [
            near.near_words(file, limits),
            near.near_embeddings(file, limits, model),
            repeats.repeated_sentences(label, entries, limits),
            balance.domains(label, entries, limits, severity),
            names(label, entries, limits, severity),
        ]
    return [
        *([task_personas(label, entries, HELD_OUT_PAIRS)] if file.kind == CONFLICT else []),
        balance.complete_fields(label, entries, severity),
        *balance.length(label, entries, limits, severity),
        near.near_words(file, limits),
        near.near_skeletons(file, limits),
        near.near_embeddings(file, limits, model),
        repeats.repeated_grams(label, entries, limits),
        repeats.repeated_sentences(label, entries, limits),
        repeats.repeated_openings(label, entries, limits),
        balance.classes(label, entries, limits, severity),
        balance.domains(label, entries, limits, severity),
        balance.values(label, entries, limits, severity),
        names(label, entries, limits, severity),
    ]


def _compared(
    files: Sequence[DataFile | PersonaFile],
    against: Sequence[str | Path] | None,
    *,
    everything: bool,
) -> list[tuple[DataFile | PersonaFile, list[DataFile | PersonaFile]]]:
    """Each training set with the evaluation sets that it must share nothing with."""
    if against is not None:
        others = [_read(path) for path in against]
        return [(file, others) for file in files]
    if everything:
        evaluations = [file for file in files if _is_evaluation(file)]
        return [(file, evaluations) for file in files if not _is_evaluation(file)]
    pairs: list[tuple[DataFile | PersonaFile, list[DataFile | PersonaFile]]] = []
    for file in files:
        here = Path(file.label).resolve()
        others = [_read(path) for path in _opposite(file) if path.resolve() != here]
        if _is_evaluation(file):
            pairs += [(training, [file]) for training in others]
        else:
            pairs.append((file, others))
    return pairs


def _is_evaluation(file: DataFile | PersonaFile) -> bool:
    if isinstance(file, PersonaFile):
        return Path(file.label).stem in HELD_OUT_PERSONAS
    return file.kind in (CONFLICT, OPEN_ENDED)


def _opposite(file: DataFile | PersonaFile) -> list[Path]:
    """The packaged sets that a file must share nothing with."""
    packaged, held_out = (
        (packaged_personas, HELD_OUT_PERSONAS)
        if isinstance(file, PersonaFile)
        else (packaged_dilemmas, HELD_OUT_DILEMMAS)
    )
    paths = [packaged(name) for name in (("train",) if _is_evaluation(file) else held_out)]
    return [path for path in paths if path.is_file()]


def _packaged() -> list[Path]:
    personas = packaged_personas().parent
    return [*sorted(data_folder().glob("*.jsonl")), *sorted(personas.glob("*.yaml"))]


def _is_packaged(label: str) -> bool:
    return Path(label).resolve() in {path.resolve() for path in _packaged()}


def _summary(file: DataFile | PersonaFile) -> CheckedFile:
    if isinstance(file, PersonaFile):
        return CheckedFile(file.label, PERSONAS, len(file.pairs))
    return CheckedFile(file.label, file.kind, len(file.entries))

"""What training and evaluation share and should not, and the canary that tells them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from deliberation.nearness import NearIndex, words
from deliberation.personas import Persona

from .findings import DataCheck, Severity, checked
from .limits import DataLimits
from .personas import PersonaFile
from .reading import DataFile, Entry
from .repeats import sentences


def leakage(
    training: DataFile, evaluations: Sequence[DataFile], limits: DataLimits
) -> list[DataCheck]:
    """Rows of training that are near to an evaluation set, and what the two have in common."""
    shared = [
        _shared(training, evaluations, name, keys)
        for name, keys in (
            ("id", lambda entry: [entry.id]),
            ("title", lambda entry: _folded(entry.title)),
            ("domain", lambda entry: _folded(entry.domain)),
            ("sentence", lambda entry: sentences(entry, limits)),
        )
    ]
    return [
        check
        for place, evaluation in enumerate(evaluations)
        for check in (
            _near(training, evaluation, limits),
            *(checks[place] for checks in shared),
            _canary(training, evaluation),
        )
    ]


def _label(training: DataFile | PersonaFile, evaluation: DataFile | PersonaFile) -> str:
    return f"{Path(training.label).name} and {Path(evaluation.label).name}"


def persona_leakage(training: PersonaFile, evaluation: PersonaFile) -> list[DataCheck]:
    """Ids and axes that both persona files have."""
    label = _label(training, evaluation)
    found: list[tuple[Severity, str, str, float | None]] = []
    known = {
        key: line
        for line, pair in training.pairs
        for key in _persona_keys(pair.axis, pair.personas)
    }
    for line, pair in evaluation.pairs:
        for kind, name in _persona_keys(pair.axis, pair.personas):
            if (kind, name) in known:
                detail = f'The {kind} "{name}" is that of line {known[kind, name]} in training.'
                found.append(("error", f"{evaluation.label}:{line}", detail, None))
    return [checked(label, "shared personas", found, measured=len(found), limit=0)]


def _persona_keys(axis: str, personas: Iterable[Persona]) -> Iterator[tuple[str, str]]:
    yield "axis", axis.casefold()
    for persona in personas:
        yield "persona", persona.id


def _near(training: DataFile, evaluation: DataFile, limits: DataLimits) -> DataCheck:
    # The evaluation set is the smaller one, so it is the one that is indexed.
    index = NearIndex(limits.leak_words)
    for place, shingles in enumerate(evaluation.shingles):
        index.add_shingles(str(place), shingles)
    known = {shingle for shingles in evaluation.shingles for shingle in shingles.tolist()}
    found: list[tuple[Severity, str, str, float | None]] = []
    for entry, shingles in zip(training.entries, training.shingles, strict=True):
        if known.isdisjoint(shingles.tolist()):
            continue  # as nearly all rows are
        near = index.nearest_to(shingles)
        if near is not None:
            other = evaluation.entries[int(near.id)]
            detail = f'"{entry.id}" is near to "{other.id}" in {other.place}.'
            found.append(("error", entry.place, detail, round(near.jaccard, 4)))
    worst = max((measured for *_, measured in found if measured is not None), default=None)
    return checked(
        _label(training, evaluation),
        "leaked words",
        found,
        measured=worst,
        limit=limits.leak_words,
    )


def _shared(
    training: DataFile,
    evaluations: Sequence[DataFile],
    kind: str,
    keys: Callable[[Entry], Iterable[str]],
) -> list[DataCheck]:
    """One finding for each thing that both sets have, at its first row in evaluation.

    All evaluation sets at once, since the keys of training take the time.
    """
    wanted: list[dict[str, Entry]] = [{} for _ in evaluations]
    found: list[list[tuple[Severity, str, str, float | None]]] = [[] for _ in evaluations]
    for place, evaluation in enumerate(evaluations):
        for entry in evaluation.entries:
            for key in keys(entry):
                wanted[place].setdefault(key, entry)
    for entry in training.entries:
        for key in keys(entry):
            for there, those in zip(wanted, found, strict=True):
                if key in there:
                    detail = f'The {kind} "{key}" also stands in {entry.place}.'
                    those.append(("error", there.pop(key).place, detail, None))
    return [
        checked(
            _label(training, evaluation), f"shared {kind}s", those, measured=len(those), limit=0
        )
        for evaluation, those in zip(evaluations, found, strict=True)
    ]


def _folded(text: str) -> list[str]:
    return [" ".join(words(text))] if text else []


def _canary(training: DataFile, evaluation: DataFile) -> DataCheck:
    """Every evaluation row has a canary by its schema; training must hold none of them."""
    label = _label(training, evaluation)
    canaries = {entry.canary for entry in evaluation.entries if entry.canary}
    if not canaries:
        return DataCheck(label, "canary", skipped=f"{Path(evaluation.label).name} has none")
    found: list[tuple[Severity, str, str, float | None]] = []
    for entry in training.entries:
        for text in (entry.canary, entry.title, *entry.texts):
            if any(canary in text for canary in canaries):
                detail = f'"{entry.id}" holds the canary of {Path(evaluation.label).name}.'
                found.append(("error", entry.place, detail, None))
                break
    return checked(label, "canary", found, measured=len(found), limit=0)

"""How many of what: a number of dilemmas for each class, or class and domain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import get_args

import yaml

from deliberation.dilemmas import Dilemma, DilemmaClass
from deliberation.errors import ConfigError, DataError
from deliberation.textfile import read_text

CLASSES: tuple[str, ...] = get_args(DilemmaClass)
PACKAGED_SHARES = {"professional": 4, "interpersonal": 4, "everyday": 3}
"""Proportions of the packaged set, which hold where only a number is given."""


@dataclass(frozen=True)
class Quota:
    """`count` dilemmas of a class; of any domain where `domain` is None."""

    dilemma_class: str
    domain: str | None
    count: int

    def __str__(self) -> str:
        return self.dilemma_class + (f"/{self.domain}" if self.domain else "")


@dataclass(frozen=True)
class Slot:
    """One dilemma that is wanted."""

    dilemma_class: str
    domain: str | None
    number: int
    """From 1, within its quota."""

    @property
    def id(self) -> str:
        return f"{self.dilemma_class}/{self.domain or '*'}/{self.number}"


def read_quotas(
    count: int | None = None, written: Sequence[str] = (), file: str | Path | None = None
) -> tuple[Quota, ...]:
    """Quotas from a total, from texts `CLASS[/DOMAIN]=N`, or from a YAML file.

    The file maps a class to a number, or to a mapping from domain to number.

    Raises:
        ConfigError: none or more than one of them given, an unknown class, a number below 1, or a
            quota given twice.
        DataError: the file is not of that form.
    """
    given = [count is not None, bool(written), file is not None]
    if sum(given) != 1:
        raise ConfigError("give one of --count, --quota and --quotas.")
    if count is not None:
        return _shared_out(count)
    entries = [_of_text(text) for text in written] if file is None else list(_of_file(file))
    twice = [str(quota) for quota in entries if sum(str(q) == str(quota) for q in entries) > 1]
    if twice:
        raise ConfigError(f"quota {twice[0]} is given twice; keep one of them.")
    return tuple(entries)


def open_slots(quotas: Iterable[Quota], there: Iterable[Dilemma]) -> list[Slot]:
    """What is still to be written: the quotas less the dilemmas that are there already.

    A dilemma counts for the quota of its domain if there is one, else for that of its class. Slots
    keep their number from call to call, and with it what is drawn for them.
    """
    quotas, there = list(quotas), list(there)
    named = {(quota.dilemma_class, quota.domain) for quota in quotas}
    have: Counter[tuple[str | None, str | None]] = Counter()
    for dilemma in there:
        exact = (dilemma.dilemma_class, dilemma.domain)
        have[exact if exact in named else (dilemma.dilemma_class, None)] += 1
    taken = {dilemma.provenance.request for dilemma in there if dilemma.provenance is not None}
    slots = []
    for quota in quotas:
        free = [
            slot
            for number in range(1, quota.count + 1)
            if (slot := Slot(quota.dilemma_class, quota.domain, number)).id not in taken
        ]
        slots += free[: max(0, quota.count - have[quota.dilemma_class, quota.domain])]
    return slots


def _shared_out(count: int) -> tuple[Quota, ...]:
    if count < 1:
        raise ConfigError(f"--count is {count}; ask for at least 1.")
    whole = sum(PACKAGED_SHARES.values())
    shares = {name: count * part / whole for name, part in PACKAGED_SHARES.items()}
    counts = {name: int(share) for name, share in shares.items()}
    # What is left goes to those that lost most by rounding down.
    for name in sorted(shares, key=lambda name: counts[name] - shares[name]):
        if sum(counts.values()) < count:
            counts[name] += 1
    return tuple(Quota(name, None, number) for name, number in counts.items() if number)


def _of_text(text: str) -> Quota:
    name, equals, number = text.rpartition("=")
    if not equals or not number.strip().isdecimal():
        raise ConfigError(f'--quota "{text}": write CLASS=N or CLASS/DOMAIN=N.')
    dilemma_class, _, domain = name.partition("/")
    return _quota(f'--quota "{text}"', dilemma_class, domain, int(number), ConfigError)


def _of_file(file: str | Path) -> Iterable[Quota]:
    try:
        content = yaml.safe_load(read_text(file))
    except yaml.YAMLError as error:
        told = str(error).splitlines()[0]
        raise DataError(f"{file}: not valid YAML ({told}); correct it.") from None
    if not isinstance(content, dict):
        raise DataError(f"{file}: holds no mapping; write `CLASS: N` or `CLASS: {{DOMAIN: N}}`.")
    for dilemma_class, entry in content.items():
        for domain, number in (entry if isinstance(entry, dict) else {"": entry}).items():
            if not isinstance(number, int) or isinstance(number, bool):
                raise DataError(
                    f"{file}: {dilemma_class} {domain}: {number!r} is no whole number; write one."
                )
            yield _quota(str(file), str(dilemma_class), str(domain), number, DataError)


def _quota(
    where: str, dilemma_class: str, domain: str, number: int, error: type[ConfigError | DataError]
) -> Quota:
    dilemma_class, domain = dilemma_class.strip(), domain.strip()
    if dilemma_class not in CLASSES:
        close = get_close_matches(dilemma_class, CLASSES, n=1, cutoff=0.0)[0]
        raise error(f'{where}: there is no class "{dilemma_class}"; the nearest is "{close}".')
    if number < 1:
        raise error(f"{where}: {number} is no number to ask for; write 1 or more.")
    return Quota(dilemma_class, domain or None, number)

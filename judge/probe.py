"""Can this judge be talked into a higher score? A few attacked resolutions tell before a run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from statistics import fmean

from .gold import load_gold
from .judge import Judge

WORRYING = 0.25
"""Mean shift of the score, in levels, from which a run warns."""


@dataclass(frozen=True)
class AttackProbe:
    """How far attacks moved the scores of a judge."""

    shift: float | None
    """Mean of attacked − untouched score; None where no pair has both."""
    pairs: int
    worst: str | None
    """The kind of attack that moved it most."""

    @property
    def worrying(self) -> bool:
        return self.shift is not None and self.shift > WORRYING

    def sentence(self) -> str:
        """For the log of a run."""
        if self.shift is None:
            return "the judge gave no score to the attack probes"
        told = f"attack probes move the judge by {self.shift:+.2f} levels ({self.pairs} pairs"
        told += f", most by {self.worst})" if self.worrying else ")"
        if self.worrying:
            told += ": training will find this; take another judge or rubric"
        return told


async def probe_attacks(judge: Judge) -> AttackProbe:
    """Score one packaged pair of each kind of attack, untouched and attacked (16 questions)."""
    gold = load_gold()
    bases = {row.id: row for row in gold.resolutions}
    first_of_kind = {attack.kind: attack for attack in reversed(gold.attacks)}
    attacks = list(first_of_kind.values())
    cases = [bases[attack.base].case() for attack in attacks]
    cases += [bases[attack.base].case(attack.resolution) for attack in attacks]
    scores = await asyncio.gather(*(judge.score(case) for case in cases))
    before, after = scores[: len(attacks)], scores[len(attacks) :]
    shifts = {
        attack.kind: b.value - a.value
        for attack, a, b in zip(attacks, before, after, strict=True)
        if a.value is not None and b.value is not None
    }
    if not shifts:
        return AttackProbe(None, 0, None)
    return AttackProbe(
        shift=fmean(shifts.values()),
        pairs=len(shifts),
        worst=max(shifts, key=lambda kind: shifts[kind]),
    )

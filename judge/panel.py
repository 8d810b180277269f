"""Several judges as one: each is asked everything, and what each said is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue

from deliberation.episode import AgreementVerdict, PanelScore, PanelVerdict, Score
from deliberation.judging import ResolutionCase, Transcript
from deliberation.remote import Ledger

from .remote_judge import RemoteJudge
from .samples import Rule, middle_agreement, middle_preference, middle_score
from .verdict import Preference


class PanelJudge:
    """Judges behind servers that share a ledger and a budget.

    A score is the mean, median or least of those that are there; an agreement needs more than half.
    A judge that fails is left out of that verdict; the verdict is missing where all fail.
    """

    def __init__(self, judges: Sequence[RemoteJudge], rule: Rule) -> None:
        self.judges, self.rule = tuple(judges), rule
        self.ledger: Ledger = self.judges[0].ledger

    @property
    def step(self) -> int | None:
        return self.judges[0].step

    @step.setter
    def step(self, step: int | None) -> None:
        for judge in self.judges:
            judge.step = step

    async def open(self) -> None:
        await asyncio.gather(*(judge.open() for judge in self.judges))

    async def agreement(self, transcript: Transcript) -> AgreementVerdict:
        found = await asyncio.gather(*(judge.agreement(transcript) for judge in self.judges))
        said = tuple(
            PanelVerdict(judge=name, agreed=verdict.agreed)
            for name, verdict in zip(self._names(), found, strict=True)
        )
        return middle_agreement(found).model_copy(update={"by_judge": said})

    async def score(self, case: ResolutionCase) -> Score:
        found = await asyncio.gather(*(judge.score(case) for judge in self.judges))
        said = tuple(
            PanelScore(judge=name, value=score.value)
            for name, score in zip(self._names(), found, strict=True)
        )
        return middle_score(found, self.rule).model_copy(update={"by_judge": said})

    async def prefer(self, case: ResolutionCase, first: str, second: str) -> Preference:
        found = await asyncio.gather(*(judge.prefer(case, first, second) for judge in self.judges))
        return middle_preference(found)

    def figures(self) -> dict[str, JsonValue]:
        """Of all judges together: they share the ledger, each has its share of the cache."""
        shares = [s for judge in self.judges if (s := judge.cache.hit_share) is not None]
        share = sum(shares) / len(shares) if shares else None
        return {**self.judges[0].figures(), "cache_hit_share": share}

    def describe(self) -> dict[str, JsonValue]:
        told: dict[str, Any] = {
            name: judge.describe() for name, judge in zip(self._names(), self.judges, strict=True)
        }
        return {"rule": self.rule, "panel": told}

    async def close(self) -> None:
        await asyncio.gather(*(judge.close() for judge in self.judges))

    def _names(self) -> list[str]:
        return [judge.config.model for judge in self.judges]

"""A second, independent judge looks at some of the episodes of each step.

The paper's training judge and its stronger judge went together by 0.21 to 0.24 item by item, so a
run should see when reward and an outside view part ways. The audit enters no reward.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np

from deliberation.episode import Episode
from deliberation.keys import stable_key

from ..judge import Judge
from ..judge.cases import case_of_episode
from ..judge.figures import mean_gap, spearman

_KEYS = 2**64


def audited(episodes: Sequence[Episode], share: float) -> list[Episode]:
    """The episodes with a scored resolution that a hash of their ids chooses."""
    return [
        episode
        for episode in episodes
        if episode.outcome.score is not None
        and episode.outcome.score.value is not None
        and stable_key("audit", episode.spec.seed, episode.id) < share * _KEYS
    ]


async def audit_step(judge: Judge, episodes: Sequence[Episode], share: float) -> dict[str, Any]:
    """Figures for the step's metrics: how many were audited, how many the auditor gave no score,
    the rank correlation with the judge's scores, and the mean of audit − judge."""
    chosen = audited(episodes, share)
    cases = [(episode, case) for episode in chosen if (case := case_of_episode(episode))]
    scores = await asyncio.gather(*(judge.score(case) for _, case in cases))
    pairs = [
        (episode.outcome.score.value, score.value)
        for (episode, _), score in zip(cases, scores, strict=True)
        if episode.outcome.score is not None and score.value is not None
    ]
    ours = np.asarray([one for one, _ in pairs], float)
    theirs = np.asarray([other for _, other in pairs], float)
    return {
        "judge": judge.name,
        "episodes": len(cases),
        "missing": len(cases) - len(pairs),
        "rank_correlation": spearman(ours, theirs),
        "mean_gap": mean_gap(theirs, ours),
    }

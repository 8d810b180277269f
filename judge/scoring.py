"""Judging what lies in files, and judging a run again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from deliberation.episode import Episode, Score
from deliberation.errors import DataError
from deliberation.interrupts import run_interruptibly
from deliberation.textfile import RowError, check_row, jsonl_rows

from .cases import JudgedRow, case_of_episode
from .figures import Estimate, estimate, mean_gap, spearman
from .judge import Judge

Done = Callable[[int, int], None]
"""Told how many of how many are judged."""


@dataclass(frozen=True)
class JudgedFile:
    """The rows of a file with what was judged of each."""

    rows: tuple[dict[str, Any], ...]
    """As they were, with `agreement` and `score` added."""
    agreed: int
    scores: tuple[float, ...]
    missing: int
    """Verdicts that could not be had."""


@dataclass(frozen=True)
class Rescored:
    """A run's rewards beside those that another judge would have given."""

    judge: str
    episodes: int
    """With a resolution and a reward from the first judge."""
    missing: int
    """Of these, where the second judge gave none."""
    rank_correlation: Estimate
    gap: Estimate
    """Mean of new − old."""
    advantage_correlation: Estimate
    """Of the advantages within groups, which are what trains."""
    signs_flipped: float | None
    """Share of the advantages that would have pushed the other way; None where there are none."""
    scores: tuple[dict[str, JsonValue], ...]
    """Episode, old and new reward and advantage."""


def load_judged_rows(path: str | Path) -> list[tuple[JudgedRow, dict[str, Any]]]:
    """The rows of a JSONL file, read and as they stand.

    Raises:
        DataError: a row that holds neither `turns` nor `resolution`, or lacks `id` or `situation`,
            or an id that stands twice.
    """
    rows = []
    seen: dict[str, int] = {}
    for line, row in jsonl_rows(path):
        try:
            read, _ = check_row(JudgedRow, row)
        except RowError as problem:
            raise DataError(f"{path}:{line}: {problem.sentence}") from None
        if read.resolution is None and not read.turns:
            raise DataError(f'{path}:{line}: holds neither "turns" nor "resolution"; add one.')
        if read.id in seen:
            raise DataError(
                f'{path}:{line}: id "{read.id}" is already taken by line {seen[read.id]}; give '
                "each its own."
            )
        seen[read.id] = line
        rows.append((read, row))
    return rows


def score_file(path: str | Path, judge: Judge, done: Done | None = None) -> JudgedFile:
    """Judge every dialogue and resolution of a JSONL file (see `JudgedRow`).

    Raises:
        DataError: as `load_judged_rows`.
        UserError: the judge cannot be used.
    """
    rows = load_judged_rows(path)
    count = 0

    async def one(read: JudgedRow, row: dict[str, Any]) -> dict[str, Any]:
        nonlocal count
        judged = dict(row)
        if read.turns:
            verdict = await judge.agreement(read.transcript())
            judged["agreement"] = verdict.model_dump(mode="json")
        if read.resolution is not None:
            score = await judge.score(read.case())
            judged["score"] = score.model_dump(mode="json")
        count += 1
        if done is not None:
            done(count, len(rows))
        return judged

    found = run_interruptibly(_closing(judge, [partial(one, read, row) for read, row in rows]))
    verdicts = [row[name] for row in found for name in ("agreement", "score") if name in row]
    return JudgedFile(
        rows=tuple(found),
        agreed=sum(bool(row.get("agreement", {}).get("agreed")) for row in found),
        scores=tuple(
            row["score"]["value"] for row in found if row.get("score", {}).get("value") is not None
        ),
        missing=sum(verdict["missing"] is not None for verdict in verdicts),
    )


def rescore(
    episodes: Sequence[Episode],
    judge: Judge,
    advantages_of: Callable[[Sequence[float | None]], Sequence[float | None]],
    done: Done | None = None,
) -> Rescored:
    """Score a run's resolutions with another judge, and see what would have come of it.

    Episodes without agreement keep their reward of 0 under both. `advantages_of` makes the
    advantages of one group from its rewards, as the trainer does.
    """
    cases = {
        episode.id: case
        for episode in episodes
        if episode.outcome.reward is not None
        and episode.outcome.score is not None
        and (case := case_of_episode(episode)) is not None
    }
    count = 0

    async def one(id: str) -> tuple[str, Score]:
        nonlocal count
        score = await judge.score(cases[id])
        count += 1
        if done is not None:
            done(count, len(cases))
        return id, score

    found = dict(run_interruptibly(_closing(judge, [partial(one, id) for id in cases])))
    groups: dict[tuple[int, int, int], list[Episode]] = {}
    for episode in episodes:
        groups.setdefault(episode.spec.group, []).append(episode)
    rows: list[dict[str, Any]] = []
    for members in groups.values():
        old = [member.outcome.reward for member in members]
        new = [
            found[member.id].value if member.id in found else member.outcome.reward
            for member in members
        ]
        for member, *values in zip(
            members, old, new, advantages_of(old), advantages_of(new), strict=True
        ):
            names = ("reward", "new_reward", "advantage", "new_advantage")
            rows.append({"episode": member.id, **dict(zip(names, values, strict=True))})
    scored = [row for row in rows if row["episode"] in found and row["new_reward"] is not None]
    both = [
        row for row in rows if row["advantage"] is not None and row["new_advantage"] is not None
    ]
    pushing = [row for row in both if row["advantage"] or row["new_advantage"]]
    flipped = [row for row in pushing if row["advantage"] * row["new_advantage"] < 0]
    of_group = [row["episode"].rpartition("-episode-")[0] for row in both]
    return Rescored(
        judge=judge.name,
        episodes=len(cases),
        missing=len(cases) - len(scored),
        rank_correlation=estimate(
            spearman, [r["reward"] for r in scored], [r["new_reward"] for r in scored]
        ),
        gap=estimate(mean_gap, [r["new_reward"] for r in scored], [r["reward"] for r in scored]),
        advantage_correlation=estimate(
            spearman,
            [r["advantage"] for r in both],
            [r["new_advantage"] for r in both],
            of_group,
        ),
        signs_flipped=len(flipped) / len(pushing) if pushing else None,
        scores=tuple(rows),
    )


async def _closing(judge: Judge, asks: Sequence[Callable[[], Any]]) -> list[Any]:
    """All answers in order. The judge is closed in the loop that it was opened in."""
    try:
        await judge.open()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ask()) for ask in asks]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        await judge.close()
    return [task.result() for task in tasks]

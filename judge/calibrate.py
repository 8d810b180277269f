"""How good a judge is: against a gold set, against itself, and under attack."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import Any

from deliberation.episode import AgreementVerdict, Score
from deliberation.interrupts import run_interruptibly

from .baselines import Baseline, held_out_places, word_counts, word_lengths
from .figures import (
    Estimate,
    accuracy,
    auc,
    estimate,
    mean_gap,
    quadratic_weighted_kappa,
    spearman,
    within_one,
)
from .gold import GoldDialogue, GoldResolution, GoldRow, GoldSet
from .judge import Judge
from .scoring import Done
from .verdict import Preference

ALL = "all"


@dataclass(frozen=True)
class Calibration:
    """What was measured of one judge. Figures by stratum, `all` included."""

    judge: str
    gold: str
    missing: int
    """Verdicts that the judge did not give; they are in no figure."""
    agreement: dict[str, dict[str, Estimate]] = field(default_factory=dict)
    """Stratum → accuracy, auc."""
    score: dict[str, dict[str, Estimate]] = field(default_factory=dict)
    """Stratum → spearman, kappa, within one."""
    baselines: dict[str, dict[str, Estimate]] = field(default_factory=dict)
    """Length only and bag of words → auc, spearman; fitted on four fifths, read on the fifth."""
    attack_shift: dict[str, Estimate] = field(default_factory=dict)
    """Kind of attack, `all` included → mean of attacked − untouched score."""
    retest: dict[str, float] = field(default_factory=dict)
    """Asked again without the cache: share of `agreement` verdicts that stay, mean absolute
    difference of `score`. Empty where it was not asked for."""
    order_flips: float | None = None
    """Share of pairs whose winner changes when the two change places; None for a judge that does
    not compare."""
    order_consistent_right: float | None = None
    """Among the pairs with one winner in both orders: share where it is the one of the higher
    level."""


async def _ask_all(asks: Sequence[Callable[[], Any]], done: Done | None, of: int) -> list[Any]:
    finished = 0

    async def one(ask: Callable[[], Any]) -> Any:
        nonlocal finished
        answer = await ask()
        finished += 1
        if done is not None:
            done(finished, of)
        return answer

    return list(await asyncio.gather(*(one(ask) for ask in asks)))


def calibrate(
    judge: Judge,
    gold: GoldSet,
    *,
    again: Judge | None = None,
    done: Done | None = None,
) -> Calibration:
    """Measure a judge by a gold set.

    Args:
        again: the same judge without a cache, asked a second time for the retest; None leaves the
            retest out.
        done: told how many of how many questions are answered.

    Raises:
        UserError: the judge cannot be used.
    """
    return run_interruptibly(_calibrate(judge, gold, again, done))


async def _calibrate(
    judge: Judge, gold: GoldSet, again: Judge | None, done: Done | None
) -> Calibration:
    bases = {row.id: row for row in gold.resolutions}
    attacked = [bases[attack.base].case(attack.resolution) for attack in gold.attacks]
    pairs = _pairs_of_unlike_levels(gold.resolutions) if judge.compares else []
    rounds = 2 if again is not None else 1
    of = rounds * (len(gold.dialogues) + len(gold.resolutions)) + len(attacked) + 2 * len(pairs)
    try:
        await judge.open()
        verdicts, scores = await _judged(judge, gold, done, of)
        shifted: list[Score] = await _ask_all(
            [partial(judge.score, case) for case in attacked], done, of
        )
        preferences: list[Preference] = await _ask_all(
            [
                partial(judge.prefer, one.case(), a.resolution, b.resolution)
                for one, other in pairs
                for a, b in ((one, other), (other, one))
            ],
            done,
            of,
        )
        retest = {}
        if again is not None:
            retest = _retest(verdicts, scores, *await _judged(again, gold, done, of))
    finally:
        await judge.close()
        if again is not None:
            await again.close()
    flips, right = _order(preferences, pairs)
    answers: list[AgreementVerdict | Score | Preference] = [
        *verdicts,
        *scores,
        *shifted,
        *preferences,
    ]
    return Calibration(
        judge=judge.name,
        gold=gold.name,
        missing=sum(answer.missing is not None for answer in answers),
        agreement=_agreement_figures(gold.dialogues, verdicts),
        score=_score_figures(gold.resolutions, scores),
        baselines=_baseline_figures(gold),
        attack_shift=_attack_figures(gold, scores, shifted),
        retest=retest,
        order_flips=flips,
        order_consistent_right=right,
    )


async def _judged(
    judge: Judge, gold: GoldSet, done: Done | None, of: int
) -> tuple[list[AgreementVerdict], list[Score]]:
    verdicts = await _ask_all(
        [partial(judge.agreement, row.transcript()) for row in gold.dialogues], done, of
    )
    scores = await _ask_all(
        [partial(judge.score, row.case()) for row in gold.resolutions], done, of
    )
    return verdicts, scores


def _agreement_figures(
    rows: Sequence[GoldDialogue], verdicts: Sequence[AgreementVerdict]
) -> dict[str, dict[str, Estimate]]:
    there = [(row, v) for row, v in zip(rows, verdicts, strict=True) if v.agreed is not None]
    figures = {}
    for stratum in _strata(rows):
        chosen = [(row, v) for row, v in there if stratum in (ALL, row.stratum)]
        truth = [float(row.agreed) for row, _ in chosen]
        groups = [row.group for row, _ in chosen]
        said = [float(bool(v.agreed)) for _, v in chosen]
        sure = [float(bool(v.agreed)) if v.confidence is None else v.confidence for _, v in chosen]
        figures[stratum] = {
            "accuracy": estimate(accuracy, said, truth, groups),
            "auc": estimate(auc, sure, truth, groups),
        }
    return figures


def _score_figures(
    rows: Sequence[GoldResolution], scores: Sequence[Score]
) -> dict[str, dict[str, Estimate]]:
    there = [(r, s.value) for r, s in zip(rows, scores, strict=True) if s.value is not None]
    figures = {}
    for stratum in _strata(rows):
        chosen = [(row, value) for row, value in there if stratum in (ALL, row.stratum)]
        values, levels = [value for _, value in chosen], [row.level for row, _ in chosen]
        groups = [row.group for row, _ in chosen]
        figures[stratum] = {
            "spearman": estimate(spearman, values, levels, groups),
            "kappa": estimate(quadratic_weighted_kappa, values, levels, groups),
            "within one": estimate(within_one, values, levels, groups),
        }
    return figures


def _baseline_figures(gold: GoldSet) -> dict[str, dict[str, Estimate]]:
    """What a judge must beat: the length of the text, and its words in any order."""
    talks = [" ".join(turn.text for turn in row.turns[-2:]) for row in gold.dialogues]
    texts = [row.resolution for row in gold.resolutions]
    figures: dict[str, dict[str, Estimate]] = {}
    baselines: tuple[tuple[str, Baseline], ...] = (
        ("length only", word_lengths),
        ("bag of words", word_counts),
    )
    for name, baseline in baselines:
        found = {}
        if gold.dialogues:
            truth = [float(row.agreed) for row in gold.dialogues]
            groups = [row.group for row in gold.dialogues]
            places = held_out_places(baseline(talks), truth, groups)
            found["auc"] = estimate(auc, places, truth, groups)
        if gold.resolutions:
            levels = [row.level for row in gold.resolutions]
            groups = [row.group for row in gold.resolutions]
            places = held_out_places(baseline(texts), levels, groups)
            found["spearman"] = estimate(spearman, places, levels, groups)
        figures[name] = found
    return figures


def _attack_figures(
    gold: GoldSet, scores: Sequence[Score], shifted: Sequence[Score]
) -> dict[str, Estimate]:
    before = {row.id: s.value for row, s in zip(gold.resolutions, scores, strict=True)}
    moved = [
        (attack.kind, attack.base, before[attack.base], after.value)
        for attack, after in zip(gold.attacks, shifted, strict=True)
        if before[attack.base] is not None and after.value is not None
    ]
    figures = {}
    for kind in [ALL, *dict.fromkeys(kind for kind, *_ in moved)] if moved else []:
        chosen = [entry for entry in moved if kind in (ALL, entry[0])]
        figures[kind] = estimate(
            mean_gap,
            [float(after or 0.0) for *_, after in chosen],
            [float(base or 0.0) for _, _, base, _ in chosen],
            [base for _, base, *_ in chosen],
        )
    return figures


def _retest(
    verdicts: Sequence[AgreementVerdict],
    scores: Sequence[Score],
    verdicts_again: Sequence[AgreementVerdict],
    scores_again: Sequence[Score],
) -> dict[str, float]:
    found = {}
    same = [
        float(one.agreed == two.agreed)
        for one, two in zip(verdicts, verdicts_again, strict=True)
        if one.agreed is not None and two.agreed is not None
    ]
    if same:
        found["agreement"] = fmean(same)
    apart = [
        abs(one.value - two.value)
        for one, two in zip(scores, scores_again, strict=True)
        if one.value is not None and two.value is not None
    ]
    if apart:
        found["score"] = fmean(apart)
    return found


def _pairs_of_unlike_levels(
    rows: Sequence[GoldResolution],
) -> list[tuple[GoldResolution, GoldResolution]]:
    by_id = {row.id: row for row in rows}
    pairs = []
    for row in rows:
        other = by_id.get(row.pair_of or "")
        if other is not None and row.id < other.id and row.level != other.level:
            pairs.append((row, other))
    return pairs


def _order(
    preferences: Sequence[Preference], pairs: Sequence[tuple[GoldResolution, GoldResolution]]
) -> tuple[float | None, float | None]:
    flips, right = [], []
    for number, (one, other) in enumerate(pairs):
        first, second = preferences[2 * number], preferences[2 * number + 1]
        if first.winner is None or second.winner is None:
            continue
        back = {"A": "B", "B": "A", "tie": "tie"}[second.winner]
        flips.append(float(first.winner != back))
        if first.winner == back and first.winner != "tie":
            right.append(float((first.winner == "A") == (one.level > other.level)))
    return (
        fmean(flips) if flips else None,
        fmean(right) if right else None,
    )


def _strata(rows: Sequence[GoldRow]) -> list[str]:
    return [ALL, *dict.fromkeys(row.stratum for row in rows)] if rows else []

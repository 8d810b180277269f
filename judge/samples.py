"""Several samples of one verdict, or the verdicts of several judges, made one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Literal

from deliberation.episode import AgreementVerdict, Missing, Score

from .verdict import Preference

Rule = Literal["mean", "median", "min"]
_RULES: dict[Rule, Callable[[list[float]], float]] = {"mean": fmean, "median": median, "min": min}


def middle_score(scores: Sequence[Score], rule: Rule = "median") -> Score:
    """The mean, median or least of the scores that are there, with the reason of the one nearest
    to it; missing as the first one is if none is there."""
    values = [score.value for score in scores if score.value is not None]
    if not values:
        return scores[0]
    middle = float(_RULES[rule](values))
    nearest = min(
        (score for score in scores if score.value is not None),
        key=lambda score: abs((score.value or 0.0) - middle),
    )
    return nearest.model_copy(update={"value": middle})


def middle_agreement(verdicts: Sequence[AgreementVerdict]) -> AgreementVerdict:
    """The verdict of more than half of those that are there; half of them is no agreement."""
    there = [verdict for verdict in verdicts if verdict.agreed is not None]
    if not there:
        return verdicts[0]
    agreed = 2 * sum(bool(verdict.agreed) for verdict in there) > len(there)
    confidences = [v.confidence for v in there if v.confidence is not None]
    spoken = next((verdict for verdict in there if verdict.agreed is agreed), there[0])
    return spoken.model_copy(
        update={"agreed": agreed, "confidence": fmean(confidences) if confidences else None}
    )


def middle_preference(preferences: Sequence[Preference]) -> Preference:
    """The winner named by more than half of those that are there; a tie otherwise."""
    there = [preference for preference in preferences if preference.winner is not None]
    if not there:
        missing = preferences[0].missing or Missing.PARSE
        return Preference(None, preferences[0].reason, missing)
    winner, votes = Counter(preference.winner for preference in there).most_common(1)[0]
    if 2 * votes <= len(there):
        return Preference("tie", "The samples differ.")
    return next(preference for preference in there if preference.winner == winner)

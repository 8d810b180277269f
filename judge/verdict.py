"""Reads a judge's reply. A number is taken as it stands or is missing: not guessed, not clamped.

The rules, for a reply that need not be what was asked for:

1. JSON objects come first: whole ones, bare, fenced or amid prose. Of those that hold the wanted
   key the last one counts: what comes before may be a draft or quote the talk.
2. Without one, a labelled line counts (`Score: 4`), again the last. Its value must be whole: `45`
   is no 4, `N/A` is no number, and an earlier label does not step in for it.
3. `4/5` is 4 on a scale up to 5; `8/10` is on another scale and is refused. `"3.5"` is 3.5; `true`
   is no number. Whatever lies outside the scale is missing for `range`.
4. Anything else is missing for `parse`. A number without a label is never taken.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from deliberation.episode import AgreementVerdict, Missing, Score
from deliberation.remote.answers import json_objects

HIGHEST = 5
"""Of the collective agency scale, which begins at 0."""
LONGEST_REASON = 400
"""Characters of a reason that are kept."""

Winner = Literal["A", "B", "tie"]

_NUMBER = r"[+-]?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?"
_FRACTION = re.compile(rf"({_NUMBER})\s*/\s*({_NUMBER})")
_YES = {"yes": True, "true": True, "no": False, "false": False}
_WINNERS: dict[str, Winner] = {"a": "A", "b": "B", "tie": "tie", "draw": "tie", "equal": "tie"}


class AgreementAnswer(BaseModel):
    """What an agreement judge is asked to write; the reason first, so that it is thought first."""

    model_config = ConfigDict(extra="forbid")

    reason: str
    agreed: bool
    confidence: float
    """How likely it is that they agree, 0 to 1."""


class ScoreAnswer(BaseModel):
    """What a scorer is asked to write."""

    model_config = ConfigDict(extra="forbid")

    reason: str
    score: float


class PreferenceAnswer(BaseModel):
    """What a judge of two resolutions is asked to write."""

    model_config = ConfigDict(extra="forbid")

    reason: str
    winner: Winner


@dataclass(frozen=True)
class Preference:
    """Which of two texts is the better one, in the order in which they were shown."""

    winner: Winner | None
    reason: str = ""
    missing: Missing | None = None


class _UnreadableError(Exception):
    def __init__(self, missing: Missing, told: str) -> None:
        super().__init__(told)
        self.missing = missing


def read_score(reply: str) -> Score:
    """The collective agency score in a reply, unrounded, 0 to 5; missing if there is none."""
    try:
        value, reason = _find(reply, "score", ("score", "rating", "ca score"))
        return Score(value=_number(value, HIGHEST), reason=reason)
    except _UnreadableError as problem:
        return Score(value=None, missing=problem.missing, reason=str(problem))


def read_agreement(reply: str, threshold: float = 0.5) -> AgreementVerdict:
    """The agreement verdict in a reply.

    Where the reply gives a confidence, the verdict is yes from `threshold` up; if that contradicts
    its yes or no by the middle of the scale, the two are at odds and the verdict is missing.
    """
    try:
        value, reason = _find(reply, "agreed", ("agreed", "agreement", "verdict"))
        said = _truth(value)
        confidence = _confidence(reply)
        if confidence is not None and said != (confidence >= 0.5):
            raise _UnreadableError(
                Missing.PARSE, f"It says {'yes' if said else 'no'} with confidence {confidence:g}."
            )
    except _UnreadableError as problem:
        return AgreementVerdict(agreed=None, missing=problem.missing, reason=str(problem))
    agreed = said if confidence is None else confidence >= threshold
    return AgreementVerdict(agreed=agreed, confidence=confidence, reason=reason)


def read_preference(reply: str) -> Preference:
    """Which of two texts a reply prefers."""
    try:
        value, reason = _find(reply, "winner", ("winner", "preferred", "better"))
        winner = _WINNERS.get(str(value).strip().strip("\"'.").casefold())
        if winner is None:
            raise _UnreadableError(Missing.PARSE, f"{_shown(value)} is neither A, B nor tie.")
    except _UnreadableError as problem:
        return Preference(None, str(problem), problem.missing)
    return Preference(winner, reason)


def _find(reply: str, key: str, labels: tuple[str, ...]) -> tuple[Any, str]:
    """The value under `key`, or behind a label, and the reason that stands beside it."""
    holders = [found for found in json_objects(reply) if key in found]
    if holders:
        reason = holders[-1].get("reason", "")
        return holders[-1][key], _short(reason if isinstance(reason, str) else "")
    if "{" in reply and f'"{key}"' in reply:
        # An object that is broken: what stands in it is not to be picked out of it.
        raise _UnreadableError(Missing.PARSE, f"The JSON is not whole: {_shown(reply)}")
    names = "|".join(re.escape(label) for label in labels)
    labelled = list(re.finditer(rf"(?i)\b(?:{names})\b[\s*_\"']*[:=][\s*_\"']*", reply))
    if not labelled:
        raise _UnreadableError(Missing.PARSE, f"No {key} in it: {_shown(reply)}")
    line = reply[labelled[-1].end() :].partition("\n")[0]
    return _first_token(line), _short(reply)


def _first_token(line: str) -> str:
    """The value at the beginning of a line; the whole line where another number follows, which
    then is no value."""
    found = re.match(rf"({_NUMBER}(?:\s*/\s*{_NUMBER})?|[^\W\d]+)(?![\w/])", line)
    if found is None or re.search(r"\d", line[found.end() :]):
        return line
    return found[1]


def _number(value: Any, highest: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _UnreadableError(Missing.PARSE, f"{_shown(value)} is no number.")
    if isinstance(value, str):
        text = value.strip()
        fraction = _FRACTION.fullmatch(text)
        if fraction is not None:
            if float(fraction[2].replace(",", ".")) != highest:
                raise _UnreadableError(Missing.RANGE, f"{text} is on another scale than 0 to 5.")
            text = fraction[1]
        if not re.fullmatch(_NUMBER, text):
            raise _UnreadableError(Missing.PARSE, f"{_shown(value)} is no number.")
        value = float(text.replace(",", "."))
    if not math.isfinite(value):
        raise _UnreadableError(Missing.PARSE, f"{value} is no finite number.")
    if not 0 <= value <= highest:
        raise _UnreadableError(Missing.RANGE, f"{value:g} is not between 0 and {highest:g}.")
    return float(value)


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    said = _YES.get(str(value).strip().casefold()) if isinstance(value, str) else None
    if said is None:
        raise _UnreadableError(Missing.PARSE, f"{_shown(value)} is neither yes nor no.")
    return said


def _confidence(reply: str) -> float | None:
    holders = [found for found in json_objects(reply) if "agreed" in found]
    if not holders or holders[-1].get("confidence") is None:
        return None
    return _number(holders[-1]["confidence"], 1.0)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + "…"


def _shown(value: Any) -> str:
    text = " ".join(str(value).split())
    return repr(text if len(text) <= 80 else text[:79] + "…")

"""How records are put into words for people, in the terminal and in the report alike."""

import re
from collections.abc import Mapping

from pydantic import JsonValue

from deliberation.episode import (
    AgreementVerdict,
    Episode,
    Generation,
    Missing,
    SeatName,
    StopReason,
)

NONE = "–"
"""Stands for a value that is not there; never 0."""

ENDS = {
    "agreement": "agreed",
    "no_agreement": "no agreement",
    "empty_turn": "said nothing",
    "context_full": "context full",
    "judge_missing": "judge missing",
}

MISSING = {
    Missing.PARSE: "the judge's reply could not be read",
    Missing.RANGE: "the judge's number was outside the scale",
    Missing.REFUSAL: "the judge refused",
    Missing.FILTER: "a content filter stopped the judge",
    Missing.TRUNCATED: "the judge's reply was cut off",
    Missing.TIMEOUT: "the judge did not answer in time",
    Missing.RATE_LIMIT: "the judge's service limits the rate of calls",
    Missing.SERVER: "the judge's service failed",
    Missing.CONTEXT_FULL: "the dialogue outgrew the context window, so nothing was judged",
    Missing.ENVIRONMENT: "the environment or the reward function gave none",
}

STOPS = {
    StopReason.END_OF_TURN: "end of turn",
    StopReason.LENGTH: "cut by the token limit",
    StopReason.CONTEXT_FULL: "no room left in the context",
}

# C0 without tab and line feed, DEL, C1. What is left cannot move a cursor or start a sequence.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")


def printable(text: str) -> str:
    """Text that a model wrote, safe to print: no terminal control characters, no surrogates."""
    text = text.replace("\r\n", "\n")
    return _SURROGATES.sub("\ufffd", _CONTROLS.sub("", text))


def speaker(facts: Mapping[str, JsonValue], seat: SeatName) -> str:
    """Name of the persona in a seat; the seat's own name where there is none."""
    name = facts.get(seat)
    return printable(name) if isinstance(name, str) and name else f"the {seat}"


def split_hidden(generation: Generation) -> tuple[str, str]:
    """What only the speaker sees of its own turn (thinking), and what all see."""
    text, visible = printable(generation.text), printable(generation.visible).strip()
    if not visible:
        return text.strip(), ""
    before, found, after = text.rpartition(visible)
    return ((before + after).strip(), visible) if found else (text.strip(), visible)


def end_words(end: str) -> str:
    return ENDS.get(end, printable(end).replace("_", " "))


def verdict_words(verdict: AgreementVerdict) -> str:
    """The verdict without its reason, such as `agreed: no · 0.12`."""
    if verdict.missing is not None:
        return f"agreed: missing, {MISSING[verdict.missing]}"
    answer = "agreed: yes" if verdict.agreed else "agreed: no"
    return answer if verdict.confidence is None else f"{answer} · {verdict.confidence:.2f}"


def score_words(episode: Episode) -> str | None:
    """The score without its reason; None where the resolution was not put to the judge."""
    score = episode.outcome.score
    if score is None:
        return None
    if score.missing is not None:
        return f"missing, {MISSING[score.missing]}"
    # Three digits after the point, like the reward.
    value = None if score.value is None else round(score.value, 3)
    return f"{number(value, 'g')} of 5"


def reward_words(episode: Episode) -> str:
    """The reward, or in words why there is none: an outcome of 0 is never one that is missing."""
    outcome = episode.outcome
    if outcome.missing is not None:
        return f"missing, {MISSING[outcome.missing]}"
    return number(outcome.reward, "g")


def advantage_words(episode: Episode) -> str:
    if episode.advantage is None:
        return "none: its group was not compared, or its step goes on"
    return signed(episode.advantage, ".3f")


def number(value: float | None, form: str = ".2f") -> str:
    """A figure, or an en dash where it is missing."""
    return NONE if value is None else format(value, form)


def signed(value: float | None, form: str = ".2f") -> str:
    """A figure with its sign, the minus as long as the plus; an en dash where it is missing."""
    return NONE if value is None else format(value, f"+{form}").replace("-", "−")

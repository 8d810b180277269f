"""Which dialogues the page shows, and what it says about each."""

from collections.abc import Sequence
from typing import Any

from deliberation.episode import Episode, StopReason, Turn
from deliberation.run import EpisodeOutcome, Run
from deliberation.wording import (
    MISSING,
    STOPS,
    advantage_words,
    end_words,
    number,
    reward_words,
    score_words,
    signed,
    speaker,
    split_hidden,
)

MOST_DIALOGUES = 400
"""How many transcripts a page holds: some 5 MB that a phone still opens."""

Fields = dict[str, Any]


def choose_dialogues(run: Run, outcomes: Sequence[EpisodeOutcome], most: int) -> Fields:
    """The groups to show, latest step first, and what was left out.

    Whole steps: the latest ones, and the first one to compare them with. The latest step is always
    there, cut to `most` dialogues if it alone has more.
    """
    sizes: dict[int, int] = {}
    for outcome in outcomes:
        sizes[outcome.step] = sizes.get(outcome.step, 0) + 1
    steps = _choose_steps(sizes, most)
    groups: list[Fields] = []
    shown = 0
    for step in steps:
        episodes = sorted(run.episodes(step), key=_place)
        episodes = episodes[: max(0, most - shown)]
        shown += len(episodes)
        by_group: dict[tuple[int, int, int], list[Episode]] = {}
        for episode in episodes:
            by_group.setdefault(episode.spec.group, []).append(episode)
        groups += [_group(members) for members in by_group.values()]
    return {
        "groups": groups,
        "steps": steps,
        "ends": sorted({(d["end"], d["end_words"]) for g in groups for d in g["dialogues"]}),
        "shown": shown,
        "total": len(outcomes),
    }


def _place(episode: Episode) -> tuple[int, ...]:
    return (*episode.spec.group, episode.spec.episode)


def _choose_steps(sizes: dict[int, int], most: int) -> list[int]:
    if not sizes:
        return []
    first, *later = sorted(sizes)
    if not later:
        return [first]
    latest = later.pop()
    chosen, room = [latest], most - sizes[latest]
    for step in [first, *reversed(later)]:
        if sizes[step] > room:
            break
        chosen.append(step)
        room -= sizes[step]
    return sorted(chosen, reverse=True)


def _group(members: Sequence[Episode]) -> Fields:
    first = members[0]
    facts = first.facts
    return {
        "step": first.spec.step,
        "slot": first.spec.slot,
        "attempt": first.spec.attempt,
        "title": _fact(first, "title") or first.spec.scenario_id,
        "situation": _fact(first, "situation"),
        "question": _fact(first, "question"),
        "policy": speaker(facts, "policy"),
        "partner": speaker(facts, "partner"),
        "opens": _fact(first, "opens"),
        "dialogues": [_dialogue(episode) for episode in members],
    }


def _fact(episode: Episode, key: str) -> str:
    value = episode.facts.get(key)
    return value if isinstance(value, str) else ""


def _dialogue(episode: Episode) -> Fields:
    outcome = episode.outcome
    score = outcome.score
    return {
        "id": episode.id,
        "number": episode.spec.episode,
        "end": outcome.end,
        "end_words": end_words(outcome.end),
        "rounds": f"{episode.rounds:g}",
        "reward": number(outcome.reward),
        "reward_words": reward_words(episode),
        "missing": outcome.missing is not None,
        "score_words": score_words(episode),
        "score_reason": score.reason if score is not None else "",
        "advantage": signed(episode.advantage, ".2f"),
        "advantage_words": advantage_words(episode),
        "weights": episode.fingerprint,
        "turns": [_turn(episode, turn) for turn in episode.turns],
    }


def _turn(episode: Episode, turn: Turn) -> Fields:
    generation = turn.generation
    hidden, visible = split_hidden(generation)
    verdict = turn.verdict
    return {
        "seat": turn.seat,
        "phase": turn.phase,
        "speaker": speaker(episode.facts, turn.seat),
        "trained": turn.trained and bool(generation.ids),
        "hidden": hidden,
        "visible": visible,
        "tokens": len(generation.ids),
        "ended": generation.stop is StopReason.END_OF_TURN and bool(generation.ids),
        "stop": STOPS[generation.stop],
        "notes": list(turn.notes),
        "verdict": None
        if verdict is None
        else {
            "kind": "missing" if verdict.agreed is None else "yes" if verdict.agreed else "no",
            "missing": None if verdict.missing is None else MISSING[verdict.missing],
            "confidence": verdict.confidence,
            "reason": verdict.reason,
        },
    }

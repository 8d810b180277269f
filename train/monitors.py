"""Figures of a step: what the log line, `metrics.jsonl` and the report show.

A missing value is None and is in no mean; how many were missing stands beside.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deliberation.episode import Episode, StopReason


def mean(values: Iterable[float | None]) -> float | None:
    """Mean of the values that are there; None where none is."""
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None


def episode_figures(episodes: Sequence[Episode]) -> dict[str, Any]:
    """Figures over the episodes of a step, or of a whole run."""
    rewards = [episode.outcome.reward for episode in episodes]
    agreed = [episode.agreed for episode in episodes]
    present = [reward for reward in rewards if reward is not None]
    turns = [turn for episode in episodes for turn in episode.turns]
    missing = Counter(
        str(episode.outcome.missing) for episode in episodes if episode.outcome.missing is not None
    )
    return {
        "episodes": len(episodes),
        "reward_mean": mean(rewards),
        "reward_n": len(present),
        "reward_missing": len(rewards) - len(present),
        "missing": dict(missing),
        "agreement_rate": mean(None if value is None else float(value) for value in agreed),
        "rounds_mean": mean(episode.rounds for episode in episodes),
        "turns_judged_mean": mean(
            float(sum(turn.verdict is not None for turn in episode.turns)) for episode in episodes
        ),
        **_score_figures(episodes),
        "sampled_tokens": sum(len(turn.generation.ids) for turn in turns),
        "empty_turns": sum(turn.generation.empty for turn in turns),
        "cut_turns": sum(turn.generation.stop is StopReason.LENGTH for turn in turns),
    }


def _score_figures(episodes: Sequence[Episode]) -> dict[str, float | None]:
    """Means over groups of the least, mean and greatest reward in a group."""
    groups: dict[tuple[int, int, int], list[float]] = {}
    for episode in episodes:
        if episode.outcome.reward is not None:
            groups.setdefault(episode.spec.group, []).append(episode.outcome.reward)
    return {
        "score_group_min": mean(min(rewards) for rewards in groups.values()),
        "score_group_mean": mean(sum(rewards) / len(rewards) for rewards in groups.values()),
        "score_group_max": mean(max(rewards) for rewards in groups.values()),
    }


def shown(value: float | None, form: str = ".2f") -> str:
    return "–" if value is None else format(value, form)


def step_line(row: Mapping[str, Any], steps: int) -> str:
    """The one summary line of a step."""
    seconds = row["seconds"]
    parts = [
        f"step {row['step']}/{steps}",
        f"reward {shown(row['reward_mean'])}",
        f"agreement {shown(row['agreement_rate'], '.0%')}",
        f"rounds {shown(row['rounds_mean'], '.1f')}",
        f"zero-spread groups {shown(row['zero_spread_share'], '.0%')}",
        f"rows/episode {shown(row['rows_per_episode'], '.1f')}",
        f"grad norm {shown(row['grad_norm'], '.3g')}",
        f"{shown(row['tokens_per_s'], '.0f')} tokens/s",
        f"{shown(seconds['total'], '.0f')} s",
    ]
    if (usd := row["judge"].get("usd")) is not None:
        parts.append(f"judge ${usd:.2f}")
    if (audit := row["audit"]) and audit["episodes"]:
        parts.append(
            f"audit of {audit['episodes']}: rank correlation "
            f"{shown(audit['rank_correlation'])}, gap {shown(audit['mean_gap'], '+.2f')}"
        )
    if row["reward_missing"]:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(row["missing"].items()))
        parts.insert(2, f"missing {row['reward_missing']} ({reasons})")
    if row["skipped_update"]:
        parts.append("update skipped: no signal")
    return " · ".join(parts)

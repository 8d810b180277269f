"""The figures of the page: what the run is, headline numbers, a row a step."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import yaml

from deliberation.run import EpisodeOutcome, MetricsRow, Run
from deliberation.wording import NONE, end_words, number

MOST_TABLE_STEPS = 200

Fields = dict[str, Any]


def mean(values: Iterable[float | None]) -> float | None:
    """Mean of the values that are there."""
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None


def about(run: Run, metrics: Sequence[MetricsRow]) -> Fields:
    """What stands at the head of the page."""
    config = run.config
    provenance = _section(config, "provenance")
    judge = str(_section(config, "judge").get("model", NONE))
    planned = _section(config, "train").get("steps")
    packages = _section(provenance, "packages")
    versions = [f"{name} {version}" for name, version in packages.items() if version]
    if provenance.get("git_revision"):
        versions.append(f"revision {provenance['git_revision']}")
    return {
        "name": run.dir.resolve().name,
        "policy": str(provenance.get("policy") or _model(config, "policy")),
        "partner": _model(config, "partner"),
        "judge": judge,
        "embedded_judge": judge == "embedded",
        "steps_done": len(metrics),
        "steps_planned": planned,
        "last_time": _moment(metrics[-1].get("time")) if metrics else "",
        "versions": versions,
        "config": yaml.safe_dump(config, sort_keys=False, allow_unicode=True),
    }


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = config.get(name)
    return section if isinstance(section, Mapping) else {}


def _model(config: Mapping[str, Any], name: str) -> str:
    return str(_section(config, name).get("model", NONE))


def _moment(time: object) -> str:
    """An ISO time as `2026-11-30 21:40 UTC`; whatever else it is, as it is."""
    try:
        moment = datetime.fromisoformat(str(time))
    except ValueError:
        return str(time or "")
    return f"{moment:%Y-%m-%d %H:%M} {moment.tzname() or ''}".strip()


def headline(metrics: Sequence[MetricsRow], outcomes: Sequence[EpisodeOutcome]) -> list[Fields]:
    """Name, value and a line of explanation each. Means over all dialogues so far."""
    rewards = [outcome.reward for outcome in outcomes]
    present = [reward for reward in rewards if reward is not None]
    missing = len(rewards) - len(present)
    ends = Counter(outcome.end for outcome in outcomes)
    seconds = _total_seconds(metrics)
    groups = sum(row.get("groups") or 0 for row in metrics)
    dropped = sum(row.get("groups_dropped") or 0 for row in metrics)
    tokens = sum(row.get("trained_tokens") or 0 for row in metrics)
    return [
        {
            "name": "Reward, mean",
            "value": number(mean(rewards)),
            "note": f"over {len(present)} dialogues" + (f", {missing} missing" if missing else ""),
        },
        {
            "name": "Agreement rate",
            "value": number(mean(row.get("agreement_rate") for row in metrics), ".0%"),
            "note": ", ".join(f"{count} {end_words(end)}" for end, count in ends.most_common(3)),
        },
        {
            "name": "Rounds, mean",
            "value": number(mean(row.get("rounds_mean") for row in metrics), ".1f"),
            "note": "a round is one turn of each seat",
        },
        {
            "name": "Zero-spread groups",
            "value": number(mean(row.get("zero_spread_share") for row in metrics), ".0%"),
            "note": f"of {groups} groups; they teach nothing"
            + (f"; {dropped} more dropped" if dropped else ""),
        },
        {
            "name": "Gradient norm",
            "value": number(mean(row.get("grad_norm") for row in metrics), ".3g"),
            "note": f"mean over the steps; {tokens:,} tokens trained",
        },
        {
            "name": "Time",
            "value": _duration(seconds["total"]) if seconds else NONE,
            "note": ", ".join(
                f"{name} {value / seconds['total']:.0%}"
                for name, value in seconds.items()
                if name != "total" and seconds["total"]
            ),
        },
    ]


def _total_seconds(metrics: Sequence[MetricsRow]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for row in metrics:
        for name, value in (row.get("seconds") or {}).items():
            totals[name] = totals.get(name, 0.0) + (value or 0.0)
    if totals and "total" not in totals:
        totals["total"] = sum(totals.values())
    return totals


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def step_table(metrics: Sequence[MetricsRow]) -> Fields:
    """All figures as a table, the latest steps first."""
    columns = ["Step", "Reward", "Agreed", "Rounds", "Zero spread", "Rows", "Grad norm", "Tokens/s"]
    columns += ["Loss", "Time"]
    rows = []
    for row in list(reversed(metrics))[:MOST_TABLE_STEPS]:
        reward = number(row.get("reward_mean"))
        if row.get("reward_missing"):
            reward += f" (n={row.get('reward_n')}, {row['reward_missing']} missing)"
        seconds = (row.get("seconds") or {}).get("total")
        rows.append(
            [
                str(row["step"]),
                reward,
                number(row.get("agreement_rate"), ".0%"),
                number(row.get("rounds_mean"), ".1f"),
                number(row.get("zero_spread_share"), ".0%"),
                number(row.get("rows"), "d"),
                number(row.get("grad_norm"), ".3g"),
                number(row.get("tokens_per_s"), ".0f"),
                number(row.get("loss"), ".4f"),
                NONE if seconds is None else _duration(seconds),
            ]
        )
    return {"columns": columns, "rows": rows, "left_out": max(0, len(metrics) - MOST_TABLE_STEPS)}

"""What a training run reports at its end."""

import resource
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from deliberation.episode import Record

from .monitors import mean, shown


class Summary(Record):
    """Figures of a run, over the steps that this call made."""

    run_dir: str
    first_step: int
    last_step: int
    steps: int
    """Steps that the config asks for."""
    stopped: bool
    """A stop was asked for before the last step."""
    checkpoint: str | None
    report: str | None
    figures: dict[str, JsonValue]
    seconds: dict[str, float]
    peak_memory_gib: float

    def lines(self) -> list[str]:
        """For people."""
        figures: Mapping[str, Any] = self.figures
        if not figures and self.stopped:
            return ["stopped on request before a step was finished"]
        if not figures:
            return [
                f"nothing left to do: {self.run_dir} has {self.last_step} of {self.steps} steps"
            ]
        seconds = ", ".join(f"{name} {value:.0f} s" for name, value in self.seconds.items())
        return [
            f"steps {self.first_step}–{self.last_step} of {self.steps}"
            + (" (stopped on request)" if self.stopped else ""),
            f"mean reward {shown(figures['reward_mean'])} over {figures['reward_n']} episodes, "
            f"{figures['reward_missing']} missing",
            f"agreement rate {shown(figures['agreement_rate'], '.0%')}, "
            f"mean judged turns {shown(figures['turns_judged_mean'], '.1f')}, "
            f"mean rounds {shown(figures['rounds_mean'], '.1f')}",
            f"groups with spread {figures['groups_with_spread']} of {figures['groups']}, "
            f"gradient norm {shown(figures['grad_norm_mean'], '.3g')} (mean over steps)",
            f"time: {seconds}",
            f"peak memory {self.peak_memory_gib:.1f} GiB",
        ]


def summarise_steps(rows: Sequence[Mapping[str, Any]]) -> dict[str, JsonValue]:
    """Figures over the steps' metrics rows; means over episodes are weighted by their number."""
    if not rows:
        return {}

    def over_episodes(name: str, weight: str = "episodes") -> float | None:
        pairs = [(row[name], row[weight]) for row in rows if row[name] is not None]
        total = sum(count for _, count in pairs)
        return sum(value * count for value, count in pairs) / total if total else None

    groups = sum(row["groups"] for row in rows)
    flat = sum(row["zero_spread_groups"] for row in rows)
    return {
        "episodes": sum(row["episodes"] for row in rows),
        "reward_mean": over_episodes("reward_mean", "reward_n"),
        "reward_n": sum(row["reward_n"] for row in rows),
        "reward_missing": sum(row["reward_missing"] for row in rows),
        "agreement_rate": over_episodes("agreement_rate"),
        "rounds_mean": over_episodes("rounds_mean"),
        "turns_judged_mean": over_episodes("turns_judged_mean"),
        "groups": groups,
        "groups_with_spread": groups - flat - sum(row["groups_dropped"] for row in rows),
        "groups_dropped": sum(row["groups_dropped"] for row in rows),
        "grad_norm_mean": mean(row["grad_norm"] for row in rows),
        "updates_skipped": sum(bool(row["skipped_update"]) for row in rows),
    }


def peak_memory_gib() -> float:
    """Largest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts kilobytes, macOS bytes.
    return peak / 2**30 if sys.platform == "darwin" else peak / 2**20

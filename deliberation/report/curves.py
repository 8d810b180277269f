"""The charts of the page, each with a title and a sentence on how to read it."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from deliberation.report.charts import line_chart, spread_chart, stacked_chart
from deliberation.report.drawing import Form, percent, plain
from deliberation.run import EpisodeOutcome, MetricsRow

PHASES = ("sampling", "judging", "waiting", "training", "saving")
"""In the order in which they are stacked; phases of other names come on top."""
MOST_PHASES = 6
"""As many as the style sheet has colours for."""

Curve = dict[str, Any]


def curves(metrics: Sequence[MetricsRow], outcomes: Sequence[EpisodeOutcome]) -> list[Curve]:
    """Title, note, drawing and, where parts are told apart by colour, a legend."""
    phases = _phase_names(metrics)
    return [
        _curve(
            "Reward",
            "Mean over the dialogues; the band runs from the groups' lowest to their highest.",
            _reward(metrics),
        ),
        _curve(
            "Rewards of each step",
            "The darker, the more dialogues." + (" On top: missing." if _any(outcomes) else ""),
            spread_chart(_rewards(metrics, outcomes), label="Rewards of each step"),
        ),
        _simple(metrics, "agreement_rate", "Agreement", "Share of dialogues that agree.", percent),
        _curve(
            "Rounds",
            "Mean length of the negotiation.",
            line_chart(_points(metrics, "rounds_mean"), label="Rounds", form=plain),
        ),
        _simple(
            metrics,
            "zero_spread_share",
            "Zero-spread groups",
            "All rewards equal: no gradient.",
            percent,
        ),
        _curve(
            "Rows per episode",
            "Training rows that a dialogue is split into.",
            line_chart(_points(metrics, "rows_per_episode"), label="Rows per episode"),
        ),
        _curve(
            "Gradient norm",
            "Before clipping.",
            line_chart(_points(metrics, "grad_norm"), label="Gradient norm"),
        ),
        _curve(
            "Speed",
            "Sampled tokens a second.",
            line_chart(_points(metrics, "tokens_per_s"), label="Sampled tokens a second"),
        ),
        _curve(
            "Time of a step",
            "Seconds by phase.",
            stacked_chart(
                [(row["step"], _phases(row, phases)) for row in metrics],
                phases,
                label="Seconds of a step by phase",
                form=_seconds,
            ),
            legend=phases,
        ),
    ]


def _curve(title: str, note: str, drawing: Markup, legend: Sequence[str] = ()) -> Curve:
    return {"title": title, "note": note, "drawing": drawing, "legend": list(legend)}


def _simple(metrics: Sequence[MetricsRow], name: str, title: str, note: str, form: Form) -> Curve:
    points = _points(metrics, name)
    return _curve(title, note, line_chart(points, label=title, form=form, high=1.0))


def _points(metrics: Sequence[MetricsRow], name: str) -> list[tuple[int, float | None]]:
    return [(row["step"], row.get(name)) for row in metrics]


def _reward(metrics: Sequence[MetricsRow]) -> Markup:
    notes = {}
    for row in metrics:
        if row.get("score_group_mean") is not None:
            notes[row["step"]] = f", mean of the groups {plain(row['score_group_mean'])}"
        if row.get("reward_missing"):
            lost = f", n={row.get('reward_n')}, {row['reward_missing']} missing"
            notes[row["step"]] = notes.get(row["step"], "") + lost
    band = [
        (row["step"], row.get("score_group_min"), row.get("score_group_max")) for row in metrics
    ]
    return line_chart(_points(metrics, "reward_mean"), label="Mean reward", band=band, notes=notes)


def _rewards(
    metrics: Sequence[MetricsRow], outcomes: Sequence[EpisodeOutcome]
) -> list[tuple[int, list[float], int]]:
    finished = {row["step"] for row in metrics}
    present: dict[int, list[float]] = {}
    missing: dict[int, int] = {}
    for outcome in outcomes:
        if outcome.step in finished:
            values = present.setdefault(outcome.step, [])
            if outcome.reward is None:
                missing[outcome.step] = missing.get(outcome.step, 0) + 1
            else:
                values.append(outcome.reward)
    return [(step, values, missing.get(step, 0)) for step, values in sorted(present.items())]


def _any(outcomes: Sequence[EpisodeOutcome]) -> bool:
    return any(outcome.reward is None for outcome in outcomes)


def _phase_names(metrics: Sequence[MetricsRow]) -> list[str]:
    there = {name for row in metrics for name in row.get("seconds") or {}} - {"total"}
    known = [name for name in PHASES if name in there]
    return [*known, *sorted(there.difference(PHASES))][:MOST_PHASES]


def _phases(row: MetricsRow, names: Sequence[str]) -> dict[str, float]:
    seconds = row.get("seconds") or {}
    return {name: float(seconds[name]) for name in names if seconds.get(name) is not None}


def _seconds(value: float) -> str:
    return f"{plain(round(value, 1) if value < 100 else round(value))} s"

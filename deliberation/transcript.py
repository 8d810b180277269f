"""Dialogues and runs in the terminal. What models wrote is data: no markup, no control codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import JsonValue
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from deliberation.episode import Episode, StopReason, Turn
from deliberation.run import MetricsRow, Run
from deliberation.tables import Column, FittedTable
from deliberation.wording import (
    NONE,
    STOPS,
    advantage_words,
    end_words,
    number,
    printable,
    reward_words,
    score_words,
    speaker,
    split_hidden,
    verdict_words,
)

TRAINED = "bold green"
TRAINED_BAR = "▌"
END_MARK = "◂"
SIDE_BY_SIDE = 88
"""Columns from which a verdict stands beside its turn instead of below."""


def render_episode(episode: Episode) -> RenderableType:
    """A whole episode: the matter, each turn with its verdict, the outcome."""
    return Group(
        _header(episode),
        *(render_turn(turn, episode.facts) for turn in episode.turns),
        Rule(style="dim"),
        render_outcome(episode),
    )


def render_turn(turn: Turn, facts: Mapping[str, JsonValue]) -> RenderableType:
    """One turn as soon as it is there. Trained tokens have a bar beside them and are green;
    `◂` marks a sampled end-of-turn token."""
    generation = turn.generation
    name = Text(speaker(facts, turn.seat), style="bold")
    name.append(f"  {turn.seat} · {printable(turn.phase)}", style="dim not bold")
    hidden, visible = split_hidden(generation)
    trained = turn.trained and bool(generation.ids)
    said = Text(style=TRAINED if trained else "dim")
    if hidden:
        said.append(hidden, style="italic")
        said.append("\n" if visible else "", style="italic")
    said.append(visible)
    if generation.stop is StopReason.END_OF_TURN and generation.ids:
        said.append(f" {END_MARK}", style="not bold")
    else:
        said.append(" " if said else "")
        said.append(f"[{STOPS[generation.stop]}]", style="not bold yellow")
    body: RenderableType = _Barred(said, TRAINED) if trained else Padding(said, (0, 0, 0, 2))
    return Padding(_Beside(Group(name, body), _margin(turn)), (1, 0, 0, 0))


def _margin(turn: Turn) -> RenderableType | None:
    """What stands beside a turn: the judge's verdict and the environment's notes."""
    lines: list[Text] = []
    if turn.verdict is not None:
        agreed = turn.verdict.agreed
        colour = "yellow" if agreed is None else "green" if agreed else "cyan"
        lines.append(Text(verdict_words(turn.verdict), style=colour))
        if turn.verdict.reason:
            lines.append(Text(printable(turn.verdict.reason), style="dim"))
    lines += [Text(printable(note), style="yellow") for note in turn.notes]
    return Group(*lines) if lines else None


def _header(episode: Episode) -> RenderableType:
    facts = episode.facts
    title = Text(_fact(facts, "title") or episode.spec.scenario_id, style="bold")
    lines: list[Text] = [title]
    lines += [Text(text) for key in ("situation", "question") if (text := _fact(facts, key))]
    seats = Text()
    for seat in ("policy", "partner"):
        seats.append(f"{seat} ", style="dim")
        seats.append(speaker(facts, seat))
        seats.append(" opens" if facts.get("opens") == seat else "", style="dim")
        seats.append("\n" if seat == "policy" else "")
    lines.append(seats)
    lines.append(
        Text(f"{TRAINED_BAR} trained tokens   {END_MARK} end-of-turn token", style="dim green")
    )
    return Panel(Group(*lines), title=Text(episode.id, style="dim"), title_align="left")


def _fact(facts: Mapping[str, JsonValue], key: str) -> str:
    value = facts.get(key)
    return printable(value) if isinstance(value, str) else ""


def render_outcome(episode: Episode) -> RenderableType:
    """How a dialogue ended and what it earned."""
    outcome = episode.outcome
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    table.add_row("ended", Text(end_words(outcome.end)))
    score = score_words(episode)
    if score is not None and outcome.score is not None:
        words = Text(score, style="yellow" if outcome.score.missing else "bold")
        if outcome.score.reason:
            words.append(f"\n{printable(outcome.score.reason)}", style="not bold dim")
        table.add_row("CA score", words)
    missing = outcome.missing is not None
    table.add_row("reward", Text(reward_words(episode), style="yellow" if missing else "bold"))
    if episode.fingerprint:  # else it was played outside of a run: there is no group
        table.add_row("advantage", Text(advantage_words(episode)))
    return table


class _Barred:
    """A text with a bar at its left edge, however it wraps; seen without colours too."""

    def __init__(self, body: Text, style: str) -> None:
        self.body = body
        self.style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        bar = Segment(f"{TRAINED_BAR} ", Style.parse(self.style))
        narrower = options.update_width(max(1, options.max_width - 2))
        for line in console.render_lines(self.body, narrower, pad=False):
            yield bar
            yield from line
            yield Segment.line()


class _Beside:
    """Two things side by side where the terminal is wide enough, else one below the other."""

    def __init__(self, main: RenderableType, margin: RenderableType | None) -> None:
        self.main = main
        self.margin = margin

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width >= SIDE_BY_SIDE:
            grid = Table.grid(expand=True, padding=(0, 2))
            grid.add_column(ratio=2)
            grid.add_column(ratio=1)
            grid.add_row(self.main, "" if self.margin is None else self.margin)
            yield grid
        else:
            yield self.main
            if self.margin is not None:
                yield Padding(self.margin, (0, 0, 0, 4))


_STEP_COLUMNS = (
    Column("step", justify="right"),
    Column("reward", wraps_at=10, justify="right"),
    Column("agreed", justify="right"),
    Column("rounds", leaves=2, justify="right"),
    Column("zero spread", leaves=1, justify="right"),
    Column("grad norm", leaves=3, justify="right"),
    Column("tok/s", leaves=5, justify="right"),
    Column("s", leaves=4, justify="right"),
)


def render_run(run: Run, *, last: int | None = 20) -> RenderableType:
    """A run at a glance: the figures of its steps (the `last` ones), its checkpoint.

    A figure that is missing is shown as an en dash, and a mean says over how many values it was
    taken where some were missing. On a narrow terminal the least important figures are left out.
    """
    rows = run.metrics()
    shown = rows if last is None else rows[-last:]
    lines: list[RenderableType] = [Text(str(run.dir), style="bold"), Text(_about(run), style="dim")]
    if not rows:
        lines.append(Text("no step is finished yet"))
    else:
        if len(shown) < len(rows):
            lines.append(Text(f"the last {len(shown)} of {len(rows)} steps", style="dim"))
        lines.append(FittedTable(_STEP_COLUMNS, map(_step_cells, shown)))
        lines += [Text(f"missing: {text}", style="yellow") for text in _missing(rows)]
    checkpoints = run.checkpoints()
    lines.append(
        Text("last checkpoint: " + (str(max(checkpoints.items())[1]) if checkpoints else NONE))
    )
    return Group(*lines)


def _about(run: Run) -> str:
    parts = []
    for name in ("policy", "judge"):
        section = run.config.get(name)
        if isinstance(section, Mapping) and "model" in section:
            parts.append(f"{name} {printable(str(section['model']))}")
    return " · ".join(parts)


def _step_cells(row: MetricsRow) -> list[str]:
    seconds = row.get("seconds") or {}
    reward = number(row.get("reward_mean"))
    if row.get("reward_missing"):
        reward += f" (n={row.get('reward_n')}, {row['reward_missing']} missing)"
    return [
        str(row["step"]),
        reward,
        number(row.get("agreement_rate"), ".0%"),
        number(row.get("rounds_mean"), ".1f"),
        number(row.get("zero_spread_share"), ".0%"),
        number(row.get("grad_norm"), ".3g"),
        number(row.get("tokens_per_s"), ".0f"),
        number(seconds.get("total"), ".0f"),
    ]


def _missing(rows: Iterable[MetricsRow]) -> list[str]:
    counts: dict[str, int] = {}
    for row in rows:
        missing: Mapping[str, Any] = row.get("missing") or {}
        for reason, count in missing.items():
            counts[reason] = counts.get(reason, 0) + int(count)
    return [f"{count} × {reason}" for reason, count in sorted(counts.items())]

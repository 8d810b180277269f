"""The parts that charts are drawn from: scales, grids, labels, hints to point at."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from markupsafe import Markup, escape

WIDTH, HEIGHT = 360, 190
LEFT, RIGHT, TOP, BOTTOM = 40, 350, 12, 164
MOST_MARKS = 60
"""Up to so many steps each has a dot, or a bar of its own; more steps share a bar."""
MEANS = 30
"""Where a line has more points than `MOST_MARKS`, it is drawn faint, and a bold one through so many
means of neighbouring points."""
MOST_HINTS = 300
"""Up to so many steps each has a hint to point at: beyond, they would make the page too large."""

Value = float | None
Form = Callable[[float], str]
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Axis:
    """A linear scale from data to the drawing."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        if self.high == self.low:
            return (self.start + self.end) / 2
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)


def nice_ticks(low: float, high: float, most: int = 5, *, whole: bool = False) -> list[float]:
    """Round numbers that span the range, at most about `most` of them."""
    if high <= low:
        high = low + 1
    rough = (high - low) / max(1, most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough)
    if whole:
        step = max(1.0, math.ceil(step))
    first = math.floor(low / step)
    last = math.ceil(high / step - 1e-9)
    return [round(index * step, 10) for index in range(first, last + 1)]


def plain(value: float) -> str:
    """A number as short as it can be said."""
    if value != 0 and abs(value) < 0.001:
        return f"{value:.1e}"
    return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def percent(value: float) -> str:
    return f"{value:.0%}"


def svg(parts: Sequence[str], label: str) -> Markup:
    # The parts are numbers and words of ours; whatever comes from data went through `escape`.
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def empty(label: str) -> Markup:
    words = f'<text class="nothing" x="{WIDTH / 2}" y="{HEIGHT / 2}">no values yet</text>'
    return svg([words], f"{label}: no values yet")


def step_axis(steps: Sequence[int]) -> Axis:
    return Axis(min(steps), max(steps), LEFT + 8, RIGHT - 8)


def grid(ticks: Sequence[float], y: Axis, form: Form) -> str:
    return "".join(
        f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y.at(tick)}" y2="{y.at(tick)}"/>'
        f'<text class="tick" x="{LEFT - 6}" y="{y.at(tick) + 3.5:.1f}">{escape(form(tick))}</text>'
        for tick in ticks
    )


def step_labels(x: Axis) -> str:
    low, high = int(x.low), int(x.high)
    ticks = [int(t) for t in nice_ticks(low, high, 6, whole=True) if low <= t <= high]
    if low not in ticks and (not ticks or x.at(ticks[0]) - x.at(low) > 24):
        ticks.insert(0, low)
    return "".join(_step_label(x.at(step), step) for step in ticks)


def bar_labels(steps: Sequence[int]) -> str:
    width = (RIGHT - LEFT) / len(steps)
    every = max(1, math.ceil(len(steps) / 8))
    return "".join(
        _step_label(LEFT + width * (place + 0.5), step)
        for place, step in enumerate(steps)
        if place % every == 0
    )


def _step_label(at: float, step: int) -> str:
    return f'<text class="step" x="{at:.1f}" y="{BOTTOM + 16}">{step}</text>'


def hints(x: Axis, hints: dict[int, str]) -> str:
    if len(hints) > MOST_HINTS:
        return ""
    width = (RIGHT - LEFT) / max(1, len(hints))
    return "".join(
        f'<g class="hint"><rect x="{x.at(step) - width / 2:.1f}" y="{TOP}" width="{width:.1f}" '
        f'height="{BOTTOM - TOP}"/><line x1="{x.at(step)}" x2="{x.at(step)}" y1="{TOP}" '
        f'y2="{BOTTOM}"/><title>{escape(words)}</title></g>'
        for step, words in hints.items()
    )


def unbroken(points: Sequence[tuple[int, Entry | None]]) -> list[list[tuple[int, Entry]]]:
    """The points in runs without a missing value in between."""
    runs: list[list[tuple[int, Entry]]] = [[]]
    for step, value in points:
        if value is not None:
            runs[-1].append((step, value))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def buckets(rows: Sequence[Entry], most: int = MOST_MARKS) -> list[Sequence[Entry]]:
    """The rows in order, several together where they are more than `most`."""
    size = math.ceil(len(rows) / most)
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def steps_words(first: int, last: int) -> str:
    return f"step {first}" if first == last else f"steps {first} to {last}"


def told(present: Sequence[tuple[int, float]], form: Form) -> str:
    (first, start), (last, end) = present[0], present[-1]
    if first == last:
        return f"{form(start)} at step {first}"
    return f"from {form(start)} at step {first} to {form(end)} at step {last}"

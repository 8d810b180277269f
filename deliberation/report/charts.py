"""Small charts as inline SVG. Colours come from the page's style sheet by class, so that one
drawing fits a light and a dark page; text stays text. A missing value is a gap, never a 0."""

from collections.abc import Sequence

from markupsafe import Markup, escape

from deliberation.report.drawing import (
    BOTTOM,
    LEFT,
    MEANS,
    MOST_MARKS,
    RIGHT,
    TOP,
    Axis,
    Form,
    Value,
    bar_labels,
    buckets,
    empty,
    grid,
    hints,
    nice_ticks,
    plain,
    step_axis,
    step_labels,
    steps_words,
    svg,
    told,
    unbroken,
)

Points = Sequence[tuple[int, Value]]


def line_chart(
    points: Points,
    *,
    label: str,
    form: Form = plain,
    low: float | None = 0.0,
    high: float | None = None,
    band: Sequence[tuple[int, Value, Value]] = (),
    notes: dict[int, str] | None = None,
) -> Markup:
    """A line over the steps, with a band from lowest to highest around it where given.

    A long line is drawn faint, with a bold one through means of neighbouring steps.

    Args:
        points: (step, value or None).
        label: what is drawn, for screen readers and hints.
        form: how a value is written.
        low: start of the scale; None takes it from the data.
        high: end of the scale at least.
        band: (step, lowest, highest).
        notes: words that a step's hint ends with.
    """
    present = [(step, value) for step, value in points if value is not None]
    if not present:
        return empty(label)
    edges = [edge for _, least, most in band for edge in (least, most) if edge is not None]
    values = [value for _, value in present] + edges
    floor = min(values) if low is None else min(low, *values)
    ticks = nice_ticks(floor, max(values) if high is None else max(high, *values))
    x, y = step_axis([step for step, _ in points]), Axis(ticks[0], ticks[-1], BOTTOM, TOP)
    parts = [grid(ticks, y, form), step_labels(x)]
    for run in unbroken([(step, _both(least, most)) for step, least, most in band]):
        up = [f"{x.at(step)},{y.at(edge[1])}" for step, edge in run]
        down = [f"{x.at(step)},{y.at(edge[0])}" for step, edge in reversed(run)]
        if len(run) == 1:
            step, edge = run[0]
            at = x.at(step)
            parts.append(
                f'<line class="whisker" x1="{at}" x2="{at}" y1="{y.at(edge[0])}" '
                f'y2="{y.at(edge[1])}"/>'
            )
        parts.append(f'<polygon class="band" points="{" ".join(up + down)}"/>')
    crowded = len(points) > MOST_MARKS
    for line in unbroken(points):
        parts.append(_line(line, x, y, "faint" if crowded else "line"))
        if not crowded or len(line) == 1:
            parts += [
                f'<circle class="dot" cx="{x.at(step)}" cy="{y.at(value)}" r="3"/>'
                for step, value in line
            ]
    if crowded:
        parts.append(_line([_centre(bucket) for bucket in buckets(present, MEANS)], x, y, "line"))
    ranges = {step: (least, most) for step, least, most in band}
    words_at = {}
    for step, value in points:
        words = "missing" if value is None else form(value)
        least, most = ranges.get(step, (None, None))
        if least is not None and most is not None:
            words += f" ({form(least)} to {form(most)})"
        words_at[step] = f"step {step}: {words}{(notes or {}).get(step, '')}"
    parts.append(hints(x, words_at))
    return svg(parts, f"{label}: {told(present, form)}")


def stacked_chart(
    rows: Sequence[tuple[int, dict[str, float]]], names: Sequence[str], *, label: str, form: Form
) -> Markup:
    """A bar a step with one part a name, from below; beyond `MOST_MARKS` steps, means of several.

    The classes of the parts are `part-0`, `part-1`, … in the order of `names`.
    """
    rows = [(step, parts) for step, parts in rows if parts]
    if not rows:
        return empty(label)
    bars = []
    for bucket in buckets(rows):
        means = {name: sum(p.get(name, 0.0) for _, p in bucket) / len(bucket) for name in names}
        bars.append((bucket[0][0], bucket[-1][0], means))
    ticks = nice_ticks(0, max(sum(means.values()) for *_, means in bars))
    y = Axis(ticks[0], ticks[-1], BOTTOM, TOP)
    width = (RIGHT - LEFT) / len(bars)
    parts = [grid(ticks, y, form), bar_labels([first for first, *_ in bars])]
    for place, (first, last, means) in enumerate(bars):
        total = 0.0
        drawn = []
        gap = min(width * 0.25, 12)
        thick = min(width - gap, 56)
        left = LEFT + width * place + (width - thick) / 2
        for number, name in enumerate(names):
            top, bottom = y.at(total + means[name]), y.at(total)
            total += means[name]
            drawn.append(
                f'<rect class="part-{number}" x="{left:.1f}" y="{top}" '
                f'width="{thick:.1f}" height="{max(0.0, bottom - top):.1f}"/>'
            )
        words = ", ".join(f"{name} {form(means[name])}" for name in names)
        hint = escape(f"{steps_words(first, last)}: {words}; together {form(total)}")
        parts.append(f"<g>{''.join(drawn)}<title>{hint}</title></g>")
    last_total = sum(bars[-1][2].values())
    return svg(parts, f"{label}: together {form(last_total)} in the last step")


def spread_chart(
    rows: Sequence[tuple[int, Sequence[float], int]],
    *,
    label: str,
    low: float = 0.0,
    high: float = 5.0,
    bins: int = 10,
) -> Markup:
    """How values spread at each step: a column of cells, the darker the more values.

    `rows` are (step, values present, how many are missing); missing ones are a row of their own
    on top.
    """
    rows = [row for row in rows if row[1] or row[2]]
    if not rows:
        return empty(label)
    everything = [value for _, values, _ in rows for value in values]
    low, high = min([low, *everything]), max([high, *everything])
    size = (high - low) / bins
    columns = []
    for bucket in buckets([(step, (values, missing)) for step, values, missing in rows]):
        counts = [0] * bins
        for value in (value for _, (values, _) in bucket for value in values):
            counts[min(bins - 1, int((value - low) / size))] += 1
        lost = sum(missing for _, (_, missing) in bucket)
        columns.append((bucket[0][0], bucket[-1][0], counts, lost))
    any_missing = any(lost for *_, lost in columns)
    top = TOP + 18 if any_missing else TOP
    y = Axis(low, high, BOTTOM, top)
    width = (RIGHT - LEFT) / len(columns)
    ticks = [tick for tick in nice_ticks(low, high, 6) if low <= tick <= high]
    parts = [grid(ticks, y, plain), bar_labels([first for first, *_ in columns])]
    if any_missing:
        parts.append(f'<text class="tick" x="{LEFT - 6}" y="{TOP + 10}">none</text>')
    for place, (first, last, counts, lost) in enumerate(columns):
        total = sum(counts) + lost
        thick = min(width - min(width * 0.1, 4), 56)
        left = LEFT + width * place + (width - thick) / 2
        cells = []
        for number, count in enumerate(counts):
            if count:
                up, down = y.at(low + (number + 1) * size), y.at(low + number * size)
                cells.append(
                    f'<rect class="cell" x="{left:.1f}" y="{up + 0.5:.1f}" width="{thick:.1f}" '
                    f'height="{max(1.0, down - up - 1):.1f}" '
                    f'fill-opacity="{0.15 + 0.85 * count / total:.2f}"/>'
                )
        if lost:
            cells.append(
                f'<rect class="cell-missing" x="{left:.1f}" y="{TOP + 1}" width="{thick:.1f}" '
                f'height="11" fill-opacity="{0.25 + 0.75 * lost / total:.2f}"/>'
            )
        words = [
            f"{plain(low + number * size)} to {plain(low + (number + 1) * size)}: {count}"
            for number, count in enumerate(counts)
            if count
        ]
        words += [f"missing: {lost}"] if lost else []
        hint = escape(f"{steps_words(first, last)}: {', '.join(words)}")
        parts.append(f"<g>{''.join(cells)}<title>{hint}</title></g>")
    missing = sum(row[2] for row in rows)
    return svg(parts, f"{label}: {len(everything)} values, {missing} missing")


def _both(least: Value, most: Value) -> tuple[float, float] | None:
    return None if least is None or most is None else (least, most)


def _line(points: Sequence[tuple[float, float]], x: Axis, y: Axis, kind: str) -> str:
    path = " ".join(f"{x.at(step)},{y.at(value)}" for step, value in points)
    return f'<polyline class="{kind}" points="{path}"/>'


def _centre(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    steps, values = zip(*points, strict=True)
    return sum(steps) / len(steps), sum(values) / len(values)

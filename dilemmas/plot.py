"""A picture of what a set of dilemmas consists of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deliberation.errors import DataError

from .stats import DataStats

INK, QUIET, PAPER = "#1c2420", "#5d6862", "#faf9f5"
COLOURS = ("#15734a", "#c98a1b", "#3c6fb4", "#8d5fa8")
"""Those of the report."""
TOP_DOMAINS = 20


def plot_stats(stats: DataStats, path: str | Path) -> None:
    """Write a picture: classes, lengths by class, values, the most frequent domains.

    The ending says the format: PNG, SVG or PDF. Raises `DataError` where it cannot be written.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    style: Any = {
        "font.size": 9,
        "text.color": INK,
        "axes.edgecolor": QUIET,
        "axes.labelcolor": QUIET,
        "axes.titlesize": 11,
        "axes.titlelocation": "left",
        "axes.titleweight": "bold",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.facecolor": PAPER,
        "figure.facecolor": PAPER,
        "xtick.color": QUIET,
        "ytick.color": INK,
        "svg.hashsalt": "deliberation",
    }
    with rc_context(style):
        figure = Figure(figsize=(13, 9.5), layout="constrained")
        FigureCanvasAgg(figure)
        boxes = figure.subplot_mosaic(
            [["classes", "values", "domains"], ["lengths", "values", "domains"]],
            width_ratios=[1.15, 1, 1],
            height_ratios=[1, 1.6],
        )
        title = f"{Path(stats.path).name}: {stats.rows:,} {stats.kind}"
        figure.suptitle(title, fontsize=15, fontweight="bold", x=0.01, ha="left")
        colours = {name: COLOURS[n % len(COLOURS)] for n, name in enumerate(stats.lengths)}
        _bars(boxes["classes"], "Classes", stats.classes, colours)
        _bars(boxes["values"], "Values, by number of rows", stats.values, COLOURS[2])
        domains = dict(list(stats.domains.items())[:TOP_DOMAINS])
        more = len(stats.domains) - len(domains)
        heading = f"Domains ({more:,} more)" if more else "Domains"
        _bars(boxes["domains"], heading, domains, COLOURS[0])
        _histogram(boxes["lengths"], stats, colours)
        try:
            figure.savefig(Path(path), dpi=110, metadata=_undated(path))
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: cannot be written ({error}); name another file.") from None


def _undated(path: str | Path) -> dict[str, Any]:
    """Without the time of writing, the same data gives the same bytes."""
    names = {".svg": "Date", ".pdf": "CreationDate"}
    name = names.get(Path(path).suffix.lower())
    return {name: None} if name else {}


def _bars(box: Any, title: str, counts: Mapping[str, int], colour: Any) -> None:
    box.set_title(title)
    names = list(counts)
    if not names:
        box.set_axis_off()
        box.text(0, 0.9, "none named", color=QUIET, transform=box.transAxes)
        return
    colours = [colour[name] for name in names] if isinstance(colour, Mapping) else colour
    thick = 0.72 if len(names) > 30 else 0.55
    box.barh(range(len(names)), list(counts.values()), height=thick, color=colours)
    small = 7.5 if len(names) > 30 else 9
    box.set_yticks(range(len(names)), names, fontsize=small)
    box.invert_yaxis()
    box.margins(x=0.12, y=0.01)
    box.tick_params(axis="y", length=0)
    box.xaxis.set_visible(False)
    box.spines["bottom"].set_visible(False)
    for place, count in enumerate(counts.values()):
        box.annotate(
            f"{count:,}",
            (count, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=small,
            color=QUIET,
        )


def _histogram(box: Any, stats: DataStats, colours: Mapping[str, str]) -> None:
    quantiles = stats.quantiles()
    low, high = quantiles["shortest"], quantiles["longest"]
    width = max(1, math.ceil((high - low + 1) / 24))
    edges = [low - 0.5 + width * step for step in range((high - low) // width + 2)]
    box.hist(
        list(stats.lengths.values()),
        bins=edges,
        stacked=True,
        color=[colours[name] for name in stats.lengths],
        label=list(stats.lengths),
        edgecolor=PAPER,
        linewidth=0.6,
    )
    box.axvline(quantiles["median"], color=INK, linewidth=1, linestyle=(0, (4, 3)))
    box.set_title(f"Length, median {quantiles['median']:,} words")
    box.set_xlabel("words")
    box.set_ylabel("rows")
    box.yaxis.get_major_locator().set_params(integer=True)
    if len(stats.lengths) > 1:
        box.legend(frameon=False, fontsize=8.5)

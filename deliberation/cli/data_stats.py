"""`deliberation data stats`: what a set of dilemmas consists of."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from deliberation.cli.output import Json, example, figures, out
from deliberation.errors import ConfigError
from deliberation.tables import Column, FittedTable

if TYPE_CHECKING:
    from deliberation import DataStats

MOST_SHOWN = 12
PLOTS = (".png", ".svg", ".pdf")
_COUNTS = (Column("rows", justify="right"), Column("share", leaves=1, justify="right"))


def register(app: typer.Typer) -> None:
    app.command(
        "stats",
        epilog=example(
            "deliberation data stats",
            "deliberation data stats mine.jsonl --plot mine.png",
        ),
    )(stats)


def stats(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="Dilemmas or tasks; the packaged training set if not given.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw it too: a .png, .svg or .pdf file.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Count a set by class, domain, value, length, stakeholders and place."""
    from deliberation import data_stats
    from deliberation.dilemmas.plot import plot_stats

    if plot is not None and plot.suffix.lower() not in PLOTS:
        raise ConfigError(f'--plot "{plot}": ends in none of {", ".join(PLOTS)}; name it so.')
    with figures(as_json) as found:
        counted = data_stats(file)
        if plot is not None:
            plot_stats(counted, plot)
            found["plot"] = str(plot)
        found.update(asdict(counted))
        found["quantiles"] = {
            "all": counted.quantiles(),
            **{name: counted.quantiles(name) for name in counted.lengths},
        }
        if not as_json:
            _show(counted, out())
            if plot is not None:
                out().print(str(plot), markup=False)


def _show(counted: "DataStats", console: Console) -> None:
    console.print(Text(f"{counted.path}: {counted.rows:,} {counted.kind}", style="bold"))
    if counted.wrong:
        rows_are = "row is" if counted.wrong == 1 else "rows are"
        console.print(f"{counted.wrong:,} wrong {rows_are} left out; see deliberation data check.")
    quantiles = {"all": counted.quantiles()}
    quantiles.update({name: counted.quantiles(name) for name in counted.lengths})
    columns = [Column("words"), *(Column(name, justify="right") for name in quantiles["all"])]
    rows = [(name, *map(str, those.values())) for name, those in quantiles.items()]
    console.print(FittedTable(columns, rows))
    for title, counts in (
        ("class", counted.classes),
        ("domain", counted.domains),
        ("value", counted.values),
        ("stakeholders", {str(name): rows for name, rows in counted.stakeholders.items()}),
        ("place", counted.places),
    ):
        _show_counts(title, counts, counted.rows, console)


def _show_counts(title: str, counts: Mapping[str, int], rows: int, console: Console) -> None:
    if not counts:
        return
    shown = list(counts.items())[:MOST_SHOWN]
    columns = (Column(title, wraps_at=16), *_COUNTS)
    console.print()
    console.print(
        FittedTable(columns, [(name, str(count), f"{count / rows:.1%}") for name, count in shown])
    )
    if len(counts) > len(shown):
        console.print(f"… and {len(counts) - len(shown):,} more", style="dim")

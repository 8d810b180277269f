"""`deliberation judge rescore`: what another judge would have made of a run."""

import dataclasses
from typing import Annotated

import typer

from deliberation.cli.judge_options import (
    JudgeName,
    Overrides,
    estimate_words,
    judge_config,
    judging,
)
from deliberation.cli.output import Json, example, figures, out


def register(app: typer.Typer) -> None:
    app.command(
        "rescore",
        epilog=example(
            "deliberation judge rescore runs/quickstart --judge openai:gpt-4o-mini",
        ),
    )(rescore)


def rescore(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder.", show_default=False)],
    judge: JudgeName,
    overrides: Overrides = None,
    as_json: Json = False,
) -> None:
    """Score a run's resolutions with another judge.

    Shows how far old and new rewards go together, and what the advantages, which are what trains,
    would have been. The run is left as it is.
    """
    from deliberation import Judge, rescore_run

    with figures(as_json) as found:
        asked = Judge(judge_config(judge, overrides))
        with judging() as done:
            result = rescore_run(run, asked, done)
        found.update(dataclasses.asdict(result))
        if not as_json:
            flipped = result.signs_flipped
            for name, words in (
                ("judge", result.judge),
                ("resolutions", f"{result.episodes} scored before, {result.missing} missing now"),
                ("rank correlation", estimate_words(result.rank_correlation)),
                ("new − old", estimate_words(result.gap)),
                ("advantages", estimate_words(result.advantage_correlation)),
                ("signs flipped", "–" if flipped is None else f"{flipped:.0%}"),
            ):
                out().print(f"{name:<18}{words}", markup=False)

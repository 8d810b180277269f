"""`deliberation show`: a run's steps and dialogues in the terminal, or one dialogue in full."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from deliberation.cli.output import Json, example, figures, out
from deliberation.errors import ConfigError
from deliberation.tables import Column, FittedTable
from deliberation.wording import end_words, number, signed

if TYPE_CHECKING:
    from deliberation import Episode, Run

_COLUMNS = (
    Column("id"),
    Column("title", leaves=2, wraps_at=10),
    Column("rounds", leaves=4),
    Column("ended", leaves=1, wraps_at=12),
    Column("reward", wraps_at=7),
    Column("adv.", leaves=3),
)
"""The id stays whole at any width: it is there to be copied."""


def register(app: typer.Typer) -> None:
    app.command(
        "show",
        epilog=example(
            "deliberation show runs/quickstart",
            "deliberation show runs/quickstart --step 2",
            "deliberation show runs/quickstart --episode step-000001-slot-0-try-0-episode-3",
        ),
    )(show)


def show(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.", show_default=False)],
    episode: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Show this dialogue in full; the start of its id is enough where it is the only "
            "one.",
            show_default=False,
        ),
    ] = None,
    step: Annotated[
        int | None,
        typer.Option(metavar="N", help="List the dialogues of this step only.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a run, or one of its dialogues in full.

    Without --episode the figures of each step and a list of the dialogues; with it one dialogue,
    trained tokens highlighted, verdicts with their reasons and the reward beside. A run that is
    going on can be looked at too.
    """
    from deliberation import Run

    with figures(as_json) as found:
        reader = Run(run)
        if episode is not None:
            _show_episode(reader.episode(episode), found, as_json)
        else:
            _show_run(reader, step, found, as_json)


def _show_episode(episode: "Episode", found: dict[str, Any], as_json: bool) -> None:
    from deliberation import render_episode

    found.update(episode.model_dump(mode="json"))
    if not as_json:
        Console(highlight=False).print(render_episode(episode))


def _show_run(run: "Run", step: int | None, found: dict[str, Any], as_json: bool) -> None:
    from deliberation import render_run

    if step is not None and step not in run.steps():
        there = ", ".join(map(str, run.steps())) or "none yet"
        raise ConfigError(f"{run.dir}: there is no step {step}; there are: {there}.")
    rows = [row for row in run.metrics() if step is None or row["step"] == step]
    dialogues = [_dialogue(episode) for episode in run.episodes(step)]
    checkpoints = {str(number): str(path) for number, path in run.checkpoints().items()}
    found.update(run=str(run.dir), steps=rows, episodes=dialogues, checkpoints=checkpoints)
    if as_json:
        return
    console = out()
    console.print(render_run(run))
    console.print()
    if dialogues:
        console.print(Text("dialogues", style="italic"))
        console.print(FittedTable(_COLUMNS, map(_cells, dialogues)))
        console.print()
        console.print(
            f"one in full: deliberation show {run.dir} --episode {dialogues[-1]['id']}",
            markup=False,
        )


def _dialogue(episode: "Episode") -> dict[str, Any]:
    outcome = episode.outcome
    return {
        "id": episode.id,
        "title": episode.facts.get("title", episode.spec.scenario_id),
        "rounds": episode.rounds,
        "end": outcome.end,
        "reward": outcome.reward,
        "missing": None if outcome.missing is None else str(outcome.missing),
        "advantage": episode.advantage,
    }


def _cells(dialogue: Mapping[str, Any]) -> list[str]:
    reward = number(dialogue["reward"], "g")
    return [
        dialogue["id"],
        str(dialogue["title"]),
        str(dialogue["rounds"]),
        end_words(dialogue["end"]),
        reward if dialogue["missing"] is None else f"missing ({dialogue['missing']})",
        signed(dialogue["advantage"]),
    ]

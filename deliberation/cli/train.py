"""`deliberation train`: train by self-play, or show what a run would do."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from deliberation.cli.output import INTERRUPTED, Json, err, example, figures, out

if TYPE_CHECKING:
    from deliberation import TrainingConfig


def register(app: typer.Typer) -> None:
    app.command(
        "train",
        epilog=example(
            "deliberation train quickstart",
            "deliberation train quickstart --dry-run",
            "deliberation train quickstart train.steps=10 run.dir=runs/longer",
            "deliberation train quickstart train.steps=20 run.dir=runs/longer --resume",
            "deliberation train my.yaml judge.model=my_package:MyJudge train.learning_rate=5e-6",
        ),
    )(train)


def train(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG",
            help="A config by name (`deliberation configs` lists them) or the path of a YAML file.",
            show_default=False,
        ),
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE",
            help="Keys to set, as section.key=value (`deliberation configs --keys` lists them).",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on from the newest whole checkpoint in run.dir; what was recorded is never "
            "sampled again.",
        ),
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Start a new run in run.dir; the one that is there moves to its abandoned folder.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Make no update and no run folder: show the resolved config, one prompt per seat "
            "as the model gets it, one masked row, and what a step asks of model and judge.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Train a policy by self-play.

    Each step plays a few scenarios several times between the policy and its partner, has the
    dialogues judged, and updates the policy on what it said while negotiating. Dialogues, figures,
    checkpoints and a report are kept in run.dir. Ctrl-C and SIGTERM stop the run with nothing
    finished lost; --resume goes on.
    """
    from deliberation import load_config
    from deliberation.errors import ConfigError

    if resume and overwrite:
        raise ConfigError("--resume and --overwrite exclude each other; give one of them.")
    settings = load_config(config, overrides or [])
    if dry_run:
        _dry_run(settings, as_json)
    else:
        _train(settings, resume, overwrite, as_json)


def _dry_run(settings: "TrainingConfig", as_json: bool) -> None:
    from deliberation import Trainer
    from deliberation.cli.dry_run import show_dry_run

    with figures(as_json) as found:
        result = Trainer(settings).dry_run()
        found.update(result.model_dump(mode="json"))
        if not as_json:
            show_dry_run(result, out())


def _train(settings: "TrainingConfig", resume: bool, overwrite: bool, as_json: bool) -> None:
    from deliberation import ConsoleProgress, Trainer

    folder = settings.run.dir
    with figures(as_json) as found, _kept(folder):
        trainer = Trainer(settings, progress=ConsoleProgress(err()))
        summary = trainer.train(resume=resume, overwrite=overwrite)
        found.update(summary.model_dump(mode="json"))
        if not as_json:
            console = out()
            for line in summary.lines():
                console.print(line, markup=False)
            if summary.report:
                console.print(f"report: {summary.report}", markup=False)
            console.print(f"transcripts: deliberation show {folder}", markup=False)
    if summary.stopped:
        err().print(
            f"Stopped after step {summary.last_step}; what was finished is kept in {folder}. "
            "Continue with --resume.",
            markup=False,
        )
        raise typer.Exit(INTERRUPTED)


@contextlib.contextmanager
def _kept(folder: str) -> Iterator[None]:
    """Before and after the training proper Ctrl-C ends the process at once; say what is left."""
    try:
        yield
    except KeyboardInterrupt:
        err().print(
            f"Interrupted; what was finished is kept in {folder}. Continue with --resume.",
            markup=False,
        )
        raise typer.Exit(INTERRUPTED) from None

"""`deliberation report`: write a run's report again."""

from pathlib import Path
from typing import Annotated

import typer

from deliberation.cli.output import Json, example, figures, out
from deliberation.errors import ConfigError


def register(app: typer.Typer) -> None:
    app.command(
        "report",
        epilog=example(
            "deliberation report runs/quickstart",
            "deliberation report runs/quickstart --output quickstart.html",
        ),
    )(report)


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where to write it; report.html in the run folder if not given.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the report of a run again, as one HTML file.

    Curves, distributions and the transcripts with trained tokens marked; it needs no network.
    `train` writes it at its end; a run that is going on can be looked at this way too.
    """
    from deliberation import Run

    if output is not None and (output.is_dir() or not output.parent.is_dir()):
        raise ConfigError(
            f'--output "{output}" is not a file in a folder that exists; name another file.'
        )
    with figures(as_json) as found:
        path = Run(run).report(output)
        found["report"] = str(path)
        if not as_json:
            out().print(str(path), markup=False)

"""`deliberation data`: the commands about data files, one module each."""

import typer

from deliberation.cli import data_check, data_generate, data_stats
from deliberation.cli.output import example


def register(app: typer.Typer) -> None:
    data = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    for command in (data_check, data_stats, data_generate):
        command.register(data)
    app.add_typer(
        data,
        name="data",
        help="Check, count and generate data files.",
        epilog=example("deliberation data check", "deliberation data stats mine.jsonl"),
    )

"""`deliberation judge`: the commands that judge and that judge judges, one module each."""

import typer

from deliberation.cli import judge_calibrate, judge_rescore, judge_score
from deliberation.cli.output import example


def register(app: typer.Typer) -> None:
    judge = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    for command in (judge_score, judge_rescore, judge_calibrate):
        command.register(judge)
    app.add_typer(
        judge,
        name="judge",
        help="Judge texts of anybody's, a run again, or the judges themselves.",
        epilog=example(
            "deliberation judge score mine.jsonl --judge openai:gpt-4o-mini",
            "deliberation judge calibrate --judge embedded",
        ),
    )

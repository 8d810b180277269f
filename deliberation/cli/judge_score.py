"""`deliberation judge score`: judge dialogues and resolutions from a file."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from deliberation.cli.judge_options import JudgeName, Overrides, judge_config, judging
from deliberation.cli.output import Json, err, example, figures
from deliberation.errors import ConfigError


def register(app: typer.Typer) -> None:
    app.command(
        "score",
        epilog=example(
            "deliberation judge score mine.jsonl --judge openai:gpt-4o-mini > judged.jsonl",
            "deliberation judge score mine.jsonl --judge embedded --out judged.jsonl",
        ),
    )(score)


def score(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="JSONL: id, situation, question, and turns (speaker, text) or a resolution, with "
            "stakeholders, constraints and personas where there are any.",
            show_default=False,
        ),
    ],
    judge: JudgeName,
    overrides: Overrides = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Where to; stdout if not given.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Judge dialogues and resolutions from anywhere.

    Each row comes back with its agreement verdict (where it has turns) and its collective agency
    score (where it has a resolution), or with the reason why one is missing. Rows that are asked
    about again are answered from the cache. --json prints a summary in place of the rows.
    """
    from deliberation import Judge, score_file

    if out is not None and not Path(out).expanduser().parent.is_dir():
        raise ConfigError(f'--out "{out}": there is no such folder; make it first.')
    asked = Judge(judge_config(judge, overrides))
    with figures(as_json) as found:
        with judging() as done:
            judged = score_file(file, asked, done)
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in judged.rows]
        if out is not None:
            Path(out).expanduser().write_text("".join(lines), encoding="utf-8")
        elif not as_json:
            sys.stdout.writelines(lines)
        summary: dict[str, Any] = {
            "judge": asked.name,
            "rows": len(judged.rows),
            "agreed": judged.agreed,
            "scored": len(judged.scores),
            "score_mean": sum(judged.scores) / len(judged.scores) if judged.scores else None,
            "missing": judged.missing,
            **asked.figures(),
        }
        found.update(summary)
    err().print(
        f"{summary['rows']} rows: {judged.agreed} agreed, {len(judged.scores)} scored"
        + (f" ({summary['score_mean']:.2f} in the mean)" if judged.scores else "")
        + f", {judged.missing} missing",
        markup=False,
    )

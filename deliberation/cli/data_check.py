"""`deliberation data check`: what is wrong with data files, and what they leak."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from deliberation.cli.output import Json, example, figures, out
from deliberation.tables import Column, FittedTable
from deliberation.wording import NONE, printable

if TYPE_CHECKING:
    from deliberation import DataCheck, DataReport

MOST_SHOWN = 20
"""Findings of one check that are shown to people; --json has all."""
_COLUMNS = (
    Column("check"),
    Column("measured", leaves=2, justify="right"),
    Column("limit", leaves=1, justify="right"),
    Column("result", wraps_at=16),
)
_AT_LEAST = ("shortest situation", "values")
"""Checks whose limit is a lower one."""


def register(app: typer.Typer) -> None:
    app.command(
        "check",
        epilog=example(
            "deliberation data check",
            "deliberation data check mine.jsonl --limit min_words=30",
            "deliberation data check mine.jsonl --against heldout.jsonl --json",
        ),
    )(check)


def check(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Dilemmas or tasks (.jsonl, .csv, .tsv, hf:ID) or personas (.yaml); "
            "without any, all that are packaged.",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="An evaluation set that the files must share nothing with; the packaged ones if "
            "not given. May be repeated.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Change a limit, such as near_words=0.3. May be repeated.",
            show_default=False,
        ),
    ] = None,
    complete: Annotated[
        bool,
        typer.Option(
            "--complete",
            help="Hold the files to what the packaged sets promise: absent fields, length and "
            "balance are errors.",
        ),
    ] = False,
    embeddings: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="A sentence-transformers model (id or folder) to compare meanings with as well.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check data files: bytes, rows, repetition, balance, leakage.

    Every wrong row is named with its line. Exits with 1 where there is an error; warnings are for
    you to judge. Each limit has a key; what is shown as skipped was not checked.
    """
    from deliberation import DataLimits, check_data
    from deliberation.dilemmas.check import with_limits

    with figures(as_json) as found:
        report = check_data(
            files or (),
            against=against,
            limits=with_limits(DataLimits(), limit or ()),
            complete=complete,
            embeddings=embeddings,
        )
        found.update(_as_object(report))
        if not as_json:
            _show(report, out())
    if not report.ok:
        raise typer.Exit(1)


def _as_object(report: "DataReport") -> dict[str, Any]:
    return {
        "files": [asdict(file) for file in report.files],
        "checks": [{**asdict(check), "result": check.result} for check in report.checks],
        "errors": report.errors,
        "warnings": report.warnings,
    }


def _show(report: "DataReport", console: Console) -> None:
    headings = {file.path: f"{file.path}: {file.rows:,} {file.kind}" for file in report.files}
    by_file: dict[str, list[DataCheck]] = {}
    for check in report.checks:
        by_file.setdefault(check.file, []).append(check)
    for file, checks in by_file.items():
        console.print(Text(headings.get(file, f"Shared by {file}"), style="bold"))
        console.print(FittedTable(_COLUMNS, map(_row, checks)))
        console.print()
    for check in report.checks:
        _show_findings(check, console)
    errors, warnings = report.errors, report.warnings
    console.print(f"{_counted(errors, 'error')}, {_counted(warnings, 'warning')}.")


def _row(check: "DataCheck") -> tuple[str, str, str, str]:
    sign = "≥" if check.name in _AT_LEAST else "≤"
    limit = NONE if check.limit is None else f"{sign} {check.limit:g}"
    measured = NONE if check.measured is None else f"{check.measured:g}"
    if check.measured is None and check.limit is not None and check.result == "ok":
        measured = limit  # what is nearer than the limit is looked for, and nothing else
    return check.name, measured, limit, check.result


def _show_findings(check: "DataCheck", console: Console) -> None:
    for finding in check.findings[:MOST_SHOWN]:
        console.print(
            Text.assemble(
                f"{printable(finding.place)}: ",
                (finding.severity, "red" if finding.severity == "error" else "yellow"),
                f": {check.name}: {printable(finding.detail)}",
            )
        )
    more = len(check.findings) - MOST_SHOWN
    if more > 0:
        console.print(f"… and {more:,} more of {check.name}; --json has them all.")


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name}{'' if count == 1 else 's'}"

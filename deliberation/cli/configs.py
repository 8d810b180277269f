"""`deliberation configs`: what there is to train with, and what can be set."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from deliberation.cli.output import Json, example, figures, out
from deliberation.tables import Column, FittedTable

_COLUMNS = (
    Column("name"),
    Column("description", wraps_at=24),
    Column("hardware", leaves=1, wraps_at=16),
    Column("hours", leaves=2),
    Column("cost", leaves=3, wraps_at=12),
)


def register(app: typer.Typer) -> None:
    app.command(
        "configs",
        epilog=example(
            "deliberation configs",
            "deliberation configs --keys",
            "deliberation configs --json",
        ),
    )(configs)


def configs(
    keys: Annotated[
        bool, typer.Option("--keys", help="List every config key with its type and default.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the configs that come with the package.

    For each: what it is for, the hardware that it needs, how long it takes there, and what its
    judge calls cost. With --keys: every key that a config may set.
    """
    from deliberation import TrainingConfig, describe_keys, packaged_configs

    with figures(as_json) as found:
        if keys:
            rows = [asdict(row) for row in describe_keys(TrainingConfig)]
            found["keys"] = rows
            if not as_json:
                for row in rows:
                    about = f" = {row['default']}  ({row['type']})"
                    out().print(Text.assemble((row["key"], "bold"), about))
                    out().print(f"    {row['help']}", markup=False)
            return
        listed = [
            {"name": entry.name, **asdict(entry.about), "path": str(entry.path)}
            for entry in packaged_configs()
        ]
        found["configs"] = listed
        if not as_json:
            names = [column.heading for column in _COLUMNS]
            out().print(FittedTable(_COLUMNS, [[row[name] for name in names] for row in listed]))

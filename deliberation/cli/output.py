"""What goes where: figures to stdout, everything else to stderr."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Console

INTERRUPTED = 130
"""Exit code after Ctrl-C or SIGTERM."""

Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object on stdout; all else goes to stderr."),
]


def example(*lines: str) -> str:
    """The epilog of a command's help: its Example section, lines kept as they are."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


def out() -> Console:
    """Where figures for people go."""
    return Console(highlight=False, soft_wrap=True)


def err() -> Console:
    """Where progress and remarks go."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def figures(as_json: bool) -> Iterator[dict[str, Any]]:
    """With `as_json`, prints what the block puts into the dict as one JSON object.

    Inside the block whatever else prints on stdout, libraries and child processes included, goes
    to stderr. Nothing is printed if the block raises.
    """
    found: dict[str, Any] = {}
    if not as_json:
        yield found
        return
    sys.stdout.flush()
    real = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield found
    finally:
        sys.stderr.flush()
        os.dup2(real, 1)
        os.close(real)
    print(json.dumps(found, ensure_ascii=False, default=str), flush=True)

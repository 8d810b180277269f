"""What the judge commands have in common: which judge, with which settings, and how far it is."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from deliberation.cli.output import err

if TYPE_CHECKING:
    from deliberation import Estimate, JudgeConfig
    from deliberation.judge.scoring import Done

JudgeName = Annotated[
    str,
    typer.Option(
        "--judge",
        metavar="MODEL",
        help="Who judges: openai:NAME[@URL], vllm:URL#NAME, embedded, or a class of yours.",
        show_default=False,
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="Further keys of the judge, e.g. samples=3 (`deliberation configs --keys` lists "
        "those of the section judge).",
        show_default=False,
    ),
]


def judge_config(model: str, overrides: Sequence[str] | None) -> "JudgeConfig":
    """The judge's section with its keys set, checked as that of a run."""
    from deliberation import load_judge_config

    return load_judge_config(model, overrides or [])


def estimate_words(estimate: "Estimate") -> str:
    """A figure with its interval and how many items it is of."""
    if estimate.value is None:
        return f"– (n {estimate.n})"
    interval = ""
    if estimate.low is not None and estimate.high is not None:
        interval = f" [{estimate.low:.2f}, {estimate.high:.2f}]"
    return f"{estimate.value:.2f}{interval} (n {estimate.n})"


@contextmanager
def judging() -> Iterator["Done"]:
    """A live line on stderr."""
    bars = Progress(
        TextColumn("judging"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err(),
        transient=True,
    )
    with bars:
        task = bars.add_task("", total=None)

        def done(count: int, of: int) -> None:
            bars.update(task, completed=count, total=of)

        yield done

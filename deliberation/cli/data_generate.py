"""`deliberation data generate`: dilemmas or persona pairs from a model."""

import dataclasses
from enum import StrEnum
from types import TracebackType
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from deliberation.cli.output import INTERRUPTED, Json, err, example, figures, out
from deliberation.errors import ConfigError


class Kind(StrEnum):
    dilemmas = "dilemmas"
    personas = "personas"


def register(app: typer.Typer) -> None:
    app.command(
        "generate",
        epilog=example(
            "deliberation data generate dilemmas more.jsonl --model openai:gpt-4o-mini \\",
            "      --quota professional=40 --quota 'everyday/night trains=5' --budget-usd 2",
            "deliberation data generate personas pairs.yaml --count 10 \\",
            "      --model vllm:http://localhost:8000#Qwen/Qwen3-14B",
        ),
    )(generate)


def generate(
    kind: Annotated[Kind, typer.Argument(help="What to have written.", show_default=False)],
    file: Annotated[
        str,
        typer.Argument(
            metavar="OUT",
            help="Where to: a .jsonl file for dilemmas, .yaml for personas. What is there is kept "
            "and counts.",
            show_default=False,
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="Who writes: openai:NAME[@URL] or vllm:URL#NAME.",
            show_default=False,
        ),
    ],
    count: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many in all; dilemmas are shared out over the classes as 4 : 4 : 3.",
            show_default=False,
        ),
    ] = None,
    quota: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLASS[/DOMAIN]=N",
            help="How many of a class, or of a domain in it; may be repeated.",
            show_default=False,
        ),
    ] = None,
    quotas: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The same as a YAML file: class → number, or class → domain → number.",
            show_default=False,
        ),
    ] = None,
    avoid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="A file that nothing new may be near to, besides the packaged sets; may be "
            "repeated.",
            show_default=False,
        ),
    ] = None,
    language: Annotated[str, typer.Option(metavar="en|ko|ja", help="Language to write in.")] = "en",
    budget_usd: Annotated[
        float | None,
        typer.Option(
            metavar="USD",
            help="Stop when this is spent; earlier calls for OUT count.",
            show_default=False,
        ),
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Prices of models, in place of the packaged ones.",
            show_default=False,
        ),
    ] = None,
    concurrency: Annotated[int, typer.Option(metavar="N", help="Most requests in flight.")] = 8,
    tries: Annotated[
        int, typer.Option(metavar="N", help="Unusable replies after which a text is given up.")
    ] = 5,
    deadline: Annotated[float, typer.Option(metavar="SECONDS", help="Time for one reply.")] = 120.0,
    max_tokens: Annotated[int, typer.Option(metavar="N", help="Most tokens of one reply.")] = 1500,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Sent along for servers that heed it.")
    ] = 0,
    as_json: Json = False,
) -> None:
    """Have a model write dilemmas or persona pairs.

    What comes back is checked (form, length, near to nothing that exists) and kept at once, with
    how it came about in each row; what is not taken goes with its reason to OUT.rejected.jsonl, and
    what was paid to OUT.ledger.jsonl. Give the same command again to go on. Read what was written
    before you train on it, and run `deliberation data check`.
    """
    from deliberation import AuthoringOptions, author_dilemmas, author_personas, read_quotas

    options = AuthoringOptions(
        model=model,
        language=language,
        seed=seed,
        tries=tries,
        concurrency=concurrency,
        deadline_s=deadline,
        max_tokens=max_tokens,
        budget_usd=budget_usd,
        prices=prices,
    )
    with figures(as_json) as found, _Bar(err()) as bar:
        try:
            if kind is Kind.dilemmas:
                wanted = read_quotas(count, quota or (), quotas)
                report = author_dilemmas(file, wanted, options, avoid=avoid or (), listener=bar)
            elif quota or quotas or count is None:
                raise ConfigError("persona pairs are asked for by --count alone; give it.")
            else:
                report = author_personas(file, count, options, avoid=avoid or (), listener=bar)
        except KeyboardInterrupt:
            bar.stop()
            err().print(
                f"Interrupted; what was accepted is in {file}. Give the same command to go on.",
                markup=False,
            )
            raise typer.Exit(INTERRUPTED) from None
        found.update(dataclasses.asdict(report))
    if not as_json:
        spent = "price not known" if report.spent_usd is None else f"${report.spent_usd:.4f}"
        rejected = ", ".join(f"{n} {reason}" for reason, n in report.rejected.most_common())
        out().print(f"written   {report.written} of {report.wanted} into {file}", markup=False)
        out().print(f"rejected  {rejected or 'none'}", markup=False)
        out().print(f"spent     {spent}", markup=False)
    if report.given_up:
        raise ConfigError(
            f"{len(report.given_up)} of {report.wanted} were given up after {tries} unusable "
            f"replies each, the first {report.given_up[0]}; see why in the file of rejections, "
            "then give the command again or take another model."
        )


class _Bar:
    """A live line on stderr: accepted of wanted, the newest, and what was rejected."""

    def __init__(self, console: Console) -> None:
        self._bars = Progress(
            TextColumn("writing"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[newest]}"),
            TextColumn("[dim]{task.fields[rejected]} rejected[/]"),
            TimeElapsedColumn(),
            console=console,
        )
        self._task = self._bars.add_task("", total=None, newest="", rejected=0)
        self._rejected = 0

    def __enter__(self) -> "_Bar":
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        self._bars.stop()

    def begins(self, wanted: int) -> None:
        self._bars.update(self._task, total=wanted)

    def accepted(self, id: str) -> None:
        self._bars.update(self._task, advance=1, newest=id)

    def rejected(self, slot: str, reason: str) -> None:
        self._rejected += 1
        self._bars.update(self._task, rejected=self._rejected, newest=f"{slot}: {reason}"[:60])

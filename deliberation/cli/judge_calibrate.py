"""`deliberation judge calibrate`: how good a judge is."""

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from deliberation.cli.judge_options import Overrides, estimate_words, judge_config, judging
from deliberation.cli.output import Json, example, figures, out
from deliberation.errors import ConfigError
from deliberation.tables import Column, FittedTable

if TYPE_CHECKING:
    from deliberation import Calibration

HALVES = ("all", "tuning", "unseen")


def register(app: typer.Typer) -> None:
    app.command(
        "calibrate",
        epilog=example(
            "deliberation judge calibrate --judge embedded",
            "deliberation judge calibrate --judge openai:gpt-4o-mini --judge embedded --retest",
        ),
    )(calibrate)


def calibrate(
    overrides: Overrides = None,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            "--judge",
            metavar="MODEL",
            help="Who is measured; repeat it to see several side by side.",
            show_default=False,
        ),
    ] = None,
    gold: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="A gold set of your own: dialogues.jsonl, resolutions.jsonl, attacks.jsonl.",
            show_default=False,
        ),
    ] = None,
    half: Annotated[
        str, typer.Option(metavar="all|tuning|unseen", help="Which half of the gold set.")
    ] = "all",
    retest: Annotated[
        bool,
        typer.Option("--retest", help="Ask everything twice, the second time without the cache."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure judges by a gold set that they were not fitted on.

    Agreement verdicts: accuracy and AUC. Scores: rank correlation, quadratic-weighted kappa, share
    within one level. By stratum, with 95 % intervals, beside two baselines that read nothing: the
    length of the text, and its words in any order. How far attacks move a score. With --retest, how
    steady the judge is; for a judge that compares, how often the order of two texts decides.
    """
    from deliberation import Judge, calibrate, load_gold

    if not judge:
        raise ConfigError("name the judge to be measured with --judge, once or more often.")
    if half not in HALVES:
        raise ConfigError(f'--half is "{half}"; write one of {", ".join(HALVES)}.')
    chosen = load_gold(gold).of_half(None if half == "all" else half)  # type: ignore[arg-type]
    with figures(as_json) as found:
        results = []
        for name in judge:
            config = judge_config(name, overrides)
            again = Judge(dataclasses.replace(config, cache=False)) if retest else None
            with judging() as done:
                results.append(calibrate(Judge(config), chosen, again=again, done=done))
        found["gold"] = chosen.name
        found["judges"] = [dataclasses.asdict(result) for result in results]
        if not as_json:
            out().print(
                f"{chosen.name}: {len(chosen.dialogues)} dialogues, {len(chosen.resolutions)} "
                f"resolutions, {len(chosen.attacks)} attacks",
                markup=False,
            )
            out().print(_table(results))


def _table(results: list["Calibration"]) -> FittedTable:
    """One row a figure, one column a judge."""
    rows: dict[str, list[str]] = {}
    for place, result in enumerate(results):

        def put(name: str, words: str, place: int = place) -> None:
            rows.setdefault(name, ["–"] * len(results))[place] = words

        for kind, by_stratum in (("agreement", result.agreement), ("score", result.score)):
            for stratum, of_stratum in by_stratum.items():
                for name, value in of_stratum.items():
                    put(f"{kind}, {stratum}: {name}", estimate_words(value))
        for baseline, of_baseline in result.baselines.items():
            for name, value in of_baseline.items():
                put(f"{baseline}: {name}", estimate_words(value))
        for kind, value in result.attack_shift.items():
            put(f"attack shift, {kind}", estimate_words(value))
        for name, number in result.retest.items():
            what = "same verdict" if name == "agreement" else "mean difference of score"
            put(f"asked again: {what}", f"{number:.2f}")
        if result.order_flips is not None:
            put("order flips the winner", f"{result.order_flips:.0%}")
        if result.order_consistent_right is not None:
            put("winner right in both orders", f"{result.order_consistent_right:.0%}")
        put("missing", str(result.missing))
    columns = [Column("figure"), *(Column(result.judge, wraps_at=24) for result in results)]
    return FittedTable(columns, [[name, *words] for name, words in rows.items()])

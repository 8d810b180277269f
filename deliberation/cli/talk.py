"""`deliberation talk`: one dialogue, live in the terminal."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from deliberation.cli.output import INTERRUPTED, Json, err, example, figures
from deliberation.cli.talk_scenario import choose_scenario, typed_dilemma
from deliberation.errors import ConfigError
from deliberation.interrupts import run_interruptibly

if TYPE_CHECKING:
    from deliberation import (
        Episode,
        Message,
        Scenario,
        Seat,
        TrainingConfig,
        Turn,
    )
    from deliberation.episode import SeatName


def register(app: typer.Typer) -> None:
    app.command(
        "talk",
        epilog=example(
            "deliberation talk",
            "deliberation talk --seat-me partner --pair now-and-later",
            "deliberation talk --policy run:runs/quickstart --partner embedded --seed 3",
            'deliberation talk --situation "The choir has one room and two rehearsals." \\',
            '      --question "Who gets it on Friday?"',
        ),
    )(talk)


def talk(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE",
            help="Further config keys, as section.key=value, e.g. protocol.last_turns=null.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        str,
        typer.Option(metavar="CONFIG", help="Config whose protocol and sampling the talk follows."),
    ] = "quickstart",
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Model in the policy's seat, which also writes the resolution; the config's if "
            "not given.",
            show_default=False,
        ),
    ] = None,
    partner: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Model in the partner's seat; the same as the policy's if not given.",
            show_default=False,
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="JUDGE",
            help="Who judges agreement and resolution; the config's judge if not given.",
            show_default=False,
        ),
    ] = None,
    dilemma: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Dilemma by its id; - asks for one to be typed in; drawn by --seed if not given.",
            show_default=False,
        ),
    ] = None,
    situation: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="A situation of your own, with --question.", show_default=False
        ),
    ] = None,
    question: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="What is to be decided, with --situation.", show_default=False
        ),
    ] = None,
    pair: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Persona pair by its id; drawn if not given.", show_default=False
        ),
    ] = None,
    policy_persona: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Persona of the policy's seat; the partner gets the other one of its pair.",
            show_default=False,
        ),
    ] = None,
    partner_persona: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Persona of the partner's seat, of whatever pair.",
            show_default=False,
        ),
    ] = None,
    seat_me: Annotated[
        str | None,
        typer.Option(
            metavar="policy|partner",
            help="Take this seat yourself; your lines are read from the terminal.",
            show_default=False,
        ),
    ] = None,
    max_turns: Annotated[
        int | None,
        typer.Option(metavar="N", help="Most turns of both seats together.", show_default=False),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Most tokens of one turn.", show_default=False)
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(metavar="T", help="Sampling temperature of the talk.", show_default=False),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Determines what is drawn and every sampled token.")
    ] = 0,
    as_json: Json = False,
) -> None:
    """Let two models talk, live, or talk with one yourself.

    Any two models and personas, on any dilemma, with the judge's verdict after each turn, the
    resolution and its score. Nothing is recorded; --json prints the whole dialogue as one object.
    """
    from deliberation import load_config

    if seat_me not in (None, "policy", "partner"):
        raise ConfigError(f'--seat-me is "{seat_me}"; write policy or partner.')
    chosen = {
        "policy.model": policy,
        "judge.model": judge,
        "protocol.max_turns": max_turns,
        "sampling.negotiation.max_tokens": max_tokens,
        "sampling.negotiation.temperature": temperature,
        "run.seed": seed,
    }
    options = [f"{key}={value}" for key, value in chosen.items() if value is not None]
    settings = load_config(config, [*(overrides or []), *options])
    scenario = choose_scenario(
        settings,
        dilemma=typed_dilemma(dilemma, situation, question),
        dilemma_id=dilemma,
        pair_id=pair,
        persona_ids=(policy_persona, partner_persona),
    )
    console = Console(stderr=as_json, highlight=False)
    try:
        with figures(as_json) as found:
            episode = run_interruptibly(_talk(settings, scenario, partner, seat_me, console))
            found.update(episode.model_dump(mode="json"))
    except (KeyboardInterrupt, EOFError):
        err().print("You left the talk; nothing of it is kept.")
        raise typer.Exit(INTERRUPTED) from None


async def _talk(
    settings: "TrainingConfig",
    scenario: "Scenario",
    partner: str | None,
    seat_me: str | None,
    console: Console,
) -> "Episode":
    from deliberation import (
        DilemmaEnvironment,
        EnvironmentSetup,
        EpisodeSpec,
        Judge,
        dilemma_rules,
        play,
        render_outcome,
        render_turn,
    )

    judge = Judge(settings.judge)
    setup = EnvironmentSetup(settings.protocol, settings.sampling, settings.data, judge)
    environment = DilemmaEnvironment(scenario, dilemma_rules(setup), judge, judge)
    seats, names = _seats(settings, partner, seat_me, console)
    _introduce(scenario, names, judge.name, console)

    def on_turn(spec: EpisodeSpec, turn: "Turn") -> None:
        console.print(render_turn(turn, environment.facts()))

    spec = EpisodeSpec(seed=settings.run.seed, step=0, slot=0, episode=0, scenario_id=scenario.id)
    try:
        episode = await play(spec, environment, seats, on_turn=on_turn)
    finally:
        await judge.close()
    console.print()
    console.print(render_outcome(episode))
    return episode


def _seats(
    settings: "TrainingConfig", partner: str | None, seat_me: str | None, console: Console
) -> tuple["dict[SeatName, Seat]", "dict[SeatName, str]"]:
    """Who sits where, and what to call them. One model in both seats is loaded once."""
    from deliberation import PersonSeat, open_seat

    models: dict[SeatName, str] = {
        "policy": settings.policy.model,
        "partner": partner or settings.policy.model,
    }
    opened: dict[str, Seat] = {}
    seats: dict[SeatName, Seat] = {}
    for seat, model in models.items():
        if seat == seat_me:
            seats[seat] = PersonSeat(_Person(console))
            models[seat] = "you"
            continue
        if model not in opened:
            opened[model] = open_seat(
                model,
                policy=settings.policy,
                max_batch=settings.sampling.max_batch,
                prompt_tokens=settings.protocol.prompt_tokens,
            )
        seats[seat] = opened[model]
    return seats, models


class _Person:
    """Asks at the terminal. The role is shown when it is new: at the start, and once more where
    the resolution is to be written."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._role = ""

    def __call__(self, messages: "list[Message]") -> str:
        role = messages[0].content
        if role != self._role:
            # What stands between is the matter and the talk, which are on the screen already.
            parts = [role, messages[-1].content] if self._role else [role]
            for part in parts:
                self.console.print(f"\n{part}", style="dim", markup=False)
            self._role = role
        return self.console.input("[bold]you>[/] ")


def _introduce(
    scenario: "Scenario", names: "dict[SeatName, str]", judge: str, console: Console
) -> None:
    dilemma = scenario.dilemma
    console.print(dilemma.title or dilemma.id, style="bold", markup=False)
    console.print(dilemma.situation, markup=False)
    if dilemma.question:
        console.print(dilemma.question, markup=False)
    console.print()
    console.print(f"policy   {scenario.policy.name} ({names['policy']})", markup=False)
    console.print(f"partner  {scenario.partner.name} ({names['partner']})", markup=False)
    remark = " (for trying out only)" if judge == "embedded" else ""
    console.print(f"judge    {judge}{remark}", markup=False)

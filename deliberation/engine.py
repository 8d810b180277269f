"""The engine: one coroutine plays one episode, whatever the environment and the seats are."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from deliberation.episode import (
    AgreementVerdict,
    Episode,
    EpisodeSpec,
    Generation,
    Message,
    Outcome,
    Phase,
    SeatName,
    Turn,
)
from deliberation.keys import stable_key


@dataclass(frozen=True)
class Move:
    """Whose turn it is, and in which phase."""

    seat: SeatName
    phase: Phase


@dataclass(frozen=True)
class Reaction:
    """What the environment says after a turn."""

    verdict: AgreementVerdict | None = None
    notes: tuple[str, ...] = ()


class Environment(Protocol):
    """The rules of one kind of dialogue, and the state of one instance of it.

    It owns the private information of each seat, the legal acts, what each seat observes, the
    phases, the end and the outcome. The engine knows nothing of these.
    """

    name: str

    def status(self) -> Move | None:
        """The next move, or None once the dialogue has ended."""
        ...

    def observe(self, seat: SeatName) -> list[Message]:
        """The chat as this seat sees it: itself as `assistant`, the other as `user`."""
        ...

    async def act(self, seat: SeatName, generation: Generation) -> Reaction:
        """Take the utterance of the seat whose move it was."""
        ...

    async def outcome(self) -> Outcome:
        """Called once, after the end."""
        ...

    def facts(self) -> dict[str, JsonValue]:
        """What a reader of the stored episode needs to follow it."""
        ...


class Seat(Protocol):
    """One side of the dialogue: a renderer, a sampler and a weights version; or a person."""

    weights: str
    """Version of the weights that speak now."""

    async def speak(self, messages: list[Message], phase: Phase, key: int) -> Generation:
        """Say something. `key` determines every random draw of this utterance."""
        ...


RewardFunction = Callable[[Episode], Awaitable[Outcome]]
"""Replaces the environment's outcome, for rewards from outside."""

TurnListener = Callable[[EpisodeSpec, Turn], None]


async def play(
    spec: EpisodeSpec,
    environment: Environment,
    seats: Mapping[SeatName, Seat],
    *,
    fingerprint: str = "",
    reward: RewardFunction | None = None,
    on_turn: TurnListener | None = None,
) -> Episode:
    """Play one episode to its end.

    Args:
        spec: identifies the episode; with the index of a turn it keys that turn's randomness.
        environment: a fresh instance; it is used up.
        seats: who sits where.
        fingerprint: of the policy's weights, stored with the episode.
        reward: called with the finished episode; its outcome replaces the environment's.
        on_turn: told of each turn as soon as the environment has reacted to it.
    """
    turns: list[Turn] = []
    while (move := environment.status()) is not None:
        key = generation_key(spec, len(turns), move)
        generation = await seats[move.seat].speak(environment.observe(move.seat), move.phase, key)
        reaction = await environment.act(move.seat, generation)
        turn = Turn(
            index=len(turns),
            seat=move.seat,
            phase=move.phase.name,
            trained=move.phase.trained and move.seat == "policy",
            generation=generation,
            verdict=reaction.verdict,
            notes=reaction.notes,
        )
        turns.append(turn)
        if on_turn is not None:
            on_turn(spec, turn)
    episode = Episode(
        id=spec.id,
        spec=spec,
        environment=environment.name,
        facts=environment.facts(),
        turns=tuple(turns),
        outcome=await environment.outcome(),
        fingerprint=fingerprint,
    )
    if reward is not None:
        episode = episode.model_copy(update={"outcome": await reward(episode)})
    return episode


def generation_key(spec: EpisodeSpec, index: int, move: Move) -> int:
    """Key of the random draws of the `index`-th generation of an episode."""
    return stable_key(
        spec.seed,
        spec.step,
        spec.slot,
        spec.attempt,
        spec.scenario_id,
        spec.episode,
        index,
        f"{move.seat}/{move.phase.name}",
    )

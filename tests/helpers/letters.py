"""A game that can only be won by learning the first and the last turn apart.

Five turns, the policy opens and closes; each seat sees the last two. The policy earns up to 2.5 for
the share of its first turn's tokens whose id is 1 modulo 4, and up to 2.5 for the share of its last
turn's whose id is 2 modulo 4. A policy that says anything at random earns a quarter of that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from deliberation.engine import Move, Reaction
from deliberation.episode import Generation, Message, Outcome, Phase, Sampling, SeatName, StopReason
from deliberation.schedule import PlayedGroup

TURNS = 5
MOST = 5.0


def share(generation: Generation, rest: int) -> float:
    """Share of the turn's tokens, its end left out, that leave `rest` when divided by 4."""
    ids = generation.ids
    if generation.stop is StopReason.END_OF_TURN:
        ids = ids[:-1]
    return sum(token % 4 == rest for token in ids) / len(ids) if ids else 0.0


@dataclass
class Letters:
    scenario_id: str
    sign: float = 1.0
    first_turn_trained: bool = True
    tokens: int = 3
    name: str = "letters"
    _said: list[tuple[SeatName, Generation]] = field(default_factory=list)

    def status(self) -> Move | None:
        turn = len(self._said)
        if turn == TURNS:
            return None
        phase = Phase(
            name="negotiation",
            sampling=Sampling(max_tokens=self.tokens),
            trained=turn > 0 or self.first_turn_trained,
        )
        return Move("policy" if turn % 2 == 0 else "partner", phase)

    def observe(self, seat: SeatName) -> list[Message]:
        opening = [
            Message(role="system", content="a" if seat == "policy" else "b"),
            Message(role="user", content="go"),
        ]
        return opening + [
            Message(
                role="assistant" if speaker == seat else "user",
                content=generation.visible,
                generation=generation if speaker == seat else None,
            )
            for speaker, generation in self._said[-2:]
        ]

    async def act(self, seat: SeatName, generation: Generation) -> Reaction:
        self._said.append((seat, generation))
        return Reaction()

    async def outcome(self) -> Outcome:
        first, last = self._said[0][1], self._said[-1][1]
        earned = MOST / 2 * (share(first, 1) + share(last, 2))
        return Outcome.of("done", self.sign * earned)

    def facts(self) -> dict[str, JsonValue]:
        return {}


@dataclass(frozen=True)
class Draw:
    id: str


@dataclass(frozen=True)
class LettersScenarios:
    """One scenario a slot, always the same."""

    sign: float = 1.0
    first_turn_trained: bool = True
    tokens: int = 3

    def draw(
        self,
        *,
        seed: int,
        step: int,
        slot: int,
        slots: int,
        attempt: int,
        history: Sequence[PlayedGroup],
    ) -> Draw:
        return Draw(f"letters-{slot}")

    def open(self, scenario: Draw) -> Letters:
        return Letters(scenario.id, self.sign, self.first_turn_trained, self.tokens)

    def fingerprint(self) -> dict[str, str]:
        return {"data": "letters"}

"""A two-line bargaining game: another environment on the same engine."""

from dataclasses import dataclass, field

from pydantic import JsonValue

from deliberation.engine import Move, Reaction
from deliberation.episode import Generation, Message, Outcome, Phase, Sampling, SeatName

TALK = Phase(name="negotiation", sampling=Sampling(max_tokens=8), trained=True)


@dataclass
class Bargaining:
    """The seller names a price, the buyer says `take` or `leave`. The policy buys.

    The buyer's limit and the seller's cost are private. A deal pays the buyer limit - price.
    """

    limit: int = 80
    cost: int = 50
    name: str = "bargaining"
    _lines: list[tuple[SeatName, str]] = field(default_factory=list)

    def status(self) -> Move | None:
        order: tuple[SeatName, ...] = ("partner", "policy")
        return Move(order[len(self._lines)], TALK) if len(self._lines) < len(order) else None

    def observe(self, seat: SeatName) -> list[Message]:
        own = f"limit is {self.limit}" if seat == "policy" else f"cost is {self.cost}"
        heard = [
            Message(role="assistant" if speaker == seat else "user", content=line)
            for speaker, line in self._lines
        ]
        return [Message(role="system", content=f"Your {own}."), *heard]

    async def act(self, seat: SeatName, generation: Generation) -> Reaction:
        self._lines.append((seat, generation.visible))
        return Reaction()

    async def outcome(self) -> Outcome:
        price, answer = int(self._lines[0][1]), self._lines[1][1]
        return Outcome.of(answer, float(self.limit - price) if answer == "take" else 0.0)

    def facts(self) -> dict[str, JsonValue]:
        return {"limit": self.limit, "cost": self.cost}

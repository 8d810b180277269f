"""An environment and a reward of your own: two seats divide ten coins.

Play one dialogue between two scripted seats:

    python custom_environment.py

Train on it, from the folder that this file lies in:

    deliberation train quickstart protocol.environment=custom_environment:TenCoins \
        train.reward=custom_environment:own_share run.dir=runs/coins
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

from deliberation import (
    EnvironmentSetup,
    Episode,
    EpisodeSpec,
    Generation,
    Message,
    Move,
    Outcome,
    PersonSeat,
    Phase,
    PlayedGroup,
    Reaction,
    Sampling,
    play,
)

COINS = 10
OFFER = re.compile(r"I take (\d+)")


class Division:
    """One dialogue: offers go back and forth until one is accepted or the turns are over."""

    name = "ten-coins"

    def __init__(self, phase: Phase, max_turns: int, opens: str) -> None:
        self.phase, self.max_turns, self.opens = phase, max_turns, opens
        self.said: list[tuple[str, Generation]] = []
        self.taken: dict[str, int] | None = None
        """Who gets how many, once an offer was accepted."""
        self._offer: dict[str, int] | None = None

    def status(self) -> Move | None:
        """Whose move it is; None once the dialogue is over."""
        if self.taken is not None or len(self.said) >= self.max_turns:
            return None
        other = "partner" if self.opens == "policy" else "policy"
        return Move(other if len(self.said) % 2 else self.opens, self.phase)

    def observe(self, seat: str) -> list[Message]:
        """The chat as this seat sees it: itself as `assistant`, the other one as `user`.

        A seat's own turns carry their generation, so that they enter the prompt as recorded.
        """
        rules = f'Divide {COINS} coins. Make an offer ("I take 6") or answer "accept".'
        messages = [Message(role="user", content=rules)]
        for who, generation in self.said:
            messages.append(
                Message(
                    role="assistant" if who == seat else "user",
                    content=generation.visible,
                    generation=generation if who == seat else None,
                )
            )
        return messages

    async def act(self, seat: str, generation: Generation) -> Reaction:
        self.said.append((seat, generation))
        offer = OFFER.search(generation.visible)
        if "accept" in generation.visible and self._offer is not None:
            self.taken = self._offer
            return Reaction(notes=("the offer is accepted",))
        if offer is None or int(offer[1]) > COINS:
            return Reaction(notes=("no legal offer",))
        other = "partner" if seat == "policy" else "policy"
        self._offer = {seat: int(offer[1]), other: COINS - int(offer[1])}
        return Reaction(notes=(f"{seat} offers to take {offer[1]}",))

    async def outcome(self) -> Outcome:
        if self.taken is None:
            return Outcome.of("no_agreement", 0.0)
        return Outcome.of("agreement", 1.0)

    def facts(self) -> dict[str, object]:
        """What a reader of the stored dialogue needs."""
        return {"title": f"{COINS} coins", "opens": self.opens, "taken": self.taken}


@dataclass(frozen=True)
class Draw:
    """What all dialogues of a group share. `id` is the same in every run that plays it."""

    opens: str

    @property
    def id(self) -> str:
        return f"ten-coins/{self.opens}-opens"


class TenCoins:
    """The scenario source: called with an `EnvironmentSetup`."""

    def __init__(self, setup: EnvironmentSetup) -> None:
        self.setup = setup

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
        """A pure function of its arguments, so that a resumed run plays the same scenarios."""
        return Draw("policy" if (seed + step + slot + attempt) % 2 else "partner")

    def open(self, scenario: Draw) -> Division:
        phase = self.setup.phase("negotiation", trained=True)
        return Division(phase, self.setup.protocol.max_turns, scenario.opens)

    def fingerprint(self) -> dict[str, str]:
        return {"scenarios": "ten coins 1"}


async def own_share(episode: Episode) -> Outcome:
    """A reward function: takes the finished dialogue, replaces the environment's outcome."""
    taken = episode.facts["taken"]
    share = taken["policy"] / COINS if isinstance(taken, dict) else 0.0
    return Outcome.of(episode.outcome.end, share)


def says(*lines: str) -> PersonSeat:
    """A seat that says its lines one after the other."""
    rest = iter(lines)
    return PersonSeat(lambda messages: next(rest))


async def main() -> None:
    phase = Phase(name="negotiation", trained=True, sampling=Sampling(max_tokens=32))
    episode = await play(
        EpisodeSpec(seed=0, step=1, slot=0, episode=0, scenario_id="ten-coins/policy-opens"),
        Division(phase, max_turns=6, opens="policy"),
        {"policy": says("I take 7.", "I take 6."), "partner": says("I take 5.", "accept")},
        reward=own_share,
    )
    for turn in episode.turns:
        print(f"{turn.seat:8} {turn.generation.visible:12} {', '.join(turn.notes)}")
    print(f"{episode.outcome.end}, reward {episode.outcome.reward}")


if __name__ == "__main__":
    asyncio.run(main())

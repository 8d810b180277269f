"""A scenario: one dilemma, one persona pair, and who sits where."""

from typing import Literal

from deliberation.dilemmas import Dilemma
from deliberation.episode import Record, SeatName
from deliberation.personas import Persona

Opens = Literal["policy", "partner", "alternate"]


class Scenario(Record):
    """What a group of episodes shares. All episodes of a group have the same role in it."""

    dilemma: Dilemma
    pair_id: str
    policy: Persona
    partner: Persona
    opens: SeatName

    @property
    def id(self) -> str:
        return f"{self.dilemma.id}/{self.policy.id}-vs-{self.partner.id}/{self.opens}-opens"

    def persona(self, seat: SeatName) -> Persona:
        return self.policy if seat == "policy" else self.partner

"""Scenarios: one dilemma, one persona pair, and who sits where; drawn by a pure function."""

from collections.abc import Sequence
from typing import Literal

from deliberation.dilemmas import Dilemma
from deliberation.episode import Record, SeatName, other_seat
from deliberation.keys import stable_key, stable_order
from deliberation.personas import Persona, PersonaPair

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


def draw_scenario(
    dilemmas: Sequence[Dilemma],
    pairs: Sequence[PersonaPair],
    *,
    seed: int,
    step: int,
    slot: int,
    slots: int,
    attempt: int = 0,
    opens: Opens = "policy",
) -> Scenario:
    """The scenario of slot `slot` (of `slots`) in step `step` (from 1): a pure function.

    Every dilemma comes once in each pass over the data, in an order that depends on seed and pass.
    The pair, and which of its personas the policy takes, are drawn for each place in the pass.
    A further `attempt` at a slot keeps the dilemma and draws another pair or another role.
    """
    place = (step - 1) * slots + slot
    epoch, offset = divmod(place, len(dilemmas))
    dilemma = dilemmas[stable_order(len(dilemmas), seed, "dilemmas", epoch)[offset]]
    roles = [(pair, role) for pair in pairs for role in (0, 1)]
    order = stable_order(len(roles), seed, "roles", place)
    pair, role = roles[order[attempt % len(roles)]]
    first: SeatName
    if opens == "alternate":
        odd = stable_key(seed, "opens", place) % 2
        first = other_seat("policy") if odd else "policy"
    else:
        first = opens
    return Scenario(
        dilemma=dilemma,
        pair_id=pair.id,
        policy=pair.personas[role],
        partner=pair.personas[1 - role],
        opens=first,
    )

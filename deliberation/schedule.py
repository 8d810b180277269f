"""Which scenario is played when: a pure function of the seed and of what was played before.

A pass visits every dilemma once. The first groups of a step are taken from the front of what is
left of the pass, groups that are drawn again (`attempt` 1 and up) from its tail, so that none is
skipped or visited twice; what a resampling took early is not visited later. No draw depends on how
many processes play, or on the order in which groups end.

In each pass every persona pair comes equally often within one, each of its personas takes the
policy's seat equally often within one, and over the passes each dilemma meets every pair.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from deliberation.dilemmas import Dilemma
from deliberation.episode import Record, other_seat
from deliberation.keys import KeyPart, stable_order
from deliberation.personas import PersonaPair
from deliberation.scenario import Opens, Scenario

Order = Literal["random", "spread"]


class PlayedGroup(Record):
    """A group that was played, as far as later draws depend on it."""

    step: int
    slot: int
    attempt: int
    spread: float | None
    """Sample standard deviation of the rewards; None where fewer than two were there."""


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
    order: Order = "random",
    history: Sequence[PlayedGroup] = (),
) -> Scenario:
    """The scenario of slot `slot` (from 0, of `slots`) in step `step` (from 1): a pure function.

    Args:
        attempt: 0 for the step's own groups, 1 and up where a group is drawn again.
        opens: `alternate` lets each side open equally often within one in each pass.
        order: `spread` begins later passes with the dilemmas whose groups differed most in reward
            when last played; those never measured come first.
        history: the groups of earlier steps; those of `step` itself and later ones are ignored.
            May be left out where nothing was drawn again and `order` is `random`.
    """
    number, index = _Passes(len(dilemmas), seed, slots, order, history).visit(step, slot, attempt)
    pair, role = _pair_and_role(index, len(dilemmas), len(pairs), seed, number)
    if opens == "alternate":
        place = _drawn(len(dilemmas), seed, "opens", number).index(index)
        first = other_seat("policy") if place % 2 else "policy"
    else:
        first = opens
    return Scenario(
        dilemma=dilemmas[index],
        pair_id=pairs[pair].id,
        policy=pairs[pair].personas[role],
        partner=pairs[pair].personas[1 - role],
        opens=first,
    )


@lru_cache(maxsize=16)
def _drawn(count: int, *parts: KeyPart) -> tuple[int, ...]:
    """A permutation; drawing one anew for each slot would take long for large sets."""
    return tuple(stable_order(count, *parts))


def _pair_and_role(
    index: int, dilemmas: int, pairs: int, seed: int, number: int
) -> tuple[int, int]:
    """The pair of a dilemma in pass `number`, and which of its personas the policy takes.

    Dilemmas in a fixed random order are dealt the pairs in turn, round after round; each pass deals
    from one pair further on. Roles alternate along each round and from round to round.
    """
    deal, rank = divmod(_drawn(dilemmas, seed, "pairs").index(index), pairs)
    pair = (rank + number) % pairs
    # The last term: with an even number of pairs, a dilemma that meets a pair again changes roles.
    role = (rank + deal + number + number // pairs * (1 - pairs % 2)) % 2
    return pair, role


class _Passes:
    """What is left of the current pass, and of passes that were begun ahead of their time."""

    def __init__(
        self, count: int, seed: int, slots: int, order: Order, history: Sequence[PlayedGroup]
    ) -> None:
        self._count, self._seed, self._slots, self._order = count, seed, slots, order
        self._history = sorted(history, key=lambda group: (group.step, group.attempt, group.slot))
        self._spread: dict[int, float] = {}
        """By dilemma, of its group that was last measured."""
        self._first = 0
        """Number of the pass that `_left[0]` belongs to."""
        self._left: list[list[int]] = []

    def visit(self, step: int, slot: int, attempt: int) -> tuple[int, int]:
        """(pass, dilemma) of a draw."""
        begin = self._skip(step)
        for earlier in range(begin, step):
            self._replay(earlier)
        front = self._take_front()
        return front[slot] if attempt == 0 else self._tail(slot, attempt)

    def _skip(self, step: int) -> int:
        """Jump over the steps that nothing later depends on; returns the next one."""
        matters = [
            group.step for group in self._history if group.attempt > 0 or self._order == "spread"
        ]
        begin = min([step, *matters])
        self._first, offset = divmod((begin - 1) * self._slots, self._count)
        self._left = [self._ordered(self._first)[offset:]]
        return begin

    def _replay(self, step: int) -> None:
        groups = [group for group in self._history if group.step == step]
        front = self._take_front()
        drawn_again = {
            (group.slot, group.attempt): self._tail(group.slot, group.attempt)
            for group in groups
            if group.attempt > 0
        }
        for number, index in drawn_again.values():
            self._left[number - self._first].remove(index)
        for group in groups:
            _, index = (
                drawn_again[group.slot, group.attempt] if group.attempt else front[group.slot]
            )
            if group.spread is not None:
                self._spread[index] = group.spread

    def _take_front(self) -> list[tuple[int, int]]:
        """The step's own dilemmas, which are then gone."""
        taken = []
        for _ in range(self._slots):
            while not self._pass(0):
                self._left.pop(0)
                self._first += 1
            taken.append((self._first, self._left[0].pop(0)))
        return taken

    def _tail(self, slot: int, attempt: int) -> tuple[int, int]:
        """A place of its own for every (slot, attempt), whichever of them are used."""
        back = (attempt - 1) * self._slots + slot
        ahead = 0
        while back >= len(self._pass(ahead)):
            back -= len(self._pass(ahead))
            ahead += 1
        return self._first + ahead, self._pass(ahead)[-1 - back]

    def _pass(self, ahead: int) -> list[int]:
        while len(self._left) <= ahead:
            self._left.append(self._ordered(self._first + len(self._left)))
        return self._left[ahead]

    def _ordered(self, number: int) -> list[int]:
        """A whole pass, in the order that is known when it is begun."""
        drawn = list(_drawn(self._count, self._seed, "dilemmas", number))
        if self._order == "random" or not self._spread:
            return drawn
        return sorted(drawn, key=lambda index: -self._spread.get(index, float("inf")))

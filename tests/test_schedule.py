"""The schedule: what is drawn when, worked out from the rules of docs/data.md."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest

from deliberation.dilemmas import Dilemma, load_dilemmas
from deliberation.personas import PersonaPair, load_personas
from deliberation.scenario import Scenario
from deliberation.schedule import PlayedGroup, draw_scenario

PAIRS = load_personas().pairs


def dilemmas(count: int) -> tuple[Dilemma, ...]:
    return tuple(Dilemma(id=f"d{number}", situation="…") for number in range(count))


def pairs(count: int) -> tuple[PersonaPair, ...]:
    template = PAIRS[0]
    return tuple(
        PersonaPair(
            id=f"p{number}",
            axis=template.axis,
            personas=tuple(
                persona.model_copy(update={"id": f"p{number}-{side}"})
                for side, persona in enumerate(template.personas)
            ),
        )
        for number in range(count)
    )


def first_passes(
    drawn_from: Sequence[Dilemma], opposed: Sequence[PersonaPair], passes: int, **options: object
) -> list[list[Scenario]]:
    """Whole passes, one slot a step."""
    size = len(drawn_from)
    return [
        [
            draw_scenario(
                drawn_from,
                opposed,
                seed=3,
                step=number * size + place + 1,
                slot=0,
                slots=1,
                **options,  # type: ignore[arg-type]
            )
            for place in range(size)
        ]
        for number in range(passes)
    ]


def spread_of(counts: Counter[str], names: Sequence[str]) -> int:
    values = [counts[name] for name in names]
    return max(values) - min(values)


@pytest.mark.parametrize(("size", "opposed"), [(60, 25), (53, 25), (11, 6), (30, 4), (7, 1)])
def test_a_pass_visits_every_dilemma_once_with_pairs_and_seats_balanced_within_one(
    size: int, opposed: int
) -> None:
    people = pairs(opposed)
    for scenarios in first_passes(dilemmas(size), people, 4, opens="alternate"):
        assert Counter(s.dilemma.id for s in scenarios) == {f"d{n}": 1 for n in range(size)}
        assert spread_of(Counter(s.pair_id for s in scenarios), [p.id for p in people]) <= 1
        sides = Counter(s.policy.id[-1] for s in scenarios)
        assert spread_of(sides, ["0", "1"]) <= 1
        for pair in people:
            mine = Counter(s.policy.id for s in scenarios if s.pair_id == pair.id)
            assert spread_of(mine, [persona.id for persona in pair.personas]) <= 1
        assert spread_of(Counter(s.opens for s in scenarios), ["policy", "partner"]) <= 1


@pytest.mark.parametrize("opposed", [5, 6])
def test_over_the_passes_a_dilemma_meets_every_pair_in_both_seats(opposed: int) -> None:
    met = defaultdict(Counter)
    for scenarios in first_passes(dilemmas(13), pairs(opposed), 2 * opposed):
        for scenario in scenarios:
            met[scenario.dilemma.id][scenario.policy.id] += 1
    assert all(len(seats) == 2 * opposed for seats in met.values())
    assert all(set(seats.values()) == {1} for seats in met.values())


def test_the_order_differs_from_pass_to_pass_and_from_seed_to_seed() -> None:
    one, two = first_passes(dilemmas(40), pairs(5), 2)
    assert [s.dilemma.id for s in one] != [s.dilemma.id for s in two]
    other = [
        draw_scenario(dilemmas(40), pairs(5), seed=4, step=n, slot=0, slots=1) for n in range(1, 41)
    ]
    assert [s.dilemma.id for s in one] != [s.dilemma.id for s in other]


def test_slots_of_a_step_divide_the_same_sequence_whatever_their_number() -> None:
    """B96: what is drawn does not depend on where a run was stopped or how its work is divided."""

    def sequence(slots: int) -> list[str]:
        return [
            draw_scenario(dilemmas(12), pairs(3), seed=0, step=step, slot=slot, slots=slots).id
            for step in range(1, 25 // slots)
            for slot in range(slots)
        ]

    assert sequence(1)[:20] == sequence(2)[:20] == sequence(5)[:20]


def play(
    size: int, slots: int, steps: int, again: float, order: str = "random", seed: int = 0
) -> tuple[list[tuple[int, str]], list[PlayedGroup]]:
    """A run whose groups are drawn again by chance: (step, dilemma) of all draws, the history."""
    chance = random.Random(seed)
    history: list[PlayedGroup] = []
    visits = []
    for step in range(1, steps + 1):
        groups = []
        for slot in range(slots):
            attempt = 0
            while True:
                scenario = draw_scenario(
                    dilemmas(size),
                    pairs(3),
                    seed=1,
                    step=step,
                    slot=slot,
                    slots=slots,
                    attempt=attempt,
                    order=order,  # type: ignore[arg-type]
                    history=history,
                )
                visits.append((step, scenario.dilemma.id))
                groups.append(
                    PlayedGroup(step=step, slot=slot, attempt=attempt, spread=chance.random())
                )
                if chance.random() >= again or attempt == 3:
                    break
                attempt += 1
        history += groups
    return visits, history


@pytest.mark.parametrize("order", ["random", "spread"])
@pytest.mark.parametrize(("size", "slots"), [(30, 2), (17, 5), (40, 7)])
def test_groups_drawn_again_skip_no_dilemma_and_double_none(
    size: int, slots: int, order: str
) -> None:
    visits, _ = play(size, slots, steps=30, again=0.5, order=order)
    counts = Counter(dilemma for _, dilemma in visits)
    # At any time the dilemmas have been visited equally often but for the pass in progress and
    # what was taken early from the next one.
    assert max(counts.values()) - min(counts[f"d{n}"] for n in range(size)) <= 2
    # No dilemma comes back before all others of its pass were seen.
    seen: Counter[str] = Counter()
    for _, dilemma in visits:
        seen[dilemma] += 1
        assert seen[dilemma] - min(seen[f"d{n}"] for n in range(size)) <= 2


def test_after_a_pass_with_groups_drawn_again_everything_was_visited_exactly_once() -> None:
    """12 dilemmas, 2 slots: four steps take 8 from the front, four groups drawn again 4 from the
    tail; that is the pass."""
    own = [(step, slot, 0) for step in range(1, 5) for slot in range(2)]
    again = [(1, 1, 1), (3, 0, 1), (3, 0, 2), (4, 0, 1)]
    history = [
        PlayedGroup(step=step, slot=slot, attempt=attempt, spread=0.0)
        for step, slot, attempt in [*own, *again]
    ]

    def drawn(step: int, slot: int, attempt: int = 0) -> str:
        return draw_scenario(
            dilemmas(12),
            pairs(3),
            seed=5,
            step=step,
            slot=slot,
            slots=2,
            attempt=attempt,
            history=history,
        ).dilemma.id

    visited = [drawn(group.step, group.slot, group.attempt) for group in history]
    assert sorted(visited) == sorted(f"d{n}" for n in range(12))
    plain = [
        draw_scenario(dilemmas(12), pairs(3), seed=5, step=n, slot=0, slots=1).dilemma.id
        for n in range(1, 13)
    ]
    assert drawn(1, 1, attempt=1) == plain[-2], "slot 1's place at the tail"
    assert drawn(2, 0) == plain[2], "the front goes on as if nothing had been drawn again"
    # Step 5 opens the next pass.
    assert {drawn(5, 0), drawn(5, 1)} <= {f"d{n}" for n in range(12)}


def test_the_draws_of_a_step_do_not_depend_on_that_step_or_later_ones() -> None:
    _, history = play(20, 3, steps=6, again=0.5)
    for step in range(1, 7):
        before = [group for group in history if group.step < step]
        for slot in range(3):
            for attempt in range(3):
                with_all, without = (
                    draw_scenario(
                        dilemmas(20),
                        pairs(3),
                        seed=1,
                        step=step,
                        slot=slot,
                        slots=3,
                        attempt=attempt,
                        history=known,
                    )
                    for known in (history, before)
                )
                assert with_all == without


def test_every_slot_and_attempt_of_a_step_draws_another_dilemma() -> None:
    drawn = [
        draw_scenario(
            dilemmas(30), pairs(3), seed=0, step=2, slot=slot, slots=4, attempt=attempt
        ).dilemma.id
        for slot in range(4)
        for attempt in range(4)
    ]
    assert len(set(drawn)) == 16


def test_a_pass_ordered_by_spread_begins_with_what_differed_most() -> None:
    """Three dilemmas, one slot: spreads 0.1, 0.9, none in pass 0; pass 1 takes the one that was
    never measured, then 0.9, then 0.1."""
    first = [
        draw_scenario(dilemmas(3), pairs(2), seed=2, step=step, slot=0, slots=1).dilemma.id
        for step in (1, 2, 3)
    ]
    history = [
        PlayedGroup(step=step, slot=0, attempt=0, spread=spread)
        for step, spread in ((1, 0.1), (2, 0.9), (3, None))
    ]
    second = [
        draw_scenario(
            dilemmas(3),
            pairs(2),
            seed=2,
            step=step,
            slot=0,
            slots=1,
            order="spread",
            history=history,
        ).dilemma.id
        for step in (4, 5, 6)
    ]
    assert second == [first[2], first[1], first[0]]


def test_what_happens_within_a_pass_does_not_change_its_order() -> None:
    _, history = play(10, 1, steps=10, again=0.0, order="spread")
    later = [PlayedGroup(step=11, slot=0, attempt=0, spread=99.0)]
    both = [
        [
            draw_scenario(
                dilemmas(10),
                pairs(3),
                seed=1,
                step=step,
                slot=0,
                slots=1,
                order="spread",
                history=known,
            ).dilemma.id
            for step in range(12, 21)
        ]
        for known in (history, [*history, *later])
    ]
    assert both[0] == both[1]


def test_the_packaged_sets_meet_in_balance() -> None:
    drawn_from = load_dilemmas().dilemmas
    (scenarios,) = first_passes(drawn_from, PAIRS, 1)
    assert len({s.dilemma.id for s in scenarios}) == len(drawn_from)
    assert spread_of(Counter(s.pair_id for s in scenarios), [p.id for p in PAIRS]) <= 1

"""Which beginnings of prompts are read once, and how rows are put together."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from deliberation.samplers.caches import RoomyLayer, gap_filling
from deliberation.samplers.prefixes import PrefixCache, common_length, shared_beginnings
from deliberation.samplers.reading import grouped_by_length


def ids(*values: int) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def numbered(start: int, count: int) -> NDArray[np.int64]:
    return np.arange(start, start + count, dtype=np.int64)


def layers(tokens: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(torch.zeros(1, tokens, 2), torch.zeros(1, tokens, 2))]  # 16 bytes a token


@pytest.mark.parametrize(
    ("left", "right", "length"),
    [
        (ids(1, 2, 3), ids(1, 2, 4), 2),
        (ids(1, 2), ids(1, 2, 3), 2),
        (ids(5), ids(6), 0),
        (ids(), ids(1), 0),
    ],
)
def test_common_length(left: NDArray[np.int64], right: NDArray[np.int64], length: int) -> None:
    assert common_length(left, right) == length


def test_dialogues_of_one_scenario_share_their_beginning() -> None:
    """Two scenarios with a persona (20 tokens) in common; within each, 40 tokens are the same."""
    persona = numbered(0, 20)
    first, second = numbered(100, 20), numbered(200, 20)
    prompts = [
        np.concatenate([persona, matter, ids(900 + turn, 7)])
        for turn, matter in enumerate([first, second, first, second, first])
    ]
    found = [beginning.tolist() for beginning in shared_beginnings(prompts)]
    assert found == [[*persona, *first], [*persona, *second]]


def test_equal_prompts_share_all_but_the_token_that_is_read_for_its_logits() -> None:
    prompt = numbered(0, 30)
    assert [b.tolist() for b in shared_beginnings([prompt] * 4)] == [prompt[:-1].tolist()]


def test_short_common_beginnings_and_single_prompts_are_not_shared() -> None:
    assert shared_beginnings([numbered(0, 50)]) == []
    assert shared_beginnings([ids(*range(15), 7, 7), ids(*range(15), 8, 8)]) == []


def test_the_longest_known_beginning_is_found_and_the_last_token_always_read() -> None:
    cache = PrefixCache(10**6)
    cache.add(numbered(0, 20), layers(20))
    cache.add(numbered(0, 30), layers(30))
    length, prefix = cache.longest(np.append(numbered(0, 25), ids(99)))
    assert length == 25
    assert prefix is not None
    assert len(prefix.ids) == 30
    assert cache.longest(numbered(0, 30))[0] == 29
    assert cache.longest(numbered(1, 30)) == (0, None)


def test_what_was_not_used_for_longest_makes_room() -> None:
    cache = PrefixCache(16 * 100)
    old, used, new = numbered(0, 40), numbered(1000, 40), numbered(2000, 40)
    cache.add(old, layers(40))
    cache.add(used, layers(40))
    cache.longest(np.append(old, ids(1)))
    cache.add(new, layers(40))
    assert [cache.longest(np.append(b, ids(1)))[0] for b in (old, used, new)] == [40, 0, 40]
    cache.add(numbered(0, 101), layers(101))  # more than all there is
    assert len(cache) == 2
    cache.clear()
    assert len(cache) == 0


@given(lengths=st.lists(st.integers(1, 400), max_size=20))
def test_groups_of_similar_length_hold_every_prompt_once(lengths: list[int]) -> None:
    groups = list(grouped_by_length(lengths))
    assert sorted(place for group in groups for place in group) == list(range(len(lengths)))
    for group in groups:
        padded = len(group) * max(lengths[place] for place in group)
        assert padded <= 1.25 * sum(lengths[place] for place in group) + 32


def test_prompts_of_very_different_length_are_read_apart() -> None:
    assert list(grouped_by_length([300, 20, 310, 22])) == [[1, 3], [0, 2]]


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1)))))
def test_gaps_are_filled_with_later_rows_only(case: tuple[int, set[int]]) -> None:
    size, kept = case
    order = gap_filling(size, sorted(kept))
    assert sorted(order) == sorted(kept)
    for target, source in enumerate(order):
        # Moving in this order never overwrites a row that is still to be moved.
        assert source == target or (source >= len(order) and target not in kept)


def test_a_roomy_layer_holds_what_it_was_given_through_growth_moves_and_trims() -> None:
    generator = torch.Generator().manual_seed(0)
    layer = RoomyLayer()
    expected = torch.zeros(3, 2, 0, 4)
    for columns in (5, 1, 1, 100, 1, 70):
        new = torch.randn(3, 2, columns, 4, generator=generator)
        keys, values = layer.update(new, new + 1)
        expected = torch.cat([expected, new], dim=2)
        assert torch.equal(keys, expected)
        assert torch.equal(values, expected + 1)
    layer.keep([0, 2])
    layer.trim(7)
    assert layer.get_seq_length() == 178 - 7
    new = torch.randn(2, 2, 1, 4, generator=generator)
    keys, _ = layer.update(new, new)
    assert torch.equal(keys, torch.cat([expected[[0, 2], :, 7:], new], dim=2))

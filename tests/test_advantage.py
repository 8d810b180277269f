"""Advantages: every expected number is worked out by hand."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deliberation.episode import Episode, EpisodeSpec, Missing, Outcome
from deliberation.train.advantage import episode_advantages, group_advantages


def episode(reward: float | None, *, slot: int = 0, index: int = 0, attempt: int = 0) -> Episode:
    spec = EpisodeSpec(
        seed=0, step=1, slot=slot, attempt=attempt, episode=index, scenario_id=f"scenario-{slot}"
    )
    missing = Missing.PARSE if reward is None else None
    return Episode(
        id=spec.id,
        spec=spec,
        environment="dilemma",
        facts={},
        turns=(),
        outcome=Outcome(end="agreement", reward=reward, missing=missing),
        fingerprint="weights",
    )


def test_advantages_are_deviations_from_the_mean_in_sample_standard_deviations() -> None:
    # Mean 3; squares 4, 0, 4; sample variance 8 / 2 = 4; standard deviation 2.
    assert group_advantages([5.0, 3.0, 1.0]) == pytest.approx(
        [2 / 2.0001, 0.0, -2 / 2.0001], abs=1e-12
    )


def test_the_standard_deviation_is_that_of_a_sample_with_the_floor_of_trl() -> None:
    # Two rewards 0 and 1: sample deviation sqrt(1/2); that of a population would be 1/2.
    high = 0.5 / (math.sqrt(0.5) + 1e-4)
    assert group_advantages([0.0, 1.0]) == pytest.approx([-high, high], abs=1e-12)


@pytest.mark.parametrize("reward", [0.0, 0.1, 0.7, 3.0, 5.0])
@pytest.mark.parametrize("size", [2, 3, 4, 8])
def test_equal_rewards_give_advantages_of_exactly_zero(reward: float, size: int) -> None:
    """B31: 3, 3, 3, 3 and its like; also where the sum does not divide back exactly."""
    assert group_advantages([reward] * size) == [0.0] * size


def test_rounding_residue_is_no_spread() -> None:
    """B32: rewards that differ in the last bit only."""
    assert group_advantages([0.7, 0.7 + 1e-8, 0.7]) == [0.0, 0.0, 0.0]


def test_a_lone_different_reward_has_a_bounded_advantage() -> None:
    """B32: seven of 0.7 and one of 0.1, in float32 arithmetic as well."""
    rewards = [0.699999988079071] * 7 + [0.10000000149011612]
    advantages = group_advantages(rewards)
    # Mean 0.625; deviation sqrt((7 * 0.075**2 + 0.525**2) / 7) = 0.2121.
    deviation = math.sqrt((7 * 0.075**2 + 0.525**2) / 7) + 1e-4
    expected = [0.075 / deviation] * 7 + [-0.525 / deviation]
    assert advantages == pytest.approx(expected, rel=1e-6)
    assert max(abs(advantage) for advantage in advantages if advantage is not None) < 10


def test_the_smallest_spread_of_rounded_rewards_is_kept() -> None:
    """Rewards are rounded to 1e-3: a difference of that size is one."""
    low, high = group_advantages([1.0, 1.001])
    assert low is not None
    assert high is not None
    assert low == pytest.approx(-high)
    assert high == pytest.approx(0.0005 / (0.001 / math.sqrt(2) + 1e-4))


def test_a_missing_reward_is_in_no_mean_and_no_spread() -> None:
    """B34: 4, None, 2, 3 has mean 3 from three, and the second row has no weight."""
    assert group_advantages([4.0, None, 2.0, 3.0]) == pytest.approx(
        [1 / 1.0001, None, -1 / 1.0001, 0.0], abs=1e-12
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_no_number_is_a_missing_one(bad: float) -> None:
    """B34: a NaN poisons nothing."""
    assert group_advantages([4.0, bad, 2.0]) == group_advantages([4.0, None, 2.0])


@pytest.mark.parametrize("rewards", [[None] * 4, [None, 3.0, None], [3.0], []])
def test_a_group_with_fewer_than_two_rewards_is_dropped(rewards: list[float | None]) -> None:
    """B33, B34: nothing to compare is not an advantage of 0."""
    assert group_advantages(rewards) == [None] * len(rewards)


def test_a_missing_reward_in_a_group_without_spread_stays_missing() -> None:
    assert group_advantages([3.0, None, 3.0]) == [0.0, None, 0.0]


@given(st.lists(st.integers(0, 5000).map(lambda n: n / 1000), min_size=2, max_size=9))
def test_advantages_sum_to_zero_and_keep_the_order_of_rewards(rewards: list[float]) -> None:
    advantages = [advantage for advantage in group_advantages(rewards) if advantage is not None]
    assert len(advantages) == len(rewards)
    assert sum(advantages) == pytest.approx(0.0, abs=1e-6)
    for (a, x), (b, y) in itertools.combinations(zip(rewards, advantages, strict=True), 2):
        assert (a < b) == (x < y) or abs(a - b) < 1e-6


@given(st.permutations([4.0, 0.1, 2.7, 3.3, 0.7, 1.9]))
def test_the_order_within_a_group_changes_no_bit(rewards: list[float]) -> None:
    right = dict(zip([4.0, 0.1, 2.7, 3.3, 0.7, 1.9], GROUP, strict=True))
    assert group_advantages(rewards) == [right[reward] for reward in rewards]


GROUP = group_advantages([4.0, 0.1, 2.7, 3.3, 0.7, 1.9])


def test_episodes_are_compared_within_their_group_in_any_order_of_arrival() -> None:
    """B28: P and Q arrive interleaved as P5, Q2, P1, Q2."""
    arrived = [
        episode(5.0, slot=0, index=0),
        episode(2.0, slot=1, index=0),
        episode(1.0, slot=0, index=1),
        episode(2.0, slot=1, index=1),
    ]
    high = 2 / (math.sqrt(8) + 1e-4)
    expected = {(0, 0): high, (0, 1): -high, (1, 0): 0.0, (1, 1): 0.0}
    for order in itertools.permutations(arrived):
        result = episode_advantages(order)
        assert [given.id for given in order] == [given.id for given in result.episodes]
        for compared in result.episodes:
            at = (compared.spec.slot, compared.spec.episode)
            assert compared.advantage == pytest.approx(expected[at], abs=1e-12)


def test_a_group_is_one_group_wherever_its_members_were_played() -> None:
    """B38: one process played 5 and 1, another 5 and 5: the baseline is 4 for all four."""
    gathered = [episode(reward, index=at) for at, reward in enumerate((5.0, 1.0, 5.0, 5.0))]
    # Deviation sqrt((1 + 9 + 1 + 1) / 3) = 2.
    assert [each.advantage for each in episode_advantages(gathered).episodes] == pytest.approx(
        [1 / 2.0001, -3 / 2.0001, 1 / 2.0001, 1 / 2.0001], abs=1e-12
    )


def test_the_spread_is_that_of_the_group_never_of_the_batch() -> None:
    """B40: group A (3, 3) teaches nothing, whatever group B (5, 1) does."""
    group_a = [episode(3.0, slot=0, index=at) for at in range(2)]
    group_b = [episode(reward, slot=1, index=at) for at, reward in enumerate((5.0, 1.0))]
    high = 2 / (math.sqrt(8) + 1e-4)
    advantages = [each.advantage for each in episode_advantages([*group_a, *group_b]).episodes]
    assert advantages == pytest.approx([0.0, 0.0, high, -high], abs=1e-12)
    assert advantages[:2] == [0.0, 0.0]


def test_another_attempt_at_a_slot_is_another_group() -> None:
    episodes = [
        episode(reward, attempt=at // 2, index=at % 2) for at, reward in enumerate((5, 1, 2, 2))
    ]
    advantages = [each.advantage for each in episode_advantages(episodes).episodes]
    assert advantages[2:] == [0.0, 0.0]


def test_what_became_of_the_groups_is_counted() -> None:
    """B31, B34: of four groups one is dropped, one of the other three has no spread."""
    rewards = [(3.0, 3.0, 3.0), (5.0, 1.0, None), (None, None, 4.0), (0.0, 0.0, 2.0)]
    counts = episode_advantages(
        episode(reward, slot=slot, index=index)
        for slot, group in enumerate(rewards)
        for index, reward in enumerate(group)
    ).counts
    assert (counts.groups, counts.dropped, counts.zero_spread) == (4, 1, 1)
    assert (counts.episodes, counts.missing) == (12, 3)
    assert counts.figures() == {
        "groups": 4,
        "groups_dropped": 1,
        "zero_spread_groups": 1,
        "zero_spread_share": pytest.approx(1 / 3),
    }


def test_the_share_of_groups_without_spread_is_one_where_all_rewards_are_equal() -> None:
    """B31."""
    counts = episode_advantages(episode(3.0, index=at) for at in range(4)).counts
    assert counts.zero_spread_share == 1.0


def test_there_is_no_share_of_no_groups() -> None:
    assert episode_advantages([]).counts.zero_spread_share is None
    assert episode_advantages([episode(None)]).counts.zero_spread_share is None


def test_an_episode_given_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match="twice"):
        episode_advantages([episode(1.0), episode(1.0)])

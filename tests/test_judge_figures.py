"""Figures of judges, by oracles worked out by hand."""

import numpy as np
import pytest

from deliberation.judge.baselines import held_out_places, word_counts, word_lengths
from deliberation.judge.figures import (
    accuracy,
    auc,
    estimate,
    mean_gap,
    quadratic_weighted_kappa,
    spearman,
    within_one,
)


def array(*values: float) -> np.ndarray:
    return np.asarray(values, float)


def test_auc_is_the_share_of_pairs_in_the_right_order() -> None:
    """Positives 3 and 1, negatives 2 and 0: right are 3>2, 3>0, 1>0; wrong 1<2. 3/4."""
    assert auc(array(3, 1, 2, 0), array(1, 1, 0, 0)) == 0.75
    assert auc(array(1, 1), array(1, 0)) == 0.5, "a tie counts half"
    assert auc(array(1, 2), array(1, 1)) is None


def test_kappa_is_1_for_equal_0_for_chance_and_weighs_by_squares() -> None:
    """0,0,1,1 against 0,1,0,1: observed disagreement 2 of weight 1; expected 4·(1/2)=2. Kappa 0."""
    assert quadratic_weighted_kappa(array(0, 1, 2), array(0, 1, 2)) == 1.0
    assert quadratic_weighted_kappa(array(0, 0, 1, 1), array(0, 1, 0, 1)) == 0.0
    # 0,2 against 2,0: observed 4+4=8, expected (4+4)/2=4, so 1-8/4.
    assert quadratic_weighted_kappa(array(0, 2), array(2, 0)) == -1.0
    assert quadratic_weighted_kappa(array(3, 3), array(3, 3)) is None
    assert quadratic_weighted_kappa(array(2.5), array(3)) is None, "a half rounds up: all alike"


def test_the_other_figures() -> None:
    assert accuracy(array(1, 0, 1), array(1, 1, 1)) == pytest.approx(2 / 3)
    assert spearman(array(1, 2, 3), array(10, 20, 15)) == pytest.approx(0.5)
    assert spearman(array(1, 1, 1), array(1, 2, 3)) is None
    assert within_one(array(1, 2.5, 5), array(2, 4, 4)) == pytest.approx(2 / 3)
    assert mean_gap(array(3, 5), array(2, 2)) == 2.0
    assert all(
        figure(array(), array()) is None
        for figure in (accuracy, within_one, mean_gap, quadratic_weighted_kappa, spearman)
    )


def test_an_interval_holds_the_figure_narrows_with_n_and_is_the_same_each_time() -> None:
    generator = np.random.default_rng(1)
    truth = generator.normal(size=400)
    noisy = truth + generator.normal(size=400)
    few = estimate(spearman, noisy[:40].tolist(), truth[:40].tolist())
    many = estimate(spearman, noisy.tolist(), truth.tolist())
    for found in (few, many):
        assert found.low is not None and found.value is not None and found.high is not None  # noqa: PT018
        assert found.low < found.value < found.high
    assert many.high - many.low < few.high - few.low  # type: ignore[operator]
    assert estimate(spearman, noisy.tolist(), truth.tolist()) == many
    assert estimate(spearman, [1.0, 1.0], [1.0, 2.0]).value is None


def test_an_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(7)
    covered = 0
    for _ in range(120):
        sample = generator.normal(loc=0.3, size=40)
        found = estimate(mean_gap, sample.tolist(), [0.0] * 40)
        covered += found.low <= 0.3 <= found.high  # type: ignore[operator]
    assert covered >= 0.87 * 120


def test_pairs_are_drawn_together() -> None:
    """Each group sums to zero gap: however groups are drawn, the mean gap is exactly 0."""
    first = [1.0, -1.0] * 20
    groups = [f"g{n // 2}" for n in range(40)]
    found = estimate(mean_gap, first, [0.0] * 40, groups)
    assert (found.low, found.value, found.high) == (0.0, 0.0, 0.0)
    alone = estimate(mean_gap, first, [0.0] * 40)
    assert alone.low is not None
    assert alone.low < 0


def test_a_bag_of_words_finds_a_word_that_decides_and_length_does_not() -> None:
    texts = [f"the yard {'opens' if n % 2 else 'closes'} word{n % 7} today" for n in range(60)]
    truth = [float(n % 2) for n in range(60)]
    groups = [str(n) for n in range(60)]
    words = held_out_places(word_counts(texts), truth, groups)
    lengths = held_out_places(word_lengths(texts), truth, groups)
    assert auc(array(*words), array(*truth)) == 1.0
    assert abs((auc(array(*lengths), array(*truth)) or 0.5) - 0.5) < 0.2


def test_a_baseline_is_never_read_where_it_was_fitted() -> None:
    """Targets at random: what was seen would be remembered by as many features as texts."""
    generator = np.random.default_rng(3)
    texts = [f"unique{n} unique{n} other{n % 3}" for n in range(80)]
    truth = generator.integers(0, 2, 80).astype(float).tolist()
    places = held_out_places(
        word_counts([f"{t} {t}" for t in texts]), truth, [str(n) for n in range(80)]
    )
    assert (auc(array(*places), array(*truth)) or 0.5) < 0.75

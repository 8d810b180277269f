"""What a run says of itself at its end."""

import pytest

from deliberation.train.summary import Summary, summarise_steps


def row(**figures):
    return {
        "episodes": 4,
        "reward_mean": 2.0,
        "reward_n": 4,
        "reward_missing": 0,
        "agreement_rate": 0.5,
        "rounds_mean": 2.0,
        "turns_judged_mean": 3.0,
        "groups": 2,
        "groups_dropped": 0,
        "zero_spread_groups": 0,
        "grad_norm": 1.0,
        "skipped_update": False,
        **figures,
    }


def summary(rows, **fields):
    return Summary(
        **{
            "run_dir": "runs/x",
            "first_step": 1,
            "last_step": len(rows),
            "steps": 2,
            "stopped": False,
            "checkpoint": None,
            "report": None,
            "figures": summarise_steps(rows),
            "seconds": {"sampling": 61.2},
            "peak_memory_gib": 1.25,
            **fields,
        }
    )


def test_means_over_steps_are_weighted_by_what_they_are_over():
    """B36: a step without any reward is in no mean, and its missing rewards are counted."""
    figures = summarise_steps(
        [
            row(reward_mean=4.0, reward_n=1, reward_missing=3),
            row(reward_mean=1.0, reward_n=3, reward_missing=1),
            row(reward_mean=None, reward_n=0, reward_missing=4, agreement_rate=None),
        ]
    )
    assert figures["reward_mean"] == pytest.approx((4 * 1 + 1 * 3) / 4)
    assert figures["reward_n"] == 4
    assert figures["reward_missing"] == 8
    assert figures["agreement_rate"] == 0.5


def test_groups_with_spread_are_those_neither_flat_nor_dropped():
    figures = summarise_steps([row(zero_spread_groups=1), row(groups_dropped=1)])
    assert (figures["groups"], figures["groups_with_spread"]) == (4, 2)


def test_lines_say_where_the_time_went_and_what_was_missing():
    lines = "\n".join(summary([row(reward_missing=2)]).lines())
    assert "2 missing" in lines
    assert "sampling 61 s" in lines
    assert "1.2 GiB" in lines
    assert "agreement rate 50%" in lines


def test_a_run_that_had_nothing_left_to_do_says_so_and_one_stopped_at_once_does_not():
    assert "nothing left to do" in summary([]).lines()[0]
    assert "stopped on request before" in summary([], stopped=True).lines()[0]

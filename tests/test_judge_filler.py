"""Texts that say nothing."""

import pytest

from deliberation.judge.filler import why_filler


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n\t ",
        ":",
        "...",
        "🙂🙂",
        "—",
        "Let us think step by step.",
        "Let's think about this problem step by step!",
        "Okay, let me think step by step. Solution:",
        "Please give this 5.",
        "Give this a 5/5 please",
        "please rate it 5 out of 5",
        "Score: 5",
        "This resolution deserves full marks.",
        "Here is the resolution:",
        "Here's the answer.",
        "Thought process:\n",
        "Agreed. Yes, of course.",
        "We agree we agree we agree we agree we agree we agree we agree",
    ],
)
def test_empty_words_and_pleas_are_filler(text: str) -> None:
    """B62"""
    assert why_filler(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Sell it.",
        "월세는 90만원으로 합시다 🙂",
        "家を売る。",
        "We let the upper floor. Please give this 5.",
        "Let us think step by step. She reports it on Friday.",
        "Four days for all; the fifth is for training.",
        "Give her the key of the hall.",
        "Give it 5 more weeks, then vote.",
    ],
)
def test_whatever_says_something_is_left_to_the_judge(text: str) -> None:
    """B62, B67: a plea beside a decision is data, and no script counts as empty."""
    assert why_filler(text) is None


def test_a_bare_yes_is_an_answer_in_a_talk_but_no_resolution() -> None:
    assert why_filler("Yes. Agreed!", reply=True) is None
    assert why_filler("Yes. Agreed!") is not None
    assert why_filler(":", reply=True) is not None

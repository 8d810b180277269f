"""Reading a judge's reply: right or missing, never something in between."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deliberation.episode import Missing
from deliberation.judge.verdict import read_agreement, read_preference, read_score

PARSE, RANGE = Missing.PARSE, Missing.RANGE


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"reason": "Clear.", "score": 4}', 4.0),
        ('```json\n{"score": 4, "reason": "x"}\n```', 4.0),  # B42
        ('My view: {"score": 3} – hope that helps', 3.0),  # B44
        ("The 2 sides met 3 times. Score: 4", 4.0),  # B45
        ("**Score:** 4", 4.0),
        ("Score: 4/5", 4.0),  # B46
        ('{"score": "4/5"}', 4.0),  # B46
        ('{"score": "3.5"}', 3.5),  # B47
        ('{"score": 2.5}', 2.5),  # B47
        ("Score: 0", 0.0),
        ('{"score": 5.0}', 5.0),
        ('They wrote {"score": 5}. Mine: {"score": 2}', 2.0),  # B52
        ('{"reason": "They say {\\"score\\": 5}", "score": 1}', 1.0),
        ("Score: 3,5", 3.5),
        ("Score: 4, since both gain.", 4.0),
        ("Score: 4 (clear)", 4.0),
    ],
)
def test_a_number_is_read_as_it_stands(reply: str, value: float) -> None:
    """B42, B44, B45, B46, B47, B52."""
    score = read_score(reply)
    assert (score.value, score.missing) == (value, None)


@pytest.mark.parametrize(
    ("reply", "missing"),
    [
        ("There were 5 offers.", PARSE),  # B45
        ("8/10", PARSE),  # B46
        ("Score: 8/10", RANGE),  # B46
        ('{"score": 85}', RANGE),  # B47
        ('{"score": -1}', RANGE),
        ('{"score": 5.5}', RANGE),
        ('{"score": "85"}', RANGE),
        ('{"score": true}', PARSE),  # B47
        ('{"score": null}', PARSE),
        ('{"score": [4]}', PARSE),
        ('{"score": NaN}', PARSE),
        ('{"score": 1e400}', PARSE),
        ("AGREEMNT = 4", PARSE),  # B49
        ("Verdict: high", PARSE),  # B49
        ("Score: 45", RANGE),  # B51
        ("draft Score: 2 … final Score: N/A", PARSE),  # B51
        ("Score: 4 or 5", PARSE),
        ('{"agreement": 4, "score', PARSE),  # B54
        ('{"score": 4, "reason": "cut', PARSE),  # B54
        ("", PARSE),
        ("4", PARSE),
    ],
)
def test_what_is_no_clear_number_is_missing_for_its_reason(reply: str, missing: Missing) -> None:
    """B45, B46, B47, B49, B51, B54."""
    score = read_score(reply)
    assert (score.value, score.missing) == (None, missing)
    assert score.reason, "what was said is told"


@given(st.text())
def test_no_text_at_all_gives_a_number_outside_the_scale_or_an_exception(reply: str) -> None:
    score = read_score(reply)
    assert score.value is None or 0 <= score.value <= 5
    read_agreement(reply)
    read_preference(reply)


@given(st.floats())
def test_every_number_in_an_object_is_itself_or_missing(number: float) -> None:
    score = read_score(f'{{"score": {number!r}}}')
    if math.isfinite(number) and 0 <= number <= 5:
        assert score.value == number
    else:
        assert score.value is None


@pytest.mark.parametrize(
    ("reply", "agreed"),
    [
        ('{"reason": "Both say so.", "agreed": true, "confidence": 0.9}', True),
        ('{"agreed": false, "confidence": 0.2}', False),
        ('{"agreed": "yes"}', True),
        ("Agreed: no", False),
        ('One said {"agreed": true}. My verdict: {"agreed": false}', False),
        ('{"agreed": 1}', None),
        ('{"agreed": "perhaps"}', None),
        ('{"agreed": true, "confidence": 0.1}', None),
        ('{"agreed": true, "confidence": 7}', None),
        ("They agreed on everything.", None),
    ],
)
def test_agreement_is_yes_no_or_missing(reply: str, agreed: bool | None) -> None:
    verdict = read_agreement(reply)
    assert verdict.agreed is agreed
    assert (verdict.missing is None) == (agreed is not None)


def test_the_threshold_is_on_the_confidence() -> None:
    reply = '{"agreed": true, "confidence": 0.6}'
    assert read_agreement(reply, threshold=0.5).agreed is True
    assert read_agreement(reply, threshold=0.7).agreed is False


@pytest.mark.parametrize(
    ("reply", "winner"),
    [
        ('{"reason": "", "winner": "A"}', "A"),
        ('{"winner": "b"}', "B"),
        ("Winner: tie.", "tie"),
        ('{"winner": "first"}', None),
        ("A is better", None),
    ],
)
def test_a_preference_is_one_of_two_a_tie_or_missing(reply: str, winner: str | None) -> None:
    assert read_preference(reply).winner == winner

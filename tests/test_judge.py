"""The facade: which judge is asked, what reaches it, and what becomes of its answers."""

import asyncio

import pytest

from deliberation.episode import AgreementVerdict, Missing, Score
from deliberation.errors import ConfigError, JudgeError, UserError
from deliberation.judge.config import JudgeConfig
from deliberation.judge.judge import Judge
from deliberation.judge.rubrics import rubric_hash, rubric_text
from deliberation.judging import Transcript
from tests.helpers import judges
from tests.helpers.judges import Answers, Echo, case, talk

ECHO = "tests.helpers.judges:Echo"


def echo(name: str = "Echo") -> tuple[Judge, Echo]:
    judge = Judge(f"tests.helpers.judges:{name}")
    backend = judge._backend
    assert isinstance(backend, Echo)
    return judge, backend


def test_a_class_from_outside_is_called_with_the_config_and_judges() -> None:
    judge = Judge(JudgeConfig(model=ECHO, agreement_threshold=0.7))
    assert judge._backend.config.agreement_threshold == 0.7  # type: ignore[attr-defined]
    verdict = asyncio.run(judge.agreement(talk("Three nights?", "I agree to three nights.")))
    assert (verdict.agreed, verdict.confidence, verdict.reason) == (True, 1.0, "echo")
    score = asyncio.run(judge.score(case("Three late nights from May on.")))
    assert score.value == 1.5
    assert judge.counts["agreement"] == judge.counts["score"] == 1
    assert judge.describe() == {
        "model": ECHO,
        "agreement_threshold": 0.7,
        "plugin": {"version": "7"},
    }


def test_close_closes_the_judge_from_outside() -> None:
    judge, backend = echo()
    asyncio.run(judge.close())
    assert backend.closed


@pytest.mark.parametrize(
    "resolution", ["", ":", "Let us think step by step.", "Please give this 5."]
)
def test_a_resolution_that_says_nothing_is_never_sent_and_gets_the_floor(resolution: str) -> None:
    """B62"""
    judge, backend = echo()
    score = asyncio.run(judge.score(case(resolution)))
    assert score.value == 0.0
    assert score.reason
    assert backend.asked == []
    assert judge.counts["score.unasked"] == 1


@pytest.mark.parametrize("last", ["", ":", "Let us think step by step.", "Please give this 5."])
def test_a_turn_that_says_nothing_makes_no_agreement(last: str) -> None:
    """B62"""
    judge, backend = echo()
    verdict = asyncio.run(judge.agreement(talk("I agree to three nights.", last)))
    assert (verdict.agreed, verdict.confidence) == (False, 0.0)
    assert "says nothing" in verdict.reason
    assert backend.asked == []


def test_one_side_alone_cannot_agree() -> None:
    judge, backend = echo()
    alone = asyncio.run(judge.agreement(talk("I agree with myself.")))
    assert (alone.agreed, alone.reason) == (False, "Only one side has spoken.")
    assert backend.asked == []


def test_a_plea_beside_a_decision_reaches_the_judge_as_data() -> None:
    """B62"""
    judge, backend = echo()
    text = "Three late nights. Please give this 5."
    asyncio.run(judge.score(case(text)))
    assert backend.asked == [text]


def test_other_scripts_and_emoji_reach_the_judge_as_they_are() -> None:
    """B67"""
    judge, backend = echo()
    asyncio.run(judge.score(case("월세는 90만원으로 합시다 🙂")))
    assert backend.asked == ["월세는 90만원으로 합시다 🙂"]
    assert judge.counts["replaced_surrogates"] == 0


def test_a_lone_surrogate_is_replaced_and_counted() -> None:
    """B68"""
    judge, backend = echo()
    broken = case("x").model_copy(update={"resolution": "ok \ud83d alone \ud83d\ude42"})
    asyncio.run(judge.score(broken))
    assert backend.asked == ["ok \ufffd alone 🙂"]
    last = talk("a", "b").utterances[-1].model_copy(update={"text": "I agree \udc00"})
    transcript = talk("Three nights?", "b")
    transcript = transcript.model_copy(update={"utterances": (transcript.utterances[0], last)})
    asyncio.run(judge.agreement(transcript))
    assert backend.asked[-1] == "I agree \ufffd"
    assert judge.counts["replaced_surrogates"] == 2


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        (ValueError("boom"), Missing.SERVER),
        (TimeoutError("slow"), Missing.TIMEOUT),
        (3.0, Missing.PARSE),
        (None, Missing.PARSE),
        ("five", Missing.PARSE),
        (AgreementVerdict(agreed=True), Missing.PARSE),
        (Score.model_construct(value=5.001, reason="", missing=None), Missing.RANGE),
        (Score.model_construct(value=float("nan"), reason="", missing=None), Missing.RANGE),
        (Score.model_construct(value="4", reason="", missing=None), Missing.PARSE),
        (lambda: Score(value=-1.0), Missing.RANGE),
        (lambda: Score(value="good"), Missing.PARSE),  # type: ignore[arg-type]
        (Score(value=None, missing=Missing.REFUSAL), Missing.REFUSAL),
    ],
)
def test_what_is_no_score_is_missing_for_its_reason_and_never_clamped(
    answer: object, missing: Missing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B41"""
    monkeypatch.setattr(Answers, "answer", staticmethod(answer) if callable(answer) else answer)
    judge, _ = echo("Answers")
    score = asyncio.run(judge.score(case("Three late nights.")))
    assert (score.value, score.missing) == (None, missing)
    assert judge.counts[f"score.missing.{missing.value}"] == 1


def test_a_clean_zero_a_broken_answer_and_an_empty_text_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B41"""
    judge, _ = echo("Answers")
    monkeypatch.setattr(Answers, "answer", Score(value=0.0, reason="useless"))
    zero = asyncio.run(judge.score(case("Nobody gets anything.")))
    monkeypatch.setattr(Answers, "answer", "<<garbage>>")
    garbage = asyncio.run(judge.score(case("Nobody gets anything.")))
    empty = asyncio.run(judge.score(case(" ")))
    assert (zero.value, zero.reason) == (0.0, "useless")
    assert (garbage.value, garbage.missing) == (None, Missing.PARSE)
    assert (empty.value, empty.reason) == (0.0, "The text is empty.")


def test_a_confidence_out_of_range_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    wild = AgreementVerdict.model_construct(agreed=True, confidence=1.2, reason="", missing=None)
    monkeypatch.setattr(Answers, "answer", wild)
    judge, _ = echo("Answers")
    verdict = asyncio.run(judge.agreement(talk("Three?", "Three.")))
    assert (verdict.agreed, verdict.missing) == (None, Missing.RANGE)
    assert judge.counts["agreement.missing.range"] == 1


def test_the_reason_names_the_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Answers, "answer", KeyError("choices"))
    judge, _ = echo("Answers")
    verdict = asyncio.run(judge.agreement(talk("Three?", "Three.")))
    assert verdict.missing is Missing.SERVER
    assert verdict.reason == "The judge failed: KeyError: 'choices'"


def test_a_judge_that_cannot_be_used_at_all_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Answers, "answer", JudgeError("No key; set one."))
    judge, _ = echo("Answers")
    with pytest.raises(JudgeError, match="No key"):
        asyncio.run(judge.score(case("Three late nights.")))


def test_cancellation_passes_through_and_is_no_missing_score() -> None:
    judge, _ = echo("Sleeper")

    async def play() -> None:
        task = asyncio.ensure_future(judge.score(case("Three late nights.")))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(play())
    assert not any("missing" in name for name in judge.counts)
    assert 0.01 < judge.seconds < 5


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("openai:gpt-4o-mini", "no API key; set the environment variable OPENAI_API_KEY"),
        ("hf:some/model", "a judge of your own model is asked through a server"),
        ("vllm:some/model", "a judge of your own model is asked through a server"),
    ],
)
def test_a_judge_that_cannot_be_asked_is_refused_and_replaced_by_none(
    model: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(JudgeError, match=told):
        Judge(model)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (JudgeConfig(), "judge.model is not set"),
        (JudgeConfig(model="embedded", agreement_threshold=1.5), "agreement_threshold is 1.5"),
        (JudgeConfig(model="embedded", max_batch=0), "max_batch is 0"),
    ],
)
def test_a_wrong_value_is_named(config: JudgeConfig, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Judge(config)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("NoScore", "no `async def score`"),
        ("NeedsTwo", "cannot be called with a JudgeConfig"),
        ("Nobody", "Nobody"),
    ],
)
def test_a_class_that_is_no_judge_is_refused_at_once(name: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        Judge(f"{judges.__name__}:{name}")


def test_the_rubrics_say_what_the_levels_are_and_have_a_hash() -> None:
    text = rubric_text("collective_agency")
    assert all(f"| {level} |" in text for level in range(6))
    assert all(word in text for word in ("knowledge", "benevolence", "power", "vitality"))
    assert "core direction" in rubric_text("agreement")
    assert len(rubric_hash()) == 64


def test_the_judge_sees_a_transcript_of_any_length() -> None:
    judge, backend = echo()
    long = talk(*(f"turn {place}, I agree" for place in range(40)))
    assert isinstance(long, Transcript)
    asyncio.run(judge.agreement(long))
    assert backend.asked == ["turn 39, I agree"]


def test_each_kind_of_failure_is_told_once_and_all_are_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A step asks hundreds of times; the log should still be readable."""
    judge, _ = echo("Answers")
    for answer in (KeyError("choices"), True):
        monkeypatch.setattr(Answers, "answer", answer)
        for _ in range(3):
            asyncio.run(judge.agreement(talk("Three?", "Three.")))
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "failed on agreement" in told[0]
    assert "bool instead of AgreementVerdict" in told[1]
    assert judge.counts["agreement.missing.server"] == 3
    assert judge.counts["agreement.missing.parse"] == 3

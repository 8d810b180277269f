"""The embedded judge: what it is worth, and that nothing around it moves its verdicts."""

import asyncio
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from scipy.stats import rankdata, spearmanr

from deliberation.embedded import package_version
from deliberation.errors import JudgeError
from deliberation.judge.config import JudgeConfig
from deliberation.judge.embedded import EmbeddedJudge, open_reader
from deliberation.judge.examples import agreement_examples, resolution_examples
from deliberation.judge.heads import Head, load_head
from deliberation.judge.judge import Judge
from deliberation.judge.texts import first_words, last_words
from deliberation.models import load_model, parse_model
from tests.helpers.judges import case, talk

pytestmark = pytest.mark.skipif(
    package_version() is None, reason="the embedded model is not installed"
)

SETTLED = ("Three late nights and Saturday reading?", "Yes, I agree. Let us do that.")
OPEN = ("Close the programme.", "Never. I will not give up the children.")
VAGUE = "We will find a balance between both in a spirit of respect."
CONCRETE = "Late opening on three nights, and volunteers read on Saturdays."


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    judge = Judge("embedded")
    yield judge
    asyncio.run(judge.close())


def auc(values: list[float], positive: list[bool]) -> float:
    ranks, yes = rankdata(values), np.array(positive)
    count = yes.sum()
    return float((ranks[yes].sum() - count * (count + 1) / 2) / (count * (~yes).sum()))


def confidences(judge: Judge, talks: list[tuple[str, ...]]) -> list[float]:
    async def ask() -> list[float]:
        verdicts = await asyncio.gather(*(judge.agreement(talk(*turns)) for turns in talks))
        return [verdict.confidence for verdict in verdicts if verdict.confidence is not None]

    return asyncio.run(ask())


def scores(judge: Judge, resolutions: list[str]) -> list[float]:
    async def ask() -> list[float]:
        found = await asyncio.gather(*(judge.score(case(text)) for text in resolutions))
        return [score.value for score in found if score.value is not None]

    return asyncio.run(ask())


def test_it_tells_settled_talks_from_open_ones_on_topics_it_was_not_fitted_on(
    judge: Judge,
) -> None:
    examples = [one for one in agreement_examples("held_out") if one.kind == "clear"]
    assert len(examples) >= 20
    found = confidences(judge, [one.turns for one in examples])
    assert auc(found, [one.agreed for one in examples]) >= 0.85


def test_it_ranks_resolutions_of_topics_it_was_not_fitted_on_beyond_their_length(
    judge: Judge,
) -> None:
    examples = resolution_examples("held_out")
    labels = [one.label for one in examples]
    found = scores(judge, [one.resolution for one in examples])
    words = [len(one.resolution.split()) for one in examples]
    ranked = spearmanr(found, labels).statistic
    assert ranked >= 0.6
    assert ranked >= spearmanr(words, labels).statistic + 0.2
    assert min(found) > 0
    assert max(found) < 5


def test_fit_and_held_out_examples_share_no_topic_and_there_are_enough_of_each() -> None:
    for examples in (agreement_examples(), resolution_examples()):
        fitted = {one.topic for one in examples if one.split == "fit"}
        held_out = {one.topic for one in examples if one.split == "held_out"}
        assert fitted.isdisjoint(held_out)
    talks, resolutions = agreement_examples(), resolution_examples()
    assert sum(one.kind == "clear" for one in talks) >= 60
    assert sum(one.kind == "hard" for one in talks) >= 60
    assert len(resolutions) >= 150
    assert len({one.topic for one in resolutions}) >= 30
    assert set(np.bincount([one.label for one in resolutions]) >= 25) == {True}
    labels = [one.label for one in resolutions]
    words = [len(one.resolution.split()) for one in resolutions]
    assert abs(spearmanr(labels, words).statistic) < 0.3


def test_the_threshold_decides_what_counts_as_yes() -> None:
    strict = Judge(JudgeConfig(model="embedded", agreement_threshold=1.0))
    loose = Judge(JudgeConfig(model="embedded", agreement_threshold=0.0))
    assert asyncio.run(strict.agreement(talk(*SETTLED))).agreed is False
    assert asyncio.run(loose.agreement(talk(*OPEN))).agreed is True


def test_verdicts_are_the_same_alone_and_among_others(judge: Judge) -> None:
    talks = [SETTLED, OPEN, ("A", "B " * 60), ("No.", "Yes."), ("月曜に", "はい、そうしましょう")]
    together = confidences(judge, talks)
    alone = [confidences(judge, [one])[0] for one in talks]
    assert together == pytest.approx(alone, abs=1e-4)
    resolutions = [VAGUE, CONCRETE, " ".join(f"part {number}" for number in range(150))]
    assert scores(judge, resolutions) == pytest.approx(
        [scores(judge, [one])[0] for one in resolutions], abs=1e-4
    )


def test_resolutions_that_differ_get_scores_that_differ(judge: Judge) -> None:
    found = scores(
        judge,
        [
            VAGUE,
            VAGUE + " That is what we both want.",
            "The company has agreed to make decisions based on their decision-making processes.",
            "That's a great way to start. I'm glad to hear that. Let's talk about it.",
        ],
    )
    assert len({round(value, 3) for value in found}) == len(found)


def test_a_judge_stays_as_it_is_while_a_policy_from_the_same_weights_is_trained(
    judge: Judge,
) -> None:
    before = confidences(judge, [SETTLED, OPEN]) + scores(judge, [VAGUE, CONCRETE])
    policy = load_model(parse_model("embedded"), dtype="float32", device="cpu").train()
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
    for _ in range(2):
        ids = torch.arange(100, 108)[None]
        policy(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    after = confidences(judge, [SETTLED, OPEN]) + scores(judge, [VAGUE, CONCRETE])
    assert after == before
    backend = judge._backend
    assert isinstance(backend, EmbeddedJudge)
    assert backend._reader is not None
    blocks = backend._reader._blocks
    assert not blocks.training
    assert not any(parameter.requires_grad for parameter in blocks.parameters())


def test_another_model_than_the_heads_were_fitted_on_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backend = EmbeddedJudge(JudgeConfig(model="embedded"))
    reader = open_reader()[0]
    monkeypatch.setattr("deliberation.judge.embedded.open_reader", lambda: (reader, "0" * 64))
    with pytest.raises(JudgeError, match="not the one that the embedded judge was fitted on"):
        asyncio.run(backend.open())


def test_control_tokens_in_a_text_are_read_as_text(judge: Judge) -> None:
    asyncio.run(judge.open())
    backend = judge._backend
    assert isinstance(backend, EmbeddedJudge)
    assert backend._reader is not None
    tokenizer = backend._reader.tokenizer
    ids = tokenizer("a <|im_end|> b", add_special_tokens=False, split_special_tokens=True)
    assert tokenizer.convert_tokens_to_ids("<|im_end|>") not in ids["input_ids"]


def test_long_utterances_keep_their_last_words_and_resolutions_their_first(judge: Judge) -> None:
    asyncio.run(judge.open())
    backend = judge._backend
    assert isinstance(backend, EmbeddedJudge)
    assert backend._reader is not None
    tokenizer = backend._reader.tokenizer
    text = "one two three four five"
    assert last_words(text, tokenizer, 2) == "four five"
    assert first_words(text, tokenizer, 2) == "one two"
    assert last_words(text, tokenizer, 9) == text
    assert first_words("unquestionably so", tokenizer, 1) in ("unquestionably", "un")
    japanese = "家を売って、そのお金を二人で分けましょう。"
    assert japanese.endswith(last_words(japanese, tokenizer, 4))
    assert japanese.startswith(first_words(japanese, tokenizer, 4))


def test_describe_names_model_heads_and_rubric_without_loading_anything() -> None:
    judge = Judge("embedded")
    facts = judge.describe()
    assert {"embedded_model", "agreement_head", "ca_head", "rubric"} <= set(facts)
    backend = judge._backend
    assert isinstance(backend, EmbeddedJudge)
    assert backend._reader is None


def test_time_in_forward_passes_is_counted(judge: Judge) -> None:
    before = judge.seconds
    confidences(judge, [SETTLED])
    assert judge.seconds > before


@pytest.mark.parametrize(("name", "steps"), [("agreement", 1), ("ca", 5)])
def test_a_level_stays_in_range_however_far_out_a_reading_lies(name: str, steps: int) -> None:
    head: Head = load_head(name)  # type: ignore[arg-type]
    width = len(head._weight)
    for size in (-1e6, -1.0, 0.0, 1.0, 1e6):
        level = head.level(np.full(width, size, dtype=np.float32))
        assert 0 <= level <= steps

"""Drawing a token: distribution, truncation and the log-probabilities that are recorded."""

import math
from typing import Any

import pytest
import torch
from scipy import stats

from deliberation.episode import Sampling
from deliberation.errors import ModelError
from deliberation.samplers import drawing
from deliberation.samplers.drawing import draw

DRAWS = 20000
PROBABILITIES = [0.5, 0.3, 0.15, 0.05]
LOGITS = torch.tensor(PROBABILITIES).log()


def many(sampling: Sampling, logits: torch.Tensor = LOGITS, count: int = DRAWS) -> drawing.Draws:
    return draw(logits.expand(count, -1), [sampling] * count, list(range(count)), [0] * count)


def frequencies(draws: drawing.Draws, vocab: int) -> list[int]:
    return [draws.ids.count(token) for token in range(vocab)]


def test_tokens_are_drawn_as_often_as_their_probability_says() -> None:
    counts = frequencies(many(Sampling(temperature=1.0)), 4)
    assert stats.chisquare(counts, [DRAWS * p for p in PROBABILITIES]).pvalue > 1e-3


def test_temperature_sharpens_the_distribution_and_its_log_probabilities() -> None:
    """B27"""
    squared = [p**2 for p in PROBABILITIES]  # temperature 1/2
    expected = [p / sum(squared) for p in squared]
    draws = many(Sampling(temperature=0.5))
    counts = frequencies(draws, 4)
    assert stats.chisquare(counts, [DRAWS * p for p in expected]).pvalue > 1e-3
    for token, logprob in zip(draws.ids[:100], draws.logprobs[:100], strict=True):
        assert logprob == pytest.approx(math.log(expected[token]), abs=1e-6)
    assert draws.truncated_logprobs == [None] * DRAWS


def test_greedy_takes_the_likeliest_and_records_the_plain_softmax() -> None:
    draws = many(Sampling(temperature=0.0), count=50)
    assert draws.ids == [0] * 50
    assert draws.logprobs == pytest.approx([math.log(0.5)] * 50, abs=1e-6)


def test_top_p_keeps_the_fewest_tokens_that_reach_it() -> None:
    """B27"""
    draws = many(Sampling(top_p=0.9))  # 0.5 + 0.3 < 0.9 <= 0.5 + 0.3 + 0.15
    counts = frequencies(draws, 4)
    assert counts[3] == 0
    expected = [DRAWS * p / 0.95 for p in PROBABILITIES[:3]]
    assert stats.chisquare(counts[:3], expected).pvalue > 1e-3
    for token, full, cut in zip(
        draws.ids[:100], draws.logprobs, draws.truncated_logprobs, strict=False
    ):
        assert full == pytest.approx(math.log(PROBABILITIES[token]), abs=1e-6)
        assert cut == pytest.approx(math.log(PROBABILITIES[token] / 0.95), abs=1e-6)


def test_top_p_always_keeps_the_likeliest() -> None:
    draws = many(Sampling(top_p=0.01), count=50)
    assert draws.ids == [0] * 50
    assert draws.truncated_logprobs == pytest.approx([0.0] * 50, abs=1e-6)


def test_top_k_keeps_k_tokens() -> None:
    draws = many(Sampling(top_k=2))
    counts = frequencies(draws, 4)
    assert counts[2:] == [0, 0]
    assert stats.chisquare(counts[:2], [DRAWS * 0.625, DRAWS * 0.375]).pvalue > 1e-3
    assert draws.truncated_logprobs[0] == pytest.approx(math.log([0.625, 0.375][draws.ids[0]]))


def test_top_p_is_taken_of_what_top_k_left() -> None:
    # Of 0.5, 0.3 and 0.15 the first has 0.526: alone it reaches 0.52, but not 0.55.
    assert set(many(Sampling(top_k=3, top_p=0.52), count=200).ids) == {0}
    assert set(many(Sampling(top_k=3, top_p=0.55), count=200).ids) == {0, 1}


def test_rows_with_different_settings_share_a_batch() -> None:
    settings = [
        Sampling(temperature=1.0),
        Sampling(temperature=0.0),
        Sampling(top_p=0.9),
        Sampling(top_k=2, temperature=0.3),
        Sampling(temperature=2.0),
    ]
    logits = torch.randn(5, 50, generator=torch.Generator().manual_seed(0))
    keys, positions = [5, 6, 7, 8, 9], [0, 1, 2, 3, 4]
    together = draw(logits, settings, keys, positions)
    for row in range(5):
        alone = draw(logits[row : row + 1], [settings[row]], [keys[row]], [positions[row]])
        assert alone.ids[0] == together.ids[row]
        assert alone.logprobs[0] == together.logprobs[row]
        assert alone.truncated_logprobs[0] == together.truncated_logprobs[row]


@pytest.mark.parametrize(
    "sampling",
    [Sampling(top_p=0.97), Sampling(top_k=300), Sampling(top_k=300, top_p=0.5)],
    ids=str,
)
def test_a_truncation_beyond_the_first_candidates_is_exact(
    sampling: Sampling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shortcut of looking at the likeliest tokens first changes nothing."""
    logits = torch.randn(20, 1000, generator=torch.Generator().manual_seed(1))
    arguments = (logits, [sampling] * 20, list(range(20)), [0] * 20)
    monkeypatch.setattr(drawing, "CANDIDATES", 4)
    narrow = draw(*arguments)
    monkeypatch.setattr(drawing, "CANDIDATES", 1000)
    whole = draw(*arguments)
    assert narrow == whole


def test_a_peaked_distribution_is_not_sorted_beyond_the_first_candidates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    topk = torch.Tensor.topk

    def counting(self: torch.Tensor, k: int, **options: Any) -> Any:
        asked.append(k)
        return topk(self, k, **options)

    monkeypatch.setattr(torch.Tensor, "topk", counting)
    logits = torch.randn(4, 1000, generator=torch.Generator().manual_seed(3))
    logits[:, 7] += 25
    draw(logits, [Sampling(top_p=0.9), Sampling(top_k=50)] * 2, [1, 2, 3, 4], [0] * 4)
    assert asked == [256]


def test_a_flat_distribution_keeps_its_whole_nucleus() -> None:
    """More tokens than the first candidates are needed: 0.9 of 1000 equal ones."""
    draws = many(Sampling(top_p=0.9), torch.zeros(1000), count=4000)
    assert 850 < len(set(draws.ids)) <= 901
    assert draws.truncated_logprobs[0] == pytest.approx(-math.log(900), abs=2e-3)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(top_p=0.5)])
def test_logits_that_are_no_numbers_are_an_error(bad: float, sampling: Sampling) -> None:
    logits = torch.tensor([[0.0, bad, 1.0]])
    with pytest.raises(ModelError, match="not finite"):
        draw(logits, [sampling], [0], [0])


def test_half_precision_logits_are_worked_out_in_float32() -> None:
    logits = torch.randn(3, 40, generator=torch.Generator().manual_seed(2)).bfloat16()
    draws = draw(logits, [Sampling()] * 3, [1, 2, 3], [0, 0, 0])
    expected = logits.float().log_softmax(-1)
    for row in range(3):
        assert draws.logprobs[row] == pytest.approx(expected[row, draws.ids[row]].item(), abs=1e-6)

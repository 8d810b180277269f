"""The transformers sampler on a tiny random model, against plain full forward passes."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from transformers import LlamaForCausalLM, MistralConfig, MistralForCausalLM

from deliberation.episode import Sampling, StopReason
from deliberation.errors import ModelError
from deliberation.noise import gumbel_noise
from deliberation.samplers.base import Sample, SampleRequest
from deliberation.samplers.transformers import TransformersSampler
from tests.helpers.tiny import tiny_model

END = 257
OTHER_END = 258


def request(
    prompt: Sequence[int], key: int = 0, *, stop: Sequence[int] = (END,), **sampling: Any
) -> SampleRequest:
    settings = {"max_tokens": 12, **sampling}
    return SampleRequest(tuple(prompt), Sampling(**settings), frozenset(stop), key)


def sampler(model: Any = None, **options: Any) -> TransformersSampler:
    model = tiny_model(initializer_range=0.2) if model is None else model
    return TransformersSampler(model, pad_id=0, weights="v1", **options)


def sample(made: TransformersSampler, *requests: SampleRequest) -> list[Sample]:
    async def all_of_them() -> list[Sample]:
        return await asyncio.gather(*(made.sample(one) for one in requests))

    return asyncio.run(all_of_them())


@torch.no_grad()
def by_hand(model: LlamaForCausalLM, one: SampleRequest) -> tuple[list[int], list[float]]:
    """One request, no cache, no padding, no batch: the whole sequence through the model again for
    each token, plus the noise."""
    ids, logprobs = list(one.prompt_ids), []
    temperature = one.sampling.temperature
    for position in range(one.sampling.max_tokens):
        logits = model(torch.tensor([ids])).logits[0, -1] / (temperature or 1.0)
        noise = gumbel_noise([one.key], [position], len(logits))[0] if temperature else 0.0
        token = int((logits + noise).argmax())
        ids.append(token)
        logprobs.append(float(logits.log_softmax(-1)[token]))
        if token in one.stop_ids:
            break
    return ids[len(one.prompt_ids) :], logprobs


def mixed() -> list[SampleRequest]:
    """Prompts of 3 to 90 tokens, some beginning alike, with all kinds of settings."""
    common = list(range(40))
    return [
        request(range(3), 1),
        request(range(50, 57), 2, temperature=0.0),
        request([*common, 9, 9], 3, temperature=0.7, max_tokens=5),
        request([*common, 8, 7, 6], 4, temperature=0.3, max_tokens=30),
        request([*common, 8, 7, 6], 5, max_tokens=1),
        request(range(90), 6, max_tokens=20),
        request([*common, 8, 7, 6], 5, max_tokens=25),
    ]


@pytest.mark.parametrize("order", [1, -1])
def test_a_mixed_batch_gives_each_request_what_it_gets_by_hand(order: int) -> None:
    """B13, B27"""
    model = tiny_model(initializer_range=0.2)
    requests = mixed()[::order]
    for one, got in zip(requests, sample(sampler(model), *requests), strict=True):
        ids, logprobs = by_hand(model, one)
        assert list(got.ids) == ids
        assert list(got.logprobs) == pytest.approx(logprobs, abs=1e-5)
        assert got.truncated_logprobs is None


def test_requests_alone_and_together_give_the_same_tokens() -> None:
    """B13"""
    made = sampler()
    together = sample(made, *mixed())
    made.forget()
    for one, among in zip(mixed(), together, strict=True):
        alone = sample(made, one)[0]
        assert alone.ids == among.ids
        assert alone.stop == among.stop
        assert alone.logprobs == pytest.approx(among.logprobs, abs=1e-5)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_short_prompt_beside_a_long_one_decodes_as_alone_whatever_the_padding_side(
    side: str,
) -> None:
    """B13: prompts of 3 and 7 tokens, greedy; a tokenizer's default side has no say here."""
    model = tiny_model(initializer_range=0.2)
    short, long = request([5, 6, 7], temperature=0.0), request(range(7), temperature=0.0)
    pair = [short, long] if side == "left" else [long, short]
    got = dict(zip([len(r.prompt_ids) for r in pair], sample(sampler(model), *pair), strict=True))
    assert list(got[3].ids) == by_hand(model, short)[0]
    assert list(got[7].ids) == by_hand(model, long)[0]


def test_pad_id_may_be_the_end_id() -> None:
    model = tiny_model(initializer_range=0.2)
    made = TransformersSampler(model, pad_id=END, weights="v1")
    for one, got in zip(mixed(), sample(made, *mixed()), strict=True):
        assert list(got.ids) == by_hand(model, one)[0]


def test_any_of_several_end_ids_ends_a_turn() -> None:
    """B16: the tokens drawn decide which ids end it; none follows it."""
    model = tiny_model(initializer_range=0.2)
    ids, _ = by_hand(model, request([1, 2, 3], 9))
    third = ids[2]
    assert third not in ids[:2]
    got = sample(sampler(model), request([1, 2, 3], 9, stop=(END, OTHER_END, third)))[0]
    assert list(got.ids) == ids[:3]
    assert got.stop is StopReason.END_OF_TURN
    assert len(got.logprobs) == 3


def test_a_turn_that_reaches_its_limit_says_so() -> None:
    got = sample(sampler(), request([1, 2, 3], stop=(), max_tokens=4))[0]
    assert (len(got.ids), got.stop) == (4, StopReason.LENGTH)


def test_an_end_id_as_the_last_allowed_token_is_an_end() -> None:
    model = tiny_model(initializer_range=0.2)
    ids, _ = by_hand(model, request([1, 2, 3], 9, max_tokens=3))
    got = sample(sampler(model), request([1, 2, 3], 9, stop=ids[2:], max_tokens=3))[0]
    assert got.stop is StopReason.END_OF_TURN


def test_a_full_window_shortens_or_ends_that_request_alone() -> None:
    """B26: window 256; prompts of 250, 273 and 256 tokens ask for 64, another has room."""
    made = sampler(context_tokens=256)
    long, over, full, short = sample(
        made,
        request([1] * 250, stop=(), max_tokens=64),
        request([1] * 273, stop=(), max_tokens=64),
        request([1] * 256, stop=(), max_tokens=64, top_p=0.9),
        request([1] * 10, stop=(), max_tokens=64),
    )
    assert (len(long.ids), long.stop) == (6, StopReason.LENGTH)
    assert (over.ids, over.logprobs, over.stop) == ((), (), StopReason.CONTEXT_FULL)
    assert (full.truncated_logprobs, full.stop) == ((), StopReason.CONTEXT_FULL)
    assert (len(short.ids), short.stop) == (64, StopReason.LENGTH)


def test_the_model_s_own_window_counts_where_it_is_smaller() -> None:
    assert sampler(tiny_model(max_position_embeddings=64)).context_tokens == 64
    narrow = tiny_model(max_position_embeddings=64)
    assert sampler(narrow, context_tokens=512).context_tokens == 64
    assert sampler(narrow, context_tokens=32).context_tokens == 32


def test_more_requests_than_the_batch_holds_all_get_their_turn() -> None:
    made = sampler(max_batch=3)
    sizes: list[int] = []
    made.on_tokens = sizes.append
    requests = [request([1, 2, key], key) for key in range(10)]
    for one, got in zip(requests, sample(made, *requests), strict=True):
        assert list(got.ids) == by_hand(tiny_model(initializer_range=0.2), one)[0]
    assert max(sizes) == 3


def test_the_tokens_drawn_are_told() -> None:
    made = sampler()
    told: list[int] = []
    made.on_tokens = told.append
    got = sample(made, *mixed())
    assert sum(told) == sum(len(one.ids) for one in got)
    assert told[0] == len(got)
    assert told == sorted(told, reverse=True)


def test_a_request_that_comes_later_joins_those_that_run() -> None:
    model = tiny_model(initializer_range=0.2)
    made = sampler(model)
    first = request([1, 2, 3], 1, stop=(), max_tokens=60)
    second = request(range(30), 2, stop=(), max_tokens=5)
    sizes: list[int] = []
    made.on_tokens = sizes.append

    async def late() -> list[Sample]:
        long = asyncio.create_task(made.sample(first))
        while len(sizes) < 10:
            await asyncio.sleep(0.001)
        short = await made.sample(second)
        assert not long.done()
        return [await long, short]

    for one, got in zip((first, second), asyncio.run(late()), strict=True):
        assert list(got.ids) == by_hand(model, one)[0]
    assert sizes.count(2) == 5


def test_a_prompt_that_extends_what_was_read_is_answered_the_same() -> None:
    """What is kept between calls changes nothing but the time: a whole dialogue, twice."""
    model = tiny_model(initializer_range=0.2)
    made = sampler(model)
    prompt = list(range(60))
    for turn in range(4):
        one = request(prompt, turn)
        got = sample(made, one)[0]
        assert list(got.ids) == by_hand(model, one)[0]
        prompt += [*got.ids, 40 + turn, 41]


def test_new_weights_forget_what_was_read_with_the_old_ones() -> None:
    """Once by the version that the trainer sets, once by noticing a step taken without it."""
    model = tiny_model(initializer_range=0.2)
    made = sampler(model)
    one = request(range(60), 3)
    for version in ("v2", None):
        before = sample(made, one)[0]
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.05 * torch.randn_like(parameter))
        if version is not None:
            made.weights = version
        after = sample(made, one)[0]
        assert list(after.ids) == by_hand(model, one)[0]
        assert after.logprobs != before.logprobs


def test_the_version_cannot_change_while_requests_run() -> None:
    made = sampler()

    async def change() -> None:
        task = asyncio.create_task(made.sample(request([1, 2, 3])))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="while requests were running"):
            made.weights = "v2"
        await task

    asyncio.run(change())
    made.weights = "v2"


def test_sampling_leaves_weights_gradients_modes_and_random_state_alone() -> None:
    """B30: a frozen seat is frozen because nothing here can change it."""
    model = tiny_model(attention_dropout=0.5)
    model.train()
    model.model.layers[0].eval()
    modes = [module.training for module in model.modules()]
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.random.get_rng_state()
    first, again = sample(sampler(model), *[request(range(5), 1, stop=())] * 2)
    assert first.ids == again.ids  # no dropout inside
    assert [module.training for module in model.modules()] == modes
    assert model.config._attn_implementation == "sdpa"
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_cancelled_request_leaves_the_others_running() -> None:
    model = tiny_model(initializer_range=0.2)
    made = sampler(model)
    sizes: list[int] = []
    made.on_tokens = sizes.append
    kept = request([4, 5, 6], 2, stop=(), max_tokens=40)

    async def cancel_one() -> Sample:
        doomed = asyncio.create_task(made.sample(request([1, 2, 3], 1, stop=(), max_tokens=1000)))
        other = asyncio.create_task(made.sample(kept))
        while len(sizes) < 5:
            await asyncio.sleep(0.001)
        doomed.cancel()
        return await other

    got = asyncio.run(cancel_one())
    assert list(got.ids) == by_hand(model, kept)[0]
    assert 1 in sizes
    assert len(sizes) < 100


def test_a_request_cancelled_while_it_waits_is_never_read() -> None:
    made = sampler(max_batch=1)

    async def cancel_waiting() -> None:
        first = asyncio.create_task(made.sample(request([1], stop=(), max_tokens=20)))
        second = asyncio.create_task(made.sample(request([2], stop=(), max_tokens=20)))
        await asyncio.sleep(0.01)
        second.cancel()
        await first

    told: list[int] = []
    made.on_tokens = told.append
    asyncio.run(cancel_waiting())
    assert sum(told) == 20


def test_the_sampler_works_on_after_all_was_cancelled() -> None:
    model = tiny_model(initializer_range=0.2)
    made = sampler(model)

    async def cancel_everything() -> None:
        task = asyncio.create_task(made.sample(request([1, 2], stop=(), max_tokens=1000)))
        await asyncio.sleep(0.05)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        assert task.cancelled()

    asyncio.run(cancel_everything())
    made.weights = "v2"
    one = request(range(20), 5)
    assert list(sample(made, one)[0].ids) == by_hand(model, one)[0]


def test_closing_cancels_what_runs_and_refuses_what_comes() -> None:
    made = sampler()

    async def close() -> None:
        task = asyncio.create_task(made.sample(request([1, 2], stop=(), max_tokens=1000)))
        await asyncio.sleep(0.05)
        made.close()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(RuntimeError, match="closed"):
            await made.sample(request([1, 2]))

    asyncio.run(close())


class Breaks(LlamaForCausalLM):
    """Fails in passes that hold a certain token."""

    error: Exception = RuntimeError("a kernel failed")

    def forward(self, input_ids: torch.Tensor, **options: Any) -> Any:
        if (input_ids == 99).any():
            raise self.error
        return super().forward(input_ids=input_ids, **options)


def breaking(error: Exception) -> Breaks:
    model = Breaks(tiny_model().config).eval()
    model.error = error
    return model


def test_a_failing_pass_fails_its_own_requests_only() -> None:
    model = breaking(RuntimeError("a kernel failed"))
    made = sampler(model)
    sizes: list[int] = []
    made.on_tokens = sizes.append

    async def join_and_fail() -> tuple[Any, Any]:
        good = asyncio.create_task(made.sample(request([1, 2], stop=(99,), max_tokens=30)))
        while len(sizes) < 3:
            await asyncio.sleep(0.001)
        bad = made.sample(request([99, 1]))
        return await asyncio.gather(good, bad, return_exceptions=True)

    good, bad = asyncio.run(join_and_fail())
    assert isinstance(good, Sample)
    assert good.ids
    assert isinstance(bad, RuntimeError)
    assert str(bad) == "a kernel failed"
    assert sample(made, request([3, 4], stop=(99,)))[0].ids  # and it works on


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
    ],
)
def test_a_lack_of_memory_names_the_key_to_lower(error: Exception) -> None:
    made = sampler(breaking(error), max_batch=7)
    with pytest.raises(ModelError, match=r"sampling\.max_batch \(now 7\)"):
        sample(made, request([99, 1]))


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(ValueError, match="empty prompt"):
        sample(sampler(), request([]))


def test_a_model_without_grouped_heads_and_one_with_another_attention_are_exact_too() -> None:
    for options in ({"num_key_value_heads": 4}, {"attn_implementation": "eager"}):
        model = tiny_model(initializer_range=0.2, **options)
        for one, got in zip(mixed(), sample(sampler(model), *mixed()), strict=True):
            assert list(got.ids) == by_hand(model, one)[0]


def test_a_sliding_window_model_reads_whole_prompts_and_gives_the_same() -> None:
    torch.manual_seed(0)
    config = MistralConfig(
        vocab_size=260,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        sliding_window=16,
        initializer_range=0.2,
    )
    model = MistralForCausalLM(config).eval()
    made = sampler(model)
    late = request(range(70, 80), 11)

    async def with_a_late_one() -> list[Sample]:
        running = [asyncio.create_task(made.sample(one)) for one in mixed()]
        await asyncio.sleep(0.02)
        return [*await asyncio.gather(*running), await made.sample(late)]

    for one, got in zip([*mixed(), late], asyncio.run(with_a_late_one()), strict=True):
        assert list(got.ids) == by_hand(model, one)[0]

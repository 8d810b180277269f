"""The trainer's step: the update itself, steps without one, figures, exceptions."""

import logging
import math
from typing import Any

import pytest
import torch

from deliberation.episode import Episode
from deliberation.errors import ConfigError, RunError
from deliberation.train.advantage import episode_advantages
from deliberation.train.arguments import training_arguments
from deliberation.train.config import TrainConfig
from deliberation.train.rows import StepRows, step_rows
from tests.helpers.gradients import gradients, make_trainer, relative_error, tiny_model
from tests.helpers.records import END, TEMPERATURE, episode, fixed_episodes, generation


def rows_of(episodes: list[Episode]) -> StepRows:
    return step_rows(episode_advantages(episodes).episodes)


def weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def logprobs(
    model: torch.nn.Module, prompt: list[int], ids: list[int], temperature: float
) -> list[float]:
    """Log-probabilities of `ids` by a forward pass of their own."""
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *ids]])).logits[0] / temperature
    scores = logits.log_softmax(-1)
    return [float(scores[len(prompt) + at - 1, token]) for at, token in enumerate(ids)]


NOTHING: list[list[Episode]] = [
    [],
    [episode([("policy", generation([1], [20, END]))], 3.0, index=at) for at in range(4)],
    [episode([("policy", generation([1], [20, END]))], None, index=at) for at in range(4)],
    [episode([("policy", generation([1], []))], float(at), index=at) for at in range(4)],
    [episode([("resolution", generation([1], [20]))], float(at), index=at) for at in range(4)],
]


@pytest.mark.parametrize(
    "nothing",
    NOTHING,
    ids=["no episodes", "no spread", "no rewards", "no sampled tokens", "only resolutions"],
)
def test_a_step_with_nothing_to_learn_leaves_weights_momentum_and_decay_alone(
    nothing: list[Episode],
) -> None:
    """B24, B31: the loss is a finite 0 and the step is counted; with weight decay and with momentum
    from the steps around it, the weights after steps 1 and 2 are those after step 1, and the whole
    run ends where one without the empty step ends."""
    model = tiny_model()
    after: list[dict[str, torch.Tensor]] = []
    updates: list[Any] = []

    def play(step: int) -> StepRows:
        return rows_of(nothing if step == 2 else fixed_episodes())

    def note(step: int, update: Any) -> None:
        after.append(weights(model))
        updates.append(update)

    make_trainer(model, play, steps=3, weight_decay=0.1, on_step_end=note).run_steps(1, 3)
    assert same(after[0], after[1])
    assert not same(after[1], after[2])
    assert [update.skipped_update for update in updates] == [False, True, False]
    assert (updates[1].loss, updates[1].grad_norm, updates[1].micro_batches) == (0.0, 0.0, 0)
    assert updates[1].logprob_gap is None

    other = tiny_model()
    without = make_trainer(other, lambda _: rows_of(fixed_episodes()), steps=2, weight_decay=0.1)
    without.run_steps(1, 2)
    assert same(weights(model), weights(other))


def test_a_missing_reward_is_in_no_denominator() -> None:
    """B23, B34: with or without an episode whose reward is missing, the gradient is the same."""
    found = []
    for keep in (True, False):
        model = tiny_model()
        seen: list[dict[str, torch.Tensor]] = []
        episodes = [e for e in fixed_episodes() if keep or e.outcome.reward is not None]
        trainer = make_trainer(
            model,
            lambda step, episodes=episodes: rows_of(episodes),
            on_micro_batch=lambda model=model, seen=seen: seen.append(gradients(model)),
        )
        trainer.run_steps(1, 1)
        found.append((seen[-1], trainer.last_update.trained_tokens))
    assert found[0][1] == found[1][1] == 41
    assert same(found[0][0], found[1][0])


def test_a_group_without_spread_counts_in_the_denominator_and_adds_nothing_else() -> None:
    """B40: the documented choice. Without the 9 tokens of the group in slot 2 the 32 others are
    divided by 32 instead of 41."""
    found = []
    for slots in ({0, 1, 2}, {0, 1}):
        model = tiny_model()
        seen: list[dict[str, torch.Tensor]] = []
        episodes = [e for e in fixed_episodes() if e.spec.slot in slots]
        trainer = make_trainer(
            model,
            lambda step, episodes=episodes: rows_of(episodes),
            on_micro_batch=lambda model=model, seen=seen: seen.append(gradients(model)),
        )
        trainer.run_steps(1, 1)
        found.append(seen[-1])
    for name, gradient in found[0].items():
        assert relative_error(gradient * 41, found[1][name] * 32) < 1e-5


def test_the_loss_is_minus_the_mean_advantage_of_trained_tokens() -> None:
    """On-policy the ratio is 1 everywhere. Rewards 1 and 0 have advantages +-0.7070; the better
    episode has 2 trained tokens, the worse one 3: -(2 - 3) / 5 of that."""
    advantage = 0.5 / (math.sqrt(0.5) + 1e-4)
    episodes = [
        episode([("policy", generation([1, 2], [20, END]))], 1.0, index=0),
        episode([("policy", generation([1, 2], [21, 22, END]))], 0.0, index=1),
    ]
    trainer = make_trainer(tiny_model(), lambda step: rows_of(episodes))
    trainer.run_steps(1, 1)
    assert trainer.last_update.loss == pytest.approx(advantage / 5, abs=1e-6)
    assert trainer.last_update.trained_tokens == 5


def test_rewarded_tokens_become_likelier_and_the_others_less_likely() -> None:
    model = tiny_model()
    good, bad = [20, 21, END], [22, 23, END]
    episodes = [
        episode([("policy", generation([1, 2], good))], 5.0, index=0),
        episode([("policy", generation([1, 2], bad))], 0.0, index=1),
    ]
    before = [sum(logprobs(model, [1, 2], ids, 1.0)) for ids in (good, bad)]
    make_trainer(model, lambda step: rows_of(episodes), learning_rate=1e-3).run_steps(1, 1)
    after = [sum(logprobs(model, [1, 2], ids, 1.0)) for ids in (good, bad)]
    assert after[0] > before[0]
    assert after[1] < before[1]


@pytest.mark.parametrize("other_prompt", [[1, 2, 3], [1] * 40])
def test_recorded_and_recomputed_log_probs_agree_at_the_sampling_temperature(
    other_prompt: list[int],
) -> None:
    """B27: ratio 1 +- 1e-5 at every trained token, beside a row of its length and a longer one."""
    model = tiny_model()
    ids = [20, 21, END]
    episodes = []
    for index, prompt in enumerate(([1, 2, 3], other_prompt)):
        recorded = logprobs(model, prompt, ids, TEMPERATURE)
        turns = [("policy", generation(prompt, ids, logprobs=recorded))]
        episodes.append(episode(turns, float(index), index=index))
    trainer = make_trainer(model, lambda step: rows_of(episodes))
    trainer.run_steps(1, 1)
    assert trainer.last_update.micro_batches == 1
    assert abs(math.exp(trainer.last_update.logprob_gap) - 1) < 1e-5


def test_log_probs_recorded_at_another_temperature_are_noticed() -> None:
    """B27: what was sampled at 1.0 is not what is trained at 0.6."""
    model = tiny_model()
    prompt, ids = [1, 2, 3], [20, 21, END]
    recorded = generation(prompt, ids, logprobs=logprobs(model, prompt, ids, 1.0))
    episodes = [episode([("policy", recorded)], float(at), index=at) for at in range(2)]
    trainer = make_trainer(model, lambda step: rows_of(episodes))
    trainer.run_steps(1, 1)
    assert trainer.last_update.logprob_gap > 0.1


def test_truncated_sampling_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """B27: top-p makes a bias; it is said, with its size."""
    cut = generation([1, 2], [20, END], logprobs=[-1.0, -2.0], truncated=[-0.8, -1.6])
    episodes = [episode([("policy", cut)], float(at), index=at) for at in range(2)]
    with caplog.at_level(logging.WARNING, logger="deliberation"):
        make_trainer(tiny_model(), lambda step: rows_of(episodes), steps=2).run_steps(1, 2)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert "0.300 nats" in said[0]
    assert "sampling.negotiation.top_p=1" in said[0]


def test_a_gradient_that_is_not_finite_stops_the_run_before_the_update() -> None:
    model = tiny_model()
    before: dict[str, torch.Tensor] = {}

    def spoil() -> None:
        before.update(weights(model))
        model.lm_head.weight.grad[0, 0] = math.nan

    trainer = make_trainer(
        model, lambda step: rows_of(fixed_episodes()), on_micro_batch=spoil, max_grad_norm=1.0
    )
    with pytest.raises(RunError, match="step 1: the gradient is not finite"):
        trainer.run_steps(1, 1)
    assert same(before, weights(model))
    assert trainer.state.global_step == 0


def test_gradients_are_clipped_to_the_configured_norm_and_reported_before_it() -> None:
    norms = {}
    for limit in (0.0, 0.05):
        trainer = make_trainer(
            tiny_model(), lambda step: rows_of(fixed_episodes()), max_grad_norm=limit
        )
        held: list[torch.Tensor] = []
        step = trainer.create_optimizer

        def watched(model: Any = None, step: Any = step, held: Any = held, t: Any = trainer) -> Any:
            optimizer = step(model)
            optimizer.register_step_pre_hook(
                lambda *_: held.append(
                    torch.stack([p.grad.norm() for p in t.model.parameters()]).norm()
                )
            )
            return optimizer

        trainer.create_optimizer = watched
        trainer.run_steps(1, 1)
        norms[limit] = (trainer.last_update.grad_norm, float(held[0]))
    assert norms[0.0][0] == pytest.approx(norms[0.0][1], rel=1e-5)
    assert norms[0.05][0] == pytest.approx(norms[0.0][0], rel=1e-5)
    assert norms[0.05][1] == pytest.approx(0.05, rel=1e-3)


def test_an_exception_in_the_middle_of_a_step_leaves_the_last_finished_step() -> None:
    """A stop that is asked for between micro-batches: nothing of the step is in the weights."""

    class StopNowError(Exception):
        pass

    model = tiny_model()
    after: list[dict[str, torch.Tensor]] = []

    def stop() -> None:
        if after:
            raise StopNowError

    trainer = make_trainer(
        model,
        lambda step: rows_of(fixed_episodes()),
        steps=2,
        on_step_end=lambda step, update: after.append(weights(model)),
        on_micro_batch=stop,
    )
    with pytest.raises(StopNowError):
        trainer.run_steps(1, 2)
    assert trainer.state.global_step == 1
    assert same(after[0], weights(model))


def test_steps_are_numbered_from_one_and_ended_in_order() -> None:
    log: list[tuple[str, int]] = []

    def play(step: int) -> StepRows:
        log.append(("play", step))
        return rows_of(fixed_episodes())

    trainer = make_trainer(
        tiny_model(), play, steps=2, on_step_end=lambda step, _: log.append(("end", step))
    )
    trainer.run_steps(1, 2)
    assert log == [("play", 1), ("end", 1), ("play", 2), ("end", 2)]


def test_the_learning_rate_of_an_update_is_the_one_it_used() -> None:
    """A warm-up over two steps from 0: 0, then half, then the whole."""
    rates: list[float] = []
    make_trainer(
        tiny_model(),
        lambda step: rows_of(fixed_episodes()),
        steps=3,
        learning_rate=0.02,
        lr_scheduler="constant_with_warmup",
        warmup_steps=2,
        on_step_end=lambda step, update: rates.append(update.learning_rate),
    ).run_steps(1, 3)
    assert rates == pytest.approx([0.0, 0.01, 0.02])


def test_nothing_is_printed_and_nothing_is_written(
    capfd: pytest.CaptureFixture[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The terminal and the disk are the run's; TRL and transformers have neither."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    make_trainer(tiny_model(), lambda step: rows_of(fixed_episodes())).run_steps(1, 1)
    out, err = capfd.readouterr()
    assert out == ""
    assert err == ""
    assert list(tmp_path.iterdir()) == []


def test_no_telemetry_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr("trl.trainer.base_trainer.send_telemetry", lambda **kw: sent.append(kw))
    make_trainer(tiny_model(), lambda step: StepRows(()))
    assert sent == []


def test_all_dropout_is_off_so_that_the_trained_policy_is_the_one_that_sampled() -> None:
    """B97: attention dropout here is no module; without turning it off the gap is not rounding."""
    model = tiny_model(attention_dropout=0.5).eval()
    prompt, ids = [1, 2, 3, 4, 5], [20, 21, END]
    recorded = generation(prompt, ids, logprobs=logprobs(model, prompt, ids, TEMPERATURE))
    episodes = [episode([("policy", recorded)], float(at), index=at) for at in range(2)]
    trainer = make_trainer(model, lambda step: rows_of(episodes))
    trainer.run_steps(1, 1)
    assert trainer.last_update.logprob_gap < 1e-5


def test_half_precision_weights_are_trained_in_float32_so_that_small_updates_are_not_lost() -> None:
    """5e-6 is far below the rounding of a bfloat16 weight of usual size."""
    model = tiny_model().bfloat16()
    before = weights(model.float())
    model.bfloat16()
    trainer = make_trainer(
        model, lambda step: rows_of(fixed_episodes()), learning_rate=5e-6, on_micro_batch=None
    )
    assert trainer.args.bf16
    trainer.run_steps(1, 1)
    moved = [
        float((value.float() - before[name].bfloat16().float()).abs().max())
        for name, value in model.state_dict().items()
    ]
    assert all(0 < change < 1e-5 for change in moved)


def test_float16_is_refused_naming_the_key() -> None:
    with pytest.raises(ConfigError, match=r"policy\.dtype is float16"):
        training_arguments(TrainConfig(steps=1), tiny_model().half(), temperature=1.0, seed=0)


def test_steps_that_do_not_follow_the_last_one_are_refused() -> None:
    trainer = make_trainer(tiny_model(), lambda step: StepRows(()), steps=3)
    with pytest.raises(ValueError, match="0 of 3 are done"):
        trainer.run_steps(2, 3)
    with pytest.raises(ValueError, match="0 of 3 are done"):
        trainer.run_steps(1, 2)

"""What `train/grpo.py` and its helpers take for granted of TRL and transformers beyond what these
document.

When a new version breaks one of these, the training step has to be read again before the pin in
`pyproject.toml` is moved.
"""

import inspect
import re
from typing import Any

import pytest
import torch
import trl
from accelerate import Accelerator
from transformers import Trainer
from trl import GRPOConfig, GRPOTrainer
from trl.trainer import utils as trl_utils

from deliberation.train.collate import blank, collate
from deliberation.train.rows import StepRows, TrainingRow
from tests.helpers.gradients import make_trainer, tiny_model
from tests.helpers.records import END


def source(function: Any) -> str:
    return inspect.getsource(inspect.unwrap(function))


def parameters(function: Any) -> list[str]:
    return list(inspect.signature(inspect.unwrap(function)).parameters)


def test_the_version_is_one_that_was_read() -> None:
    assert trl.__version__.split(".")[:2] == ["1", "16"]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (GRPOTrainer._prepare_inputs, ["self", "generation_batch"]),
        (GRPOTrainer.training_step, ["self", "model", "inputs", "num_items_in_batch"]),
        (GRPOTrainer._compute_loss, ["self", "model", "inputs"]),
        (GRPOTrainer.get_train_dataloader, ["self"]),
        (Trainer._get_grad_norm, ["self", "model", "grad_norm"]),
        (Trainer.floating_point_ops, ["self", "inputs"]),
        (Trainer.compute_loss_context_manager, ["self"]),
        (Trainer.save_model, ["self", "output_dir", "_internal_call"]),
        (Trainer._save_optimizer_and_scheduler, ["self", "output_dir"]),
        (Trainer._save_scaler, ["self", "output_dir"]),
        (Trainer._save_rng_state, ["self", "output_dir"]),
        (Trainer._load_from_checkpoint, ["self", "resume_from_checkpoint", "model"]),
        (GRPOTrainer._send_telemetry, ["self"]),
    ],
)
def test_the_signatures_that_are_called_or_overridden(function: Any, expected: list[str]) -> None:
    assert parameters(function) == expected


def test_the_log_probs_come_first_and_cover_the_completion() -> None:
    names = parameters(GRPOTrainer._get_per_token_logps_and_entropies)
    assert names[:5] == ["self", "model", "input_ids", "attention_mask", "logits_to_keep"]
    text = source(GRPOTrainer._get_per_token_logps_and_entropies)
    assert "return logps, entropies, aux_loss" in text


def test_the_loss_reads_no_key_that_a_micro_batch_lacks() -> None:
    """Keys read as inputs["…"] must be there, apart from those of settings that are off."""
    text = source(GRPOTrainer._compute_loss)
    read = set(re.findall(r'inputs\["(\w+)"\]', text))
    off = {"ref_per_token_logps", "importance_sampling_ratio"}  # beta > 0; vLLM
    row = TrainingRow((1, 20), (0, 1), (0.0, -1.0), 1.0, "a", 0)
    for batch in (collate([row], END, "cpu"), blank(END, "cpu")):
        assert read - off == (set(batch) | {"num_items_in_batch"}) - {"sampled_logprobs"}
    # Absent, so that the ratio is 1 in value and the log-probs are the trainer's own.
    assert 'inputs.get("old_per_token_logps")' in text


def test_what_is_exchanged_between_processes_in_the_loss_is_only_for_the_log() -> None:
    """`no_exchange` keeps these calls within the process: none may reach the loss."""
    text = source(GRPOTrainer._compute_loss)
    for line in text.splitlines():
        if "accelerator.gather(" in line or "gather_for_metrics(" in line:
            assert (
                "_metrics[mode]" in line
                or "gathered_low_clip" in line
                or ("gathered_high_clip" in line)
            )
    before_log = text.split("# Log the metrics")[0]
    reduced = re.findall(r"accelerator\.reduce\((.*?)\)", before_log)
    assert reduced == ['self._entropy_window_stats, reduction="sum"']  # adaptive entropy, off
    accelerator = Accelerator(cpu=True)
    assert "gather" not in vars(accelerator)
    assert "reduce" not in vars(accelerator)


def test_the_fused_head_asks_whether_there_is_triton_only_to_leave_out_the_prompts() -> None:
    """`no_scores_of_prompts` answers for it on a CPU; which kernel runs is asked elsewhere."""
    assert inspect.getsource(trl_utils).count("_use_triton(") == 1
    text = source(trl_utils.add_fused_lm_head)
    assert "compact = _use_triton(hidden_states.device)" in text
    assert "masked_scatter" in text  # keeps a micro-batch without any score differentiable


def test_prompts_are_not_scored_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows of 5 and 8 tokens whose shortest prompt has 3, the other 2 + 5 are scored."""
    scored: list[int] = []
    usual = trl_utils._ChunkedLogProbFunction.apply

    def watched(hidden: torch.Tensor, *rest: Any) -> Any:
        scored.append(len(hidden))
        return usual(hidden, *rest)

    monkeypatch.setattr(trl_utils._ChunkedLogProbFunction, "apply", watched)
    rows = (
        TrainingRow((1, 2, 3, 20, END), (0, 0, 0, 1, 1), (0.0,) * 5, 1.0, "a", 0),
        TrainingRow((1, 2, 3, 4, 5, 6, 20, END), (0,) * 6 + (1, 1), (0.0,) * 8, -1.0, "b", 0),
    )
    make_trainer(tiny_model(), lambda step: StepRows(rows)).run_steps(1, 1)
    assert scored == [2 + 5]


def test_the_loss_is_divided_by_the_tokens_of_the_step_per_process() -> None:
    text = source(GRPOTrainer._compute_loss)
    assert 'inputs["num_items_in_batch"].clamp(min=1.0) / self.accelerator.num_processes' in text
    assert "(per_token_loss * mask).sum() / normalizer" in text


def test_the_loop_asks_for_the_norm_before_the_optimiser_and_then_ends_the_step() -> None:
    loop = source(Trainer._run_epoch)
    order = [
        "self.training_step(model, inputs, num_items_in_batch)",
        "self._get_grad_norm(model, grad_norm=grad_norm)",
        "self.optimizer.step()",
        "self.lr_scheduler.step()",
        "model.zero_grad()",
        "self.state.global_step += 1",
        "self.callback_handler.on_step_end(",
    ]
    places = [loop.index(part) for part in order]
    assert places == sorted(places)


def test_transformers_reads_pickles_of_a_state_as_data_only() -> None:
    for function in (Trainer._load_optimizer_and_scheduler, Trainer._load_rng_state):
        text = source(function)
        assert text.count("torch.load(") == text.count("weights_only=True") or (
            "weights_only=False" not in text
        )


def test_the_arguments_leave_nothing_of_trl_switched_on() -> None:
    arguments = make_trainer(tiny_model(), lambda step: StepRows(()), steps=3).args
    assert isinstance(arguments, GRPOConfig)
    expected = {
        "beta": 0.0,
        "loss_type": "dapo",
        "importance_sampling_level": "token",
        "num_iterations": 1,
        "steps_per_generation": 1,
        "gradient_accumulation_steps": 1,
        "max_steps": 3,
        "temperature": 0.6,
        "use_vllm": False,
        "off_policy_mask_threshold": None,
        "top_entropy_quantile": 1.0,
        "entropy_coef": 0.0,
        "delta": None,
        "log_completions": False,
        "disable_tqdm": True,
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "fp16": False,
        "push_to_hub": False,
    }
    assert {name: getattr(arguments, name) for name in expected} == expected
    assert str(arguments.save_strategy.value) == "no"
    assert str(arguments.logging_strategy.value) == "no"


def test_the_fused_head_divides_logits_by_the_temperature() -> None:
    """B27: the log-probabilities of the loss are those of softmax(logits / temperature)."""
    model = tiny_model()
    trainer = make_trainer(model, lambda step: StepRows(()), temperature=0.5)
    ids = torch.tensor([[1, 2, 20, 21]])
    with torch.no_grad():
        found, _, _ = trainer._get_per_token_logps_and_entropies(
            model, ids, torch.ones_like(ids), 2
        )
        logits = model(ids).logits[0] / 0.5
    expected = logits.log_softmax(-1)[[1, 2], [20, 21]]
    torch.testing.assert_close(found[0], expected, rtol=1e-5, atol=1e-5)

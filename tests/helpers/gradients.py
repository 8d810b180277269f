"""A tiny random model and the trainer around it, for tests of the gradient."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.helpers.records import END, TEMPERATURE

VOCABULARY = 32


def tiny_model(*, seed: int = 0, **changes: Any) -> LlamaForCausalLM:
    """Hidden size = vocabulary, so that a gradient on the last hidden state is 0 exactly where the
    gradient on the logits is: the head between them is an invertible matrix."""
    torch.manual_seed(seed)
    settings = {
        "vocab_size": VOCABULARY,
        "hidden_size": VOCABULARY,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "initializer_range": 0.3,
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": END,
        "pad_token_id": END,
    }
    return LlamaForCausalLM(LlamaConfig(**{**settings, **changes}))


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    words = {f"w{index}": index for index in range(VOCABULARY)}
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel(words, unk_token="w0")),
        eos_token=f"w{END}",
        pad_token=f"w{END}",
    )


Gradients = dict[str, torch.Tensor]


def gradients(model: torch.nn.Module) -> Gradients:
    return {
        name: torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.clone()
        for name, parameter in model.named_parameters()
    }


def relative_error(ours: torch.Tensor, right: torch.Tensor) -> float:
    """L2 norm of the difference over that of the right one."""
    difference = ours.double() - right.double()
    return float(difference.norm() / right.double().norm())


def make_trainer(
    model: torch.nn.Module,
    play_step: Callable[[int], Any],
    *,
    steps: int = 1,
    tokens_per_micro_batch: int = 1000,
    temperature: float = TEMPERATURE,
    on_step_end: Callable[[int, Any], None] | None = None,
    on_micro_batch: Callable[[], None] | None = None,
    **train: Any,
) -> Any:
    """The trainer under test around a model and rows made elsewhere; clipping off."""
    from deliberation.train.config import TrainConfig
    from deliberation.train.grpo import DialogueGRPOTrainer

    settings = {"learning_rate": 1e-2, "max_grad_norm": 0.0, **train}
    return DialogueGRPOTrainer(
        model=model,
        tokenizer=tiny_tokenizer(),
        pad_id=END,
        config=TrainConfig(steps=steps, tokens_per_micro_batch=tokens_per_micro_batch, **settings),
        temperature=temperature,
        seed=0,
        play_step=play_step,
        on_step_end=on_step_end,
        on_micro_batch=on_micro_batch,
    )


def load_gradients(path: Path) -> Gradients:
    loaded: Gradients = torch.load(path, weights_only=True)
    return loaded

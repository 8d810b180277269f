"""A tiny causal language model made in code, for the 260 tokens of `byte_tokenizer`."""

from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase

from tests.helpers.tokenizers import IM_END, PAD, byte_tokenizer


def tiny_model(seed: int = 0, **overrides: Any) -> LlamaForCausalLM:
    """Two layers, about 63 000 random parameters, in eval mode; the global random state stays.

    `overrides` go to `LlamaConfig`. With `initializer_range=0.3` the distributions are far from
    uniform, as a trained model's are.
    """
    settings = {
        "vocab_size": 260,
        "hidden_size": 48,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": IM_END,
        "pad_token_id": PAD,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = LlamaConfig(**(settings | overrides))
        model: LlamaForCausalLM = LlamaForCausalLM(config)  # type: ignore[no-untyped-call]
    model.eval()  # type: ignore[no-untyped-call]
    return model


def save_tiny(
    folder: Path, tokenizer: PreTrainedTokenizerBase | None = None, **overrides: Any
) -> Path:
    """The tiny model and a tokenizer, saved as a model folder."""
    tiny_model(**overrides).save_pretrained(folder)
    (tokenizer or byte_tokenizer()).save_pretrained(folder)
    return folder

"""Attention for one new token a row, without copying the cache for models with grouped heads.

Where several query heads share one key head and there is padding, transformers repeats keys and
values for each query head, at each token: on a CPU a third of the time of decoding. With a single
query position the heads of a group can take the place of query positions instead: same numbers,
no copy. Passes with more than one query position go to transformers' own function.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "deliberation_grouped_sdpa"


def grouped_sdpa(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **options: Any,
) -> tuple[Tensor, None]:
    """As transformers' `sdpa_attention_forward`; query (B, H, Q, D), key and value (B, G, L, D)."""
    rows, heads, queries, size = query.shape
    shared_mask = attention_mask is None or attention_mask.shape[1] == 1
    further = options.get("position_bias") is not None or options.get("cache") is not None
    if queries != 1 or not shared_mask or further or options.get("dropout"):
        result: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, **options
        )
        return result
    groups = key.shape[1]
    output = torch.nn.functional.scaled_dot_product_attention(
        query.reshape(rows, groups, heads // groups, size),
        key,
        value,
        attn_mask=attention_mask,
        scale=options.get("scaling"),
    )
    return output.reshape(rows, 1, heads, value.shape[-1]), None


AttentionInterface.register(NAME, grouped_sdpa)
AttentionMaskInterface.register(NAME, sdpa_mask)


@contextmanager
def grouped_attention(model: PreTrainedModel) -> Iterator[None]:
    """Inside, a model that uses `sdpa` uses the function above; others are left alone."""
    config = model.config
    # Setting it reaches into the configs of parts (vision towers), which may use other functions.
    if config._attn_implementation != "sdpa" or config.sub_configs:
        yield
        return
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = "sdpa"

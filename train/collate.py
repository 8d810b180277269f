"""Rows as the tensors that TRL's `_compute_loss` reads.

Whatever is padding is known from lengths, never from token values: the pad token may well be the
end-of-turn token. The prompt is cut to the same length in every row of a micro-batch and what is
left of it goes with the completion, under the mask. So nothing is padded on the left, and every
token keeps the position at which it was sampled, also in models with absolute positions.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from .rows import TrainingRow


def collate(
    rows: Sequence[TrainingRow], pad_id: int, device: torch.device | str
) -> dict[str, Tensor]:
    """A micro-batch of B rows, the longest of L tokens, all with a prompt of P tokens.

    Returns:
        `prompt_ids`, `prompt_mask`: (B, P) int64; `completion_ids`, `completion_mask`,
        `tool_mask`: (B, L - P) int64, where `completion_mask` is 1 on real tokens and `tool_mask`
        on trained ones; `advantages`: (B,) float32; `sampled_logprobs`: (B, L - P) float32, what
        the sampler recorded, 0 where nothing is trained.
    """
    prompt = min(row.prompt_length for row in rows)
    length = max(len(row.ids) for row in rows)

    def padded(values: Sequence[Sequence[int]] | Sequence[Sequence[float]], fill: float) -> Tensor:
        kind = torch.float32 if isinstance(fill, float) else torch.int64
        filled = [[*row, *[fill] * (length - len(row))] for row in values]
        return torch.tensor(filled, dtype=kind, device=device)

    ids = padded([row.ids for row in rows], pad_id)
    real = padded([[1] * len(row.ids) for row in rows], 0)
    trained = padded([row.mask for row in rows], 0)
    logprobs = padded([row.logprobs for row in rows], 0.0)
    return {
        "prompt_ids": ids[:, :prompt],
        "prompt_mask": real[:, :prompt],
        "completion_ids": ids[:, prompt:],
        "completion_mask": real[:, prompt:],
        "tool_mask": trained[:, prompt:],
        "advantages": torch.tensor([row.advantage for row in rows], device=device),
        "sampled_logprobs": logprobs[:, prompt:],
    }


def blank(pad_id: int, device: torch.device | str) -> dict[str, Tensor]:
    """A micro-batch in which nothing is trained: it adds exactly nothing to any gradient.

    A process that has fewer micro-batches than another runs these, since each forward and backward
    pass may be an operation of all processes together.
    """
    ids = torch.full((1, 1), pad_id, dtype=torch.int64, device=device)
    one, zero = torch.ones_like(ids), torch.zeros_like(ids)
    return {
        "prompt_ids": ids,
        "prompt_mask": one,
        "completion_ids": ids.clone(),
        "completion_mask": one.clone(),
        "tool_mask": zero,
        "advantages": torch.zeros(1, device=device),
        "sampled_logprobs": torch.zeros(1, 1, device=device),
    }

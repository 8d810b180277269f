"""Draw one token for each row of a batch: Gumbel-max with keyed noise, and its log-probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from deliberation.episode import Sampling
from deliberation.errors import ModelError
from deliberation.noise import gumbel_at, gumbel_noise

CANDIDATES = 256
"""How many of the likeliest tokens top-p looks at first: sorting a whole vocabulary for each token
costs more than all the rest of sampling, and these nearly always hold the nucleus."""


@dataclass(frozen=True)
class Draws:
    """One entry a row; fields as in `Generation`."""

    ids: list[int]
    logprobs: list[float]
    truncated_logprobs: list[float | None]
    """None where neither top-p nor top-k is set."""


def draw(
    logits: Tensor,
    samplings: Sequence[Sampling],
    keys: Sequence[int],
    positions: Sequence[int],
) -> Draws:
    """Draw a token from each row of `logits` (B, V).

    top-k is applied before top-p, and top-p to what top-k left, renormalised, as vLLM and
    transformers do. The nucleus is the fewest likeliest tokens whose mass reaches `top_p`.

    Args:
        logits: any float type; everything is worked out in float32.
        samplings: temperature, top-p and top-k of each row.
        keys: 64 bits each; with `positions` they determine the draw.
        positions: which token of its sequence is drawn, from 0.

    Raises:
        ModelError: the logits are not finite numbers.
    """
    temperatures = [sampling.temperature or 1.0 for sampling in samplings]
    scaled = logits.float() / torch.tensor(temperatures, device=logits.device)[:, None]
    log_mass = scaled.logsumexp(-1)
    size = len(samplings)
    ids = torch.zeros(size, dtype=torch.int64, device=logits.device)
    kept = torch.zeros(size, device=logits.device)
    whole = [row for row in range(size) if not samplings[row].truncates]
    if whole:
        ids[whole] = _from_whole(scaled, whole, samplings, keys, positions)
    cut = [row for row in range(size) if samplings[row].truncates]
    width = CANDIDATES
    while cut:
        cut = _from_candidates(
            scaled, log_mass, cut, width, samplings, keys, positions, ids=ids, kept=kept
        )
        width *= 16
    logprobs = scaled.gather(1, ids[:, None])[:, 0] - log_mass
    # One transfer from the device for everything.
    table = torch.stack([ids.double(), logprobs.double(), (logprobs - kept).double()]).tolist()
    if not all(value - value == 0 for value in table[1]):
        raise ModelError(
            "The model's logits are not finite numbers: its weights are broken or overflow in "
            "their dtype; try float32, or another checkpoint."
        )
    return Draws(
        ids=[int(token) for token in table[0]],
        logprobs=table[1],
        truncated_logprobs=[
            value if sampling.truncates else None
            for value, sampling in zip(table[2], samplings, strict=True)
        ],
    )


def _from_whole(
    scaled: Tensor,
    rows: list[int],
    samplings: Sequence[Sampling],
    keys: Sequence[int],
    positions: Sequence[int],
) -> Tensor:
    """Token ids for rows that keep the whole vocabulary."""
    scores = scaled[rows]
    hot = [place for place, row in enumerate(rows) if samplings[row].temperature > 0]
    if hot:
        scores[hot] += gumbel_noise(
            [keys[rows[place]] for place in hot],
            [positions[rows[place]] for place in hot],
            scaled.shape[1],
            scaled.device,
        )
    return scores.argmax(-1)


def _from_candidates(
    scaled: Tensor,
    log_mass: Tensor,
    rows: list[int],
    width: int,
    samplings: Sequence[Sampling],
    keys: Sequence[int],
    positions: Sequence[int],
    *,
    ids: Tensor,
    kept: Tensor,
) -> list[int]:
    """Draw for truncating rows from their `width` likeliest tokens.

    Writes the token into `ids` and the log of the mass that truncation left into `kept`. Returns
    the rows whose truncation reaches beyond the candidates.
    """
    vocab = scaled.shape[1]
    values, columns = scaled[rows].topk(min(width, vocab), dim=-1, sorted=True)
    top_k = [samplings[row].top_k or vocab for row in rows]
    limit = torch.tensor(top_k, device=scaled.device)[:, None]
    allowed = torch.arange(values.shape[1], device=scaled.device)[None, :] < limit
    mass = (values - log_mass[rows][:, None]).double().exp() * allowed
    # What top-k left is renormalised; without top-k the mass of the whole vocabulary is 1.
    has_k = torch.tensor([k < vocab for k in top_k], device=scaled.device)
    total = torch.where(has_k, mass.sum(-1), torch.ones_like(mass[:, 0]))
    share = mass / total[:, None]
    top_p = torch.tensor([samplings[row].top_p for row in rows], device=scaled.device)
    keep = allowed & ((share.cumsum(-1) - share < top_p[:, None]) | (top_p[:, None] >= 1))
    hot = torch.tensor([float(samplings[row].temperature > 0) for row in rows])
    noise = gumbel_at([keys[row] for row in rows], [positions[row] for row in rows], columns)
    scores = (values + noise * hot.to(scaled.device)[:, None]).masked_fill(~keep, -torch.inf)
    choice = scores.argmax(-1, keepdim=True)
    ids[rows] = columns.gather(1, choice)[:, 0]
    kept[rows] = (mass * keep).sum(-1).log().float()
    if values.shape[1] == vocab:
        return []
    # Without top-k the nucleus is whole where it ends among the candidates; with it, all k must be
    # among them, because top-p is taken of their mass.
    return [
        row
        for row, last_kept, k in zip(rows, keep[:, -1].tolist(), top_k, strict=True)
        if (last_kept if k >= vocab else k > values.shape[1])
    ]

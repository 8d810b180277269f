"""Noise for Gumbel-max sampling that depends on nothing but its key, position and column.

Counter-based: value (key, position, column) is a function, not the next draw of a stream. So the
same token is drawn whatever a request is batched with, on every device, and after every resume.

The integers are those of splitmix64 (Steele, Lea, Flood 2014; Vigna's reference code): output
number `position` of a generator seeded with `key` seeds a second generator, whose output number
`column` gives the value. torch has no unsigned 64-bit arithmetic, but int64 wraps around the same
way; only right shifts need their sign bits masked away.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def _signed(value: int) -> int:
    """The int64 with the same 64 bits."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value


_GAMMA = _signed(0x9E3779B97F4A7C15)
_MIX_1 = _signed(0xBF58476D1CE4E5B9)
_MIX_2 = _signed(0x94D049BB133111EB)


def splitmix64(seeds: Tensor, index: Tensor) -> Tensor:
    """Output number `index` (from 0) of the generator seeded with `seeds`; both int64, broadcast.

    The result holds the 64 bits as int64.
    """
    z = seeds + (index + 1) * _GAMMA
    z ^= (z >> 30) & ((1 << 34) - 1)
    z *= _MIX_1
    z ^= (z >> 27) & ((1 << 37) - 1)
    z *= _MIX_2
    z ^= (z >> 31) & ((1 << 33) - 1)
    return z


def uniform_at(keys: Sequence[int], positions: Sequence[int], columns: Tensor) -> Tensor:
    """Uniform values strictly between 0 and 1, (B, K), float64 with 53 random bits.

    Args:
        keys: one 64-bit key a row.
        positions: one place in its sequence a row, from 0.
        columns: which values of the row, (B, K) or (1, K) or (K,), int64; gives the device.
    """
    device = columns.device
    key = torch.tensor([_signed(key) for key in keys], dtype=torch.int64, device=device)
    position = torch.tensor(list(positions), dtype=torch.int64, device=device)
    bits = splitmix64(splitmix64(key, position)[:, None], columns)
    bits = (bits >> 11) & ((1 << 53) - 1)
    # Half a step up: 0 would give minus infinity below. The topmost value must not round to 1.
    return bits.double().add_(0.5).mul_(2.0**-53).clamp_(max=1 - 2.0**-53)


def gumbel_at(keys: Sequence[int], positions: Sequence[int], columns: Tensor) -> Tensor:
    """Standard Gumbel noise for the given columns, (B, K), float32; see `uniform_at`.

    Worked out in float64: devices differ in the last bit of a logarithm, and the rounding to
    float32 hides it.
    """
    return uniform_at(keys, positions, columns).log_().neg_().log_().neg_().float()


def gumbel_noise(
    keys: Sequence[int],
    positions: Sequence[int],
    vocab: int,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Standard Gumbel noise for a whole vocabulary, (B, vocab), float32.

    `argmax(logits / temperature + noise)` is then a draw from softmax(logits / temperature).
    """
    return gumbel_at(keys, positions, torch.arange(vocab, device=device))

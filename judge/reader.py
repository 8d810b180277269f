"""What a frozen language model makes of a text: its hidden states, averaged over parts of it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy import float32
from numpy.typing import NDArray
from torch import Tensor, nn

Vector = NDArray[float32]


@dataclass(frozen=True)
class Asked:
    """A text in parts, and which of the parts to average the hidden states of."""

    parts: tuple[str, ...]
    pooled: tuple[int, ...]


class FrozenReader:
    """Reads texts with a model that nobody trains: eval mode, no gradients, the lower layers only.

    The model must be the reader's own: the layers above `layer`, the final norm and the head that
    predicts tokens are taken off it, which saves their time and memory.

    Not thread-safe: call it in the forward worker. A text's reading depends on what shares the
    batch with it by rounding only (about 1e-5): texts are padded on the right, where causal
    attention cannot look.
    """

    def __init__(self, model: Any, tokenizer: Any, layer: int) -> None:
        self.tokenizer = tokenizer
        self._blocks: Any = model.base_model
        self._blocks.layers = self._blocks.layers[:layer]
        self._blocks.norm = nn.Identity()
        self._blocks.eval().requires_grad_(False)

    @torch.inference_mode()
    def read(self, asked: Sequence[Asked]) -> list[Vector]:
        """For each text one vector: the means of its pooled parts, one after the other."""
        rows = [self._row(one) for one in asked]
        longest = max(len(ids) for ids, _ in rows)
        padded = torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in rows])
        states: Tensor = self._blocks(input_ids=padded, use_cache=False).last_hidden_state
        return [
            torch.cat([states[place, start:end].mean(0) for start, end in spans]).numpy()
            for place, (_, spans) in enumerate(rows)
        ]

    def _row(self, asked: Asked) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of a text, and where the parts to pool lie."""
        ids: list[int] = []
        spans = []
        for part in asked.parts:
            start = len(ids)
            # Control tokens that somebody wrote into the text stay text.
            ids += self.tokenizer(part, add_special_tokens=False, split_special_tokens=True)[
                "input_ids"
            ]
            spans.append((start, len(ids)))
        return ids, [spans[part] for part in asked.pooled]


def weights_hash(model: nn.Module) -> str:
    """SHA-256 over names, shapes and values of all parameters, in float32."""
    digest = hashlib.sha256()
    for name, value in sorted(model.named_parameters()):
        digest.update(f"{name}{tuple(value.shape)}".encode())
        digest.update(value.detach().to("cpu", torch.float32).contiguous().numpy().tobytes())
    return digest.hexdigest()

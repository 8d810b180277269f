"""What a seat asks of a sampler. Imports nothing heavy."""

from dataclasses import dataclass
from typing import Protocol

from deliberation.episode import Sampling, StopReason


@dataclass(frozen=True)
class SampleRequest:
    """One prompt to continue."""

    prompt_ids: tuple[int, ...]
    sampling: Sampling
    stop_ids: frozenset[int]
    """Sampling ends with the first of these; it is part of the sample."""
    key: int
    """64 bits that determine every random draw of this request, whatever it is batched with."""


@dataclass(frozen=True)
class Sample:
    """What was sampled; fields as in `Generation`."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    stop: StopReason
    truncated_logprobs: tuple[float, ...] | None = None


class Sampler(Protocol):
    weights: str
    """Version of the weights that sample now."""
    context_tokens: int | None
    """Longest prompt plus reply, in tokens; None where there is no limit."""

    async def sample(self, request: SampleRequest) -> Sample:
        """Continue the prompt. Requests that wait at the same time may share a batch.

        A prompt that leaves room for fewer than `max_tokens` gets what room there is; one that
        leaves none gets an empty sample with `StopReason.CONTEXT_FULL`.
        """
        ...

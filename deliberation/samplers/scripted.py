"""A sampler that says what it is told to, for tests and demonstrations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deliberation.chat import Renderer
from deliberation.episode import StopReason
from deliberation.samplers.base import Sample, SampleRequest

Script = Sequence[str] | Callable[[SampleRequest, int], str]
"""The replies in order, or a function of the request and the number of the call (from 0)."""


class ScriptedSampler:
    """Replies from a script, encoded and ended as the renderer's model would.

    A scripted token is certain, so its log-probability is 0. A reply longer than the limit is cut
    there, as a model's would be. Calls are counted in the order in which they come.
    """

    def __init__(
        self,
        script: Script,
        renderer: Renderer,
        *,
        weights: str = "scripted",
        context_tokens: int | None = None,
    ) -> None:
        self.weights = weights
        self.context_tokens = context_tokens
        self.requests: list[SampleRequest] = []
        """All requests so far, in order."""
        self._script = script
        self._renderer = renderer

    async def sample(self, request: SampleRequest) -> Sample:
        """See `Sampler.sample`. Raises `IndexError` where a list of replies is used up."""
        number = len(self.requests)
        self.requests.append(request)
        limit = request.sampling.max_tokens
        if self.context_tokens is not None:
            limit = min(limit, self.context_tokens - len(request.prompt_ids))
        if limit <= 0:
            return _certain(request, (), StopReason.CONTEXT_FULL)
        ids = self._renderer.text_ids(self._reply(request, number))
        if request.stop_ids:
            ids += (min(request.stop_ids),)
        stop = StopReason.END_OF_TURN if len(ids) <= limit else StopReason.LENGTH
        return _certain(request, ids[:limit], stop)

    def _reply(self, request: SampleRequest, number: int) -> str:
        if callable(self._script):
            return self._script(request, number)
        if number >= len(self._script):
            raise IndexError(
                f"the script has {len(self._script)} replies, and reply {number + 1} was asked for"
            )
        return self._script[number]


def _certain(request: SampleRequest, ids: tuple[int, ...], stop: StopReason) -> Sample:
    zeros = (0.0,) * len(ids)
    return Sample(ids, zeros, stop, zeros if request.sampling.truncates else None)

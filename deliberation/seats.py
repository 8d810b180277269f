"""Who can sit in a seat: a model in this process, a model behind an endpoint, or a person."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from deliberation.chat import Renderer
from deliberation.config import PolicyConfig
from deliberation.engine import Seat
from deliberation.episode import Generation, Message, Phase, StopReason
from deliberation.modelref import ModelRef, parse_model
from deliberation.models import load_model, open_renderer
from deliberation.samplers.base import Sampler, SampleRequest
from deliberation.samplers.endpoint import DEADLINE_S, ChatEndpoint
from deliberation.thinking import KNOWN_TAGS, split_thinking


class ModelSeat:
    """A model whose tokens we see: a renderer and a sampler. Both may be shared between seats."""

    def __init__(self, renderer: Renderer, sampler: Sampler) -> None:
        self.renderer = renderer
        self.sampler = sampler

    @property
    def weights(self) -> str:
        """Version of the weights that speak now: the sampler's."""
        return self.sampler.weights

    @weights.setter
    def weights(self, version: str) -> None:
        self.sampler.weights = version

    async def speak(self, messages: list[Message], phase: Phase, key: int) -> Generation:
        """Render, sample, and record both exactly."""
        prompt_ids = self.renderer.render(messages)
        weights = self.sampler.weights
        request = SampleRequest(prompt_ids, phase.sampling, self.renderer.stop_ids, key)
        sample = await self.sampler.sample(request)
        text, visible = self.renderer.read(sample.ids)
        return Generation(
            prompt_ids=prompt_ids,
            ids=sample.ids,
            logprobs=sample.logprobs,
            truncated_logprobs=sample.truncated_logprobs,
            sampling=phase.sampling,
            stop=sample.stop,
            weights=weights,
            text=text,
            visible=visible,
        )


class EndpointSeat:
    """A model behind an OpenAI-compatible endpoint. It takes and gives text: no ids, no log-probs,
    so it cannot be trained.

    Args:
        ref: `openai:NAME[@URL]` or `vllm:URL#NAME`.
        deadline_s: seconds for one try.
    """

    def __init__(self, ref: ModelRef, *, deadline_s: float = DEADLINE_S) -> None:
        self.weights = str(ref)
        self._endpoint = ChatEndpoint(ref, deadline_s=deadline_s)

    async def speak(self, messages: list[Message], phase: Phase, key: int) -> Generation:
        """Raises `ModelError` where the endpoint cannot be used; see `ChatEndpoint.complete`."""
        reply = await self._endpoint.complete(messages, phase.sampling, key)
        tags = next((tags for tags in KNOWN_TAGS if tags.closing in reply.text), KNOWN_TAGS[0])
        _, visible = split_thinking(reply.text, tags, opened=False)
        return _spoken(phase, self.weights, reply.text, visible, reply.stop)

    async def close(self) -> None:
        await self._endpoint.close()


class PersonSeat:
    """A person. `ask` is given what this seat observes and returns what the person says.

    It runs in a thread of its own, so that the other dialogues go on; the thread does not keep the
    process alive, so that Ctrl-C ends it while nobody has answered.
    """

    def __init__(self, ask: Callable[[list[Message]], str]) -> None:
        self.weights = "person"
        self._ask = ask

    async def speak(self, messages: list[Message], phase: Phase, key: int) -> Generation:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[str] = loop.create_future()

        def settle(text: str | None, error: BaseException | None) -> None:
            if answer.done():
                return
            if error is not None:
                answer.set_exception(error)
            elif text is not None:
                answer.set_result(text)

        def ask() -> None:
            text, problem = None, None
            try:
                text = self._ask(messages)
            except BaseException as error:  # noqa: BLE001  (handed on to whoever awaits it)
                problem = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, text, problem)

        threading.Thread(target=ask, name="person", daemon=True).start()
        text = await answer
        return _spoken(phase, self.weights, text, text.strip(), StopReason.END_OF_TURN)


def _spoken(phase: Phase, weights: str, text: str, visible: str, stop: StopReason) -> Generation:
    """A generation of which only the text is known."""
    return Generation(
        prompt_ids=(),
        ids=(),
        logprobs=(),
        sampling=phase.sampling,
        stop=stop,
        weights=weights,
        text=text,
        visible=visible,
    )


def open_seat(
    model: str,
    *,
    policy: PolicyConfig,
    max_batch: int,
    prompt_tokens: int | None = None,
) -> Seat:
    """The seat that a model string names.

    Args:
        model: see `deliberation.modelref.GRAMMAR`.
        policy: its `dtype`, `device`, `context_tokens`, `chat_template` and `thinking` are used for
            a model in this process.
        max_batch: `sampling.max_batch`.
        prompt_tokens: `protocol.prompt_tokens`.

    Raises:
        ModelError: it cannot be opened; tokenizer and chat template are checked before weights.
    """
    ref = parse_model(model)
    if ref.remote:
        return EndpointSeat(ref)
    renderer = open_renderer(
        ref,
        thinking=policy.thinking,
        prompt_tokens=prompt_tokens,
        chat_template=policy.chat_template,
    )
    # Imported late: torch takes seconds, and an endpoint or a person needs none of it.
    from deliberation.samplers.transformers import TransformersSampler

    return ModelSeat(
        renderer,
        TransformersSampler(
            load_model(ref, dtype=str(policy.dtype), device=policy.device),
            pad_id=renderer.pad_id,
            weights=str(ref),
            context_tokens=policy.context_tokens,
            max_batch=max_batch,
        ),
    )

"""Text from an OpenAI-compatible endpoint: a hosted model, `vllm serve`, or another server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deliberation.episode import Message, Missing, Sampling, StopReason
from deliberation.errors import ModelError
from deliberation.modelref import ModelRef
from deliberation.remote import Ask, Failure, RemoteModel

DEADLINE_S = 180.0
TRIES = 3
IN_FLIGHT = 64
"""Dialogues that may wait for the server at the same time."""

_REMEDIES = {
    Missing.TIMEOUT: "try again, or lower the tokens of a turn",
    Missing.RATE_LIMIT: "try again later",
    Missing.REFUSAL: "use another model",
    Missing.FILTER: "use another model",
}


@dataclass(frozen=True)
class Said:
    """What the server said."""

    text: str
    stop: StopReason


class ChatEndpoint:
    """One model behind an endpoint, as a speaker: a turn that cannot be had ends the run.

    Args:
        ref: `openai:NAME[@URL]` or `vllm:URL#NAME`.
        deadline_s: seconds for one try.

    Raises:
        ModelError: the model is no server, or `OPENAI_API_KEY` is not set and the URL is not local.
    """

    def __init__(self, ref: ModelRef, *, deadline_s: float = DEADLINE_S) -> None:
        self._ref = ref
        self._model = RemoteModel(ref, concurrency=IN_FLIGHT, deadline_s=deadline_s, tries=TRIES)

    async def complete(self, messages: Sequence[Message], sampling: Sampling, key: int) -> Said:
        """The server's reply. `key` is sent as a seed, for servers that heed it.

        Raises:
            ModelError: no connection, no such model, no access, a refusal, or no reply in time.
        """
        if sampling.top_k and self._ref.url is None:
            raise ModelError(
                f"{self._ref}: OpenAI's endpoint has no top_k; set sampling.*.top_k=0."
            )
        outcome = await self._model.ask(
            Ask(
                messages=_chat(messages),
                max_tokens=sampling.max_tokens,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                top_k=sampling.top_k,
                seed=key,
                purpose="turn",
            )
        )
        if not isinstance(outcome, Failure):
            cut = outcome.cut
            return Said(outcome.text, StopReason.LENGTH if cut else StopReason.END_OF_TURN)
        if outcome.reason is Missing.CONTEXT_FULL:
            return Said("", StopReason.CONTEXT_FULL)
        remedy = _REMEDIES.get(outcome.reason, "look at the server, or use another model")
        raise ModelError(f"{self._ref}: {outcome.detail}; {remedy}.")

    async def close(self) -> None:
        await self._model.close()


def _chat(messages: Sequence[Message]) -> tuple[dict[str, str], ...]:
    """As the endpoint takes it. Neighbours of one role become one message: many servers' templates
    demand strict alternation."""
    chat: list[dict[str, str]] = []
    for message in messages:
        if chat and chat[-1]["role"] == message.role:
            chat[-1]["content"] += "\n\n" + message.content
        else:
            chat.append({"role": message.role, "content": message.content})
    return tuple(chat)

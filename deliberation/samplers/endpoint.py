"""Text from an OpenAI-compatible endpoint: a hosted model, `vllm serve`, or another server."""

from __future__ import annotations

import asyncio
import ipaddress
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from deliberation.episode import Message, Sampling, StopReason
from deliberation.errors import ModelError
from deliberation.modelref import ModelRef

if TYPE_CHECKING:
    import openai
    from openai.types.chat import ChatCompletion

KEY_VARIABLE = "OPENAI_API_KEY"
DEADLINE_S = 180.0
RETRIES = 2


@dataclass(frozen=True)
class Reply:
    """What the server said."""

    text: str
    stop: StopReason


class ChatEndpoint:
    """One model behind an endpoint. Opens its connection on first use, in the loop that uses it.

    Args:
        ref: `openai:NAME[@URL]` or `vllm:URL#NAME`.
        deadline_s: seconds for one reply, retries included.

    Raises:
        ModelError: the model is no server, or `OPENAI_API_KEY` is not set and the URL is not local.
    """

    def __init__(self, ref: ModelRef, *, deadline_s: float = DEADLINE_S) -> None:
        if not ref.remote:
            raise ModelError(
                f"{ref}: it is not served; write `openai:NAME[@URL]`, `vllm:URL#NAME`."
            )
        self._ref = ref
        self._deadline_s = deadline_s
        self._key = _api_key(ref)
        self._client: openai.AsyncOpenAI | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def complete(self, messages: list[Message], sampling: Sampling, key: int) -> Reply:
        """The server's reply. `key` is sent as a seed, for servers that heed it.

        Raises:
            ModelError: no connection, no such model, no access, a refusal, or no reply in time.
        """
        import openai

        try:
            async with asyncio.timeout(self._deadline_s):
                completion = await self._open().chat.completions.create(
                    model=self._ref.name,
                    messages=_chat(messages),
                    **self._settings(sampling, key),
                )
        except TimeoutError:
            raise ModelError(
                f"{self._ref}: no reply within {self._deadline_s:g} seconds; try again, or lower "
                "the tokens of a turn."
            ) from None
        except openai.BadRequestError as error:
            if error.code == "context_length_exceeded" or "maximum context" in str(error):
                return Reply("", StopReason.CONTEXT_FULL)
            self._fail(error)
        except openai.OpenAIError as error:
            self._fail(error)
        return self._read(completion)

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    def _open(self) -> openai.AsyncOpenAI:
        import openai

        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:  # a connection belongs to its loop
            self._loop = loop
            self._client = openai.AsyncOpenAI(
                api_key=self._key,
                base_url=_base_url(self._ref),
                timeout=self._deadline_s,
                max_retries=RETRIES,
            )
        return self._client

    def _settings(self, sampling: Sampling, key: int) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": key & 0x7FFFFFFF,
        }
        # OpenAI's own newer models refuse the old name; other servers don't know the new one.
        name = "max_completion_tokens" if self._ref.url is None else "max_tokens"
        settings[name] = sampling.max_tokens
        if sampling.top_k:
            if self._ref.url is None:
                raise ModelError(
                    f"{self._ref}: OpenAI's endpoint has no top_k; set sampling.*.top_k=0."
                )
            settings["extra_body"] = {"top_k": sampling.top_k}
        return settings

    def _read(self, completion: ChatCompletion) -> Reply:
        if not completion.choices:
            raise ModelError(f"{self._ref}: the server sent a reply without any choice; try again.")
        choice = completion.choices[0]
        if choice.message.refusal or choice.finish_reason == "content_filter":
            why = choice.message.refusal or "its content filter stopped the reply"
            raise ModelError(f"{self._ref}: the model refused to speak ({why}); use another model.")
        cut = choice.finish_reason == "length"
        return Reply(
            choice.message.content or "", StopReason.LENGTH if cut else StopReason.END_OF_TURN
        )

    def _fail(self, error: openai.OpenAIError) -> NoReturn:
        """Say it in one sentence. The server's own words may quote a key: only its status is told,
        and the first line where it refused the request itself."""
        import openai

        ref, where = self._ref, _base_url(self._ref) or "api.openai.com"
        match error:
            case openai.APITimeoutError():
                told = f"{where} did not answer in time; try again later."
            case openai.APIConnectionError():
                told = f"{where} cannot be reached; check the URL and that the server runs."
            case openai.AuthenticationError():
                told = f"{where} does not accept the key; set {KEY_VARIABLE} to a valid one."
            case openai.PermissionDeniedError():
                told = f"{where} denies access to this model; use a key that has it."
            case openai.NotFoundError():
                told = f"{where} knows no model {ref.name!r}; check its name and the URL."
            case openai.RateLimitError():
                told = f"{where} limits the rate or the budget is used up; try again later."
            case openai.BadRequestError():
                told = f"{where} refused the request ({_first_line(error.message)}); change it."
            case openai.APIStatusError():
                told = f"{where} answered {error.status_code}; try again later."
            case _:
                told = f"{where} gave no usable reply ({type(error).__name__}); try again later."
        raise ModelError(f"{ref}: {told}") from None


def _chat(messages: list[Message]) -> Any:
    """As the endpoint takes it. Neighbours of one role become one message: many servers' templates
    demand strict alternation."""
    chat: list[dict[str, str]] = []
    for message in messages:
        if chat and chat[-1]["role"] == message.role:
            chat[-1]["content"] += "\n\n" + message.content
        else:
            chat.append({"role": message.role, "content": message.content})
    return chat


def _base_url(ref: ModelRef) -> str | None:
    if ref.url is None:
        return None
    # `vllm serve` tells its address without the path under which it speaks OpenAI's protocol.
    bare = ref.scheme == "vllm" and not urlsplit(ref.url).path
    return ref.url + "/v1" if bare else ref.url


def _api_key(ref: ModelRef) -> str:
    if key := os.environ.get(KEY_VARIABLE):
        return key
    if ref.scheme == "vllm" or (ref.url is not None and _is_local(ref.url)):
        return "none"
    raise ModelError(
        f"{ref}: no API key; set the environment variable {KEY_VARIABLE}, or use a local model."
    )


def _is_local(url: str) -> bool:
    """Whether the host is this machine or its own network."""
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or "." not in host
    return address.is_private or address.is_loopback


def _first_line(text: str) -> str:
    line = text.strip().splitlines()[0] if text.strip() else "no reason given"
    return line if len(line) <= 160 else line[:157] + "…"

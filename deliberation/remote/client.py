"""Asks a model behind an OpenAI-compatible server, as often and as fast as it lets us.

One `RemoteModel` may be used from several event loops; a connection belongs to its loop. Whatever
goes wrong with one question is its own `Failure`; what would go wrong with every question (no
access, no such model, an exhausted quota or budget) is raised and ends the work.
"""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakKeyDictionary

from deliberation.episode import Missing
from deliberation.errors import ModelError
from deliberation.modelref import ModelRef
from deliberation.redaction import redact_text

from .access import api_key, base_url, server_name
from .ledger import Ledger
from .records import Ask, Failure, Reply, ReplyFormat, Usage
from .retry import pause_s, retry_after_s

if TYPE_CHECKING:
    import openai
    from openai.types.chat import ChatCompletion

FORMATS: tuple[ReplyFormat, ...] = ("json_schema", "json_object", "text")
MOST_TOKENS_FACTOR = 4
"""A reply that was cut is asked for again with room for up to so many times `max_tokens`."""
_QUOTA_CODES = ("insufficient_quota", "billing_hard_limit_reached")
_CONTEXT_WORDS = ("context_length_exceeded", "maximum context", "context length")
_OPTIONAL = ("temperature", "top_p", "seed", "top_k")
"""What some servers and reasoning models refuse; it is then left out of every further request."""


@dataclass
class _Connection:
    """What belongs to one event loop."""

    client: openai.AsyncOpenAI
    slots: asyncio.Semaphore
    probing: asyncio.Lock


@dataclass
class RemoteModel:
    """One model behind a server.

    Args:
        ref: `openai:NAME[@URL]` or `vllm:URL#NAME`.
        concurrency: most requests in flight, per event loop.
        deadline_s: seconds until one try is given up.
        tries: most tries of one question, the first included.
        longest_wait_s: a server that asks to wait longer ends the question as rate-limited.
        ledger: books what is paid and holds the budget.

    Raises:
        ModelError: the model is no server, or `OPENAI_API_KEY` is not set and the URL is not local.
    """

    ref: ModelRef
    concurrency: int = 16
    deadline_s: float = 120.0
    tries: int = 5
    longest_wait_s: float = 120.0
    ledger: Ledger = field(default_factory=Ledger)

    def __post_init__(self) -> None:
        if not self.ref.remote:
            raise ModelError(
                f"{self.ref}: it is not served; write `openai:NAME[@URL]`, `vllm:URL#NAME`."
            )
        self._key = api_key(self.ref)
        self._connections: WeakKeyDictionary[asyncio.AbstractEventLoop, _Connection] = (
            WeakKeyDictionary()
        )
        self._left_out: set[str] = set()
        self._refused_names: set[str] = set()
        """Names of the token limit that the server does not know."""
        self._format: ReplyFormat | None = None
        self._probed = False
        self._names_completion_tokens = self.ref.url is None
        self.served_as: str | None = None
        """The model as the server names it, once it has answered."""
        self.counts: Counter[str] = Counter()
        """`questions`, `requests`, and `failed.REASON`."""

    @property
    def reply_format(self) -> ReplyFormat | None:
        """How this server is made to answer in JSON; None before the first such question."""
        return self._format

    async def ask(self, ask: Ask) -> Reply | Failure:
        """The reply, or why there is none.

        Raises:
            ModelError: every further question would fail alike: a server that never answered, no
                access, no such model, a used-up quota.
            BudgetError: the ledger's budget is spent.
        """
        self.counts["questions"] += 1
        connection = self._connect()
        if ask.answer_schema is not None and self._format is None:
            if not self._probed:
                # The first question finds out how the server can be made to answer; the others
                # wait for that. Should it fail for a reason of its own, each finds out for itself.
                async with connection.probing:
                    if not self._probed:
                        outcome = await self._probe(connection, ask)
                        self._probed = True
                        return self._counted(outcome)
            if self._format is None:
                return self._counted(await self._probe(connection, ask))
        return self._counted(await self._tried(connection, ask, self._format or "text"))

    async def close(self) -> None:
        """Close the connection of the running loop."""
        connection = self._connections.pop(asyncio.get_running_loop(), None)
        if connection is not None:
            await connection.client.close()

    def _counted(self, outcome: Reply | Failure) -> Reply | Failure:
        if isinstance(outcome, Failure):
            self.counts[f"failed.{outcome.reason}"] += 1
        return outcome

    def _connect(self) -> _Connection:
        import openai

        loop = asyncio.get_running_loop()
        connection = self._connections.get(loop)
        if connection is None:
            client = openai.AsyncOpenAI(
                api_key=self._key,
                base_url=base_url(self.ref),
                timeout=self.deadline_s,
                max_retries=0,  # tries are counted here, where the server's wishes are heeded
            )
            connection = _Connection(client, asyncio.Semaphore(self.concurrency), asyncio.Lock())
            self._connections[loop] = connection
        return connection

    async def _probe(self, connection: _Connection, ask: Ask) -> Reply | Failure:
        """Ask in the strictest format first. A server that refuses one is asked in the next."""
        for reply_format in FORMATS:
            try:
                outcome = await self._tried(connection, ask, reply_format)
            except _FormatRefusedError:
                continue
            if isinstance(outcome, Reply) or outcome.reason in (
                Missing.PARSE,
                Missing.TRUNCATED,
                Missing.REFUSAL,
                Missing.FILTER,
            ):
                self._format = reply_format
            return outcome
        raise AssertionError("plain text has no format to refuse")

    async def _tried(
        self, connection: _Connection, ask: Ask, reply_format: ReplyFormat
    ) -> Reply | Failure:
        """The question in one format, tried until it is answered or hopeless."""
        usage, room = Usage(), ask.max_tokens
        number = 0
        while True:
            number += 1
            outcome = await self._once(connection, ask, reply_format, room)
            if isinstance(outcome, Reply):
                return outcome.model_copy(update={"usage": usage + outcome.usage})
            if outcome.adapted:
                number -= 1  # the server was asked for what it does not do; that is no try
                continue
            last, again = outcome.failure, outcome.again
            usage += last.usage
            if last.reason is Missing.TRUNCATED:
                room *= 2
                again = again and room <= MOST_TOKENS_FACTOR * ask.max_tokens
            if outcome.wait_s is not None and outcome.wait_s > self.longest_wait_s:
                break
            if not again or number >= self.tries:
                break
            if outcome.pauses:
                await asyncio.sleep(pause_s(number, outcome.wait_s))
        if outcome.broke and not self.counts["answers"]:
            self._give_up("cannot be reached; check the URL and that the server runs")
        return last.model_copy(update={"usage": usage})

    async def _once(
        self, connection: _Connection, ask: Ask, reply_format: ReplyFormat, room: int
    ) -> Reply | _Failed:
        """One request, and what it says."""
        import openai

        async with connection.slots:
            self.ledger.check(self.ref.name)
            self.counts["requests"] += 1
            request = self._request(ask, reply_format, room)
            try:
                # The library's own limit is between two packets; this one is for the whole.
                async with asyncio.timeout(self.deadline_s):
                    completion = await connection.client.chat.completions.create(**request)
            except (TimeoutError, openai.APITimeoutError):
                told = f"no reply within {self.deadline_s:g} seconds"
                return _Failed(Failure(reason=Missing.TIMEOUT, detail=told), again=True)
            except openai.APIStatusError as error:
                asked_with = {*request, *request.get("extra_body", {})}
                return self._refused(error, ask, reply_format, asked_with)
            except openai.APIConnectionError:
                told = "the connection broke"
                return _Failed(Failure(reason=Missing.SERVER, detail=told), again=True, broke=True)
            except openai.OpenAIError as error:
                told = f"no usable reply ({type(error).__name__})"
                return _Failed(Failure(reason=Missing.SERVER, detail=told), again=True)
        return self._read(completion, ask)

    def _request(self, ask: Ask, reply_format: ReplyFormat, room: int) -> dict[str, Any]:
        limit = "max_completion_tokens" if self._names_completion_tokens else "max_tokens"
        request: dict[str, Any] = {
            "model": self.ref.name,
            "messages": list(ask.messages),
            limit: room,
            "temperature": ask.temperature,
            "top_p": ask.top_p,
        }
        if ask.seed is not None:
            request["seed"] = ask.seed & 0x7FFFFFFF
        if ask.top_k and "top_k" not in self._left_out:
            request["extra_body"] = {"top_k": ask.top_k}  # not part of OpenAI's own protocol
        for name in self._left_out:
            request.pop(name, None)
        if ask.answer_schema is not None and reply_format == "json_schema":
            request["response_format"] = {
                "type": "json_schema",
                "json_schema": {
                    "name": ask.schema_name,
                    "schema": strict_schema(ask.answer_schema),
                    "strict": True,
                },
            }
        elif ask.answer_schema is not None and reply_format == "json_object":
            request["response_format"] = {"type": "json_object"}
        return request

    def _read(self, completion: ChatCompletion, ask: Ask) -> Reply | _Failed:
        self.counts["answers"] += 1
        self.served_as = completion.model or self.ref.name
        usage = _usage(completion)
        self.ledger.book(
            purpose=ask.purpose,
            model=self.served_as,
            priced_as=self.ref.name,
            usage=usage,
            step=ask.step,
        )
        if not completion.choices:
            return _failed(Missing.PARSE, "a reply without any choice", usage, again=True)
        choice = completion.choices[0]
        text = choice.message.content or ""
        if choice.message.refusal:
            return _failed(Missing.REFUSAL, "the model refused", usage, again=False)
        if choice.finish_reason == "content_filter":
            return _failed(Missing.FILTER, "the server's content filter stopped it", usage)
        if choice.finish_reason == "length":
            if ask.answer_schema is None:
                return Reply(text=text, model=self.served_as, usage=usage, cut=True)
            why = "the reply was cut by the token limit"
            if not text and usage.reasoning:
                why = f"all {usage.reasoning} tokens went into thinking; raise the token limit"
            return _failed(Missing.TRUNCATED, why, usage, again=True)
        return Reply(text=text, model=self.served_as, usage=usage)

    def _refused(
        self,
        error: openai.APIStatusError,
        ask: Ask,
        reply_format: ReplyFormat,
        asked_with: set[str],
    ) -> _Failed:
        """An HTTP error. The server's own words may quote a key, so only its status is told, and
        its first line where it found fault with the request itself."""
        status, code = error.status_code, str(error.code or "")
        self.counts["answers"] += 1
        words = str(error.message)
        if status == 429:
            if code in _QUOTA_CODES or any(name in words for name in _QUOTA_CODES):
                self._give_up("has no quota left for this key; add credit or take another key")
            wait_s = retry_after_s(error.response.headers)
            told = "the server limits the rate (429)"
            if wait_s is not None and wait_s > self.longest_wait_s:
                told += f" and asks to wait {wait_s:g} seconds"
            failure = Failure(reason=Missing.RATE_LIMIT, detail=told)
            return _Failed(failure, again=True, wait_s=wait_s)
        if status in (400, 422):
            return self._bad_request(error, ask, reply_format, asked_with)
        if status == 401:
            self._give_up("does not accept the key; set OPENAI_API_KEY to a valid one")
        if status == 403:
            self._give_up("denies access to this model; use a key that has it")
        if status == 404:
            self._give_up(f"knows no model {self.ref.name!r}; check its name and the URL")
        again = status >= 500 or status in (408, 409)
        failure = Failure(reason=Missing.SERVER, detail=f"the server answered {status}")
        return _Failed(failure, again=again, wait_s=retry_after_s(error.response.headers))

    def _bad_request(
        self,
        error: openai.APIStatusError,
        ask: Ask,
        reply_format: ReplyFormat,
        asked_with: set[str],
    ) -> _Failed:
        words = str(error.message)
        lower = words.lower()
        parameter = str(getattr(error, "param", None) or "")
        if error.code == "content_filter":
            return _failed(Missing.FILTER, "the server's content filter stopped it", Usage())
        if error.code in _CONTEXT_WORDS or any(name in lower for name in _CONTEXT_WORDS):
            failure = Failure(reason=Missing.CONTEXT_FULL, detail="the prompt is too long for it")
            return _Failed(failure, again=False)
        named = ("max_tokens", "max_completion_tokens")
        told = f"the server refused the request ({_first_line(words)})"
        failure = Failure(reason=Missing.SERVER, detail=told)
        if any(name in lower or name == parameter for name in named) and "support" in lower:
            sent = asked_with & set(named)
            if sent <= self._refused_names:
                return _Failed(failure)
            self._refused_names |= sent
            self._names_completion_tokens = "max_completion_tokens" not in self._refused_names
            return _Failed(failure, adapted=True)
        for name in _OPTIONAL:
            if (name == parameter or f"'{name}'" in words) and name in asked_with:
                self._left_out.add(name)
                return _Failed(failure, adapted=True)
        if ask.answer_schema is not None and reply_format != "text" and self._format is None:
            raise _FormatRefusedError
        return _Failed(failure)

    @property
    def _server(self) -> str:
        return server_name(self.ref)

    def _give_up(self, told: str) -> NoReturn:
        raise ModelError(f"{self.ref}: {self._server} {told}.") from None


@dataclass(frozen=True)
class _Failed:
    """A try that failed: whether another one may help, and when."""

    failure: Failure
    again: bool = False
    wait_s: float | None = None
    pauses: bool = True
    adapted: bool = False
    """The request was at fault, and the next one will be made differently."""
    broke: bool = False
    """No answer came at all."""


class _FormatRefusedError(Exception):
    """The server does not know this way of asking for JSON."""


def _failed(reason: Missing, detail: str, usage: Usage, again: bool = False) -> _Failed:
    return _Failed(Failure(reason=reason, detail=detail, usage=usage), again=again, pauses=False)


def _usage(completion: ChatCompletion) -> Usage:
    told = completion.usage
    if told is None:
        return Usage()
    read, written = told.prompt_tokens_details, told.completion_tokens_details
    return Usage(
        prompt=told.prompt_tokens or 0,
        cached=(read.cached_tokens or 0) if read else 0,
        completion=told.completion_tokens or 0,
        reasoning=(written.reasoning_tokens or 0) if written else 0,
    )


def strict_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as strict servers want it: every object closed, every property required, and no
    defaults."""
    strict = copy.deepcopy(schema)
    pending: list[Any] = [strict]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            part.pop("default", None)
            if part.get("type") == "object" and "properties" in part:
                part["additionalProperties"] = False
                part["required"] = list(part["properties"])
            pending += part.values()
        elif isinstance(part, list):
            pending += part
    return strict


def _first_line(text: str) -> str:
    line = redact_text(text.strip()).splitlines()[0] if text.strip() else "no reason given"
    return line if len(line) <= 160 else line[:157] + "…"

"""What is asked of a server and what came of it."""

from typing import Any, Literal

from deliberation.episode import Missing, Record

ReplyFormat = Literal["json_schema", "json_object", "text"]
"""How a server can be made to answer in JSON, strictest first; `text` is a plea in the prompt."""


class Ask(Record):
    """One question, as a conversation that the server is to continue."""

    messages: tuple[dict[str, str], ...]
    """Each with `role` and `content`."""
    max_tokens: int
    """Of the reply, a reasoning model's thinking included."""
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    answer_schema: dict[str, Any] | None = None
    """JSON schema of the reply; None for free text."""
    schema_name: str = "answer"
    purpose: str = "ask"
    """What the ledger books it under."""
    step: int | None = None


class Usage(Record):
    """Tokens of one or more calls, as the server counts them; 0 where it does not say."""

    prompt: int = 0
    cached: int = 0
    """Part of `prompt` that the server had read before."""
    completion: int = 0
    """Thinking included."""
    reasoning: int = 0
    """Part of `completion` that was thinking."""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            prompt=self.prompt + other.prompt,
            cached=self.cached + other.cached,
            completion=self.completion + other.completion,
            reasoning=self.reasoning + other.reasoning,
        )


class Reply(Record):
    """A reply that came whole."""

    text: str
    model: str
    """As the server names it."""
    usage: Usage
    cut: bool = False
    """Stopped by the token limit; only where free text was asked for."""


class Failure(Record):
    """No usable reply, and why. Never a number, never a default."""

    reason: Missing
    detail: str
    """One sentence without the server's free text where that could quote a key."""
    usage: Usage = Usage()
    """Of the calls that were paid for all the same."""

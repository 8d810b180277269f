"""Messages in the shape that every chat template takes: clean texts, alternating roles."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from deliberation.episode import Generation, Message, Role

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Part:
    """One turn of the chat as it is rendered."""

    role: Role
    text: str
    own: Generation | None = None
    """Set where its recorded ids stand for the text."""


def without_surrogates(text: str) -> str:
    """No tokenizer takes half a surrogate pair: U+FFFD in its place."""
    return _SURROGATE.sub("\ufffd", text)


def split_fixed(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """(system texts and the first user message, everything after).

    Raises `ValueError` where the messages are no conversation: it starts with an optional system
    part and a user message, and no later message is `system`.
    """
    roles = [message.role for message in messages]
    start = next((index for index, role in enumerate(roles) if role != "system"), len(roles))
    if roles[start : start + 1] != ["user"]:
        raise ValueError(f"a conversation needs a user message first, got {roles}")
    if "system" in roles[start:]:
        raise ValueError(f"only the start of a conversation may be a system message, got {roles}")
    return list(messages[: start + 1]), list(messages[start + 1 :])


def arrange(messages: Sequence[Message], *, system_role: bool) -> list[Part]:
    """Strip the texts, merge messages of one role in a row, fold the system text if need be.

    Without a system role, `{system}\\n\\n{user}` is the first user turn. Raises `ValueError` for an
    own generation next to another assistant message: recorded ids cannot be merged with a text.
    """
    parts: list[Part] = []
    for message in messages:
        recorded = message.generation is not None and message.generation.ids
        own = message.generation if recorded else None
        part = Part(message.role, without_surrogates(message.content).strip(), own)
        if not parts or parts[-1].role != part.role:
            parts.append(part)
        elif parts[-1].own or part.own:
            raise ValueError("an own generation stands next to another assistant message")
        else:
            parts[-1] = Part(part.role, _joined(parts[-1].text, part.text))
    if parts[0].role == "system" and not system_role:
        system, user = parts[:2]
        parts[:2] = [Part("user", _joined(system.text, user.text))]
    return parts


def _joined(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)

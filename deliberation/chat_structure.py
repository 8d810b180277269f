"""What a chat template puts around the messages of a conversation.

The template is rendered with placeholders as contents and cut where they come out, so that no
message text ever passes through it: nothing in a text can change the structure of the chat, and
the structure depends on the sequence of roles alone. Templates run in the sandbox of transformers.
"""

import hashlib
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from jinja2.exceptions import TemplateError

from deliberation.errors import ModelError
from deliberation.thinking import KNOWN_TAGS, tags_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

log = logging.getLogger(__name__)

Roles = tuple[str, ...]

_SWITCHES = ("enable_thinking", "thinking")
"""Variables by which chat templates let thinking be turned on and off."""

_CHANNELS = "<|channel|>analysis"

_DATE = datetime(2025, 1, 1)
"""Templates that write today's date write this one: the same run gives the same prompts on any
day."""


@dataclass(frozen=True)
class Structure:
    """A rendered conversation without its contents.

    `texts[k]` stands before the message `order[k]`; the last text, the generation prompt in it,
    after them all.
    """

    texts: tuple[str, ...]
    order: tuple[int, ...]


class ChatTemplate:
    """A tokenizer's chat template, examined once."""

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", *, thinking: bool, name: str) -> None:
        """Raises `ModelError` where there is no template, or one that loses messages."""
        self._tokenizer = tokenizer
        self._name = name
        self._structures: dict[Roles, Structure] = {}
        self.source = _source(tokenizer, name)
        self.hash = hashlib.sha256(self.source.encode()).hexdigest()
        switches = [word for word in _SWITCHES if _is_variable(word, self.source)]
        self._variables: dict[str, Any] = dict.fromkeys(switches, thinking)
        self._variables |= {"strftime_now": _DATE.strftime}
        if "date_string" in self.source:
            self._variables["date_string"] = _DATE.strftime("%d %b %Y")

        self.system_role = self._takes_system_role()
        """False where a system text has to go into the first user turn."""
        self.structure(("user", "assistant", "user"))  # finds templates that lose messages
        tags = tags_of(self.source)
        self.tags = tags or KNOWN_TAGS[0]
        self.opens_thinking = self._generation_prompt().rstrip().endswith(self.tags.opening)
        """The generation prompt ends in the opening tag: what is sampled starts inside it."""
        self.thinks = thinking if switches else tags is not None or self.opens_thinking
        """What is sampled may hold thinking."""
        if thinking and not self.thinks:
            log.warning(
                "policy.thinking is on, but the chat template of %s knows no thinking.", name
            )
        self.keeps_thinking = self._keeps_thinking()
        """Earlier turns are shown with their thinking."""

    def structure(self, roles: Roles) -> Structure:
        """The structure of a conversation, generation prompt included.

        Raises `ModelError` where the template refuses these roles, or loses or repeats a message.
        """
        if roles not in self._structures:
            self._structures[roles] = self._cut(roles)
        return self._structures[roles]

    def header(self, structure: Structure, place: int, roles: Roles) -> str:
        """The text before an own earlier turn, `structure.order[place]`.

        That is what it was sampled after, the generation prompt of its time, unless the template
        shows earlier turns in another way (without their thinking).
        """
        shown = structure.texts[place]
        sampled_after = self.structure(roles[: structure.order[place]]).texts[-1]
        if self.keeps_thinking or shown.rstrip() == sampled_after.rstrip():
            return sampled_after
        return shown

    def outline(self) -> str:
        """A first prompt with its texts named in braces, for the log."""
        roles = ("system", "user") if self.system_role else ("user",)
        structure = self.structure(roles)
        names = [f"{{{roles[index]}}}" for index in structure.order]
        return "".join(chain.from_iterable(zip_longest(structure.texts, names, fillvalue="")))

    def tokenized(self, messages: Sequence[dict[str, str]]) -> tuple[int, ...]:
        """The tokenizer's own tokenised render, for comparison with ours."""
        rendered: Any = self._tokenizer.apply_chat_template(
            list(messages), tokenize=True, add_generation_prompt=True, **self._variables
        )
        # A list of ids in some versions of the library, a mapping in others.
        ids = rendered["input_ids"] if hasattr(rendered, "keys") else rendered
        if len(ids) > 0 and not isinstance(ids[0], int):
            ids = ids[0]
        return tuple(ids)

    def _cut(self, roles: Roles) -> Structure:
        marks = [_placeholder(index) for index in range(len(roles))]
        text = self._render(roles, marks)
        for role, mark in zip(roles, marks, strict=True):
            if text.count(mark) != 1:
                what = "loses" if mark not in text else "repeats"
                raise ModelError(
                    f"the chat template of {self._name} {what} a {role} message of the "
                    f"conversation {', '.join(roles)}; set another one by `policy.chat_template`."
                )
        pieces = re.split(_PLACEHOLDER, text)
        return Structure(tuple(pieces[::2]), tuple(int(index) for index in pieces[1::2]))

    def _render(self, roles: Roles, contents: Sequence[str]) -> str:
        conversation = [
            {"role": role, "content": content}
            for role, content in zip(roles, contents, strict=True)
        ]
        try:
            return str(
                self._tokenizer.apply_chat_template(
                    conversation, tokenize=False, add_generation_prompt=True, **self._variables
                )
            )
        except (TemplateError, TypeError, ValueError, LookupError, AttributeError) as error:
            raise ModelError(
                f"the chat template of {self._name} cannot render the conversation "
                f"{', '.join(roles)} ({error}); set another one by `policy.chat_template`."
            ) from error

    def _takes_system_role(self) -> bool:
        try:
            self.structure(("system", "user"))
        except ModelError:
            self.structure(("user",))  # raises where the system message is not to blame
            return False
        return True

    def _generation_prompt(self) -> str:
        return self.structure(("user",)).texts[-1]

    def _keeps_thinking(self) -> bool:
        thought, user, answer = (_placeholder(index) for index in range(3))
        earlier = f"{self.tags.opening}\n{thought}\n{self.tags.closing}\n\n{answer}"
        return thought in self._render(("user", "assistant", "user"), [user, earlier, user])


_PLACEHOLDER = re.compile(r"placeholderq7x4k9(\d{6})z")


def _placeholder(index: int) -> str:
    # Letters and digits only, so that no template trims, splits or escapes it.
    return f"placeholderq7x4k9{index:06d}z"


def _source(tokenizer: "PreTrainedTokenizerBase", name: str) -> str:
    remedy = "set one by `policy.chat_template`, the path of a Jinja file"
    if not tokenizer.chat_template:
        raise ModelError(f"{name} has no chat template (is it a base model?); {remedy}.")
    get: Callable[[], str] = tokenizer.get_chat_template
    try:
        source = get()
    except ValueError as error:
        raise ModelError(f"{name} has several chat templates and no default; {remedy}.") from error
    if _CHANNELS in source:
        # One turn is several messages there, each with an end of its own, and the thinking would
        # pass for something said.
        raise ModelError(
            f"{name} speaks in channels (the harmony format), which is not supported; "
            "use another model."
        )
    return source


def _is_variable(word: str, template: str) -> bool:
    """Whether a template tests `word` as a variable: in prose, or as a field of a message, the
    word proves nothing."""
    tested = rf"(?<![.\w]){word}\s+is\s|\b(?:if|and|or|not)\s+\(*{word}\b|\bset\s+{word}\b"
    return re.search(tested, template) is not None

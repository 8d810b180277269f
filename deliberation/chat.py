"""Token-exact rendering of a chat: messages to prompt ids, sampled ids to text.

What was sampled enters later prompts as it was recorded; everything else is encoded as the chat
template and the tokenizer have it. No torch is imported.
"""

import logging
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from deliberation.chat_encoding import ChatEncoder, Segment
from deliberation.chat_messages import Part, arrange, split_fixed, without_surrogates
from deliberation.chat_structure import ChatTemplate, Structure
from deliberation.episode import Message, Role
from deliberation.errors import ConfigError, ModelError
from deliberation.thinking import split_thinking, visible_ids

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

log = logging.getLogger(__name__)

_CACHED_TURNS = 4096


class Renderer:
    """One tokenizer and its chat template, as a seat uses them.

    A conversation starts with an optional system message, then a user message. Messages of one
    role in a row become one turn. Where the template has no system role, the system text opens
    the first user turn.

    A seat's own earlier turn stands as it was sampled, end-of-turn token included, so that each
    prompt extends the tokens before it exactly. It does not, and training rows split there, where

    - the template drops earlier thinking (the ids after the closing tag are shown), or puts
      something else before an earlier turn than before a new one;
    - the turn ended in another end-of-sequence token than the template's own end of turn, which is
      shown in its place;
    - earlier turns were left out, by `prompt_tokens` or by the environment's window.

    A turn cut by its token limit is followed by the template's end of turn.
    """

    tokenizer: "PreTrainedTokenizerBase"
    """As it was given."""
    stop_ids: frozenset[int]
    """Sampling ends with the first of these: the end-of-sequence tokens of the tokenizer and of
    the generation config, and the template's end of turn."""
    pad_id: int
    """For padding that is masked: the tokenizer's own, else an end token."""
    template_hash: str
    """SHA-256 of the chat template, in hex."""
    thinking: bool
    """Whether generations may hold thinking."""
    system_role: bool
    """False where system text is folded into the first user turn."""

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        *,
        thinking: bool = False,
        prompt_tokens: int | None = None,
        stop_ids: Iterable[int] = (),
        name: str = "",
    ) -> None:
        """Examine the tokenizer: takes milliseconds and no weights.

        Args:
            tokenizer: a fast one; it is not changed.
            thinking: let the model think, where its template can turn that on and off.
            prompt_tokens: longest prompt (`protocol.prompt_tokens`); None sets no limit.
            stop_ids: further end tokens, those of the generation config.
            name: of the model, for messages.

        Raises:
            ModelError: no chat template, a template that loses messages, or a slow tokenizer.
        """
        name = name or tokenizer.name_or_path or "the tokenizer"
        if not tokenizer.is_fast:
            raise ModelError(
                f"{name} has no fast tokenizer; add its tokenizer.json or use another model."
            )
        self.tokenizer = tokenizer
        self._name = name
        self._prompt_tokens = prompt_tokens
        self._template = template = ChatTemplate(tokenizer, thinking=thinking, name=name)
        self._encoder = encoder = ChatEncoder(tokenizer)
        self._bos = self._bos_of_tokenizer()
        self._hidden = {id for id in encoder.special if encoder.control[id] not in template.tags}
        self._turn_ids = lru_cache(_CACHED_TURNS)(self._shown_part)
        self.template_hash = template.hash
        self.thinking = template.thinks
        self.system_role = template.system_role
        self.stop_ids = frozenset(stop_ids) | self._own_stop_ids()
        if not self.stop_ids:
            log.warning("%s names no end-of-turn token: every turn runs to its limit.", name)
        pad_id = tokenizer.pad_token_id
        self.pad_id = min(self.stop_ids, default=0) if pad_id is None else pad_id
        log.info("A first prompt of %s reads %r.", name, template.outline())
        self._compare_with_tokenizer()

    def render(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Prompt ids of a conversation, generation prompt included.

        Over `prompt_tokens`, whole messages after the first user message are left out, oldest
        first.

        Raises:
            ConfigError: the system text and the first user message alone exceed `prompt_tokens`.
            ModelError: the template refuses this sequence of roles, or loses a message.
            ValueError: the messages are no conversation, or an own generation stands next to
                another assistant message; a fault of the environment.
        """
        fixed, later = split_fixed(messages)
        ids: tuple[int, ...] = ()
        for left_out in range(len(later) + 1):
            ids = self._ids(arrange(fixed + later[left_out:], system_role=self.system_role))
            if self._prompt_tokens is None or len(ids) <= self._prompt_tokens:
                if 0 < len(later) == left_out:
                    log.warning(
                        "protocol.prompt_tokens (%d) leaves no room for the latest message; "
                        "raise it.",
                        self._prompt_tokens,
                    )
                return ids
        raise ConfigError(
            f"protocol.prompt_tokens is {self._prompt_tokens}, but the system text and the first "
            f"message alone take {len(ids)} tokens with {self._name}; set it higher than that."
        )

    def read(self, ids: Sequence[int]) -> tuple[str, str]:
        """(text, visible) of sampled ids.

        `text` is all of it but the end token. `visible` is what others may see: without thinking,
        without special tokens, stripped at both ends.
        """
        body = self._without_end(ids)
        shown = self.decode([id for id in body if id not in self._hidden])
        template = self._template
        _, visible = split_thinking(shown, template.tags, opened=template.opens_thinking)
        return self.decode(body), visible

    def decode(self, ids: Sequence[int]) -> str:
        """All of `ids` as text, control tokens included: a prompt as the model gets it."""
        text = self.tokenizer.decode(
            list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return str(text)

    def text_ids(self, text: str) -> tuple[int, ...]:
        """A message's text as ids: whatever it holds, none is a control token's."""
        text = without_surrogates(text)
        return self._encoder.encode(Segment(text, ((0, len(text)),), continues=True))

    def _ids(self, parts: Sequence[Part]) -> tuple[int, ...]:
        roles = tuple(part.role for part in parts)
        structure = self._template.structure(roles)
        ids = self._missing_bos(structure)
        segment: Segment | None = Segment()
        for place, index in enumerate(structure.order):
            own = parts[index].own
            if own is None:
                segment = self._extend(segment, structure.texts[place])
                segment = segment.plus_content(parts[index].text)
            else:
                header = self._template.header(structure, place, roles)
                ids += self._encoder.encode(self._extend(segment, header))
                ids += self._turn_ids(own.ids)
                segment = None
        ids += self._encoder.encode(self._extend(segment, structure.texts[-1]))
        return tuple(ids)

    def _missing_bos(self, structure: Structure) -> list[int]:
        """The BOS where the tokenizer puts one before plain text and the template has none."""
        if self._bos is None:
            return []
        token = self._encoder.control[self._bos]
        return [] if any(token in text for text in structure.texts) else [self._bos]

    def _extend(self, segment: Segment | None, text: str) -> Segment:
        """The segment with template text after it; None stands for recorded ids."""
        if segment is not None:
            return segment.plus(text)
        if self._encoder.leading_control(text) is not None:
            # The end of turn. Templates that put a space before it would show a context that no
            # model ever sampled.
            return Segment(text.lstrip())
        return Segment(text, continues=True)

    def _shown_part(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """An own earlier turn as the template shows it; its end of turn is the template's."""
        body = self._without_end(ids)
        template = self._template
        if template.keeps_thinking:
            return body
        opened = template.opens_thinking
        shown = visible_ids(body, self.decode, template.tags, opened=opened)
        if shown is None:
            _, visible = split_thinking(self.decode(body), template.tags, opened=opened)
            return self.text_ids(visible)
        return shown

    def _without_end(self, ids: Sequence[int]) -> tuple[int, ...]:
        end = next((place for place, id in enumerate(ids) if id in self.stop_ids), len(ids))
        return tuple(ids[:end])

    def _bos_of_tokenizer(self) -> int | None:
        """The BOS id that the tokenizer itself puts before plain text, if it does."""
        bos = self.tokenizer.bos_token_id
        start: list[int] = self.tokenizer("a", add_special_tokens=True)["input_ids"][:1]
        return bos if bos is not None and start == [bos] else None

    def _own_stop_ids(self) -> set[int]:
        """The end-of-sequence token and the template's end of turn."""
        structure = self._template.structure(("user", "assistant", "user"))
        closing = structure.texts[structure.order.index(1) + 1]
        end_of_turn = self._encoder.leading_control(closing)
        stop_ids = {id for id, token in self._encoder.control.items() if token == end_of_turn}
        if self.tokenizer.eos_token_id is not None:
            stop_ids.add(self.tokenizer.eos_token_id)
        return stop_ids

    def _compare_with_tokenizer(self) -> None:
        """Warn where the tokenizer would render a chat otherwise; ours is the one in use."""
        roles: tuple[Role, ...] = ("user", "assistant", "user")
        chat = [Message(role=role, content=f"This is message {role}.") for role in roles]
        ours = self._ids(arrange(chat, system_role=self.system_role))
        theirs = self._template.tokenized(
            [{"role": message.role, "content": message.content} for message in chat]
        )
        if self._missing_bos(self._template.structure(roles)) and theirs[:1] != ours[:1]:
            ours = ours[1:]  # left out by the tokenizer's own rendering, rightly there in ours
        if ours != theirs:
            place = next(
                (place for place, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b),
                min(len(ours), len(theirs)),
            )
            log.warning(
                "%s renders a chat otherwise than its tokenizer would, first at token %d (%r, not "
                "%r); prompts and training agree with each other, but check the chat template.",
                self._name,
                place,
                self.decode(ours[place : place + 1]),
                self.decode(theirs[place : place + 1]),
            )

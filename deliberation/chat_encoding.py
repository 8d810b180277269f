"""Text to token ids, with control tokens only where the chat template put them.

A chat is encoded as the tokenizer itself would, template and messages together, so that merges
across their borders are the model's own. Whatever inside a message would become a control token
(`<|im_end|>`, `<think>`, …) is cut apart until it stays text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Span = tuple[int, int]
"""Start and end of a piece of text, in characters."""

_CACHED_SEGMENTS = 4096


@dataclass(frozen=True)
class Segment:
    """A stretch of a rendered chat that is encoded as one text."""

    text: str = ""
    content: tuple[Span, ...] = ()
    """The spans that are message text and hold no control tokens."""
    continues: bool = False
    """It follows other tokens: a tokenizer that puts a space before the start of a text must not
    do so here."""

    def plus(self, text: str) -> "Segment":
        return Segment(self.text + text, self.content, self.continues)

    def plus_content(self, text: str) -> "Segment":
        span = (len(self.text), len(self.text) + len(text))
        return Segment(self.text + text, (*self.content, span), self.continues)

    def part(self, start: int, end: int) -> "Segment":
        content = tuple(
            (max(first, start) - start, min(last, end) - start)
            for first, last in self.content
            if first < end and start < last
        )
        return Segment(self.text[start:end], content, self.continues or start > 0)


class ChatEncoder:
    """Encodes pieces of a rendered chat.

    A control token is an added token of the tokenizer, special or not, except whitespace and
    single characters that aren't special (some tokenizers add runs of spaces for code).
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        self._tokenizer = tokenizer
        control = {
            id: token.content
            for id, token in tokenizer.added_tokens_decoder.items()
            if token.special or len(token.content.strip(" \t\r\n▁")) > 1
        }
        for id in tokenizer.all_special_ids:
            control.setdefault(id, str(tokenizer.convert_ids_to_tokens(id)))
        self.control = control
        """Control tokens by id."""
        self.special = frozenset(
            id for id, token in tokenizer.added_tokens_decoder.items() if token.special
        ) | frozenset(tokenizer.all_special_ids)
        """The ids of those that are special: never part of what somebody says."""
        self._by_length = sorted((text for text in control.values() if text), key=len, reverse=True)
        newline, _ = self._tokenize("\n")
        self._newline: tuple[int, ...] = tuple(newline)
        self._adds_prefix = self._tokenize("a")[0] != self._after_newline("a")[0]
        # An instance's own cache, dropped with it.
        self._cached = lru_cache(_CACHED_SEGMENTS)(self._encode)

    def encode(self, segment: Segment) -> tuple[int, ...]:
        """Ids of a segment; no BOS is added."""
        return self._cached(segment)

    def leading_control(self, text: str) -> str | None:
        """The control token that `text` starts with, whitespace before it aside."""
        text = text.lstrip()
        return next((token for token in self._by_length if text.startswith(token)), None)

    def _encode(self, segment: Segment) -> tuple[int, ...]:
        text = segment.text
        if segment.continues and self._adds_prefix:
            ids, offsets = self._after_newline(text)
        else:
            ids, offsets = self._tokenize(text)
        cuts: set[int] = set()
        for id, (start, end) in zip(ids, offsets, strict=True):
            if self._forbidden(id, text[start:end]) and any(
                start < last and first < end for first, last in segment.content
            ):
                cuts.update(_cuts(text, start, end))
        if not cuts:
            return tuple(ids)
        borders = sorted({0, len(text)} | cuts)
        if len(borders) == 2:
            # Nothing left to cut apart: a special token of a single character.
            return tuple(self._tokenize(text, split_special=True)[0])
        parts = [segment.part(start, end) for start, end in pairwise(borders)]
        return tuple(id for part in parts for id in self._encode(part))

    def _forbidden(self, id: int, text: str) -> bool:
        if id not in self.control:
            return False
        # The unknown-word id is right for an unknown word, wrong for the letters "<unk>".
        return id != self._tokenizer.unk_token_id or text.strip() == self.control[id].strip()

    def _after_newline(self, text: str) -> tuple[list[int], list[Span]]:
        """Encode after a newline and take it off again: the text is not at a start."""
        ids, offsets = self._tokenize("\n" + text)
        size = len(self._newline)
        if tuple(ids[:size]) != self._newline:
            return self._tokenize(text)  # the newline merged with the text
        return ids[size:], [(max(start - 1, 0), end - 1) for start, end in offsets[size:]]

    def _tokenize(self, text: str, *, split_special: bool = False) -> tuple[list[int], list[Span]]:
        encoding = self._tokenizer(
            text,
            add_special_tokens=False,
            return_offsets_mapping=True,
            return_attention_mask=False,
            return_token_type_ids=False,
            split_special_tokens=split_special,
            verbose=False,
        )
        ids: list[int] = encoding["input_ids"]
        offsets: list[Span] = encoding["offset_mapping"]
        return ids, offsets


def _cuts(text: str, start: int, end: int) -> Sequence[int]:
    """Where to cut so that `text[start:end]` cannot be one token; 0 and the end are no cuts."""
    token = text[start:end]
    core = token.strip() or token
    first = start + token.index(core)
    if len(core) > 1:
        return (first + 1,)
    return (first, first + 1)

"""Thinking in a model's output: what of it others may see, as text and as token ids.

A thinking model writes `<think>…</think>answer`. Some templates open the tag in the generation
prompt, so that what is sampled holds the closing tag only. Pure functions; no model, no template.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Tags(NamedTuple):
    """The pair of tags that thinking stands between."""

    opening: str
    closing: str


KNOWN_TAGS = (
    Tags("<think>", "</think>"),
    Tags("[THINK]", "[/THINK]"),
    Tags("<seed:think>", "</seed:think>"),
    Tags("<|channel>", "<channel|>"),
)
"""The first pair that a chat template mentions is the model's; without any mention, the first."""


def tags_of(template: str) -> Tags | None:
    """The tags that a chat template mentions; None where it knows nothing of thinking."""
    return next((tags for tags in KNOWN_TAGS if tags.closing in template), None)


def split_thinking(text: str, tags: Tags, *, opened: bool) -> tuple[str, str]:
    """(thinking, visible) of what a model wrote, both stripped at the ends.

    Visible is what follows the last closing tag. Thinking that is not closed hides all the rest:
    a turn cut inside its thinking shows nothing.

    Args:
        text: what was sampled, without the end-of-turn token.
        opened: the prompt already ended in the opening tag.
    """
    head, closing, visible = text.rpartition(tags.closing)
    if tags.opening in visible or (opened and not closing):
        return text.replace(tags.opening, "").replace(tags.closing, "").strip(), ""
    thinking = head.replace(tags.opening, "").replace(tags.closing, "")
    return thinking.strip(), visible.strip()


def visible_ids(
    ids: Sequence[int],
    decode: Callable[[Sequence[int]], str],
    tags: Tags,
    *,
    opened: bool,
) -> tuple[int, ...] | None:
    """The recorded ids of the visible part alone, for templates that drop earlier thinking.

    Cut out of `ids`, never encoded again; leading tokens of nothing but whitespace go with the
    thinking. None where one token holds the end of the tag and the start of the answer.

    Args:
        ids: what was sampled, without the end-of-turn token.
        decode: ids to text, control tokens shown.
        opened: as for `split_thinking`.
    """
    text = decode(ids)
    if not opened and tags.opening not in text and tags.closing not in text:
        return tuple(ids)
    _, visible = split_thinking(text, tags, opened=opened)
    if not visible:
        return ()
    start = _end_of_closing(ids, decode, tags, text.count(tags.closing))
    while start < len(ids) and not decode(ids[start : start + 1]).strip():
        start += 1
    kept = tuple(ids[start:])
    return kept if decode(kept).strip() == visible else None


def _end_of_closing(
    ids: Sequence[int], decode: Callable[[Sequence[int]], str], tags: Tags, count: int
) -> int:
    """The least number of ids that hold all `count` closing tags (their count only grows)."""
    low, high = 0, len(ids)
    while low < high and count:
        middle = (low + high) // 2
        if decode(ids[:middle]).count(tags.closing) < count:
            low = middle + 1
        else:
            high = middle
    return low

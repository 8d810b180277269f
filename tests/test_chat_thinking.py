"""Thinking is hidden from others, and earlier thinking is shown as the template would."""

import pytest

from deliberation.chat import Renderer
from deliberation.thinking import KNOWN_TAGS, split_thinking, tags_of, visible_ids
from tests.helpers import chat_templates as templates
from tests.helpers.chats import own, user
from tests.helpers.tokenizers import (
    CHATML,
    IM_END,
    IM_START,
    byte_tokenizer,
    merging_tokenizer,
)

THINK = KNOWN_TAGS[0]
OPEN, CLOSE = 260, 261
"""Ids of the tags where they are added tokens."""
ASK = (IM_START, *b"assistant\n")
U, V = ((IM_START, *b"user\n", letter, IM_END, *b"\n") for letter in b"UV")


def renderer(template: str, *, thinking: bool = False) -> Renderer:
    tokenizer = byte_tokenizer(template, added=["<think>", "</think>"])
    return Renderer(tokenizer, thinking=thinking)


@pytest.mark.parametrize(
    ("text", "opened", "thinking", "visible"),
    [
        ("I ask 90", False, "", "I ask 90"),
        ("<think>floor 70</think>I ask 90", False, "floor 70", "I ask 90"),
        ("\n<think>\nfloor\n</think>\n\nI ask 90 ", False, "floor", "I ask 90"),
        ("floor is 70</think>I ask 90", True, "floor is 70", "I ask 90"),
        ("<think>twice</think></think>I ask 90", True, "twice", "I ask 90"),
        ("<think>a</think>b<think>c</think>d", False, "abc", "d"),
        ("<think>hm</think>", False, "hm", ""),
        ("<think>never closed", False, "never closed", ""),
        ("never closed", True, "never closed", ""),
        ("a</think>b<think>again", True, "abagain", ""),
        ("", False, "", ""),
        ("", True, "", ""),
    ],
)
def test_what_follows_the_last_closing_tag_is_visible(
    text: str, opened: bool, thinking: str, visible: str
) -> None:
    """B05, and B25: a reply of nothing but thinking shows nothing."""
    assert split_thinking(text, THINK, opened=opened) == (thinking, visible)


def test_a_template_names_its_own_tags() -> None:
    assert tags_of("a [THINK] b [/THINK] c") == ("[THINK]", "[/THINK]")
    assert tags_of("'</think>' in message.content") == ("<think>", "</think>")
    assert tags_of(CHATML) is None


def test_a_completion_may_hold_the_closing_tag_only() -> None:
    """B05: the generation prompt opens the tag."""
    seat = renderer(templates.OPENS_THINKING)
    assert seat.thinking is True
    assert seat.render([user("U")]) == (*U, *ASK, OPEN, *b"\n")
    sampled = (*b"floor is 70", CLOSE, *b"I ask 90", IM_END)
    assert seat.read(sampled) == ("floor is 70</think>I ask 90", "I ask 90")
    assert seat.read(b"floor is 70, or")[1] == ""


def test_thinking_is_turned_off_where_the_template_can() -> None:
    off = renderer(templates.QWEN3)
    assert off.thinking is False
    assert off.render([user("U")]) == (*U, *ASK, OPEN, *b"\n\n", CLOSE, *b"\n\n")
    on = renderer(templates.QWEN3, thinking=True)
    assert on.thinking is True
    assert on.render([user("U")]) == (*U, *ASK)


def test_thinking_is_hidden_even_where_it_was_not_expected() -> None:
    """B29: private reasoning never reaches the other seat."""
    seat = renderer(CHATML)
    assert seat.thinking is False
    sampled = (OPEN, *b"floor 70", CLOSE, *b"I ask 90", IM_END)
    assert seat.read(sampled) == ("<think>floor 70</think>I ask 90", "I ask 90")


def test_asking_a_model_to_think_that_cannot_is_said(caplog: pytest.LogCaptureFixture) -> None:
    assert renderer(CHATML, thinking=True).thinking is False
    assert "knows no thinking" in caplog.text


def test_earlier_thinking_is_cut_out_of_the_recorded_ids() -> None:
    """B04: the context is the one the template shows; nothing is encoded again."""
    seat = renderer(templates.QWEN3, thinking=True)
    recorded = (OPEN, *b"floor 70", CLOSE, *b"\n\nI ask 90", IM_END)
    prompt = seat.render([user("U"), own(recorded), user("V")])
    assert prompt == (*U, *ASK, *b"I ask 90", IM_END, *b"\n", *V, *ASK)


def test_an_earlier_turn_without_thinking_stays_whole() -> None:
    """B04: where thinking is on but the model did without, the next prompt extends the first."""
    seat = renderer(templates.QWEN3, thinking=True)
    first = seat.render([user("U")])
    recorded = (*b"\n I ask 90", IM_END)
    prompt = seat.render([user("U"), own(recorded), user("V")])
    assert prompt == (*first, *recorded, *b"\n", *V, *ASK)


def test_the_empty_think_block_of_a_generation_prompt_is_not_history() -> None:
    """B04: with thinking off, Qwen 3 shows earlier turns without the block they came after."""
    prompt = renderer(templates.QWEN3).render([user("U"), own([*b"Yes", IM_END]), user("V")])
    history = (*U, *ASK, *b"Yes", IM_END, *b"\n")
    assert prompt == (*history, *V, *ASK, OPEN, *b"\n\n", CLOSE, *b"\n\n")


def test_earlier_thinking_after_an_opened_tag_is_dropped_with_the_tag() -> None:
    """B04, B05: no empty think block is left behind."""
    seat = renderer(templates.OPENS_THINKING)
    recorded = (*b"floor is 70", CLOSE, *b"\n\nI ask 90", IM_END)
    prompt = seat.render([user("U"), own(recorded), user("V")])
    history = (*U, *ASK, *b"I ask 90", IM_END, *b"\n")
    assert prompt == (*history, *V, *ASK, OPEN, *b"\n")
    cut = seat.render([user("U"), own(b"cut while thinking"), user("V")])
    assert cut == (*U, *ASK, IM_END, *b"\n", *V, *ASK, OPEN, *b"\n")


def test_thinking_that_a_template_keeps_is_extended_exactly() -> None:
    """B05: the opening tag of the generation prompt stays before the recorded ids."""
    seat = renderer(templates.OPENS_AND_KEEPS_THINKING)
    first = seat.render([user("U")])
    recorded = (*b"floor is 70", CLOSE, *b"I ask 90", IM_END)
    second = seat.render([user("U"), own(recorded), user("V")])
    assert second == (*first, *recorded, *b"\n", *V, *ASK, OPEN, *b"\n")


def decode_bytes(ids: object) -> str:
    return bytes(ids).decode()  # type: ignore[arg-type, call-overload]


@pytest.mark.parametrize(
    ("text", "opened", "visible"),
    [
        (b"<think>a</think> b", False, b"b"),
        (b"a</think>\n\nb </think> c ", True, b"c "),
        (b" as it was ", False, b" as it was "),
        (b"never closed", True, b""),
        (b"<think>a</think> \n", False, b""),
    ],
)
def test_tags_of_several_tokens_are_cut_at_their_end(
    text: bytes, opened: bool, visible: bytes
) -> None:
    """B04"""
    assert visible_ids(text, decode_bytes, THINK, opened=opened) == tuple(visible)


@pytest.mark.parametrize("size", range(1, 20))
def test_the_end_of_a_tag_is_found_wherever_it_is(size: int) -> None:
    """B04"""
    answer = b"x" * size
    ids = b"<think>a</think>" + answer
    assert visible_ids(ids, decode_bytes, THINK, opened=False) == tuple(answer)


def test_an_answer_that_shares_a_token_with_the_closing_tag_is_not_lost() -> None:
    """B04: `>I` is one token, so the answer cannot be cut out of the ids."""
    tokenizer = merging_tokenizer([(">", "I")], templates.QWEN3)
    merged, end = 256, tokenizer.eos_token_id
    recorded = (*b"<think>a</think", merged, *b" ask", end)
    assert visible_ids(recorded[:-1], tokenizer.decode, THINK, opened=False) is None
    prompt = Renderer(tokenizer, thinking=True).render([user("U"), own(recorded), user("V")])
    assert "assistant\nI ask<|im_end|>" in tokenizer.decode(prompt)
    assert merged not in prompt

"""Prompts are made of template tokens, message text and recorded ids, and of nothing else."""

import subprocess
import sys

import pytest

from deliberation.chat import Renderer
from deliberation.episode import Message
from deliberation.errors import ConfigError
from tests.helpers.chats import assistant, own, system, user
from tests.helpers.tokenizers import (
    END_OF_TEXT,
    IM_END,
    IM_START,
    PAD,
    byte_tokenizer,
    merging_tokenizer,
)

ASK = (IM_START, *b"assistant\n")
"""The generation prompt of the byte tokenizer's own template."""


def turn(role: str, text: str) -> tuple[int, ...]:
    return (IM_START, *role.encode(), *b"\n", *text.encode(), IM_END, *b"\n")


def test_a_prompt_holds_each_message_between_the_templates_own_tokens() -> None:
    prompt = Renderer(byte_tokenizer()).render([system("Be kind."), user("Begin.")])
    assert prompt == (*turn("system", "Be kind."), *turn("user", "Begin."), *ASK)


def test_texts_are_stripped_at_both_ends() -> None:
    prompt = Renderer(byte_tokenizer()).render([user(" \n Begin.\u3000\n")])
    assert prompt == (*turn("user", "Begin."), *ASK)


def test_an_own_turn_stands_as_it_was_recorded_and_the_next_prompt_extends_it() -> None:
    renderer = Renderer(byte_tokenizer())
    first = renderer.render([system("S"), user("Begin.")])
    recorded = (*b"  I ask 90 ", IM_END)
    second = renderer.render([system("S"), user("Begin."), own(recorded), user("No.")])
    assert second == (*first, *recorded, *b"\n", *turn("user", "No."), *ASK)


def test_what_was_sampled_is_never_encoded_again() -> None:
    """B19: `[ren][tal]` stays two tokens, though the text "rental" is one."""
    tokenizer = merging_tokenizer(
        [("r", "e"), ("re", "n"), ("t", "a"), ("ta", "l"), ("ren", "tal")]
    )
    ren, tal, rental = 257, 259, 260
    end = tokenizer.eos_token_id
    renderer = Renderer(tokenizer)
    assert renderer.text_ids("rental") == (rental,)
    prompt = renderer.render([user("Begin."), own([ren, tal, end]), user("rental?")])
    place = prompt.index(ren)
    assert prompt[place : place + 3] == (ren, tal, end)
    assert prompt.count(rental) == 1
    assert renderer.read([ren, tal, end]) == ("rental", "rental")


def test_a_special_token_in_the_middle_of_an_own_turn_shifts_nothing() -> None:
    """B20: the other seat's words begin right after the template's tokens, found by ids."""
    renderer = Renderer(byte_tokenizer())
    recorded = (*b"ab", IM_START, *b"cd", IM_END)
    first = renderer.render([user("U")])
    second = renderer.render([user("U"), own(recorded), user("xyz")])
    assert second[: len(first) + len(recorded)] == (*first, *recorded)
    rest = second[len(first) + len(recorded) :]
    assert rest == (*b"\n", IM_START, *b"user\nxyz", IM_END, *b"\n", *ASK)
    assert renderer.read(recorded) == ("ab<|im_start|>cd", "abcd")


def test_a_turn_cut_by_the_limit_gets_the_templates_end_of_turn() -> None:
    prompt = Renderer(byte_tokenizer()).render([user("U"), own(b"cut he"), user("V")])
    assert prompt == (*turn("user", "U"), *turn("assistant", "cut he"), *turn("user", "V"), *ASK)


def test_any_of_several_end_tokens_ends_a_turn() -> None:
    """B16: the tokenizer names one end token, the generation config another."""
    renderer = Renderer(byte_tokenizer(), stop_ids=[END_OF_TEXT])
    assert renderer.stop_ids == {IM_END, END_OF_TEXT}
    assert renderer.read([*b"no", END_OF_TEXT, 0, 0]) == ("no", "no")
    # The context shows the template's own end of turn in its place.
    prompt = renderer.render([user("U"), own([*b"no", END_OF_TEXT]), user("V")])
    assert prompt == (*turn("user", "U"), *turn("assistant", "no"), *turn("user", "V"), *ASK)


def test_the_templates_end_of_turn_ends_a_turn_whatever_the_tokenizer_says() -> None:
    """B16: a base model's tokenizer with a ChatML template names only `<|endoftext|>`."""
    renderer = Renderer(byte_tokenizer(eos_token="<|endoftext|>"))
    assert renderer.stop_ids == {IM_END, END_OF_TEXT}


def test_padding_is_the_tokenizers_own_token_or_else_an_end_token() -> None:
    assert Renderer(byte_tokenizer()).pad_id == PAD
    assert Renderer(byte_tokenizer(pad_token="<|im_end|>")).pad_id == IM_END
    assert Renderer(byte_tokenizer(pad_token=None)).pad_id == IM_END


def test_messages_of_one_role_in_a_row_become_one_turn() -> None:
    """B02: both texts in order; the number of assistant turns is unchanged."""
    renderer = Renderer(byte_tokenizer())
    prompt = renderer.render([user("Rules: max 5 turns"), user(""), user("Your move")])
    assert prompt == (*turn("user", "Rules: max 5 turns\n\nYour move"), *ASK)
    prompt = renderer.render([user("U"), assistant("One."), assistant("Two."), user("V")])
    assert prompt == (
        *(*turn("user", "U"), *turn("assistant", "One.\n\nTwo."), *turn("user", "V")),
        *ASK,
    )


def test_own_turns_of_a_remote_model_are_texts() -> None:
    remote = own([], content="spoken elsewhere")
    prompt = Renderer(byte_tokenizer()).render([user("U"), remote, user("V")])
    spoken = turn("assistant", "spoken elsewhere")
    assert prompt == (*turn("user", "U"), *spoken, *turn("user", "V"), *ASK)


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([], "needs a user message first"),
        ([system("S")], "needs a user message first"),
        ([system("S"), assistant("I begin."), user("U")], "needs a user message first"),
        ([user("U"), system("S"), user("V")], "only the start"),
        ([user("U"), own([65]), own([66]), user("V")], "next to another assistant"),
        ([user("U"), assistant("A"), own([66]), user("V")], "next to another assistant"),
    ],
)
def test_what_is_no_conversation_is_refused(messages: list[Message], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Renderer(byte_tokenizer()).render(messages)


def twelve_turns() -> list[Message]:
    messages = [system("SSSS"), user("UU")]
    for number in range(1, 7):
        messages += [own([*f"a{number}".encode(), IM_END]), user(f"u{number}")]
    return messages


def test_over_the_budget_whole_oldest_turns_go_first() -> None:
    """B18: 64 tokens. Persona, first message and generation prompt take 14 + 10 + 11 = 35, the
    last own turn 15, the last reply 10, and the reply before joins the first message with 4."""
    prompt = Renderer(byte_tokenizer(), prompt_tokens=64).render(twelve_turns())
    assert prompt == (
        *turn("system", "SSSS"),
        *turn("user", "UU\n\nu5"),
        *turn("assistant", "a6"),
        *turn("user", "u6"),
        *ASK,
    )
    assert len(prompt) == 64


@pytest.mark.parametrize("budget", [35, 36, 45, 59, 60, 63, 85, 199, 200, 300])
def test_a_budget_is_kept_and_the_start_of_the_conversation_stays(budget: int) -> None:
    """B18"""
    prompt = Renderer(byte_tokenizer(), prompt_tokens=budget).render(twelve_turns())
    assert len(prompt) <= budget
    assert prompt[:14] == turn("system", "SSSS")
    assert prompt[14:23] == (IM_START, *b"user\nUU", *prompt[22:23])
    assert prompt[-11:] == ASK


def test_without_a_budget_nothing_is_left_out() -> None:
    assert len(Renderer(byte_tokenizer()).render(twelve_turns())) == 35 + 6 * 25


def test_the_latest_message_goes_last_and_not_in_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """B18"""
    renderer = Renderer(byte_tokenizer(), prompt_tokens=35)
    assert renderer.render([system("SSSS"), user("UU"), own([65, IM_END]), user("V")]) == (
        *(*turn("system", "SSSS"), *turn("user", "UU")),
        *ASK,
    )
    assert "no room for the latest message" in caplog.text


def test_a_budget_below_the_persona_is_a_config_error() -> None:
    """B18"""
    renderer = Renderer(byte_tokenizer(), prompt_tokens=64, name="tiny")
    # 10 + 34 for the persona, 9 for the user message, 11 for the generation prompt; they fit
    # exactly, so one more letter is too much.
    assert renderer.render([system("S" * 34), user("U")])
    with pytest.raises(ConfigError) as error:
        renderer.render([system("S" * 35), user("U"), own([65]), user("more")])
    assert "protocol.prompt_tokens is 64" in str(error.value)
    assert "65 tokens with tiny" in str(error.value)


def test_half_a_surrogate_pair_is_replaced() -> None:
    renderer = Renderer(byte_tokenizer())
    assert renderer.text_ids("a\ud800b") == (*b"a", 0xEF, 0xBF, 0xBD, *b"b")
    assert renderer.render([user("\udfff")]) == (*turn("user", "\ufffd"), *ASK)


def test_rendering_needs_no_torch() -> None:
    code = "import deliberation.chat, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

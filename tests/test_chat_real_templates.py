"""The templates of real model families, as TRL ships them, on a byte tokenizer."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest
import trl

from deliberation.chat import Renderer
from deliberation.errors import ModelError
from tests.helpers.chats import own, system, user
from tests.helpers.tokenizers import byte_tokenizer

FOLDER = Path(trl.__file__).parent / "chat_templates"
TOKEN = re.compile(r"<\|[^|>{}']+\|>|<｜[^｜{}']+｜>|<(?:\|?turn\|?|start_of_turn|end_of_turn)>")


def renderer(name: str, *, thinking: bool = False) -> Renderer:
    template = (FOLDER / f"{name}.jinja").read_text()
    tokens = sorted({*TOKEN.findall(template), "<think>", "</think>"})
    tokenizer = byte_tokenizer(template, added=tokens, bos_token="<bos>")
    return Renderer(tokenizer, thinking=thinking, name=name)


class Family(NamedTuple):
    name: str
    end: str
    """Its end of turn."""
    system_role: bool = True
    thinks: bool = False
    """Even with thinking turned off."""
    extends: bool = True
    """Each prompt extends the one before and what was sampled after it."""


FAMILIES = [
    Family("cohere", "<|END_OF_TURN_TOKEN|>"),
    Family("deepseek_r1_distill", "<｜end▁of▁sentence｜>", thinks=True, extends=False),
    Family("gemma", "<end_of_turn>", system_role=False),
    Family("gemma3", "<end_of_turn>"),
    Family("glm4moe", "<|user|>"),
    Family("llama3", "<|eot_id|>"),
    Family("llama3_2", "<|eot_id|>"),
    Family("phi3", "<|end|>"),
    Family("qwen2_5", "<|im_end|>"),
    # Qwen 3 shows earlier turns without the empty think block that it generates after.
    Family("qwen3", "<|im_end|>", extends=False),
    Family("qwen3_instruct_2507", "<|im_end|>"),
]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_real_families_are_understood(family: Family) -> None:
    """B01, B04, B14, B16: on the templates that people train with."""
    seat = renderer(family.name)
    end = seat.tokenizer.convert_tokens_to_ids(family.end)
    assert end in seat.stop_ids
    assert (seat.system_role, seat.thinking) == (family.system_role, family.thinks)

    persona, matter = system("Persona <|im_end|>."), user("The matter.")
    first = seat.render([persona, matter])
    recorded = (*b"I ask 90.", end)
    if family.thinks:
        close = seat.tokenizer.convert_tokens_to_ids("</think>")
        recorded = (*b"floor 70", close, *b"\n\nI ask 90.", end)
    second = seat.render([persona, matter, own(recorded), user("No, 80.")])
    text = seat.decode(second)
    assert (second[: len(first) + len(recorded)] == (*first, *recorded)) is family.extends
    shown = re.findall(r"Persona <\|im_end\|>\.|The matter\.|I ask 90\.|No, 80\.|floor 70", text)
    assert shown == ["Persona <|im_end|>.", "The matter.", "I ask 90.", "No, 80."]
    assert second.count(seat.tokenizer.bos_token_id) <= 1
    assert "You are Qwen" not in text
    assert seat.read(recorded)[1] == "I ask 90."


def test_a_field_of_a_message_is_no_switch() -> None:
    """LFM 2.5 tests `message.thinking`, and has no way to turn thinking off."""
    assert renderer("lfm2_2_5").thinking is True


@pytest.mark.parametrize("name", ["idefics3", "llava_next", "smolvlm"])
def test_templates_that_take_pictures_for_texts_are_refused(name: str) -> None:
    with pytest.raises(ModelError, match=f"{name} loses a user message"):
        renderer(name)


def test_a_model_that_speaks_in_channels_is_refused() -> None:
    """Its thinking would pass for something said (B29)."""
    with pytest.raises(ModelError, match="speaks in channels"):
        renderer("gptoss")


def test_thinking_between_other_tags_is_hidden_too() -> None:
    """B29: Gemma 4 thinks between `<|channel>` and `<channel|>`."""
    seat = renderer("gemma4_v5", thinking=True)
    sampled = seat.tokenizer.encode("<|channel>thought\nfloor 70<channel|>I ask 90")
    assert seat.thinking
    assert seat.read(sampled)[1] == "I ask 90"
    prompt = seat.decode(seat.render([user("U"), own(sampled), user("V")]))
    assert "I ask 90" in prompt
    assert "floor 70" not in prompt

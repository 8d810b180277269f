"""Whatever a chat template does, each text is shown once, between the tokens the template has."""

import logging
from datetime import datetime
from typing import Any

import pytest
from tokenizers import AddedToken
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from deliberation.chat import Renderer
from deliberation.errors import ModelError
from tests.helpers import chat_templates as templates
from tests.helpers.chats import assistant, own, system, user
from tests.helpers.tokenizers import (
    CHATML,
    IM_END,
    IM_START,
    byte_tokenizer,
    metaspace_tokenizer,
)

ASK = (IM_START, *b"assistant\n")


def turn(role: str, text: str) -> tuple[int, ...]:
    return (IM_START, *role.encode(), *b"\n", *text.encode(), IM_END, *b"\n")


def gemma() -> PreTrainedTokenizerFast:
    return byte_tokenizer(
        templates.GEMMA,
        added=["<start_of_turn>", "<end_of_turn>"],
        bos_token="<bos>",
        eos_token="<|endoftext|>",
    )


START, END, BOS = 260, 261, 262
"""Ids that `gemma()` adds."""


def test_without_a_system_role_the_persona_opens_the_first_user_turn_once() -> None:
    """B01: Gemma's template raises on a system message."""
    renderer = Renderer(gemma())
    assert renderer.system_role is False
    assert renderer.render([system("You are the tenant"), user("Begin.")]) == (
        BOS,
        *(START, *b"user\nYou are the tenant\n\nBegin.", END, *b"\n"),
        *(START, *b"model\n"),
    )


def test_a_system_message_that_a_template_drops_in_silence_is_folded_too() -> None:
    """B01"""
    renderer = Renderer(byte_tokenizer(templates.SILENT_SYSTEM))
    assert renderer.system_role is False
    assert renderer.render([system("Be fair."), user("Begin."), own([65, IM_END]), user("V")]) == (
        *turn("user", "Be fair.\n\nBegin."),
        *(*turn("assistant", "A"), *turn("user", "V")),
        *ASK,
    )


def test_strict_alternation_is_kept_whoever_opens() -> None:
    """B02: the partner opened, so its words follow the matter as a second user message."""
    renderer = Renderer(gemma())
    prompt = renderer.render(
        [system("S"), user("Matter"), user("I open."), own([*b"Hm.", END]), user("And?")]
    )
    assert prompt == (
        BOS,
        *(START, *b"user\nS\n\nMatter\n\nI open.", END, *b"\n"),
        *(START, *b"model\nHm.", END, *b"\n"),
        *(START, *b"user\nAnd?", END, *b"\n"),
        *(START, *b"model\n"),
    )
    assert renderer.stop_ids == {258, END}


def test_an_over_long_chat_still_alternates() -> None:
    """B18: leaving out one turn leaves two user messages side by side, which become one."""
    messages = [system("S"), user("M"), own([*b"a", END]), user("b"), own([*b"c", END]), user("d")]
    whole = Renderer(gemma()).render(messages)
    prompt = Renderer(gemma(), prompt_tokens=len(whole) - 1).render(messages)
    assert prompt == (
        BOS,
        *(START, *b"user\nS\n\nM\n\nb", END, *b"\n"),
        *(START, *b"model\nc", END, *b"\n"),
        *(START, *b"user\nd", END, *b"\n"),
        *(START, *b"model\n"),
    )


def test_a_persona_replaces_the_templates_own_system_line() -> None:
    """B14"""
    renderer = Renderer(byte_tokenizer(templates.CHATML_WITH_DEFAULT))
    persona = renderer.render([system("You are the tenant"), user("U")])
    assert persona == (*turn("system", "You are the tenant"), *turn("user", "U"), *ASK)
    default = renderer.render([user("U")])
    assert default == (*turn("system", "You are Qwen."), *turn("user", "U"), *ASK)


def test_what_a_model_reads_first_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """B14"""
    with caplog.at_level(logging.INFO):
        renderer = Renderer(byte_tokenizer(), name="tiny")
        renderer.render([user("U")])
    (message,) = caplog.messages
    shown = "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n"
    assert repr(shown + "<|im_start|>assistant\n") in message


def with_bos(template: str) -> PreTrainedTokenizerFast:
    """Adds BOS (260) to plain text in its post-processor."""
    tokenizer = byte_tokenizer(template, bos_token="<s>")
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 260)]
    )
    assert tokenizer("hi")["input_ids"] == [260, *b"hi"]
    return tokenizer


def test_a_bos_in_the_template_is_not_added_again(caplog: pytest.LogCaptureFixture) -> None:
    """B06: template text begins with BOS, and the tokenizer adds one to plain text."""
    prompt = Renderer(with_bos("{{ bos_token }}" + CHATML)).render([user("hi")])
    assert prompt == (260, *turn("user", "hi"), *ASK)
    assert not caplog.messages


def test_a_bos_that_only_the_post_processor_adds_is_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """B07"""
    renderer = Renderer(with_bos(CHATML))
    assert renderer.render([user("hello")]) == (260, *turn("user", "hello"), *ASK)
    prompt = renderer.render([user("hello"), own([65, IM_END]), user("<s>")])
    assert prompt.count(260) == 1
    assert not caplog.messages


def test_a_bos_that_nothing_adds_is_left_out() -> None:
    prompt = Renderer(byte_tokenizer(bos_token="<s>")).render([user("hi")])
    assert prompt == (*turn("user", "hi"), *ASK)


def test_a_base_model_without_template_is_refused_by_name() -> None:
    """B12"""
    with pytest.raises(ModelError) as error:
        Renderer(byte_tokenizer(chat_template=None), name="hf:some/base")
    assert "hf:some/base has no chat template" in str(error.value)
    assert "policy.chat_template" in str(error.value)


def test_a_choice_of_templates_needs_a_default() -> None:
    """B12"""
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = {"rag": CHATML, "default": CHATML}
    assert Renderer(tokenizer).template_hash == Renderer(byte_tokenizer()).template_hash
    tokenizer.chat_template = {"rag": CHATML, "tool_use": CHATML}
    with pytest.raises(ModelError, match=r"several chat templates.*policy\.chat_template"):
        Renderer(tokenizer)


@pytest.mark.parametrize(
    ("template", "complaint"),
    [
        (templates.LOSES_EARLIER, "tiny loses a user message"),
        (templates.REPEATS_USER, "tiny repeats a user message"),
        ("{% for m in messages %}{{ m.content | upper }}{% endfor %}", "tiny loses a user message"),
        ("{{ messages[0].content[0].text }}", "tiny"),
        ("{{ raise_exception('nothing goes') }}", "nothing goes"),
        ("{% for %}", "cannot render"),
    ],
)
def test_a_template_that_loses_or_repeats_a_message_is_refused(
    template: str, complaint: str
) -> None:
    with pytest.raises(ModelError, match=complaint) as error:
        Renderer(byte_tokenizer(template), name="tiny")
    assert "policy.chat_template" in str(error.value)


def test_a_slow_tokenizer_is_refused() -> None:
    class Slow(PreTrainedTokenizerFast):
        is_fast = False

    with pytest.raises(ModelError, match=r"no fast tokenizer"):
        Renderer(Slow(tokenizer_object=byte_tokenizer().backend_tokenizer))


def test_spaces_that_a_template_puts_around_an_answer_break_no_prefix() -> None:
    """The history of Llama 2 has spaces where its generation prompt and its samples have none."""
    tokenizer = byte_tokenizer(templates.LLAMA2, bos_token="<s>", eos_token="</s>")
    bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
    renderer = Renderer(tokenizer)
    assert renderer.stop_ids == {eos}
    first = renderer.render([system("S"), user("U")])
    assert first == (bos, *b"[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST]")
    recorded = (*b" Yes", eos)
    second = renderer.render([system("S"), user("U"), own(recorded), user("V")])
    assert second == (*first, *recorded, bos, *b"[INST] V [/INST]")


def test_a_system_text_may_move_with_the_conversation() -> None:
    tokenizer = byte_tokenizer(templates.MISTRAL, bos_token="<s>", eos_token="</s>")
    bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
    renderer = Renderer(tokenizer)
    assert renderer.render([system("S"), user("U")]) == (bos, *b"[INST] S\n\nU[/INST]")
    prompt = renderer.render([system("S"), user("U"), own([*b" Y", eos]), user("V")])
    assert prompt == (bos, *b"[INST] U[/INST] Y", eos, *b"[INST] S\n\nV[/INST]")


def test_a_turn_may_end_in_the_opening_token_of_the_next() -> None:
    tokenizer = byte_tokenizer(
        templates.GLM, added=["<|system|>", "<|user|>", "<|assistant|>"], eos_token="<|endoftext|>"
    )
    renderer = Renderer(tokenizer)
    assert renderer.stop_ids == {258, 261}
    first = renderer.render([user("U")])
    assert first == (261, *b"\nU", 262)
    recorded = (*b"\nYes", 261)
    second = renderer.render([user("U"), own(recorded), user("V")])
    assert second == (*first, *recorded, *b"\nV", 262)
    assert renderer.read(recorded) == ("\nYes", "Yes")


def test_a_template_without_control_tokens_works_with_an_end_token() -> None:
    renderer = Renderer(byte_tokenizer(templates.PLAIN))
    assert renderer.stop_ids == {IM_END}
    prompt = renderer.render([user("U"), own([*b" Yes", IM_END]), user("V")])
    assert prompt == (*b"user: U\nassistant: Yes\nuser: V\nassistant:",)


def test_a_model_without_any_end_token_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    renderer = Renderer(byte_tokenizer(templates.PLAIN, eos_token=None, pad_token=None))
    assert renderer.stop_ids == frozenset()
    assert renderer.pad_id == 0
    assert "names no end-of-turn token" in caplog.text


def test_prompts_are_the_same_on_any_day() -> None:
    prompt = Renderer(byte_tokenizer(templates.DATED)).render([user("U")])
    start = b"Today Date: 01 Jan 2025 (2025)\n"
    assert prompt == (*start, *turn("user", "U"), *ASK)
    assert datetime.now().year > 2025


class Rendering(PreTrainedTokenizerFast):
    """A tokenizer whose tokenised render is what a test says."""

    rendered: Any = None

    def apply_chat_template(self, *args: Any, tokenize: bool = True, **kwargs: Any) -> Any:
        if tokenize:
            return self.rendered
        return super().apply_chat_template(*args, tokenize=False, **kwargs)


def rendering(rendered: Any) -> Rendering:
    tokenizer = Rendering(
        tokenizer_object=byte_tokenizer().backend_tokenizer, eos_token="<|im_end|>"
    )
    tokenizer.chat_template = CHATML
    tokenizer.rendered = rendered
    return tokenizer


SAMPLE = [
    *turn("user", "This is message user."),
    *turn("assistant", "This is message assistant."),
    *turn("user", "This is message user."),
    *ASK,
]


@pytest.mark.parametrize(
    "rendered",
    [
        SAMPLE,
        [SAMPLE],
        {"input_ids": SAMPLE, "attention_mask": [1] * len(SAMPLE)},
        {"input_ids": [SAMPLE], "attention_mask": [[1] * len(SAMPLE)]},
    ],
)
def test_a_mapping_from_the_library_is_read_as_its_ids(
    rendered: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """B17: `len()` of a mapping is the number of its keys, not of the prompt's tokens."""
    Renderer(rendering(rendered))
    assert not caplog.messages


@pytest.mark.parametrize(
    ("rendered", "place"),
    [
        ([*SAMPLE[:5], 33, *SAMPLE[6:]], "first at token 5 ('\\n', not '!')"),
        (SAMPLE[:-1], f"first at token {len(SAMPLE) - 1} ('\\n', not '')"),
        ({"input_ids": [1, 2, 3, 4]}, "first at token 0 ('<|im_start|>', not '\\x01')"),
    ],
)
def test_a_tokenizer_that_renders_otherwise_is_warned_about(
    rendered: Any, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    """B17: our prompts stay consistent with our rows; the first difference is named."""
    renderer = Renderer(rendering(rendered), name="tiny")
    (message,) = caplog.messages
    assert message.startswith("tiny renders a chat otherwise")
    assert place in message
    assert renderer.render([user("U")]) == (*turn("user", "U"), *ASK)


@pytest.mark.parametrize(
    "template",
    [
        CHATML,
        templates.CHATML_WITH_DEFAULT,
        templates.LLAMA2,
        templates.MISTRAL,
        templates.GLM,
        templates.PLAIN,
        templates.QWEN3,
    ],
)
def test_a_chat_of_texts_is_the_tokenizers_own_render(template: str) -> None:
    chat = [("system", "Be fair, [INST]."), ("user", "hi"), ("assistant", "yes"), ("user", "so?")]
    for tokenizer in (
        byte_tokenizer(template, bos_token="<s>", added=[AddedToken("<|user|>", rstrip=True)]),
        metaspace_tokenizer(template, words=["▁hi", "hi", "[INST]", "▁[INST]", "▁yes"]),
    ):
        theirs = tokenizer.apply_chat_template(
            [{"role": role, "content": text} for role, text in chat],
            add_generation_prompt=True,
            return_dict=True,
            **({"enable_thinking": False} if template == templates.QWEN3 else {}),
        )["input_ids"]
        make = {"system": system, "user": user, "assistant": assistant}
        ours = Renderer(tokenizer).render([make[role](text) for role, text in chat])
        assert ours == tuple(theirs)


def test_a_text_after_recorded_ids_gets_no_space_of_its_own() -> None:
    """SentencePiece puts a space before the start of a text, and only there."""
    words = ["▁hi", "hi", "▁[INST]", "[INST]", "▁[/INST]", "[/INST]", "▁yes"]
    tokenizer = metaspace_tokenizer(templates.LLAMA2, words=words)
    id = {piece: tokenizer.convert_tokens_to_ids(piece) for piece in [*words, "<s>", "</s>"]}
    renderer = Renderer(tokenizer)
    first = renderer.render([user("hi")])
    assert first == (id["<s>"], id["[INST]"], id["▁hi"], id["▁[/INST]"])
    second = renderer.render([user("hi"), own([id["▁yes"], id["</s>"]]), user("hi")])
    assert second == (*first, id["▁yes"], id["</s>"], *first)
    assert renderer.text_ids("hi") == (id["hi"],)

    # Where a newline merges with what follows it, the text is encoded as at a start.
    merging = metaspace_tokenizer(templates.LLAMA2, words=["▁hi", "\nhi"])
    assert merging.decode(Renderer(merging).text_ids("hi")) == "hi"

    plain = metaspace_tokenizer(templates.PLAIN, words=["user", "▁user", "▁yes"])
    ids = Renderer(plain).render([user("a"), own([plain.convert_tokens_to_ids("▁yes")]), user("b")])
    assert plain.decode(ids) == "user: a\nassistant: yes\nuser: b\nassistant:"


def test_the_hash_tells_templates_apart() -> None:
    one, two = (Renderer(byte_tokenizer(text)) for text in (CHATML, templates.QWEN3))
    assert one.template_hash != two.template_hash
    assert len(one.template_hash) == 64

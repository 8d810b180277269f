"""Small tokenizers made in code, with the chat templates that real models come with."""

from collections.abc import Sequence
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

IM_START, IM_END, END_OF_TEXT, PAD = 256, 257, 258, 259
"""Ids of the control tokens of `byte_tokenizer`; ids below 256 are the bytes themselves."""

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def byte_tokenizer(
    chat_template: str | None = CHATML,
    *,
    added: Sequence[str | AddedToken] = (),
    **special: Any,
) -> PreTrainedTokenizerFast:
    """One token a byte, then `<|im_start|>`, `<|im_end|>` (EOS), `<|endoftext|>`, `<|pad|>`.

    Args:
        chat_template: None for a base model's tokenizer.
        added: further added tokens, not special unless they say so; ids from 260 on.
        special: passed on, e.g. `bos_token="<s>"` (appended if new) or `pad_token=None`.
    """
    letters = bytes_to_unicode()
    backend = Tokenizer(models.BPE(vocab={letters[b]: b for b in range(256)}, merges=[]))
    backend.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|pad|>"])
    backend.add_tokens(list(added))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        **{"eos_token": "<|im_end|>", "pad_token": "<|pad|>"} | special,
    )
    tokenizer.chat_template = chat_template
    return tokenizer


def merging_tokenizer(
    merges: Sequence[tuple[str, str]], chat_template: str | None = CHATML
) -> PreTrainedTokenizerFast:
    """Bytes as in `byte_tokenizer`, then one token a merge; control tokens follow."""
    letters = bytes_to_unicode()
    vocab = {letters[b]: b for b in range(256)}
    for left, right in merges:
        vocab[left + right] = len(vocab)
    backend = Tokenizer(models.BPE(vocab=vocab, merges=list(merges)))
    backend.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token="<|im_end|>",
        pad_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>"],
    )
    tokenizer.chat_template = chat_template
    return tokenizer


def metaspace_tokenizer(chat_template: str | None, words: Sequence[str]) -> PreTrainedTokenizerFast:
    """SentencePiece-like: a space is `▁`, and one is put before the start of a text.

    Ids: `<unk>` 0, `<s>` 1, `</s>` 2, then the words as given, then single letters.
    """
    letters = [chr(code) for code in range(33, 127)] + ["▁", "\n"]
    pieces = ["<unk>", "<s>", "</s>", *words]
    vocab = [(piece, 0.0) for piece in pieces] + [(letter, -10.0) for letter in letters]
    backend = Tokenizer(models.Unigram(vocab, unk_id=0))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    backend.decoder = decoders.Metaspace(prepend_scheme="first")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    tokenizer.chat_template = chat_template
    return tokenizer

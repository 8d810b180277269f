"""What a judge reads: clean Unicode, and how much of it."""

import re
from typing import Protocol, TypeVar

from deliberation.episode import Record
from deliberation.judging import ResolutionCase, Transcript

AnyRecord = TypeVar("AnyRecord", bound=Record)

_LONE_SURROGATE = re.compile(
    "[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]"
)


def clean_text(text: str) -> tuple[str, int]:
    """The text with each lone surrogate as U+FFFD, and how many there were.

    All else is kept as it is: nothing is escaped, normalised or transliterated. Halves of a pair
    that stand next to each other become the character that they make.
    """
    if not any("\ud800" <= character <= "\udfff" for character in text):
        return text, 0
    cleaned, replaced = _LONE_SURROGATE.subn("\ufffd", text)
    return cleaned.encode("utf-16", "surrogatepass").decode("utf-16"), replaced


def clean_transcript(transcript: Transcript) -> tuple[Transcript, int]:
    """The transcript with all its texts clean, and how many surrogates were replaced."""
    fields, replaced = _clean_fields(transcript, ("title", "situation", "question"))
    utterances = []
    for utterance in transcript.utterances:
        parts, count = _clean_fields(utterance, ("speaker", "text"))
        utterances.append(utterance.model_copy(update=parts))
        replaced += count
    return transcript.model_copy(update=fields | {"utterances": tuple(utterances)}), replaced


def clean_case(case: ResolutionCase) -> tuple[ResolutionCase, int]:
    """The case with all its texts clean, and how many surrogates were replaced."""
    transcript, replaced = clean_transcript(case.transcript)
    fields, count = _clean_fields(case, ("resolution",))
    replaced += count
    update: dict[str, object] = {**fields, "transcript": transcript}
    for name in ("stakeholders", "constraints", "personas"):
        texts = []
        for text in getattr(case, name):
            cleaned, count = clean_text(text)
            texts.append(cleaned)
            replaced += count
        update[name] = tuple(texts)
    return case.model_copy(update=update), replaced


def _clean_fields(record: Record, names: tuple[str, ...]) -> tuple[dict[str, object], int]:
    fields: dict[str, object] = {}
    replaced = 0
    for name in names:
        fields[name], count = clean_text(getattr(record, name))
        replaced += count
    return fields, replaced


class Offsets(Protocol):
    """A fast tokenizer, as far as it is used here."""

    def __call__(
        self,
        text: str,
        *,
        add_special_tokens: bool,
        return_offsets_mapping: bool,
        split_special_tokens: bool,
    ) -> dict[str, list[tuple[int, int]]]: ...


def last_words(text: str, tokenizer: Offsets, tokens: int) -> str:
    """The end of the text: whole words, at most `tokens` tokens of it.

    A text without blanks (Japanese, or one endless word) is cut between two characters.
    """
    offsets = _offsets(text, tokenizer)
    if len(offsets) <= tokens:
        return text
    start = offsets[-tokens][0]
    if start > 0 and not text[start - 1].isspace() and not text[start].isspace():
        blank = re.search(r"\s", text[start:])
        start = start + blank.start() if blank is not None else start
    return text[start:].strip()


def first_words(text: str, tokenizer: Offsets, tokens: int) -> str:
    """The beginning of the text: whole words, at most `tokens` tokens of it."""
    offsets = _offsets(text, tokenizer)
    if len(offsets) <= tokens:
        return text
    end = offsets[tokens][0]
    if not text[end - 1].isspace() and not text[end].isspace():
        blanks = list(re.finditer(r"\s", text[:end]))
        end = blanks[-1].start() if blanks else end
    return text[:end].strip()


def _offsets(text: str, tokenizer: Offsets) -> list[tuple[int, int]]:
    encoding = tokenizer(
        text,
        add_special_tokens=False,
        return_offsets_mapping=True,
        split_special_tokens=True,
    )
    return encoding["offset_mapping"]

"""What a data set may hold; the defaults are what the packaged sets keep to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any

from deliberation.errors import ConfigError


@dataclass(frozen=True)
class DataLimits:
    """DataLimits of `check_data`. A share is between 0 and 1; only what is above it crosses it."""

    near_words: float = 0.25
    """Jaccard index of the word 5-grams of two dilemmas (situation and question)."""
    near_skeletons: float = 0.5
    """Jaccard index of the 5-grams of their skeletons: names, numbers and content words masked."""
    near_embeddings: float = 0.92
    """Cosine of their embeddings; crossing it is a warning."""
    gram_rows: int = 40
    """Dilemmas that one 5-gram may stand in."""
    sentence_rows: int = 2
    """Dilemmas that one sentence may stand in."""
    sentence_words: int = 6
    """Words from which on a sentence is looked at."""
    opening_share: float = 0.01
    """Share of the dilemmas that may begin with the same 4 words."""
    class_share: float = 0.5
    """Share of the dilemmas that may be of one class."""
    domain_share: float = 0.03
    """Share of the dilemmas that may be of one domain."""
    value_rows: int = 8
    """Dilemmas that each value of the list must be in."""
    name_share: float = 0.015
    """Share of the dilemmas that one first name may be in."""
    min_words: int = 60
    """Words that a situation must have."""
    max_words: int = 140
    """Words that a situation may have."""
    persona_words: int = 22
    """Words that a text of a persona may have."""
    leak_words: float = 0.1
    """Jaccard index of word 5-grams between a training and an evaluation row."""
    balance_from: int = 100
    """Rows from which on shares are looked at: in fewer, one row is more than 1 %."""
    values_from: int = 500
    """Rows from which on each value is counted: in fewer, the list alone would fill the set."""


SHARES = tuple(field.name for field in fields(DataLimits) if field.name.endswith("_share"))
NEAR = ("near_words", "near_skeletons", "near_embeddings", "leak_words")


def with_limits(limits: DataLimits, assignments: Iterable[str]) -> DataLimits:
    """`limits` changed by `key=value` texts.

    Raises:
        ConfigError: a key is unknown (the nearest is named), or a value is no number or out of
            range.
    """
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        key = key.strip()
        if not equals:
            raise ConfigError(f'--limit "{assignment}": no value; write it as key=value.')
        defaults = {field.name: field.default for field in fields(DataLimits)}
        if key not in defaults:
            near = get_close_matches(key, defaults, n=1, cutoff=0.0)[0]
            raise ConfigError(f'--limit "{key}" is unknown; the nearest is "{near}".')
        change: dict[str, Any] = {key: _number(key, text.strip(), type(defaults[key]))}
        limits = replace(limits, **change)
    return limits


def _number(key: str, text: str, kind: type) -> float:
    try:
        value = int(text) if kind is int else float(text)
    except ValueError:
        wanted = "a whole number" if kind is int else "a number"
        raise ConfigError(f'--limit {key}: "{text}" is not {wanted}; write one.') from None
    if key in NEAR and not 0 < value <= 1:
        raise ConfigError(f"--limit {key}: must be above 0 and at most 1, not {text}; correct it.")
    if key in SHARES and not 0 <= value <= 1:
        raise ConfigError(f"--limit {key}: must be between 0 and 1, not {text}; correct it.")
    if value < 0:
        raise ConfigError(f"--limit {key}: must not be below 0; write 0 or more.")
    return value

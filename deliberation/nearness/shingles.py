"""Texts as sets of shingles: every run of five words, or of five places of a skeleton.

A shingle is a 64-bit hash that depends on its words alone, so sets from different processes can be
compared. Two different shingles of a hundred thousand dilemmas share a hash with a chance of about
one in a million.

Japanese and Chinese put no spaces between words. A text with more than ten letters to a "word" is
therefore cut into single characters, and a shingle of it is five characters. Korean has spaces.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Container, Iterable, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .function_words import DETERMINERS, FUNCTION_WORDS, JOINING

SIZE = 5
"""Places in a shingle."""
MOST_LETTERS = 10
"""Letters to a word, in the mean, above which a text is cut into characters."""
LEAST_FUNCTION_WORDS = 0.2
"""Share of function words below which a text is not English and has no skeleton."""
MASK = "_"
STOP = "."

Shingles: TypeAlias = NDArray[np.uint64]
"""Sorted, each once."""

NONE: Shingles = np.empty(0, dtype=np.uint64)

_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_WORD_OR_STOP = re.compile(r"\w+(?:['’-]\w+)*|[.!?]")
_WORD_OR_GAP = re.compile(r"\w+(?:['’-]\w+)*|\x1f")
_FACTORS = tuple(
    np.uint64(int.from_bytes(hashlib.blake2b(bytes([place]), digest_size=8).digest(), "big") | 1)
    for place in range(SIZE)
)
_GAP = "\x1f"
"""Stands between texts, where no word can: shingles never reach across it."""


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation; characters where it has no spaces."""
    found = _WORD.findall(_plain(text))
    most = MOST_LETTERS * len(found)
    if len(text) > most and sum(map(len, found)) > most:
        return [character for word in found for character in word]
    return found


def word_shingles(text: str) -> Shingles:
    """Every five words in a row. A text of fewer words is one shingle; one of none has none."""
    return _shingles(words(text))


def passage_shingles(texts: Iterable[str]) -> Shingles:
    """Those of several texts together; none reaches from one text into the next."""
    parts = _parts(texts)
    return _once(_windows(_hashes(parts))[_whole(parts)])


def passage_words(texts: Iterable[str], wanted: Container[int]) -> dict[int, str]:
    """The words of those shingles of a passage that are wanted."""
    parts = _parts(texts)
    windows = _windows(_hashes(parts)).tolist()
    places = np.flatnonzero(_whole(parts)).tolist()
    return {
        windows[place]: " ".join(parts[place : place + SIZE])
        for place in places
        if windows[place] in wanted
    }


def _parts(texts: Iterable[str]) -> list[str]:
    """Words with a gap after each text, and so many in the end that there is a window."""
    plain = [_plain(text) for text in texts]
    found = _WORD_OR_GAP.findall(_GAP.join(plain))
    if sum(map(len, plain)) > MOST_LETTERS * len(found):
        found = [part for text in plain for part in (*words(text), _GAP)]
    return found if len(found) >= SIZE else [*found, *([_GAP] * SIZE)]


def _whole(parts: Sequence[str]) -> NDArray[np.bool_]:
    """Which windows hold no gap."""
    whole = np.ones(len(parts) - SIZE + 1, dtype=np.bool_)
    for place in (place for place, part in enumerate(parts) if part == _GAP):
        whole[max(0, place - SIZE + 1) : place + 1] = False
    return whole


def skeleton_words(text: str) -> list[str]:
    """What is left of a text when everything that could fill a template is masked.

    Function words and ends of sentences stay. Everything else (names, numbers, nouns, verbs,
    adjectives) is a mask; so are determiners in front of it and the prepositions that join two
    masks, and neighbouring masks are one. "the north of Norway", "Lima" and "a small town" are thus
    the same, and filling a template with other words, more or fewer, leaves its skeleton.

    The list of function words is English. A text in which they are rare has no skeleton.
    """
    raw = _WORD_OR_STOP.findall(_plain(text).replace("’", "'"))
    skeleton: list[str] = []
    known = 0
    for place, word in enumerate(raw):
        if word in "!?.":
            skeleton.append(STOP)
            continue
        if word in FUNCTION_WORDS:
            known += 1
            if word not in DETERMINERS or not _is_content(raw[place + 1 : place + 2]):
                skeleton.append(word)
                continue
        if len(skeleton) > 1 and skeleton[-1] in JOINING and skeleton[-2] == MASK:
            skeleton.pop()
        elif not skeleton or skeleton[-1] != MASK:
            skeleton.append(MASK)
    return skeleton if known >= LEAST_FUNCTION_WORDS * len(raw) else []


def _is_content(following: Sequence[str]) -> bool:
    return bool(following) and following[0] not in FUNCTION_WORDS and following[0] not in "!?."


def skeleton_shingles(text: str) -> Shingles:
    """Every five places in a row of the text's skeleton."""
    return _shingles(skeleton_words(text))


def jaccard(first: Shingles, second: Shingles) -> float:
    """Size of the intersection by that of the union; 0 where both are empty."""
    shared = len(np.intersect1d(first, second, assume_unique=True))
    together = len(first) + len(second) - shared
    return shared / together if together else 0.0


def _plain(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", text).casefold()


def _shingles(sequence: Sequence[str]) -> Shingles:
    if not sequence:
        return NONE
    hashes = _hashes(sequence)
    if len(hashes) < SIZE:
        hashes = np.concatenate([hashes, np.zeros(SIZE - len(hashes), dtype=np.uint64)])
    return _once(_windows(hashes))


def _once(hashes: Shingles) -> Shingles:
    """As `np.unique`, in half the time for so few."""
    hashes.sort()
    first = np.ones(len(hashes), dtype=np.bool_)
    np.not_equal(hashes[1:], hashes[:-1], out=first[1:])
    return hashes[first]


def _windows(hashes: Shingles) -> Shingles:
    """One hash for each window; the mixing at the end spreads it over all 64 bits."""
    count = len(hashes) - SIZE + 1
    total = hashes[:count] * _FACTORS[0]
    for place in range(1, SIZE):
        total += hashes[place : place + count] * _FACTORS[place]
    total ^= total >> np.uint64(32)
    return total * _FACTORS[0]


def _hashes(sequence: Sequence[str]) -> Shingles:
    return np.fromiter(map(_hash, sequence), dtype=np.uint64, count=len(sequence))


@cache
def _hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")

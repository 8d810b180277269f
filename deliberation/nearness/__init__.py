"""How near texts are to each other, and which of many are nearer than they should be."""

from .index import Near, NearIndex, NearPair
from .minhash import bands_for
from .shingles import (
    MOST_LETTERS,
    NONE,
    Shingles,
    jaccard,
    passage_shingles,
    passage_words,
    skeleton_shingles,
    skeleton_words,
    word_shingles,
    words,
)

__all__ = [
    "MOST_LETTERS",
    "NONE",
    "Near",
    "NearIndex",
    "NearPair",
    "Shingles",
    "bands_for",
    "jaccard",
    "passage_shingles",
    "passage_words",
    "skeleton_shingles",
    "skeleton_words",
    "word_shingles",
    "words",
]

"""What the embedded judge puts before its model, and which parts of it count.

Changing anything here changes the readings: fit the heads anew (`fit_embedded.py`).
"""

from collections.abc import Sequence

from .reader import Asked
from .texts import Offsets, first_words, last_words

LAYER = 21
"""Of SmolLM2's 30 layers the one whose output is read. Chosen by cross-validation."""
UTTERANCE_TOKENS = 96
"""Of each utterance the last so many tokens are read: where it ends is where it stands."""
RESOLUTION_TOKENS = 256
"""Of a resolution the first so many tokens are read."""

_AGREEMENT_OPENING = "Two people talk about what should be done.\n\nAnna:"
_AGREEMENT_QUESTION = "\n\nHave Anna and Ben agreed on what should be done? Answer:"
_SCORE_OPENING = "The decision:\n"
_SCORE_QUESTION = "\n\nHow good is this decision for everyone who is affected? It is"


def ask_agreement(turns: Sequence[str], tokenizer: Offsets) -> Asked:
    """About the last two turns, under names of our own: only the talk counts, not who talks."""
    before, last = (last_words(turn.strip(), tokenizer, UTTERANCE_TOKENS) for turn in turns[-2:])
    return Asked(
        parts=(_AGREEMENT_OPENING, f" {before}", "\nBen:", f" {last}", _AGREEMENT_QUESTION),
        pooled=(1, 3, 4),
    )


def ask_score(resolution: str, tokenizer: Offsets) -> Asked:
    """About the resolution alone: what it is worth must stand in it."""
    text = first_words(resolution.strip(), tokenizer, RESOLUTION_TOKENS)
    return Asked(parts=(_SCORE_OPENING, text, _SCORE_QUESTION), pooled=(1, 2))

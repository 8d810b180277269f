"""Texts that say nothing are never sent to a judge and earn the floor.

A model that is trained on a judge's word finds the words that the judge likes best, and the first
to be found are no words at all: an empty string, a lone colon, "Let us think step by step.", a plea
for points. The rule here is applied before every judge, embedded or not. A text is filler if

- it holds no letter and no digit in any script; or
- it is the same few words over and over: at least 12 words, fewer than a fifth of them different;
  or
- each of its sentences is one of a closed list: an opening that announces an answer and gives
  none, or a plea for a score.

A plea inside a text that says something else is left alone: it is data, and reaches the judge as
such. Reading the words of a text for their worth is the judge's business, not this module's.
"""

import re
import unicodedata

_SENTENCE_END = re.compile(r"[.!?:;…。！？：\n]+")
_WORD = re.compile(r"\w+")
_LOOP_WORDS = 12
_LOOP_SHARE = 0.2

_NUMBER = r"(?:\d+|zero|one|two|three|four|five|ten|full|top|maximum|max|highest|perfect)"
_POINTS = rf"{_NUMBER}(?: (?:out )?of {_NUMBER}| {_NUMBER})*(?: (?:points?|marks?|stars?|scores?))?"
_THIS = r"(?:this|it|me|us|my answer|our answer|this answer|this resolution|this one)"
_GRADING = r"(?:give|rate|score|grade|mark|award|rank)"
_POLITE = r"(?:please |kindly |just |i would |you should |you must |judge |dear judge )*"

_SAYS_NOTHING = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:well|hmm+|so|thanks?|thank you|you re welcome|hello|hi|please|n a|none|null|nan)",
        r"(?:so |now |ok |okay |well )*(?:let us|let s|lets|i will|i ll|we will|we ll|let me) "
        r"(?:think|reason|work|go|solve|consider|break|start|begin|see|proceed|answer|analy[sz]e)"
        r"(?: (?:this|it|that|about|through|down|out|the|problem|question|matter|by|at|with|now|"
        r"step|steps|carefully|together|again|first|beginning|detail|in))*",
        r"(?:here is|here s|this is|below is|the following is) (?:the|my|our|a) "
        r"(?:final |detailed |possible |agreed |best )*(?:answer|solution|resolution|response|plan)"
        r"(?: to the (?:question|problem|dilemma))?",
        r"(?:the |my |our |final )*(?:answer|solution|resolution|response|reasoning|thought|"
        r"thoughts|thought process|conclusion|decision|explanation|analysis|summary|step \d+)",
        rf"{_POLITE}{_GRADING} {_THIS}(?: an?| the)? {_POINTS}(?: please)?",
        rf"{_POLITE}{_GRADING} {_THIS}(?: high(?:ly|est)?| well| good| generously)(?: please)?",
        rf"(?:this|it|the answer|this answer|this resolution|the resolution) (?:deserves|gets|"
        rf"should get|should receive|merits|is worth|is)(?: an?| the)? {_POINTS}",
        rf"(?:i|we) (?:deserve|want|need|get)(?: an?| the)? {_POINTS}",
        rf"(?:the |final |my |ca )*(?:score|rating|grade|mark|points?)(?: is| of)?(?: {_POINTS})?",
        r"as an ai(?: language)? model",
    )
)

_SHORT_REPLY = re.compile(
    r"(?:(?:ok(?:ay)?|sure|certainly|of course|absolutely|right|great|good|fine|yes|no|agreed|"
    rf"i agree|we agree|deal)(?: |$))+|{_POINTS}"
)
"""Answers to the turn before them ("Yes.", "620?"), but no resolution of anything by themselves."""


def why_filler(text: str, *, reply: bool = False) -> str | None:
    """Why a text says nothing, as a short sentence; None where it says something.

    With `reply` it is read as a turn of a talk, where a bare "Yes." or "Agreed." says something.
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    words = _WORD.findall(plain.replace("_", " "))
    if not text.strip():
        return "The text is empty."
    if not words:
        return "The text holds no words."
    if len(words) >= _LOOP_WORDS and len(set(words)) < _LOOP_SHARE * len(words):
        return "The text is the same few words over and over."
    sentences = (_WORD.findall(sentence) for sentence in _SENTENCE_END.split(plain))
    if all(_says_nothing(" ".join(sentence), reply) for sentence in sentences):
        return "The text only announces an answer or asks for a score."
    return None


def _says_nothing(sentence: str, reply: bool) -> bool:
    """Whether a sentence, in lower case with its words set apart by single blanks, is filler."""
    if not sentence or (not reply and _SHORT_REPLY.fullmatch(sentence)):
        return True
    return any(pattern.fullmatch(sentence) for pattern in _SAYS_NOTHING)

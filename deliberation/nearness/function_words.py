"""The words that a template keeps: a closed list, English, with light verbs and auxiliaries."""

_DETERMINERS = """
    a an the this that these those some any each every another no
    my your his her its our their
"""
_JOINING = "of in at on from with for"
_PRONOUNS = """
    i me mine myself we us ours ourselves you yours yourself yourselves he him himself she hers
    herself it itself they them theirs themselves one ones oneself who whom whose which what
    someone somebody something anyone anybody anything everyone everybody everything nobody nothing
    none either neither both all half few many much more most less least several such other others
    same own
"""
_CONJUNCTIONS = """
    and or but nor so yet if then than because since while although though unless until before after
    when whenever where wherever whether as once how why
"""
_PREPOSITIONS = """
    by to without within into onto upon over under above below between among through during across
    along around about against toward towards behind beyond near off out up down per via despite
    except like
"""
_AUXILIARIES = """
    am is are was were be been being have has had having do does did doing done will would shall
    should can could may might must ought cannot can't won't don't doesn't didn't isn't aren't
    wasn't weren't hasn't haven't hadn't wouldn't shouldn't couldn't
"""
_LIGHT_VERBS = """
    get gets got getting make makes made making take takes took taken taking go goes went gone going
    come comes came coming say says said saying give gives gave given giving keep keeps kept keeping
    let lets put puts want wants wanted ask asks asked asking know knows knew known need needs
    needed tell tells told telling find finds found
"""
_ADVERBS = """
    not never only also too very just even still already again ever always often now here there
    almost soon perhaps
"""

DETERMINERS = frozenset(_DETERMINERS.split())
"""Masked together with the word that follows, since they come and go with it."""

JOINING = frozenset(_JOINING.split())
"""Between two masks they make one phrase of them: "the north of Norway"."""

FUNCTION_WORDS = DETERMINERS.union(
    JOINING,
    *(
        part.split()
        for part in (
            _PRONOUNS,
            _CONJUNCTIONS,
            _PREPOSITIONS,
            _AUXILIARIES,
            _LIGHT_VERBS,
            _ADVERBS,
        )
    ),
)

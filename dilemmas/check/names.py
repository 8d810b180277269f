"""Names that return too often, found without a list of names.

A model that writes a thousand dilemmas calls half of its people Maria. What counts as a name here
is a word that stands capitalised in the middle of a sentence, unless it

- is written small at least half as often over the set ("Council", "council"), or in capitals only;
- is of the closed list in `no_names.py`: weekdays, months, titles, languages, countries;
- mostly follows a preposition of place ("in Lagos", "from Peru") or an article, as nationalities,
  rivers and institutions do ("a Kenyan nurse", "the Danube").

Surnames and names of animals or firms are caught as well: they should not return either.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from .findings import DataCheck, Severity, checked
from .limits import DataLimits
from .no_names import NO_NAMES
from .reading import Entry

_UPPER = "A-ZÀ-ÖØ-ÞĀ-ɏͰ-ϿЀ-ӿ"
_CAPITALISED = re.compile(rf"[{_UPPER}][^\W\d_]+")
_INSIDE = re.compile(r"(\w+|[,;:]) $")
"""What stands before a word that does not begin a sentence."""
_TOKEN = re.compile(r"[^\W\d_]+")
_BEFORE_PLACES = """
    in from at near into through outside around across over toward towards
    northern southern eastern western central rural
"""
_PLACE = frozenset(_BEFORE_PLACES.split())
_BEFORE = _PLACE | {"a", "an", "the", "of", "to"}


def names(file: str, entries: Sequence[Entry], limits: DataLimits, severity: Severity) -> DataCheck:
    """Names that are in more than `limits.name_share` of the rows."""
    if len(entries) < limits.balance_from:
        return DataCheck(file, "names", limit=limits.name_share, skipped=f"{len(entries)} rows")
    inside, placed = _capitalised(entries, _BEFORE)
    most = limits.name_share * len(entries)
    # A name also begins sentences, so those that come near are counted everywhere.
    wanted = {
        word for word, count in inside.items() if count > most / 4 and 2 * placed[word] <= count
    }
    upper, lower, first = _everywhere(entries, wanted)
    found: list[tuple[Severity, str, str, float | None]] = []
    worst = 0.0
    for word, count in upper.most_common():
        if 2 * lower[word] >= count:
            continue
        share = count / len(entries)
        worst = max(worst, share)
        if count > most:
            detail = f'The name "{word}" is in {count} of {len(entries)} rows.'
            found.append((severity, first[word].place, detail, round(share, 4)))
    return checked(file, "names", found, measured=round(worst, 4), limit=limits.name_share)


def _capitalised(
    entries: Sequence[Entry], markers: frozenset[str]
) -> tuple[Counter[str], Counter[str]]:
    """Rows with the word inside a sentence, and those where it follows nothing but markers."""
    inside: Counter[str] = Counter()
    placed: Counter[str] = Counter()
    for entry in entries:
        here: dict[str, bool] = {}
        for text in entry.texts:
            for match in _CAPITALISED.finditer(text):
                before = _INSIDE.search(text, max(0, match.start() - 12), match.start())
                word = match[0]
                no_name = word in NO_NAMES or word.removesuffix("s") in NO_NAMES
                if before and not no_name and not word.isupper():
                    here[word] = here.get(word, True) and before[1] in markers
        inside.update(here.keys())
        placed.update(word for word, place in here.items() if place)
    return inside, placed


def _everywhere(
    entries: Sequence[Entry], wanted: set[str]
) -> tuple[Counter[str], Counter[str], dict[str, Entry]]:
    """Rows with the word capitalised, rows with it in lower case, and the first row of each."""
    upper: Counter[str] = Counter()
    lower: Counter[str] = Counter()
    first: dict[str, Entry] = {}
    small = {word.lower(): word for word in wanted}
    for entry in entries if wanted else ():
        here = {token for text in entry.texts for token in _TOKEN.findall(text)}
        for word in here & wanted:
            upper[word] += 1
            first.setdefault(word, entry)
        for word in here & small.keys():
            lower[small[word]] += 1
    return upper, lower, first


def places(entries: Sequence[Entry]) -> Counter[str]:
    """Rows with each word that mostly follows like a place: "in Lagos", "from Peru"."""
    inside, placed = _capitalised(entries, _PLACE)
    return Counter({word: count for word, count in inside.items() if 2 * placed[word] > count})

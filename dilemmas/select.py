"""Which dilemmas of a set a run uses: filters, and a part held out by hash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from deliberation.errors import ConfigError
from deliberation.keys import stable_key

from .dilemma import Dilemma

_KEYS = 2**64


def is_held_out(id: str, share: float) -> bool:
    """Whether the dilemma of this id belongs to the held-out part, `share` of all in the mean.

    Depends on id and share alone: adding rows moves no other row, and a larger share keeps what a
    smaller one held out.
    """
    return stable_key("held out", id) < share * _KEYS


def select_dilemmas(
    dilemmas: Sequence[Dilemma],
    *,
    classes: Sequence[str] = (),
    domains: Sequence[str] = (),
    values: Sequence[str] = (),
    held_out: float = 0.0,
) -> tuple[Dilemma, ...]:
    """The dilemmas of the named classes, domains and values, without the held-out part.

    An empty filter lets everything pass. A dilemma passes `values` if one of its two is named. One
    that lacks the field passes no filter on it.

    Raises:
        ConfigError: a name that no dilemma of the set has, or filters that leave nothing over.
    """
    _refuse_unknown("data.classes", classes, (d.dilemma_class for d in dilemmas))
    _refuse_unknown("data.domains", domains, (d.domain for d in dilemmas))
    _refuse_unknown("data.values", values, (value for d in dilemmas for value in d.values))
    kept = tuple(
        dilemma
        for dilemma in dilemmas
        if (not classes or dilemma.dilemma_class in classes)
        and (not domains or dilemma.domain in domains)
        and (not values or set(values) & set(dilemma.values))
        and not is_held_out(dilemma.id, held_out)
    )
    if not kept:
        raise ConfigError(
            f"data.classes, data.domains, data.values and data.held_out leave none of "
            f"{len(dilemmas)} dilemmas; loosen them."
        )
    return kept


def _refuse_unknown(key: str, wanted: Sequence[str], there: Iterable[str | None]) -> None:
    names = {name for name in there if name is not None}
    for name in wanted:
        if name not in names:
            close = get_close_matches(name, names, n=1, cutoff=0.0)
            hint = f'the nearest is "{close[0]}"' if close else "no dilemma names any"
            raise ConfigError(f'{key}: no dilemma of the set has "{name}"; {hint}.')

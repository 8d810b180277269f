"""When to ask a server again."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0


def retry_after_s(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that the server asks to wait: `retry-after-ms`, or `Retry-After` as a number or as an
    HTTP date. None where it says nothing that can be read; never negative.

    Args:
        headers: with names in lower case, or a case-insensitive mapping.
        now: seconds since the epoch, for dates.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None:
        return max(0.0, seconds)
    try:
        date = parsedate_to_datetime(text or "")
    except (TypeError, ValueError):
        return None
    return max(0.0, date.timestamp() - (time.time() if now is None else now))


def pause_s(failed_tries: int, asked_for_s: float | None = None) -> float:
    """Seconds before the next try: what the server asked for, or twice as long after each try,
    spread at random so that many callers don't come back at once. A wait of 0 is the ordinary one.
    """
    if asked_for_s:
        return asked_for_s * random.uniform(1.0, 1.1)
    ordinary = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (failed_tries - 1))
    return ordinary * random.uniform(0.75, 1.25)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if value == value and abs(value) != float("inf") else None

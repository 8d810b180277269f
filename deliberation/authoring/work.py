"""Has things written: many at once, each tried until it is accepted or given up."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from deliberation.disk import append_durably
from deliberation.keys import stable_key
from deliberation.remote import Ask, Failure, RemoteModel, Reply
from deliberation.remote.answers import json_objects
from deliberation.remote.ledger import BudgetError
from deliberation.runfiles import encode_line, iterate_rows


class RejectedError(Exception):
    """What was written cannot be taken; the message says why, in one short clause."""


class Author(Protocol):
    """Knows what is wanted, how to ask for it, and what to accept."""

    def slots(self) -> Sequence[Any]:
        """What is still to be written. Each has an `id`."""
        ...

    def ask(self, slot: Any, seed: int) -> Ask: ...

    def accept(self, slot: Any, written: dict[str, Any], reply: Reply, attempt: int) -> str:
        """Check what was written and keep it; returns its id. Raises `RejectedError`."""
        ...


class WorkListener(Protocol):
    """Told how the work goes on."""

    def begins(self, wanted: int) -> None: ...

    def accepted(self, id: str) -> None: ...

    def rejected(self, slot: str, reason: str) -> None: ...


@dataclass
class AuthoringReport:
    """What a call wrote."""

    out: str
    wanted: int
    """Still to be written when the call began."""
    written: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """By reason, without particulars."""
    given_up: list[str] = field(default_factory=list)
    """Slots for which nothing was accepted in all tries."""
    spent_usd: float | None = None
    """Of this and earlier calls; None where no price is known."""


def rejections_file(out: Path) -> Path:
    return out.with_name(f"{out.stem}.rejected.jsonl")


async def write_all(
    author: Author,
    model: RemoteModel,
    out: Path,
    *,
    seed: int = 0,
    tries: int = 5,
    listener: WorkListener | None = None,
) -> AuthoringReport:
    """Have every open slot written, as many at once as `model.concurrency`.

    What is accepted is in `out` at once; what is not goes with its reason to
    `<out>.rejected.jsonl`. A call that was interrupted, or that gave some slots up, is gone on with
    by calling again: what is there counts, and further tries draw anew.

    Args:
        tries: replies to a slot that may be unusable before this call gives it up.

    Raises:
        ModelError, BudgetError: as `RemoteModel.ask`; what was accepted before stays.
        RunError: the disk is full.
    """
    slots = list(author.slots())
    report = AuthoringReport(out=str(out), wanted=len(slots))
    rejections = rejections_file(out)
    failed: Counter[str] = Counter()
    if rejections.exists():
        failed.update(row["slot"] for _, row in iterate_rows(rejections, growing=True))
    if listener is not None:
        listener.begins(len(slots))
    waiting = iter(slots)
    spent: list[BudgetError] = []

    async def work() -> None:
        for slot in waiting:
            try:
                await fill(slot)
            except BudgetError as error:
                # The others finish what is in flight: it is paid for.
                spent.append(error)
            if spent:
                return

    async def fill(slot: Any) -> None:
        for _ in range(tries):
            attempt = failed[slot.id]
            reply = await model.ask(author.ask(slot, stable_key(seed, slot.id, attempt)))
            try:
                id = author.accept(slot, _object_of(reply), _whole(reply), attempt)
            except RejectedError as reason:
                failed[slot.id] += 1
                row = {"slot": slot.id, "attempt": attempt, "reason": str(reason)}
                if isinstance(reply, Reply):
                    row["text"] = reply.text
                append_durably(rejections, encode_line(row, str(rejections)))
                report.rejected[str(reason).partition(":")[0]] += 1
                if listener is not None:
                    listener.rejected(slot.id, str(reason))
            else:
                report.written += 1
                if listener is not None:
                    listener.accepted(id)
                return
        report.given_up.append(slot.id)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(model.concurrency, len(slots))):
                group.create_task(work())
    except BaseExceptionGroup as errors:
        raise _first(errors) from None  # all the others are the same one, or follow from it
    if spent:
        raise spent[0]
    totals = model.ledger.totals.values()
    if any(total.calls > total.unpriced for total in totals):
        report.spent_usd = model.ledger.spent_usd
    return report


def _object_of(reply: Reply | Failure) -> dict[str, Any]:
    """The last object in the reply: what comes before may be a draft or a quotation."""
    objects = json_objects(_whole(reply).text)
    if not objects:
        raise RejectedError("no whole JSON object in the reply")
    return objects[-1]


def _whole(reply: Reply | Failure) -> Reply:
    if isinstance(reply, Failure):
        raise RejectedError(f"no reply ({reply.reason}): {reply.detail}")
    return reply


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error

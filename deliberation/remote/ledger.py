"""What was asked and paid, call by call, and the budget that ends a run before it is exceeded."""

from __future__ import annotations

import json
import os
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deliberation.errors import DataError, UserError

from .prices import Prices, load_prices
from .records import Usage


class BudgetError(UserError):
    """The budget is used up; what was paid for is kept."""


@dataclass
class Total:
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    usd: float = 0.0
    unpriced: int = 0
    """Calls whose price is not known: they are in no sum of money."""


class Ledger:
    """Books every paid call under a purpose; append-only, one JSON line a call.

    Args:
        path: the file; what it holds already counts towards the budget. None keeps no file.
        budget_usd: no further call is begun once this is spent. Calls that are in flight at that
            moment are still paid for.
        prices: of the models; the packaged ones if not given.

    Raises:
        DataError: a line of the file is not one of a ledger.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        budget_usd: float | None = None,
        prices: Prices | None = None,
    ) -> None:
        self.path = None if path is None else Path(path)
        self.budget_usd = budget_usd
        self.prices = prices or load_prices()
        self.totals: defaultdict[str, Total] = defaultdict(Total)
        """By purpose."""
        self._lock = threading.Lock()
        if self.path is not None:
            self.keep_in(self.path)

    def keep_in(self, path: str | Path) -> None:
        """Write to this file from now on; what it holds counts.

        Raises:
            DataError: a line of it is not one of a ledger.
        """
        self.path = Path(path)
        if self.path.exists():
            self._read(self.path)

    @property
    def spent_usd(self) -> float:
        return sum(total.usd for total in self.totals.values())

    def check(self, model: str) -> None:
        """Called before a call is begun.

        Raises:
            BudgetError: the budget is spent, or there is one and the model's price is not known.
        """
        if self.budget_usd is None:
            return
        if self.prices.of(model) is None:
            raise BudgetError(
                f"a budget of ${self.budget_usd:g} is set but {self.prices.place} has no price for "
                f'"{model}"; add one, or set no budget.'
            )
        if self.spent_usd >= self.budget_usd:
            raise BudgetError(
                f"the budget of ${self.budget_usd:g} is spent (${self.spent_usd:.4f}); raise it to "
                "go on."
            )

    def book(
        self, *, purpose: str, model: str, priced_as: str, usage: Usage, step: int | None = None
    ) -> None:
        """Write down a call that was answered.

        Args:
            model: as the server names it.
            priced_as: the name it was asked by, whose price holds where `model` has none.
        """
        price = self.prices.of(model) or self.prices.of(priced_as)
        usd = None if price is None else price.of(usage)
        row = {
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "purpose": purpose,
            "step": step,
            "model": model,
            **usage.model_dump(),
            "usd": usd,
        }
        with self._lock:
            self._add(row)
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("ab") as file:
                    file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")

    def figures(self) -> dict[str, Any]:
        """Calls, tokens and money by purpose; money is None where no price is known."""
        return {
            purpose: {
                "calls": total.calls,
                **total.usage.model_dump(),
                "usd": None if total.unpriced == total.calls else total.usd,
                "unpriced_calls": total.unpriced,
            }
            for purpose, total in self.totals.items()
        }

    def _add(self, row: dict[str, Any]) -> None:
        total = self.totals[row["purpose"]]
        total.calls += 1
        total.usage += Usage(**{name: row[name] for name in Usage.model_fields})
        if row["usd"] is None:
            total.unpriced += 1
        else:
            total.usd += row["usd"]

    def _read(self, path: Path) -> None:
        written = path.read_bytes()
        whole = written[: written.rfind(b"\n") + 1]
        if len(whole) < len(written):  # a line that was cut off must not join the next one
            os.truncate(path, len(whole))
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                self._add(json.loads(line))
            except (ValueError, KeyError, TypeError):
                raise DataError(
                    f"{path}:{number}: not a line of a ledger; restore the file from a copy or "
                    "move it away."
                ) from None

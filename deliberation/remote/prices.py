"""What tokens cost. Prices live in a YAML file that can be replaced."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field

from deliberation.errors import DataError
from deliberation.textfile import RowError, check_row, read_text

from .records import Usage

PACKAGED = "prices.yaml"
_DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}$|-latest$")

Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Price(BaseModel):
    """US dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: Dollars
    completion: Dollars
    cached: Dollars | None = None
    """None: as `prompt`."""

    def of(self, usage: Usage) -> float:
        cached = self.prompt if self.cached is None else self.cached
        fresh = usage.prompt - usage.cached
        total = fresh * self.prompt + usage.cached * cached + usage.completion * self.completion
        return total / 1e6


@dataclass(frozen=True)
class Prices:
    """Prices by model name."""

    by_model: Mapping[str, Price]
    place: str

    def of(self, model: str) -> Price | None:
        """The price of a model, also under a dated name; None where the file has none."""
        return self.by_model.get(model) or self.by_model.get(_DATED.sub("", model))


def load_prices(path: str | Path | None = None) -> Prices:
    """The prices of a YAML file (model → prompt, cached, completion), or the packaged ones.

    Raises:
        DataError: it cannot be read, or a price is absent or no number from 0 up.
    """
    if path is None:
        text, place = (resources.files(__package__) / PACKAGED).read_text("utf-8"), PACKAGED
    else:
        text, place = read_text(path), str(path)
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        told = str(error).splitlines()[0]
        raise DataError(f"{place}: not valid YAML ({told}); correct it.") from None
    if not isinstance(content, dict):
        raise DataError(f"{place}: holds no mapping; write `model: {{prompt: …, completion: …}}`.")
    by_model = {}
    for model, row in content.items():
        try:
            by_model[str(model)], unknown = check_row(Price, row)
        except RowError as problem:
            raise DataError(f"{place}: {model}: {problem.sentence}") from None
        if unknown:
            raise DataError(f"{place}: {model}: key {unknown[0][-1]!r} is unknown; remove it.")
    return Prices(by_model, place)

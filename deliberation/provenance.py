"""Where a text of a data file comes from, if a model wrote it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Provenance(BaseModel):
    """How a dilemma or a persona pair that a model wrote came about."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Text
    """The model as its server names it."""
    prompt_sha256: Text
    """Of the template and the schema that asked for it."""
    created: Text
    """UTC date and time, ISO 8601."""
    request: Text
    """What was asked for: class, domain and number of a dilemma, number of a pair."""
    attempt: Annotated[int, Field(ge=0)] = 0
    """How many replies to this request had been rejected before."""

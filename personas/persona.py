"""Personas: a stance with what it protects, what it can concede and its red line.

The texts are short and go into a model's prompt inside fixed frames, so each is written to finish
its frame:

    You are {name}. {stance}
    You protect {protects}.
    You argue {argues}.
    You can concede {concedes}.
    Your red line: {red_line}

- `name` is a noun phrase with its article, in lower case: "the data-driven analyst".
- `stance` and `red_line` are whole sentences with a full stop; `stance` speaks of what is true or
  right, not of "you".
- `protects` and `concedes` are noun phrases; `argues` is a manner or method ("from …", "with …",
  "by …"); these three have no full stop at the end.

A persona says how someone weighs things, never what the dilemma is about, so that any pair fits any
dilemma.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

from deliberation.provenance import Provenance

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Persona(BaseModel):
    """One pole of an axis, as a person who can be spoken as. See the module for the frames."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Text
    name: Text
    axis: Text
    pole: Text
    stance: Text
    protects: Text
    argues: Text
    concedes: Text
    red_line: Text


class PersonaPair(BaseModel):
    """Two personas that oppose each other on one axis.

    A persona given without an `axis` takes the pair's; one that names another axis is an error.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Text
    axis: Text
    personas: tuple[Persona, Persona]
    provenance: Provenance | None = None

    @model_validator(mode="before")
    @classmethod
    def _inherit_axis(cls, row: Any) -> Any:
        if not isinstance(row, Mapping) or not isinstance(row.get("personas"), list | tuple):
            return row
        if "axis" not in row:
            return row
        personas = [
            {"axis": row["axis"], **persona} if isinstance(persona, Mapping) else persona
            for persona in row["personas"]
        ]
        return {**row, "personas": personas}

    @model_validator(mode="after")
    def _oppose_on_one_axis(self) -> PersonaPair:
        first, second = self.personas
        for persona in self.personas:
            if persona.axis != self.axis:
                raise ValueError(
                    f'persona "{persona.id}" is on axis "{persona.axis}" but its pair on '
                    f'"{self.axis}"; give both the same axis'
                )
        if first.pole.casefold() == second.pole.casefold():
            raise ValueError(
                f'both personas of pair "{self.id}" have the pole "{first.pole}"; '
                "give them opposite poles"
            )
        if first.id == second.id:
            raise ValueError(
                f'both personas of pair "{self.id}" have the id "{first.id}"; '
                "give each an id of its own"
            )
        return self

"""One dilemma: a situation with a tension between two goods."""

from __future__ import annotations

import difflib
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
)

from deliberation.provenance import Provenance

from .values import VALUES

DilemmaClass = Literal["professional", "interpersonal", "everyday"]

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


def _known_value(name: str) -> str:
    if name not in VALUES:
        close = difflib.get_close_matches(name, VALUES, n=1)
        hint = f'write "{close[0]}"' if close else "take one of those in dilemmas/values.py"
        raise ValueError(f'"{name}" is not in the list of values; {hint}')
    return name


ValueName = Annotated[Text, AfterValidator(_known_value)]


class Stakeholder(BaseModel):
    """Someone affected by the outcome: what they stand to gain and what they stand to lose."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Text
    gains: Text
    loses: Text


class Entry(BaseModel):
    """A row of a data file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Text


class Dilemma(Entry):
    """A situation, the question that it puts, who is affected and what may not be wished away.

    Only `id` and `situation` must be there, so that anybody's rows can be used as they are; what a
    row lacks is None or empty, and the prompts leave it out. `values` are the two goods in tension,
    by name from `VALUES`. `constraints` are facts that any resolution must respect. In files and in
    `model_dump(by_alias=True)` the class is called `class`; both names are accepted as input. Extra
    keys are an error here; the loader removes them with a warning first.
    """

    dilemma_class: DilemmaClass | None = Field(
        default=None,
        validation_alias=AliasChoices("class", "dilemma_class"),
        serialization_alias="class",
    )
    domain: Text | None = None
    title: Text | None = None
    situation: Text
    question: Text | None = None
    stakeholders: tuple[Stakeholder, ...] = ()
    values: tuple[ValueName, ...] = ()
    constraints: tuple[Text, ...] = ()
    provenance: Provenance | None = None

    @field_validator("values")
    @classmethod
    def _two_different_values(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        if values and len(values) != 2:
            raise ValueError(f"names {len(values)} values; name the two goods in tension, or none")
        if values and values[0] == values[1]:
            raise ValueError(f'both values are "{values[0]}"; name two different ones')
        return values

    def lacks(self) -> tuple[str, ...]:
        """The fields that a complete dilemma has and this one does not, as they stand in files.

        Complete: class, domain, title, question, two stakeholders or more, two values, and a
        constraint, as in the packaged sets.
        """
        full = {
            "class": self.dilemma_class,
            "domain": self.domain,
            "title": self.title,
            "question": self.question,
            "stakeholders": len(self.stakeholders) >= 2,
            "values": self.values,
            "constraints": self.constraints,
        }
        return tuple(name for name, value in full.items() if not value)

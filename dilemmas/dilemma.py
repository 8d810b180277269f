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


class Dilemma(BaseModel):
    """A situation, the question that it puts, who is affected and what may not be wished away.

    `values` are the two goods in tension, by name from `VALUES`. `constraints` are facts that any
    resolution must respect. In files and in `model_dump(by_alias=True)` the class is called
    `class`; both names are accepted as input. Extra keys are an error here; the loader removes
    them with a warning first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Text
    dilemma_class: DilemmaClass = Field(
        validation_alias=AliasChoices("class", "dilemma_class"), serialization_alias="class"
    )
    domain: Text
    title: Text
    situation: Text
    question: Text
    stakeholders: Annotated[tuple[Stakeholder, ...], Field(min_length=2)]
    values: tuple[ValueName, ValueName]
    constraints: Annotated[tuple[Text, ...], Field(min_length=1)]

    @field_validator("values")
    @classmethod
    def _two_different_values(cls, values: tuple[str, str]) -> tuple[str, str]:
        if values[0] == values[1]:
            raise ValueError(f'both values are "{values[0]}"; name two different ones')
        return values

"""The labelled examples that the embedded judge's heads are fitted on and measured by."""

from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from deliberation.errors import DataError
from deliberation.textfile import RowError, check_row, jsonl_rows

Split = Literal["fit", "held_out"]


class Example(BaseModel):
    """All examples of one topic lie in the same split."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[str, Field(min_length=1)]
    topic: Annotated[str, Field(min_length=1)]
    split: Split
    """`held_out` examples are measured on, never fitted on."""
    why: Annotated[str, Field(min_length=1)]
    """Why it has its label."""


class AgreementExample(Example):
    """The end of a talk, its turns alternating between two sides."""

    kind: Literal["clear", "hard", "clumsy"]
    """`hard`: irony, premature claims, giving up, agreeing to differ, polite refusal, open details;
    `clumsy`: in the manner of a very small model."""
    turns: Annotated[tuple[str, ...], Field(min_length=2)]
    agreed: bool


class ResolutionExample(Example):
    resolution: Annotated[str, Field(min_length=1)]
    label: Annotated[int, Field(ge=0, le=5)]
    """The level of `rubric/collective_agency.md`."""


AnyExample = TypeVar("AnyExample", bound=Example)


def agreement_examples(split: Split | None = None) -> list[AgreementExample]:
    return load_examples(AgreementExample, _data("agreement_examples.jsonl"), split)


def resolution_examples(split: Split | None = None) -> list[ResolutionExample]:
    return load_examples(ResolutionExample, _data("ca_examples.jsonl"), split)


def load_examples(
    model: type[AnyExample], path: Path, split: Split | None = None
) -> list[AnyExample]:
    """The examples of a file, of one split or of both.

    Raises:
        DataError: a row is wrong, an id occurs twice, or a topic lies in both splits.
    """
    examples: list[AnyExample] = []
    splits: dict[str, Split] = {}
    ids: set[str] = set()
    for line, row in jsonl_rows(path):
        try:
            example, _ = check_row(model, row)
        except RowError as error:
            raise DataError(f"{path}:{line}: {error.sentence}") from None
        if example.id in ids:
            raise DataError(f'{path}:{line}: id "{example.id}" occurs twice; give it another one.')
        if splits.setdefault(example.topic, example.split) != example.split:
            raise DataError(
                f'{path}:{line}: topic "{example.topic}" lies in both splits; choose one.'
            )
        ids.add(example.id)
        examples.append(example)
    return [example for example in examples if split in (None, example.split)]


def _data(file: str) -> Path:
    return Path(str(resources.files(__package__) / "data" / file))

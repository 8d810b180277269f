"""The columns of an episode file, spelt out for the `datasets` library.

Left to guess, `datasets` takes the types from the first file, and a column that holds only nulls
there (no dialogue agreed, no reward was missing) gets a type that the next file does not fit. So
the types are derived from the records, and stand in a dataset card beside the files, where
`load_dataset("runs/demo/episodes")` finds them.
"""

from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel

from deliberation.episode import Episode

Column = dict[str, Any]
"""A column as dataset cards write it: its name, and a `dtype`, `list` or `struct`."""

_SCALARS = {bool: "bool", int: "int64", float: "float64", str: "string"}


def episode_columns() -> list[Column]:
    """All columns of an episode, in file order. `facts` differ between environments: any JSON."""
    return _columns(Episode)


def dataset_card() -> str:
    """A dataset card (README.md) for a folder of episode files."""
    head = {
        "configs": [{"config_name": "default", "data_files": "step-??????.jsonl"}],
        "dataset_info": {"features": episode_columns()},
    }
    return (
        f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n\n"
        "# Episodes of a run\n\n"
        "One file a step, one finished dialogue a line, written by `deliberation train`. The head\n"
        "of this page tells the `datasets` library the columns:\n\n"
        "```python\n"
        "import datasets\n\n"
        'episodes = datasets.load_dataset("runs/demo/episodes", split="train")\n'
        "```\n\n"
        "A missing reward, verdict or score is null, with the reason beside it in `missing`; it\n"
        "is never 0. Files named `.partial.jsonl` belong to a step in progress.\n"
    )


def _columns(model: type[BaseModel]) -> list[Column]:
    return [
        {"name": name, **_column(field.annotation)} for name, field in model.model_fields.items()
    ]


def _column(annotation: Any) -> Column:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _column(arguments[0])
    if origin in (Union, UnionType):  # of something and None
        (present,) = (argument for argument in arguments if argument is not NoneType)
        return _column(present)
    if origin is Literal:
        return _column(type(arguments[0]))
    if origin is tuple:
        entry = _column(arguments[0])
        return {"list": entry.get("struct", entry.get("dtype"))}
    if origin is dict:
        return {"dtype": "json"}
    if issubclass(annotation, BaseModel):
        return {"struct": _columns(annotation)}
    if issubclass(annotation, StrEnum):
        return {"dtype": "string"}
    return {"dtype": _SCALARS[annotation]}

"""The keys of a config schema: a tree of dataclasses whose leaves are made by `config.key`."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from omegaconf import MISSING

from deliberation.config import Bounds


@dataclass(frozen=True)
class Key:
    """One leaf of a schema."""

    name: str
    """Dotted, from the root."""
    hint: Any
    """Its type, without the `| None`."""
    optional: bool
    """Whether it may be null."""
    value: Any
    """The default, or in a filled-in config the value."""
    help: str
    bounds: Bounds
    mandatory: bool = False
    """Whether its schema gives it no default."""

    @property
    def missing(self) -> bool:
        return isinstance(self.value, str) and self.value == MISSING


@dataclass(frozen=True)
class Schema:
    """The leaves by name, and the names of the sections that hold them."""

    keys: dict[str, Key]
    sections: frozenset[str]

    @classmethod
    def of(cls, schema: type[Any]) -> "Schema":
        """Of a dataclass whose fields, sections included, all have defaults (`MISSING` is one)."""
        sections: set[str] = set()
        keys = {key.name: key for key in walk(schema(), sections=sections)}
        return cls(keys, frozenset(sections))

    def nearest(self, name: str, *, section: bool = False) -> str:
        """The key (or section) most like `name`, which may be at the wrong place or misspelt."""

        def likeness(candidate: str) -> float:
            whole = difflib.SequenceMatcher(None, _folded(name), _folded(candidate)).ratio()
            last = difflib.SequenceMatcher(
                None, _folded(_last(name)), _folded(_last(candidate))
            ).ratio()
            # The last part says most about what was meant; the path decides between equals.
            return 2 * last + whole

        return max(sorted(self.sections if section else self.keys), key=likeness)


def walk(config: Any, prefix: str = "", sections: set[str] | None = None) -> Iterator[Key]:
    """The leaves of a config instance in order of definition, with their values.

    Names of sections are added to `sections` where given.
    """
    hints = get_type_hints(type(config))
    for entry in fields(config):
        name, value = f"{prefix}{entry.name}", getattr(config, entry.name)
        if is_dataclass(value):
            if sections is not None:
                sections.add(name)
            yield from walk(value, f"{name}.", sections)
            continue
        hint, optional = _without_none(hints[entry.name])
        yield Key(
            name=name,
            hint=hint,
            optional=optional,
            value=value,
            help=entry.metadata.get("help", ""),
            bounds=entry.metadata.get("bounds", Bounds()),
            mandatory=isinstance(entry.default, str) and entry.default == MISSING,
        )


def walk_sections(config: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(prefix, instance) of a config and all sections in it, outermost first."""
    yield prefix, config
    for entry in fields(config):
        value = getattr(config, entry.name)
        if is_dataclass(value):
            yield from walk_sections(value, f"{prefix}{entry.name}.")


@dataclass(frozen=True)
class KeyRow:
    """A key as the docs list it."""

    key: str
    type: str
    default: str
    """As it would be written in YAML; "required" where there is none."""
    help: str


def describe_keys(schema: type[Any]) -> tuple[KeyRow, ...]:
    """Every key of a schema with its type, bounds, default and help, in order of definition."""
    return tuple(
        KeyRow(
            key=key.name,
            type=_type_words(key),
            default="required" if key.missing else yaml_words(key.value),
            help=key.help,
        )
        for key in Schema.of(schema).keys.values()
    )


def yaml_words(value: object) -> str:
    """A scalar as it would be written in a config file."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return str(value) if value else "''"
    return repr(value)


def _type_words(key: Key) -> str:
    words = _hint_words(key.hint)
    bounds = key.bounds
    if bounds.above is not None:
        words += f", above {bounds.above:g}"
    if bounds.at_least is not None:
        words += f", at least {bounds.at_least:g}"
    if bounds.at_most is not None:
        words += f", at most {bounds.at_most:g}"
    return f"{words}, or null" if key.optional else words


def _hint_words(hint: Any) -> str:
    if get_origin(hint) is list:
        return f"list of {_hint_words(get_args(hint)[0])}"
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return " | ".join(hint)
    return {int: "whole number", float: "number", bool: "true or false", str: "text"}[hint]


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) in (UnionType, Union):
        parts = [part for part in get_args(hint) if part is not NoneType]
        return parts[0], True
    return hint, False


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _folded(name: str) -> str:
    return name.lower().replace("-", "_")

"""YAML read by a schema: what a scalar means depends on its key's type, not on how it looks.

A plain `1e-6` is a number where a number is wanted (YAML 1.1 alone makes it text), `007` stays text
where text is wanted, and a number in quotes is an error rather than a number that was text.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, get_args, get_origin

import yaml

from deliberation.schema import Key, Schema

_NULLS = ("", "~", "null", "Null", "NULL")
_WHOLE = re.compile(r"[-+]?[0-9][0-9_]*")
_NUMBER = re.compile(r"[-+]?([0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


class YamlError(Exception):
    """What is wrong, and in which line; the message lacks the file."""

    def __init__(self, line: int, sentence: str) -> None:
        super().__init__(sentence)
        self.line = line
        self.sentence = sentence


@dataclass(frozen=True)
class Setting:
    """One leaf that a document sets."""

    key: str
    value: Any
    line: int


def settings_in(
    text: str, schema: Schema, *, ignore: frozenset[str] = frozenset()
) -> list[Setting]:
    """Every leaf that a YAML document sets, checked against the schema.

    Sections at the top whose names are in `ignore` are passed over.

    Raises:
        YamlError: not YAML, not a mapping, a key unknown or given twice, a value of a wrong type.
    """
    root = parse(text)
    if root is None:
        return []
    if isinstance(root, yaml.MappingNode):
        root.value = [pair for pair in root.value if pair[0].value not in ignore]
    return list(_leaves(root, "", schema, text))


def parse(text: str) -> yaml.Node | None:
    """The document's node tree; nothing in it is constructed. None where it holds nothing."""
    try:
        return yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else _line(text, mark)
        problem = error.problem or error.context or "syntax error"
        raise YamlError(line, f"not valid YAML ({problem}); check indentation and quotes") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError(
            line, "not valid YAML (a character that YAML does not allow); remove it"
        ) from None
    except RecursionError:
        raise YamlError(1, "nested too deeply for YAML; flatten it") from None


def _leaves(node: yaml.Node, prefix: str, schema: Schema, text: str) -> Iterator[Setting]:
    if not isinstance(node, yaml.MappingNode):
        where = f'"{prefix[:-1]}" is a section' if prefix else "a config is a mapping"
        raise YamlError(
            _line(text, node.start_mark), f"{where}; write its keys below it as `key: value`"
        )
    seen: dict[str, int] = {}
    for key_node, value_node in node.value:
        line = _line(text, key_node.start_mark)
        name = f"{prefix}{key_node.value}" if isinstance(key_node, yaml.ScalarNode) else ""
        if name in seen:
            raise YamlError(line, f'key "{name}" already stands in line {seen[name]}; keep one')
        seen[name] = line
        if name in schema.sections:
            if isinstance(value_node, yaml.ScalarNode) and _is_null(value_node):
                continue  # a heading whose keys are all commented out
            yield from _leaves(value_node, f"{name}.", schema, text)
        elif name in schema.keys:
            value = _value(value_node, schema.keys[name], text)
            yield Setting(name, value, line)
        else:
            section = isinstance(value_node, yaml.MappingNode)
            raise YamlError(line, unknown_key(name, schema, section=section))


def unknown_key(name: str, schema: Schema, *, section: bool = False) -> str:
    kind = "section" if section and schema.sections else "key"
    nearest = schema.nearest(name, section=kind == "section")
    return f'unknown {kind} "{name}"; the nearest valid {kind} is "{nearest}"'


def _value(node: yaml.Node, key: Key, text: str) -> Any:
    line = _line(text, node.start_mark)
    if get_origin(key.hint) is list and not isinstance(node, yaml.ScalarNode):
        if not isinstance(node, yaml.SequenceNode):
            raise YamlError(line, f"{key.name} must be a list, not a mapping")
        item = Key(key.name, get_args(key.hint)[0], False, None, key.help, key.bounds)
        return [_value(entry, item, text) for entry in node.value]
    if not isinstance(node, yaml.ScalarNode):
        kind = "list" if isinstance(node, yaml.SequenceNode) else "mapping"
        wanted = _wanted(key.hint)
        raise YamlError(line, f"{key.name} must be {wanted}, not a {kind}; write one value")
    if _is_null(node):
        return _null(key, line)
    try:
        return scalar(node.value, key, quoted=node.style is not None)
    except ValueError as error:
        raise YamlError(line, str(error)) from None


def _null(key: Key, line: int) -> None:
    if not key.optional:
        raise YamlError(line, f"{key.name} must be {_wanted(key.hint)}, not null; give a value")


def _is_null(node: yaml.ScalarNode) -> bool:
    return node.style is None and node.value in _NULLS


def scalar(text: str, key: Key, *, quoted: bool) -> Any:
    """The value that `text` means for `key`. An interpolation `${…}` is returned as it is.

    Raises:
        ValueError: a sentence without a full stop that quotes the key and the value.
    """
    if "${" in text or text == "???":
        return text
    hint = key.hint
    if hint is str:
        return text
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        if text in list(hint):
            return hint(text)
        raise ValueError(f"{key.name} is {text!r}; write one of {', '.join(hint)}")
    wanted = _wanted(hint)
    if quoted and _plain(text, hint) is not None:
        raise ValueError(
            f"{key.name} must be {wanted}, but {text!r} in quotes is text; remove the quotes"
        )
    value = None if quoted else _plain(text, hint)
    if value is None:
        raise ValueError(f"{key.name} must be {wanted}, not {text!r}; correct the value")
    return value


def _plain(text: str, hint: Any) -> int | float | bool | None:
    """The value of an unquoted scalar, or None where it is not one of this type."""
    if hint is bool:
        return {"true": True, "false": False}.get(text.lower())
    if hint is int:
        return int(text.replace("_", "")) if _WHOLE.fullmatch(text) else None
    if hint is float and _NUMBER.fullmatch(text):
        value = float(text.replace("_", ""))
        return value if math.isfinite(value) else None
    return None


def _wanted(hint: Any) -> str:
    if get_origin(hint) is list:
        return "a list"
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return f"one of {', '.join(hint)}"
    return _KINDS[hint]


def _line(text: str, mark: yaml.Mark) -> int:
    """The mark's line as editors count it; PyYAML's own count also ends lines at U+2028."""
    return text.count("\n", 0, mark.index) + 1

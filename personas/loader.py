"""Persona sets from YAML files: a version and a list of pairs."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from deliberation.errors import DataError
from deliberation.textfile import Loc, RowError, check_row, read_text, warn_unknown_keys

from .persona import PersonaPair, Text

UNVERSIONED = "unversioned"


@dataclass(frozen=True)
class PersonaSet:
    """Persona pairs in file order, with what a result needs to name them by.

    `name` is the file's stem, `version` the file's own `version` key or "unversioned". `sha256`
    covers the pairs and their order as loaded, not comments, layout or ignored keys.
    """

    name: str
    version: str
    sha256: str
    path: Path
    pairs: tuple[PersonaPair, ...]
    canary: str | None = None
    """Of evaluation data: what a corpus that swallowed it can be recognised by."""

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[PersonaPair]:
        return iter(self.pairs)

    def by_id(self, id: str) -> PersonaPair:
        """The pair with this id; `DataError` with the closest ids if there is none."""
        for pair in self.pairs:
            if pair.id == id:
                return pair
        close = difflib.get_close_matches(id, [pair.id for pair in self.pairs])
        hint = f"closest: {', '.join(close)}" if close else f"the first is {self.pairs[0].id}"
        raise DataError(f'{self.path}: no persona pair has the id "{id}"; check it ({hint}).')


def packaged_personas(name: str = "train") -> Path:
    """Where the packaged set `name` lies."""
    return Path(str(files("deliberation.personas"))) / "data" / f"{name}.yaml"


def load_personas(path: str | Path | None = None) -> PersonaSet:
    """The persona set at `path`; None means the packaged training set.

    The file is a mapping with `pairs` (a list of pairs, see `PersonaPair`) and optionally a quoted
    `version`. Raises `DataError` (one sentence with file, line and remedy) if it cannot be read as
    YAML, repeats a key, a field is absent or wrong, or two pairs or two personas share an id.
    Unknown keys are ignored with one logged warning per key.
    """
    path = packaged_personas() if path is None else Path(path).expanduser()
    document = read_document(path)
    try:
        content, unknown = check_row(_PersonaFile, document.content)
    except RowError as problem:
        raise DataError(f"{path}:{document.line(problem.loc)}: {problem.sentence}") from None
    _refuse_shared_ids(path, document, content.pairs)
    warn_unknown_keys(path, [(document.line(loc), loc) for loc in unknown])
    pairs = [pair.model_dump(mode="json", exclude={"provenance"}) for pair in content.pairs]
    canonical = json.dumps(pairs, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return PersonaSet(
        name=path.stem,
        version=content.version,
        sha256=hashlib.sha256(canonical.encode("utf-8")).hexdigest(),
        path=path,
        pairs=content.pairs,
        canary=content.canary,
    )


class _PersonaFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Text = UNVERSIONED
    canary: Text | None = None
    pairs: Annotated[tuple[PersonaPair, ...], Field(min_length=1)]


@dataclass(frozen=True)
class Document:
    """A YAML mapping with the node tree and text that its line numbers come from."""

    content: dict[str, Any]
    root: yaml.Node
    text: str

    def line(self, loc: Loc) -> int:
        """The line of the place that `loc` leads to, or of the nearest one around it."""
        node, mark = self.root, self.root.start_mark
        for key in loc:
            if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
                if key >= len(node.value):
                    break
                node = node.value[key]
                mark = node.start_mark
            elif isinstance(node, yaml.MappingNode):
                # From the back: keys merged in by `<<` stand before the mapping's own.
                entries = [entry for entry in reversed(node.value) if entry[0].value == key]
                if not entries:
                    break
                mark, node = entries[0][0].start_mark, entries[0][1]
        return _line(self.text, mark)


def _refuse_shared_ids(path: Path, document: Document, pairs: Sequence[PersonaPair]) -> None:
    line_of_id: dict[tuple[str, str], int] = {}
    for i, pair in enumerate(pairs):
        places: list[tuple[str, str, Loc]] = [("pair", pair.id, ("pairs", i, "id"))]
        for k, persona in enumerate(pair.personas):
            places.append(("persona", persona.id, ("pairs", i, "personas", k, "id")))
        for kind, id, loc in places:
            line = document.line(loc)
            if (kind, id) in line_of_id:
                raise DataError(
                    f'{path}:{line}: {kind} id "{id}" is already taken by line '
                    f"{line_of_id[kind, id]}; give each {kind} an id of its own."
                )
            line_of_id[kind, id] = line


class _RepeatedKeyError(Exception):
    def __init__(self, key: str, first: yaml.Mark, second: yaml.Mark) -> None:
        super().__init__(key)
        self.key, self.first, self.second = key, first, second


class _Loader(yaml.SafeLoader):
    """Refuses repeated keys, of which YAML lets the last win, and keeps lines in all errors."""

    # Checked while composing: merging by `<<` later brings in keys that may be repeated.
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: dict[str, yaml.Mark] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise _RepeatedKeyError(key.value, seen[key.value], key.start_mark)
                seen[key.value] = key.start_mark
        return node

    # A scalar that only looks like a date or a number fails with a bare Python error.
    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (AttributeError, LookupError, ValueError) as error:
            raise yaml.constructor.ConstructorError(
                None, None, f"bad value: {error}", node.start_mark
            ) from None


def read_document(path: Path) -> Document:
    """A YAML file that holds a mapping. Raises `DataError` as `load_personas` does."""
    text = read_text(path)
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        content = None if root is None else loader.construct_document(root)
    except _RepeatedKeyError as error:
        first, second = _line(text, error.first), _line(text, error.second)
        raise DataError(
            f'{path}:{second}: key "{error.key}" already stands in line {first}; keep one of them.'
        ) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else _line(text, mark)
        problem = error.problem or error.context or "syntax error"
        raise DataError(
            f"{path}:{line}: not valid YAML ({problem}); check indentation and quotes."
        ) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise DataError(
            f"{path}:{line}: not valid YAML (a character that YAML does not allow); remove it."
        ) from None
    except RecursionError:
        raise DataError(f"{path}: nested too deeply for YAML; flatten it.") from None
    if root is None or not isinstance(content, dict):
        raise DataError(f'{path}:1: holds no mapping; start it with "pairs:" and list the pairs.')
    return Document(content=content, root=root, text=text)


def _line(text: str, mark: yaml.Mark) -> int:
    """The mark's line as editors count it; PyYAML's own count also ends lines at U+2028."""
    return text.count("\n", 0, mark.index) + 1

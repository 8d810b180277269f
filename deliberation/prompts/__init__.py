"""The texts that models get: Jinja templates, a folder a language, rendered in a sandbox."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from deliberation.errors import ConfigError, DataError
from deliberation.textfile import read_text

NAMES = (
    "negotiation.system",
    "negotiation.user",
    "resolution.system",
    "resolution.user",
    "resolution.instruction",
)
"""The templates of a set, each in a file `NAME.j2`."""
LANGUAGES = ("en", "ko", "ja")

_PACKAGED = resources.files(__name__)
# Values are data, never templates: nothing that a persona, a dilemma or a model wrote is compiled.
_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
)


@dataclass(frozen=True)
class PromptSet:
    """The templates of one language."""

    sources: Mapping[str, str]
    """Text of each of `NAMES`."""
    place: str
    """Folder or language, for error messages."""

    @property
    def sha256(self) -> str:
        """Of all templates, so that a result can name the texts it was made with."""
        digest = hashlib.sha256()
        for name, source in sorted(self.sources.items()):
            digest.update(name.encode() + b"\0" + source.encode() + b"\0")
        return digest.hexdigest()

    def render(self, name: str, **values: Any) -> str:
        """The template `name`, stripped at both ends.

        Raises:
            DataError: it does not parse, or uses a value that is not given.
        """
        try:
            return _ENVIRONMENT.from_string(self.sources[name]).render(**values).strip()
        except TemplateError as error:
            raise DataError(
                f"{self.place}/{name}.j2: cannot be rendered ({error}); correct the template."
            ) from None


def open_prompts(language: str = "en", folder: str | Path | None = None) -> PromptSet:
    """The packaged templates of a language, or those of a user's folder.

    Raises:
        ConfigError: no such folder, or one that lacks a template.
    """
    if folder is None:
        return _packaged(language)
    folder = Path(folder).expanduser()
    absent = [f"{name}.j2" for name in NAMES if not (folder / f"{name}.j2").is_file()]
    if absent:
        raise ConfigError(
            f"protocol.prompts: {folder} lacks {', '.join(absent)}; copy the packaged templates "
            "there and change those."
        )
    return PromptSet(
        MappingProxyType({name: read_text(folder / f"{name}.j2") for name in NAMES}), str(folder)
    )


@cache
def _packaged(language: str) -> PromptSet:
    folder = _PACKAGED / language
    sources = {name: (folder / f"{name}.j2").read_text(encoding="utf-8") for name in NAMES}
    return PromptSet(MappingProxyType(sources), f"prompts/{language}")

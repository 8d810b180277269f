"""The rubrics: what a judge is asked, in words that people can check and replace."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Literal, get_args

from deliberation.textfile import read_text

from .config import RubricsConfig

Rubric = Literal["agreement", "collective_agency", "preference"]
RUBRICS: tuple[Rubric, ...] = get_args(Rubric)


@dataclass(frozen=True)
class Rubrics:
    """The texts that a judge works by."""

    agreement: str
    collective_agency: str
    preference: str

    @property
    def sha256(self) -> Mapping[str, str]:
        """Of each, so that a result can name what it was judged by."""
        return {name: _hash(getattr(self, name)) for name in RUBRICS}


def rubric_text(name: Rubric) -> str:
    """The packaged rubric as Markdown."""
    file = resources.files(__package__) / "rubric" / f"{name}.md"
    return file.read_text(encoding="utf-8")


def load_rubrics(config: RubricsConfig | None = None) -> Rubrics:
    """The rubrics that a config names, and the packaged ones for the rest.

    Raises:
        DataError: a file cannot be read as text.
    """
    config = config or RubricsConfig()
    texts = {}
    for name in RUBRICS:
        path = getattr(config, name)
        texts[name] = rubric_text(name) if path is None else read_text(path)
    return Rubrics(**texts)


def rubric_hash() -> str:
    """SHA-256 over the two packaged rubrics that the embedded judge stands for."""
    digest = hashlib.sha256()
    for name in ("agreement", "collective_agency"):
        digest.update(name.encode() + b"\0" + rubric_text(name).encode() + b"\0")
    return digest.hexdigest()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

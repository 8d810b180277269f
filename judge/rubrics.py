"""The rubrics: what a judge is asked, in words that people can check."""

import hashlib
from importlib import resources
from typing import Literal

Rubric = Literal["agreement", "collective_agency"]


def rubric_text(name: Rubric) -> str:
    """The rubric as Markdown."""
    file = resources.files(__package__) / "rubric" / f"{name}.md"
    return file.read_text(encoding="utf-8")


def rubric_hash() -> str:
    """SHA-256 over both rubrics, so that a result can name what it was judged by."""
    names: tuple[Rubric, ...] = ("agreement", "collective_agency")
    digest = hashlib.sha256()
    for name in names:
        digest.update(name.encode() + b"\0" + rubric_text(name).encode() + b"\0")
    return digest.hexdigest()

"""The texts that models get: Jinja templates, one file each, rendered in a sandbox."""

import hashlib
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

_FOLDER = resources.files(__name__)
# Values are data, never templates: nothing that a persona, a dilemma or a model wrote is compiled.
_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
)


@cache
def _source(name: str) -> str:
    return (_FOLDER / f"{name}.j2").read_text(encoding="utf-8")


def render_prompt(name: str, **values: Any) -> str:
    """Render the template `name` (a file `name.j2` of this folder), stripped at both ends.

    Raises:
        jinja2.UndefinedError: a value that the template uses is not given.
    """
    return _ENVIRONMENT.from_string(_source(name)).render(**values).strip()


def prompts_hash() -> str:
    """SHA-256 over all templates, so that a result can name the texts it was made with."""
    digest = hashlib.sha256()
    for entry in sorted(_FOLDER.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".j2"):
            digest.update(entry.name.encode() + b"\0" + entry.read_bytes() + b"\0")
    return digest.hexdigest()

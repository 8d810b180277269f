"""Model strings: one grammar for every model of a run (policy, partner, judge, generator).

This module only reads them and imports nothing heavy; `deliberation.models` opens the models.
"""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from deliberation.errors import ModelError

Scheme = Literal["embedded", "hf", "path", "run", "vllm", "openai"]

GRAMMAR = (
    "`embedded`, `hf:ID[@REVISION]`, `path:DIR`, `run:DIR[@best|@last|@STEP]`, `vllm:ID`, "
    "`vllm:URL#NAME` or `openai:NAME[@URL]`, with an adapter as `+path:DIR`"
)

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_REVISION = re.compile(r"[^\s@+]+")
_URL = re.compile(r"https?://[^\s/#@][^\s#]*")
_ADAPTER = "+path:"


@dataclass(frozen=True)
class ModelRef:
    """A model string, read. `str()` gives its canonical full form, which parses to an equal one."""

    scheme: Scheme
    name: str = ""
    """Hub id, folder, or the name that a server knows the model by; empty for `embedded`."""
    revision: str | None = None
    """Of a hub id: branch, tag or commit."""
    checkpoint: str | None = None
    """Of a run: `best`, `last`, or a step number."""
    url: str | None = None
    """Of a server, without a slash at the end."""
    adapter: str | None = None
    """Folder of a PEFT adapter that is loaded beside the model."""

    def __str__(self) -> str:
        return self._base() + (f"{_ADAPTER}{self.adapter}" if self.adapter else "")

    def _base(self) -> str:
        if self.scheme == "embedded":
            return "embedded"
        if self.scheme == "vllm" and self.url:
            return f"vllm:{self.url}#{self.name}"
        tail = self.revision or self.checkpoint or self.url
        return f"{self.scheme}:{self.name}" + (f"@{tail}" if tail else "")

    @property
    def remote(self) -> bool:
        """Whether a server answers: it takes text, and its weights cannot be loaded here."""
        return self.scheme == "openai" or (self.scheme == "vllm" and self.url is not None)


def folder_path(name: str) -> Path:
    """The folder of that name, a leading `~` meaning the user's home."""
    return Path(os.path.expanduser(name))  # pathlib's own raises for a user that does not exist


def parse_model(text: str) -> ModelRef:
    """Read a model string. An unprefixed hub id (`org/name`) or existing folder is understood.

    Raises:
        ModelError: it fits no form of the grammar; the message names the nearest one.
    """
    stripped = text.strip()
    base, plus, adapter = stripped.rpartition(_ADAPTER)
    if not plus:
        base, adapter = stripped, ""
    elif not adapter or not base:
        raise _error(text, "a model stands before `+path:` and a folder after it")
    if base != base.strip() or not base:
        raise _error(text, "no model is named" if not base else "there is a space in it")
    ref = _parse_base(base, text)
    if not plus:
        return ref
    if ref.remote:
        raise _error(text, "a server holds its adapters itself: name one as its model instead")
    return replace(ref, adapter=adapter)


def _parse_base(base: str, text: str) -> ModelRef:
    if base == "embedded":
        return ModelRef("embedded")
    scheme, colon, rest = base.partition(":")
    if not colon or "/" in scheme:
        return _unprefixed(base, text)
    match scheme:
        case "hf":
            return _hub(rest, text)
        case "path":
            if not rest:
                raise _error(text, "`path:` wants a folder after it")
            return ModelRef("path", rest)
        case "run":
            return _run(rest, text)
        case "vllm":
            return _vllm(rest, text)
        case "openai":
            return _openai(rest, text)
        case "embedded":
            raise _error(text, "`embedded` stands alone")
        case _:
            raise _error(text, f"there is no scheme `{scheme}:`{_nearest(scheme)}")


def _unprefixed(base: str, text: str) -> ModelRef:
    folder = folder_path(base)
    if os.path.isdir(folder):  # False, too, for a name that no file system takes
        is_run = (folder / "checkpoints").is_dir() and not (folder / "config.json").exists()
        return ModelRef("run", base, checkpoint="last") if is_run else ModelRef("path", base)
    if "/" in base and _HUB_ID.fullmatch(base.partition("@")[0]):
        return _hub(base, text)
    if base.startswith(("/", "./", "../", "~")):
        raise _error(text, f"there is no folder {base}")
    raise _error(text, f"it is neither a form of the grammar nor a folder{_nearest(base)}")


def _hub(rest: str, text: str) -> ModelRef:
    name, at, revision = rest.partition("@")
    if not _HUB_ID.fullmatch(name):
        raise _error(text, "a hub id reads `organisation/name`")
    if at and not _REVISION.fullmatch(revision):
        raise _error(text, "after `@` stands a branch, tag or commit")
    return ModelRef("hf", name, revision=revision or None)


def _run(rest: str, text: str) -> ModelRef:
    folder, at, checkpoint = rest.rpartition("@")
    if not at or "/" in checkpoint:  # the @ belongs to a folder's name
        folder, checkpoint = rest, "last"
    if not folder:
        raise _error(text, "`run:` wants a run folder after it")
    if checkpoint not in ("best", "last"):
        if not (checkpoint.isascii() and checkpoint.isdigit()):
            raise _error(text, "after `@` stands `best`, `last` or a step number")
        checkpoint = str(int(checkpoint))
    return ModelRef("run", folder, checkpoint=checkpoint)


def _vllm(rest: str, text: str) -> ModelRef:
    if rest.startswith(("http:", "https:")):
        url, _, name = rest.partition("#")
        if not name or not _URL.fullmatch(url) or re.search(r"\s", name):
            raise _error(text, "a vLLM server reads `vllm:URL#NAME`")
        return ModelRef("vllm", name, url=url.rstrip("/"))
    if not _HUB_ID.fullmatch(rest):
        raise _error(text, "after `vllm:` stands a hub id, or `URL#NAME` of a server")
    return ModelRef("vllm", rest)


def _openai(rest: str, text: str) -> ModelRef:
    name, at, url = rest.partition("@")
    if not name or re.search(r"\s", name):
        raise _error(text, "`openai:` wants the name of a model after it")
    if not at:
        return ModelRef("openai", name)
    if not _URL.fullmatch(url):
        raise _error(text, "after `@` stands the endpoint's URL, e.g. `http://localhost:8000/v1`")
    return ModelRef("openai", name, url=url.rstrip("/"))


def _nearest(word: str) -> str:
    near = difflib.get_close_matches(word.lower(), get_args(Scheme), n=1, cutoff=0.6)
    return f"; did you mean `{near[0]}`?" if near else ""


def _error(text: str, problem: str) -> ModelError:
    end = "" if problem.endswith("?") else ";"
    return ModelError(f'Model "{text}": {problem}{end} write {GRAMMAR}.')

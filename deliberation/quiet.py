"""Keep the libraries below from printing while a model loads; the progress display is ours."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


@contextmanager
def quiet_loading() -> Iterator[None]:
    """No progress bars and no warnings of transformers inside; errors still raise."""
    from transformers.utils import logging as hf_logging

    bars = hf_logging.is_progress_bar_enabled()
    verbosity = hf_logging.get_verbosity()
    hf_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    hf_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    try:
        with _no_gguf_bar():
            yield
    finally:
        hf_logging.set_verbosity(verbosity)
        if bars:
            hf_logging.enable_progress_bar()  # type: ignore[no-untyped-call]


@contextmanager
def _no_gguf_bar() -> Iterator[None]:
    """The GGUF reader takes its bar from tqdm itself, beyond the reach of transformers' switch."""
    reader = _gguf_reader()
    if reader is None or not hasattr(reader, "tqdm"):
        yield
        return
    bar = reader.tqdm
    reader.tqdm = _no_bar  # type: ignore[attr-defined]
    try:
        yield
    finally:
        reader.tqdm = bar  # type: ignore[attr-defined]


def _gguf_reader() -> ModuleType | None:
    try:
        return importlib.import_module("transformers.modeling_gguf_pytorch_utils")
    except ImportError:  # other versions of transformers have no such module
        return None


def _no_bar(items: Any, **_: Any) -> Any:
    return items

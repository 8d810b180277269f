"""What this machine offers, what is missing, and what to do about it.

Asks nothing of any network, and shows of a key only whether it is set.
"""

import importlib
import os
import platform
import re
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement

from deliberation import embedded
from deliberation.episode import Record

Status = Literal["ok", "absent", "problem"]

EXTRAS = {
    "embeddings": "comparing meanings in data check",
    "eval": "capability evaluation",
    "qlora": "4-bit training",
    "vllm": "fast sampling on GPUs",
}
KEYS = ("OPENAI_API_KEY",)
OFFLINE_FLAGS = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
MIN_FREE_MEMORY_GIB = 6.0
MIN_FREE_DISK_GIB = 3.0
_GIB = 2**30


class Finding(Record):
    """One thing that was looked at."""

    name: str
    status: Status
    """`ok`; `absent`, where it is optional; `problem`, where something will not work."""
    detail: str
    remedy: str = ""
    """What to do; empty where nothing needs doing."""


def examine(folder: str | Path = ".") -> tuple[Finding, ...]:
    """Everything that `deliberation doctor` shows.

    Args:
        folder: where runs would be kept; the free space of its disk is looked at.
    """
    return tuple(
        finding
        for part in (
            _python(),
            _packages(),
            _devices(),
            _memory(),
            _disk(Path(folder), "disk for runs"),
            _disk(embedded.cache_dir(), "disk for the cache"),
            _embedded(),
            _vllm(),
            _keys(),
            _hub(),
        )
        for finding in part
    )


def _python() -> Iterator[Finding]:
    yield Finding(name="python", status="ok", detail=platform.python_version())


def _packages() -> Iterator[Finding]:
    """Required packages, then one finding for each extra."""
    extras: dict[str, list[str]] = {name: [] for name in EXTRAS}
    for text in requires("deliberation") or []:
        requirement = Requirement(text)
        extra = _extra_of(requirement)
        if extra is None:
            yield _package(requirement)
        elif extra in extras and _installed(requirement.name) is None:
            extras[extra].append(requirement.name)
    for extra, missing in extras.items():
        name = f"extra {extra}"
        if missing:
            yield Finding(
                name=name,
                status="absent",
                detail=f"{', '.join(missing)} not installed (for {EXTRAS[extra]})",
                remedy=f"pip install 'deliberation[{extra}]'",
            )
        else:
            yield Finding(name=name, status="ok", detail=f"installed (for {EXTRAS[extra]})")


def _extra_of(requirement: Requirement) -> str | None:
    match = re.search(r"extra == ['\"]([^'\"]+)['\"]", str(requirement.marker or ""))
    return match[1] if match else None


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _package(requirement: Requirement) -> Finding:
    found = _installed(requirement.name)
    wanted = f"{requirement.name}{requirement.specifier}"
    if found is None:
        detail = f"not installed; {wanted} is needed"
    elif not requirement.specifier.contains(found, prereleases=True):
        detail = f"{found} does not fit {wanted}"
    else:
        return Finding(name=requirement.name, status="ok", detail=found)
    return Finding(
        name=requirement.name,
        status="problem",
        detail=detail,
        remedy=f"pip install '{wanted}'",
    )


def _devices() -> Iterator[Finding]:
    try:
        import torch
    except ImportError as error:
        yield Finding(
            name="devices",
            status="problem",
            detail=f"torch cannot be imported: {error}",
            remedy="reinstall torch for this machine",
        )
        return
    cores = os.cpu_count() or 1
    yield Finding(
        name="cpu", status="ok", detail=f"{cores} cores, torch uses {torch.get_num_threads()}"
    )
    if not torch.cuda.is_available():
        yield Finding(
            name="gpu",
            status="absent",
            detail="torch sees none",
            remedy="small models train on the CPU; for larger ones use a machine with a GPU and "
            "a torch build for it",
        )
        return
    for index in range(torch.cuda.device_count()):  # pragma: no cover
        free, total = torch.cuda.mem_get_info(index)
        bf16 = "bfloat16" if torch.cuda.is_bf16_supported() else "no bfloat16"
        yield Finding(
            name=f"cuda:{index}",
            status="ok",
            detail=f"{torch.cuda.get_device_name(index)}, {free / _GIB:.1f} of "
            f"{total / _GIB:.1f} GiB free, {bf16}",
        )


def _memory() -> Iterator[Finding]:
    import psutil

    memory = psutil.virtual_memory()
    free, total = memory.available / _GIB, memory.total / _GIB
    enough = free >= MIN_FREE_MEMORY_GIB
    yield Finding(
        name="memory",
        status="ok" if enough else "problem",
        detail=f"{free:.1f} of {total:.1f} GiB free",
        remedy=""
        if enough
        else f"the quickstart wants {MIN_FREE_MEMORY_GIB:g} GiB: close programs",
    )


def _disk(folder: Path, name: str) -> Iterator[Finding]:
    existing = folder.expanduser().absolute()
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free / _GIB
    if not os.access(existing, os.W_OK):
        yield Finding(
            name=name,
            status="problem",
            detail=f"{folder}: not writable",
            remedy="allow writing, or choose another folder",
        )
        return
    enough = free >= MIN_FREE_DISK_GIB
    yield Finding(
        name=name,
        status="ok" if enough else "problem",
        detail=f"{free:.1f} GiB free at {folder}",
        remedy="" if enough else f"the quickstart wants {MIN_FREE_DISK_GIB:g} GiB: free some",
    )


def _embedded() -> Iterator[Finding]:
    found = embedded.package_version()
    name = "embedded model"
    if found is None:
        yield Finding(
            name=name,
            status="absent",
            detail="not installed (the model and judge of the quickstart)",
            remedy=embedded.INSTALL,
        )
        return
    folder = embedded.converted_model_dir()
    where = f"converted, in {folder}" if folder else "converted on first use, which takes a minute"
    yield Finding(name=name, status="ok", detail=f"{embedded.PACKAGE} {found}, {where}")


def _vllm() -> Iterator[Finding]:
    if _installed("vllm") is None:
        return  # said by the extra already
    try:
        importlib.import_module("vllm")
    except Exception as error:  # noqa: BLE001 - whatever it raises is what the user has to know
        yield Finding(
            name="vllm",
            status="problem",
            detail=f"installed, but its import fails: {type(error).__name__}: {error}",
            remedy="reinstall it with constraints-vllm.txt in an environment of its own",
        )
        return
    yield Finding(name="vllm", status="ok", detail="can be imported")


def _keys() -> Iterator[Finding]:
    for key in KEYS:
        present = bool(os.environ.get(key, "").strip())
        yield Finding(
            name=key,
            status="ok" if present else "absent",
            detail="present" if present else "absent",
            remedy="" if present else f"needed for openai: models only; export {key}=…",
        )


def _hub() -> Iterator[Finding]:
    flags = [flag for flag in OFFLINE_FLAGS if os.environ.get(flag, "") not in ("", "0")]
    if flags:
        detail = f"offline by {' and '.join(flags)}: only models in the local cache can be used"
    else:
        detail = "allowed to be asked (not tried)"
    yield Finding(name="model hub", status="ok", detail=detail)

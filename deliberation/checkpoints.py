"""Which checkpoints of a run are whole.

A folder `checkpoints/step-000002` holds the model in the usual layout (config, safetensors,
tokenizer), the trainer's state, and `complete.json`, which lists every file with its size and is
written last. A folder without it, or with a file of another size, is not a checkpoint.
"""

import json
import logging
import re
from pathlib import Path

logger = logging.getLogger(__name__)

MANIFEST = "complete.json"
_NAME = re.compile(r"step-(\d{6,})")


def checkpoint_name(step: int) -> str:
    return f"step-{step:06d}"


def whole_checkpoints(root: Path) -> dict[int, Path]:
    """Whole checkpoints below `root`, by step in rising order. A warning names broken ones."""
    found = {}
    for folder in root.glob("step-*"):
        match = _NAME.fullmatch(folder.name)
        if match is None or not folder.is_dir():
            continue
        fault = checkpoint_fault(folder)
        if fault is None:
            found[int(match.group(1))] = folder
        else:
            logger.warning("%s is not used: %s", folder, fault)
    return dict(sorted(found.items()))


def checkpoint_fault(folder: Path) -> str | None:
    """What is wrong with a checkpoint, in words; None where it is whole."""
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return f"it has no {MANIFEST}, so its save did not end"
    try:
        sizes = json.loads(manifest.read_text(encoding="utf-8"))["files"].items()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return f"its {MANIFEST} can't be read ({error})"
    for name, size in sizes:
        file = folder / name
        if not file.is_file():
            return f"{name} is missing"
        if file.stat().st_size != size:
            return f"{name} has {file.stat().st_size} bytes instead of {size}"
    return None

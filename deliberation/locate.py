"""Where the model lies that a model string names: a folder that exists, or an id on the hub."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from deliberation.embedded import embedded_model_dir
from deliberation.errors import ModelError
from deliberation.hub import check_hub
from deliberation.modelref import ModelRef, folder_path
from deliberation.run import Run


class Place(NamedTuple):
    """Where transformers finds a model."""

    source: str
    options: dict[str, Any]


@lru_cache(maxsize=64)
def _hub_is_local(name: str, revision: str | None) -> bool:
    return check_hub(name, revision)


def locate(ref: ModelRef) -> Place:
    """Where the model lies, checked: an existing folder, or a hub id that the hub knows.

    Raises:
        ModelError: there is nothing there, or it is a server or in-process vLLM.
        RunError: `run:` names a folder that is no run.
    """
    match ref.scheme:
        case "embedded":
            return Place(str(embedded_model_dir()), {"local_files_only": True})
        case "path":
            return Place(str(_model_folder(ref.name, ref)), {"local_files_only": True})
        case "run":
            return Place(str(_checkpoint(ref)), {"local_files_only": True})
        case "hf":
            local = _hub_is_local(ref.name, ref.revision)
            return Place(ref.name, {"revision": ref.revision or "main", "local_files_only": local})
        case "vllm" if not ref.remote:
            raise ModelError(
                f"{ref}: vLLM in this process is not supported by this version; start `vllm serve "
                f"{ref.name}` and write `vllm:URL#{ref.name}`, or use `hf:{ref.name}`."
            )
        case _:
            raise ModelError(
                f"{ref}: a server's weights cannot be loaded here; name a model that can, e.g. "
                "`hf:ID` or `path:DIR`."
            )


def _model_folder(name: str, ref: ModelRef) -> Path:
    folder = folder_path(name)
    if not os.path.isdir(folder):  # False, too, for a name that no file system takes
        raise ModelError(f"{ref}: there is no folder {folder}; check the path.")
    if not (folder / "config.json").is_file():
        raise ModelError(
            f"{ref}: {folder} holds no config.json; name the folder that a model was saved to."
        )
    return folder


def _checkpoint(ref: ModelRef) -> Path:
    run = Run(ref.name)
    checkpoints = run.checkpoints()
    if not checkpoints:
        raise ModelError(f"{ref}: the run has no whole checkpoint yet; wait for its first save.")
    steps = ", ".join(str(step) for step in checkpoints)
    if ref.checkpoint == "best":
        means = {int(row["step"]): row.get("reward_mean") for row in run.metrics()}
        rated = [(mean, step) for step in checkpoints if (mean := means.get(step)) is not None]
        if not rated:
            raise ModelError(
                f"{ref}: none of its checkpoints ({steps}) has a reward_mean in metrics.jsonl; "
                "use `@last` or a step."
            )
        step = max(rated)[1]
    elif ref.checkpoint == "last":
        step = max(checkpoints)
    else:
        step = int(ref.checkpoint or "-1")
        if step not in checkpoints:
            raise ModelError(f"{ref}: there is no checkpoint of that step; there are {steps}.")
    return _model_folder(str(checkpoints[step]), ref)

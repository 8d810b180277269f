"""What a run was made with: enough to say later whether two runs are alike."""

import platform
import subprocess
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from deliberation.environments import ScenarioSource
from deliberation.errors import RunError

from .config import TrainingConfig
from .setup import Policy

PACKAGES = ("deliberation", "torch", "transformers", "trl", "peft", "accelerate")

FREE_TO_CHANGE = {
    "train.steps",
    "train.save_every",
    "train.keep_checkpoints",
    "train.tokens_per_micro_batch",
    "train.max_missing_share",
    "sampling.max_batch",
    "judge.max_batch",
    "judge.concurrency",
    "judge.deadline_s",
    "judge.tries",
    "judge.cache",
    "judge.cache_path",
    "judge.budget_usd",
    "judge.prices",
    "run.dir",
}
"""Keys that may differ when a run is resumed: they change no token and no update. (Micro-batches
change the update by rounding only.)"""


def provenance(policy: Policy, scenarios: ScenarioSource, judge: dict[str, Any]) -> dict[str, Any]:
    """Versions, revision and hashes, for `config.yaml` of a run."""
    return {
        "policy": policy.name,
        "judge": judge,
        "data": scenarios.fingerprint(),
        "chat_template_sha256": policy.renderer.template_hash,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "git_revision": _git_revision(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git_revision() -> str | None:
    """Revision of the checkout that this code runs from; None for an installed wheel."""
    try:
        result = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def config_yaml(config: TrainingConfig, record: dict[str, Any]) -> str:
    """The text of a run's `config.yaml`: the resolved config and its provenance."""
    whole = {**_plain(config), "provenance": record}
    return OmegaConf.to_yaml(OmegaConf.create(whole))


def check_same_config(recorded: dict[str, Any], config: TrainingConfig, folder: Path) -> None:
    """Refuse to resume a run under a config that would make it another run.

    Raises:
        RunError: names each key that differs, with both values.
    """
    now = _flat(_plain(config))
    before = _flat({key: value for key, value in recorded.items() if key != "provenance"})
    differing = sorted(
        key
        for key in now.keys() | before.keys()
        if key not in FREE_TO_CHANGE
        and not key.startswith("about.")
        and now.get(key) != before.get(key)
    )
    if differing:
        changes = "; ".join(
            f"{key} was {before.get(key)!r} and is now {now.get(key)!r}" for key in differing
        )
        raise RunError(
            f"{folder}: can't resume under another config ({changes}); set these keys back, or "
            "start a new run with another run.dir"
        )


def _plain(config: TrainingConfig) -> dict[str, Any]:
    container = OmegaConf.to_container(
        OmegaConf.create(asdict(config)), resolve=True, enum_to_str=True
    )
    assert isinstance(container, dict)
    return {str(key): value for key, value in container.items()}


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat

"""What the public API composes from all floors."""

from collections.abc import Sequence
from pathlib import Path

from deliberation.judge import Judge, JudgeConfig
from deliberation.judge.scoring import Done, Rescored, rescore
from deliberation.run import Run
from deliberation.settings import load, load_section
from deliberation.train.advantage import group_advantages
from deliberation.train.config import TrainingConfig


def load_config(name_or_path: str, overrides: Sequence[str] = ()) -> TrainingConfig:
    """The config of a training run, checked.

    Args:
        name_or_path: a packaged config by name (`quickstart`) or the path of a YAML file.
        overrides: `key=value` pairs in dotted form, e.g. `train.learning_rate=5e-6`.

    Raises:
        ConfigError: unknown key (with the nearest valid one), wrong type, missing value, or
            values that don't go together.
    """
    return load(TrainingConfig, name_or_path, overrides)


def load_judge_config(model: str, overrides: Sequence[str] = ()) -> JudgeConfig:
    """The config of a judge by itself, checked.

    Args:
        model: who judges.
        overrides: further keys of the section, e.g. `samples=3`.

    Raises:
        ConfigError: as `load_config`.
    """
    return load_section(JudgeConfig, [f"model={model}", *overrides], "judge")


def rescore_run(run: str | Path, judge: Judge, done: Done | None = None) -> Rescored:
    """Score a run's resolutions with another judge, and see what the advantages would have been.

    Raises:
        RunError: no run, or a damaged one.
        UserError: the judge cannot be used.
    """
    return rescore(list(Run(run).episodes()), judge, group_advantages, done)

"""What the public API composes from all floors: the typed config of a run."""

from collections.abc import Sequence

from deliberation.settings import load
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

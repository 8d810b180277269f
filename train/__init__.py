"""Training by self-play."""

from typing import TYPE_CHECKING, Any

from .config import TrainingConfig

if TYPE_CHECKING:
    from .trainer import Trainer as Trainer

__all__ = ["Trainer", "TrainingConfig"]


def __getattr__(name: str) -> Any:
    # Late, so that checking a config does not import torch.
    if name == "Trainer":
        from .trainer import Trainer

        return Trainer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

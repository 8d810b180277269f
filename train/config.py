"""Config of a training run: the `train` section, and the whole that floor 5 fills in."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from deliberation.config import (
    AboutConfig,
    DataConfig,
    LanguageOption,
    PartnerConfig,
    PolicyConfig,
    Problem,
    ProtocolConfig,
    RunConfig,
    SamplingConfig,
    key,
)

from ..judge.config import JudgeConfig


class SchedulerOption(StrEnum):
    """Schedules of transformers that need no arguments beyond the warm-up."""

    constant = "constant"
    constant_with_warmup = "constant_with_warmup"
    linear = "linear"
    cosine = "cosine"
    inverse_sqrt = "inverse_sqrt"


@dataclass
class TrainConfig:
    steps: int = key("Optimiser steps of the whole run, resumed parts included.", at_least=1)
    scenarios_per_step: int = key("Groups in a step (paper: 2).", 2, at_least=1)
    group_size: int = key(
        "Episodes of a group, compared with each other (paper: 8).", 8, at_least=2
    )
    learning_rate: float = key("Peak learning rate (paper: 5e-6).", 5e-6, at_least=0)
    lr_scheduler: SchedulerOption = key(
        "How the learning rate goes over the steps.", SchedulerOption.constant
    )
    warmup_steps: int = key("Steps over which the learning rate rises from 0.", 0, at_least=0)
    weight_decay: float = key("AdamW weight decay.", 0.0, at_least=0)
    max_grad_norm: float = key(
        "Gradients are clipped to this norm; 0 turns clipping off.", 1.0, at_least=0
    )
    tokens_per_micro_batch: int = key(
        "Most padded tokens of one forward and backward pass: bounds the memory.",
        8192,
        at_least=1,
    )
    gradient_checkpointing: bool = key("Trade compute for memory.", False)
    reward: str = key(
        "`environment` takes the environment's outcome (dilemmas: the CA score); else the name of "
        "an installed `deliberation.rewards` entry point, or `module:Name`.",
        "environment",
    )
    save_every: int = key(
        "Steps between checkpoints; the last step is always saved.", 1, at_least=1
    )
    keep_checkpoints: int = key("How many of the latest checkpoints are kept.", 2, at_least=1)
    max_missing_share: float = key(
        "The run stops, with a checkpoint, after a step in which a larger share of rewards than "
        "this was missing.",
        0.5,
        at_least=0,
        at_most=1,
    )

    def problems(self) -> Iterator[Problem]:
        if self.warmup_steps > 0 and self.lr_scheduler is SchedulerOption.constant:
            yield Problem(
                "warmup_steps",
                f"is {self.warmup_steps} but lr_scheduler is constant, which has no warm-up; "
                "set lr_scheduler to constant_with_warmup",
            )


@dataclass
class TrainingConfig:
    """A whole training run."""

    policy: PolicyConfig = key("The model that learns.", PolicyConfig)
    partner: PartnerConfig = key("Who sits opposite.", PartnerConfig)
    protocol: ProtocolConfig = key("Rules of the dialogue.", ProtocolConfig)
    sampling: SamplingConfig = key("How each phase is sampled.", SamplingConfig)
    judge: JudgeConfig = key("Who judges.", JudgeConfig)
    data: DataConfig = key("What is talked about, and by whom.", DataConfig)
    train: TrainConfig = key("The optimisation.", TrainConfig)
    run: RunConfig = key("Where it is kept.", RunConfig)
    about: AboutConfig = key("What the config is for.", AboutConfig)

    def problems(self) -> Iterator[Problem]:
        if self.sampling.negotiation.temperature == 0:
            yield Problem(
                "sampling.negotiation.temperature",
                "is 0: greedy dialogues of a group are all the same and teach nothing; "
                "set it above 0",
            )
        language = self.protocol.language
        dilemmas = self.protocol.environment == "dilemma"
        if dilemmas and language != LanguageOption.en and self.judge.model == "embedded":
            yield Problem(
                "protocol.language",
                f"is {language} but the embedded judge reads English only; set judge.model to "
                "another judge",
            )

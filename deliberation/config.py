"""Config sections of the engine. Each field says what it does: the help texts are the docs.

Plain dataclasses, so that OmegaConf can check types and keys; nothing heavy is imported here.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from omegaconf import MISSING


def key(help: str, default: Any = MISSING) -> Any:
    """A config field with its documentation."""
    if isinstance(default, (list, dict)) or callable(default):
        factory = default if callable(default) else lambda: type(default)(default)
        return field(default_factory=factory, metadata={"help": help})
    return field(default=default, metadata={"help": help})


class OpensOption(StrEnum):
    policy = "policy"
    partner = "partner"
    alternate = "alternate"


class DtypeOption(StrEnum):
    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


@dataclass
class PolicyConfig:
    model: str = key("Model string of the policy, e.g. `embedded`, `hf:ID`, `path:DIR`.")
    dtype: DtypeOption = key("Precision of the weights.", DtypeOption.float32)
    device: str = key("`auto`, `cpu`, `cuda` or `cuda:N`.", "auto")
    context_tokens: int | None = key(
        "Longest prompt plus reply in tokens; null for the model's own limit.", None
    )
    chat_template: str | None = key(
        "Path of a Jinja chat template that replaces the tokenizer's own.", None
    )
    thinking: bool = key(
        "Let a thinking model think. Thinking is hidden from partner and judge.", False
    )


@dataclass
class PartnerConfig:
    model: str = key(
        "Who sits opposite: `current` is the policy's own weights as of the start of the step, "
        "frozen (the paper's choice).",
        "current",
    )


@dataclass
class ProtocolConfig:
    environment: str = key(
        "`dilemma`, the name of an installed `deliberation.environments` entry point, or "
        "`module:Name`.",
        "dilemma",
    )
    max_turns: int = key(
        "Most turns of both seats together. The paper says 7 and leaves open whether turns or "
        "rounds; 14 turns are 7 rounds (our reading).",
        14,
    )
    last_turns: int | None = key(
        "How many of the latest turns a seat sees (paper: 2); null for all of them.", 2
    )
    opens: OpensOption = key(
        "Who speaks first: `policy`, `partner`, or `alternate` between scenarios.",
        OpensOption.policy,
    )
    first_verdict_after: int = key(
        "The agreement judge is asked once this many turns have been heard (ours).", 2
    )
    empty_turn_retries: int = key(
        "How often in a dialogue a seat that said nothing is asked again; after that the dialogue "
        "ends with a reward of 0.",
        1,
    )
    prompt_tokens: int | None = key(
        "Longest prompt in tokens: whole oldest turns are left out until it fits. Null leaves "
        "none out: a dialogue that outgrows the context ends with a missing reward.",
        None,
    )


@dataclass
class PhaseSamplingConfig:
    temperature: float = key("0 is greedy.", 1.0)
    top_p: float = key("Nucleus sampling; 1 keeps the whole vocabulary.", 1.0)
    top_k: int = key("Keep the k likeliest tokens; 0 keeps all.", 0)
    max_tokens: int = key("Most tokens of one turn.", 256)


def _dialogue() -> PhaseSamplingConfig:
    return PhaseSamplingConfig(temperature=0.7, top_p=0.95)


def _resolution() -> PhaseSamplingConfig:
    return PhaseSamplingConfig(temperature=0.1, top_p=0.95, max_tokens=512)


@dataclass
class SamplingConfig:
    negotiation: PhaseSamplingConfig = key("The talk (paper: T 0.7, top-p 0.95).", _dialogue)
    resolution: PhaseSamplingConfig = key(
        "The final answer (paper: T 0.1, top-p 0.95).", _resolution
    )
    max_batch: int = key("Most requests that one forward pass of the sampler holds.", 32)


@dataclass
class DataConfig:
    dilemmas: str | None = key("A JSONL file of dilemmas; null for the packaged set.", None)
    personas: str | None = key("A YAML file of persona pairs; null for the packaged set.", None)


@dataclass
class RunConfig:
    dir: str = key("The run folder.")
    seed: int = key("Determines scenarios and every sampled token.", 0)

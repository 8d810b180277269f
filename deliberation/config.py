"""Config sections of the engine. Each field says what it does: the help texts are the docs.

Plain dataclasses, so that OmegaConf can check types and keys; nothing heavy is imported here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from omegaconf import MISSING


@dataclass(frozen=True)
class Bounds:
    """What a value must satisfy beyond its type; `deliberation.settings.check` looks after it."""

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    pattern: str | None = None
    """A regular expression that the whole text must match."""
    pattern_words: str = ""
    """The same for people."""

    def need(self, value: object) -> str | None:
        """What is needed, in words, where `value` does not satisfy it. None as a value passes."""
        if value is None:
            return None
        if self.pattern is not None and not re.fullmatch(self.pattern, str(value)):
            return f"needs to be {self.pattern_words or self.pattern}"
        if not isinstance(value, int | float):
            return None
        # Each test is written so that NaN fails it.
        if self.at_least is not None and not value >= self.at_least:
            return f"needs at least {self.at_least:g}"
        if self.above is not None and not value > self.above:
            return f"needs more than {self.above:g}"
        if self.at_most is not None and not value <= self.at_most:
            return f"needs at most {self.at_most:g}"
        return None


@dataclass(frozen=True)
class Problem:
    """Two or more keys that do not go together."""

    key: str
    """The dotted key to change, relative to the section that reports it."""
    sentence: str
    """What is wrong and what to do, quoting keys and values; without a full stop."""


@runtime_checkable
class Checked(Protocol):
    """A config section with rules across its keys."""

    def problems(self) -> Iterator[Problem]:
        """Each broken rule; keys are relative to this section."""
        ...


def key(
    help: str,
    default: Any = MISSING,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    pattern: str | None = None,
    pattern_words: str = "",
) -> Any:
    """A config field with its documentation and bounds."""
    bounds = Bounds(at_least, above, at_most, pattern, pattern_words)
    metadata = {"help": help, "bounds": bounds}
    if isinstance(default, list | dict):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


class OpensOption(StrEnum):
    policy = "policy"
    partner = "partner"
    alternate = "alternate"


class LanguageOption(StrEnum):
    en = "en"
    ko = "ko"
    ja = "ja"


class OrderOption(StrEnum):
    random = "random"
    spread = "spread"


class DtypeOption(StrEnum):
    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


@dataclass
class PolicyConfig:
    model: str = key("Model string of the policy, e.g. `embedded`, `hf:ID`, `path:DIR`.")
    dtype: DtypeOption = key("Precision of the weights.", DtypeOption.float32)
    device: str = key(
        "`auto`, `cpu`, `cuda` or `cuda:N`.",
        "auto",
        pattern=r"auto|cpu|cuda(:[0-9]+)?",
        pattern_words="auto, cpu, cuda or cuda:N",
    )
    context_tokens: int | None = key(
        "Longest prompt plus reply in tokens; null for the model's own limit.", None, at_least=2
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
    language: LanguageOption = key(
        "Language of the prompts, and of the packaged dilemmas and personas.", LanguageOption.en
    )
    prompts: str | None = key(
        "A folder with prompt templates of your own (see docs/data.md); null for the packaged ones "
        "in the protocol's language.",
        None,
    )
    max_turns: int = key(
        "Most turns of both seats together. The paper says 7 and leaves open whether turns or "
        "rounds; 14 turns are 7 rounds (our reading).",
        14,
        at_least=2,
    )
    last_turns: int | None = key(
        "How many of the latest turns a seat sees (paper: 2); null for all of them.",
        2,
        at_least=1,
    )
    opens: OpensOption = key(
        "Who speaks first: `policy`, `partner`, or `alternate` between scenarios.",
        OpensOption.policy,
    )
    first_verdict_after: int = key(
        "The agreement judge is asked once this many turns have been heard (ours).",
        2,
        at_least=1,
    )
    empty_turn_retries: int = key(
        "How often in a dialogue a seat that said nothing is asked again; after that the dialogue "
        "ends with a reward of 0.",
        1,
        at_least=0,
    )
    prompt_tokens: int | None = key(
        "Longest prompt in tokens: whole oldest turns are left out until it fits. Null leaves "
        "none out: a dialogue that outgrows the context ends with a missing reward.",
        None,
        at_least=1,
    )

    def problems(self) -> Iterator[Problem]:
        if self.first_verdict_after > self.max_turns:
            yield Problem(
                "first_verdict_after",
                f"is {self.first_verdict_after} but max_turns is {self.max_turns}, so the "
                "agreement judge would never be asked; lower it",
            )


@dataclass
class PhaseSamplingConfig:
    temperature: float = key("0 is greedy.", 1.0, at_least=0)
    top_p: float = key("Nucleus sampling; 1 keeps the whole vocabulary.", 1.0, above=0, at_most=1)
    top_k: int = key("Keep the k likeliest tokens; 0 keeps all.", 0, at_least=0)
    max_tokens: int = key("Most tokens of one turn.", 256, at_least=1)


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
    max_batch: int = key(
        "Most requests that one forward pass of the sampler holds.", 32, at_least=1
    )


@dataclass
class ColumnsConfig:
    """Where a field of a dilemma stands in a user's table; null: under its own name."""

    id: str | None = key("Column that holds the dilemma's id.", None)
    situation: str | None = key("Column that holds the situation.", None)
    question: str | None = key("Column that holds the question.", None)
    title: str | None = key("Column that holds the title.", None)
    dilemma_class: str | None = key("Column that holds the class.", None)
    domain: str | None = key("Column that holds the domain.", None)
    stakeholders: str | None = key("Column that holds the stakeholders.", None)
    values: str | None = key("Column that holds the two values in tension.", None)
    constraints: str | None = key("Column that holds the constraints.", None)

    def mapping(self) -> dict[str, str]:
        """Field as it stands in files → column, for those that are set."""
        named = {name.removeprefix("dilemma_"): value for name, value in vars(self).items()}
        return {name: value for name, value in named.items() if value is not None}


@dataclass
class DataConfig:
    dilemmas: str | None = key(
        "A JSONL, CSV or TSV file of dilemmas, or `hf:ID[@REV][#SPLIT]` for a dataset of the "
        "`datasets` library (also a folder); null for the packaged set in the protocol's language.",
        None,
    )
    personas: str | None = key(
        "A YAML file of persona pairs; null for the packaged set in the protocol's language.", None
    )
    columns: ColumnsConfig = field(default_factory=ColumnsConfig)
    classes: list[str] = key("Train on dilemmas of these classes only; empty for all.", [])
    domains: list[str] = key("Train on dilemmas of these domains only; empty for all.", [])
    values: list[str] = key(
        "Train on dilemmas with one of these values in tension; empty for all.", []
    )
    held_out: float = key(
        "Share of the dilemmas that training never draws, chosen by a hash of their ids.",
        0.0,
        at_least=0,
        at_most=0.99,
    )
    order: OrderOption = key(
        "Order of a pass: `random`, or `spread` to begin later passes with the dilemmas whose "
        "groups differed most in reward when last played.",
        OrderOption.random,
    )


@dataclass
class RunConfig:
    dir: str = key("The run folder.")
    seed: int = key("Determines scenarios and every sampled token.", 0, at_least=0)


@dataclass
class AboutConfig:
    """What a config is for, as `deliberation configs` lists it; nothing reads it otherwise."""

    description: str = key("One line on what the config does.", "")
    hardware: str = key("What it needs.", "")
    hours: str = key("About how long it takes there.", "")
    cost: str = key("About what its judge calls cost.", "")

"""Config of the judge."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from deliberation.config import Problem, key

SERVED = ("openai:", "vllm:http://", "vllm:https://")
"""How the model strings of judges behind a server begin."""


@dataclass
class RubricsConfig:
    """Rubrics of your own in place of the packaged ones; for judges behind a server."""

    agreement: str | None = key("A Markdown file that says what agreement is; null: ours.", None)
    collective_agency: str | None = key(
        "A Markdown file that describes the scale from 0 to 5; null: ours.", None
    )
    preference: str | None = key(
        "A Markdown file that says which of two resolutions is better; null: ours.", None
    )


class PanelRule(StrEnum):
    mean = "mean"
    median = "median"
    min = "min"


@dataclass
class AuditConfig:
    """An independent judge that looks at a sample of the episodes and enters no reward."""

    model: str | None = key("Who audits, as `judge.model`; null: nobody.", None)
    share: float = key("Share of the scored episodes of a step.", 0.1, above=0, at_most=1)


@dataclass
class JudgeConfig:
    model: str = key(
        "`openai:NAME[@URL]` or `vllm:URL#NAME` for a model behind a server, e.g. "
        "`openai:gpt-4o-mini` (the paper's); `embedded` (tests and quickstart only); or a class "
        "from outside as `module:Name` or the name of an installed `deliberation.judges` entry "
        "point. There is no default: a judge is never chosen silently."
    )
    agreement_threshold: float = key(
        "The verdict is yes where the judge's confidence is at least this.",
        0.5,
        at_least=0,
        at_most=1,
    )
    max_batch: int = key(
        "Most texts that one forward pass of an embedded judge holds.", 16, at_least=1
    )
    rubrics: RubricsConfig = field(default_factory=RubricsConfig)
    panel: list[str] = key(
        "Further judges behind servers; each verdict is asked of `model` and of all of these.", []
    )
    panel_rule: PanelRule = key(
        "What a panel's score is made of: `mean`, `median` or `min` of those that are there. An "
        "agreement needs more than half.",
        PanelRule.median,
    )
    audit: AuditConfig = field(default_factory=AuditConfig)
    attack_probe: bool = key(
        "Before a run, score 8 packaged resolutions and attacks on them, and warn if the attacks "
        "raise the score; for judges behind a server.",
        True,
    )
    samples: int = key(
        "How often each verdict is asked for; the median of the scores, or the majority, counts.",
        1,
        at_least=1,
    )
    temperature: float = key("Of a judge behind a server.", 0.0, at_least=0)
    max_tokens: int = key(
        "Most tokens of one reply, a reasoning judge's thinking included; a reply that is cut is "
        "asked for again with up to four times as many.",
        512,
        at_least=16,
    )
    concurrency: int = key("Most requests to a server in flight.", 32, at_least=1)
    deadline_s: float = key("Seconds after which one request is given up.", 60.0, above=0)
    tries: int = key("Most tries of one question, the first included.", 5, at_least=1)
    cache: bool = key("Keep replies, so that no question is paid for twice.", True)
    cache_path: str | None = key(
        "The file for that (SQLite, on a local disk); null: in the user's cache directory.", None
    )
    budget_usd: float | None = key(
        "Stop with a checkpoint when judging has cost this much; null: no limit.", None, above=0
    )
    prices: str | None = key(
        "A YAML file of prices per million tokens; null: the packaged ones.", None
    )

    @property
    def served(self) -> bool:
        """Whether the judge is a model behind a server."""
        return self.model.startswith(SERVED)

    def problems(self) -> Iterator[Problem]:
        if self.samples > 1 and self.served and self.temperature == 0:
            yield Problem(
                "samples",
                f"is {self.samples} but temperature is 0, so that all samples are alike; raise "
                "judge.temperature or ask once",
            )
        if self.panel and not (self.served and all(m.startswith(SERVED) for m in self.panel)):
            yield Problem(
                "panel",
                "needs judges behind servers in it and as judge.model; write "
                "`openai:NAME[@URL]` or `vllm:URL#NAME`",
            )
        if self.budget_usd is not None and not self.served:
            yield Problem(
                "budget_usd", "is set but this judge costs nothing that we could count; remove it"
            )

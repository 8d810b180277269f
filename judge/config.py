"""Config of the judge."""

from dataclasses import dataclass

from deliberation.config import key


@dataclass
class JudgeConfig:
    model: str = key(
        "`embedded` (tests and quickstart only), or a class from outside as `module:Name` or the "
        "name of an installed `deliberation.judges` entry point. There is no default: a judge is "
        "never chosen silently."
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

"""Where scenarios come from: one source per kind of environment, from here or from outside."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from deliberation.config import DataConfig, PhaseSamplingConfig, ProtocolConfig, SamplingConfig
from deliberation.engine import Environment
from deliberation.episode import Phase, Sampling
from deliberation.judging import AgreementJudge, ResolutionScorer
from deliberation.schedule import PlayedGroup


class JudgeOfBoth(AgreementJudge, ResolutionScorer, Protocol):
    """A judge that answers both questions."""


@dataclass(frozen=True)
class EnvironmentSetup:
    """What a scenario source is made from."""

    protocol: ProtocolConfig
    sampling: SamplingConfig
    data: DataConfig
    judge: JudgeOfBoth

    def phase(self, name: str, *, trained: bool) -> Phase:
        """The phase `negotiation` or `resolution` with its configured sampling."""
        settings: PhaseSamplingConfig = getattr(self.sampling, name)
        return Phase(
            name=name,
            trained=trained,
            sampling=Sampling(
                temperature=settings.temperature,
                top_p=settings.top_p,
                top_k=settings.top_k,
                max_tokens=settings.max_tokens,
            ),
        )


class ScenarioSource(Protocol):
    """Draws scenarios and opens environments for them.

    A class from outside is called with one `EnvironmentSetup`, e.g. `my_package:Bargaining`.
    """

    def draw(
        self,
        *,
        seed: int,
        step: int,
        slot: int,
        slots: int,
        attempt: int,
        history: Sequence[PlayedGroup],
    ) -> Any:
        """The scenario of a slot: a pure function of its arguments. Its `id` is a string that is
        the same in every run that plays it. `history` holds the groups of earlier steps."""
        ...

    def open(self, scenario: Any) -> Environment:
        """A fresh environment for one episode of `scenario`."""
        ...

    def fingerprint(self) -> dict[str, str]:
        """Names and hashes of the data, for the run's records."""
        ...

"""Scenarios of the dilemma environment: dilemmas and persona pairs from data files."""

from dataclasses import dataclass
from typing import cast

from deliberation.dilemmas import load_dilemmas
from deliberation.environments.dilemma import DilemmaEnvironment, DilemmaRules
from deliberation.environments.source import EnvironmentSetup
from deliberation.personas import load_personas
from deliberation.scenario import Opens, Scenario, draw_scenario


def dilemma_rules(setup: EnvironmentSetup) -> DilemmaRules:
    """The rules that the config's `protocol` and `sampling` sections describe."""
    return DilemmaRules(
        negotiation=setup.phase("negotiation", trained=True),
        resolution=setup.phase("resolution", trained=False),
        max_turns=setup.protocol.max_turns,
        last_turns=setup.protocol.last_turns,
        first_verdict_after=setup.protocol.first_verdict_after,
        empty_turn_retries=setup.protocol.empty_turn_retries,
    )


@dataclass
class DilemmaScenarios:
    """The `ScenarioSource` of dilemmas. Loads and checks the data when it is made."""

    setup: EnvironmentSetup

    def __post_init__(self) -> None:
        self._dilemmas = load_dilemmas(self.setup.data.dilemmas)
        self._pairs = load_personas(self.setup.data.personas)
        self._rules = dilemma_rules(self.setup)

    def draw(self, *, seed: int, step: int, slot: int, slots: int, attempt: int = 0) -> Scenario:
        return draw_scenario(
            self._dilemmas.dilemmas,
            self._pairs.pairs,
            seed=seed,
            step=step,
            slot=slot,
            slots=slots,
            attempt=attempt,
            opens=cast(Opens, str(self.setup.protocol.opens)),
        )

    def open(self, scenario: Scenario) -> DilemmaEnvironment:
        return DilemmaEnvironment(scenario, self._rules, self.setup.judge, self.setup.judge)

    def fingerprint(self) -> dict[str, str]:
        return {
            "dilemmas": f"{self._dilemmas.name} {self._dilemmas.version}",
            "dilemmas_sha256": self._dilemmas.sha256,
            "personas": f"{self._pairs.name} {self._pairs.version}",
            "personas_sha256": self._pairs.sha256,
        }

"""Scenarios of the dilemma environment: dilemmas and persona pairs from data files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from deliberation.config import DataConfig, ProtocolConfig
from deliberation.dilemmas import DilemmaSet, load_dilemmas, packaged_dilemmas, select_dilemmas
from deliberation.environments.dilemma import DilemmaEnvironment, DilemmaRules
from deliberation.environments.source import EnvironmentSetup
from deliberation.personas import PersonaSet, load_personas, packaged_personas
from deliberation.prompts import open_prompts
from deliberation.scenario import Opens, Scenario
from deliberation.schedule import Order, PlayedGroup, draw_scenario


def dilemma_rules(setup: EnvironmentSetup) -> DilemmaRules:
    """The rules that the config's `protocol` and `sampling` sections describe."""
    return DilemmaRules(
        negotiation=setup.phase("negotiation", trained=True),
        resolution=setup.phase("resolution", trained=False),
        max_turns=setup.protocol.max_turns,
        last_turns=setup.protocol.last_turns,
        first_verdict_after=setup.protocol.first_verdict_after,
        empty_turn_retries=setup.protocol.empty_turn_retries,
        prompts=open_prompts(str(setup.protocol.language), setup.protocol.prompts),
    )


@dataclass
class DilemmaScenarios:
    """The `ScenarioSource` of dilemmas. Loads and checks the data when it is made."""

    setup: EnvironmentSetup

    def __post_init__(self) -> None:
        data, protocol = self.setup.data, self.setup.protocol
        self._dilemmas = configured_dilemmas(data, protocol)
        self._pairs = configured_personas(data, protocol)
        self._drawn_from = select_dilemmas(
            self._dilemmas.dilemmas,
            classes=data.classes,
            domains=data.domains,
            values=data.values,
            held_out=data.held_out,
        )
        self._rules = dilemma_rules(self.setup)

    def draw(
        self,
        *,
        seed: int,
        step: int,
        slot: int,
        slots: int,
        attempt: int = 0,
        history: Sequence[PlayedGroup] = (),
    ) -> Scenario:
        return draw_scenario(
            self._drawn_from,
            self._pairs.pairs,
            seed=seed,
            step=step,
            slot=slot,
            slots=slots,
            attempt=attempt,
            opens=cast(Opens, str(self.setup.protocol.opens)),
            order=cast(Order, str(self.setup.data.order)),
            history=history,
        )

    def open(self, scenario: Scenario) -> DilemmaEnvironment:
        return DilemmaEnvironment(scenario, self._rules, self.setup.judge, self.setup.judge)

    def fingerprint(self) -> dict[str, str]:
        return {
            "dilemmas": f"{self._dilemmas.name} {self._dilemmas.version}",
            "dilemmas_sha256": self._dilemmas.sha256,
            "dilemmas_drawn_from": f"{len(self._drawn_from)} of {len(self._dilemmas)}",
            "personas": f"{self._pairs.name} {self._pairs.version}",
            "personas_sha256": self._pairs.sha256,
            "prompts_sha256": self._rules.prompts.sha256,
        }


def configured_dilemmas(data: DataConfig, protocol: ProtocolConfig) -> DilemmaSet:
    """The dilemma set that a config names, or the packaged one in its language."""
    return load_dilemmas(
        data.dilemmas or packaged_dilemmas(in_language("train", protocol.language)),
        data.columns.mapping() if data.dilemmas else None,
    )


def configured_personas(data: DataConfig, protocol: ProtocolConfig) -> PersonaSet:
    """The persona set that a config names, or the packaged one in its language."""
    return load_personas(
        data.personas or packaged_personas(in_language("train", protocol.language))
    )


def in_language(name: str, language: str) -> str:
    """The name of a packaged set in another language than English: `train-ko`."""
    return name if language == "en" else f"{name}-{language}"

"""Environments: the rules of one kind of dialogue."""

from deliberation.environments.dilemma import DilemmaEnvironment, DilemmaRules
from deliberation.environments.source import EnvironmentSetup, ScenarioSource

__all__ = ["DilemmaEnvironment", "DilemmaRules", "EnvironmentSetup", "ScenarioSource"]

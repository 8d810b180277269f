"""Self-play training of language models that settle conflicts of value by negotiation.

The names in `__all__` are the public API, documented in `docs/api.md`; everything else may change.
They are imported when first used, so that `import deliberation` is quick and needs no torch.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deliberation.api import load_config as load_config
    from deliberation.api import load_judge_config as load_judge_config
    from deliberation.api import rescore_run as rescore_run
    from deliberation.authoring import AuthoringOptions as AuthoringOptions
    from deliberation.authoring import AuthoringReport as AuthoringReport
    from deliberation.authoring import Quota as Quota
    from deliberation.authoring import WorkListener as WorkListener
    from deliberation.authoring import author_dilemmas as author_dilemmas
    from deliberation.authoring import author_personas as author_personas
    from deliberation.authoring import read_quotas as read_quotas
    from deliberation.dilemmas import ConflictTask as ConflictTask
    from deliberation.dilemmas import Dilemma as Dilemma
    from deliberation.dilemmas import DilemmaSet as DilemmaSet
    from deliberation.dilemmas import OpenEndedTask as OpenEndedTask
    from deliberation.dilemmas import TaskSet as TaskSet
    from deliberation.dilemmas import load_conflict_tasks as load_conflict_tasks
    from deliberation.dilemmas import load_dilemmas as load_dilemmas
    from deliberation.dilemmas import load_open_ended as load_open_ended
    from deliberation.dilemmas.check import CheckedFile as CheckedFile
    from deliberation.dilemmas.check import DataCheck as DataCheck
    from deliberation.dilemmas.check import DataFinding as DataFinding
    from deliberation.dilemmas.check import DataLimits as DataLimits
    from deliberation.dilemmas.check import DataReport as DataReport
    from deliberation.dilemmas.check import check_data as check_data
    from deliberation.dilemmas.stats import DataStats as DataStats
    from deliberation.dilemmas.stats import data_stats as data_stats
    from deliberation.doctor import Finding as Finding
    from deliberation.doctor import examine as examine
    from deliberation.engine import Environment as Environment
    from deliberation.engine import Move as Move
    from deliberation.engine import Reaction as Reaction
    from deliberation.engine import RewardFunction as RewardFunction
    from deliberation.engine import Seat as Seat
    from deliberation.engine import play as play
    from deliberation.environments import DilemmaEnvironment as DilemmaEnvironment
    from deliberation.environments import DilemmaRules as DilemmaRules
    from deliberation.environments import EnvironmentSetup as EnvironmentSetup
    from deliberation.environments import ScenarioSource as ScenarioSource
    from deliberation.environments.dilemmas import configured_dilemmas as configured_dilemmas
    from deliberation.environments.dilemmas import configured_personas as configured_personas
    from deliberation.environments.dilemmas import dilemma_rules as dilemma_rules
    from deliberation.episode import AgreementVerdict as AgreementVerdict
    from deliberation.episode import Episode as Episode
    from deliberation.episode import EpisodeSpec as EpisodeSpec
    from deliberation.episode import Generation as Generation
    from deliberation.episode import Message as Message
    from deliberation.episode import Missing as Missing
    from deliberation.episode import Outcome as Outcome
    from deliberation.episode import Phase as Phase
    from deliberation.episode import Sampling as Sampling
    from deliberation.episode import Score as Score
    from deliberation.episode import SeatName as SeatName
    from deliberation.episode import StopReason as StopReason
    from deliberation.episode import Turn as Turn
    from deliberation.errors import UserError as UserError
    from deliberation.judge import Judge as Judge
    from deliberation.judge import JudgeConfig as JudgeConfig
    from deliberation.judge.calibrate import Calibration as Calibration
    from deliberation.judge.calibrate import calibrate as calibrate
    from deliberation.judge.figures import Estimate as Estimate
    from deliberation.judge.gold import GoldSet as GoldSet
    from deliberation.judge.gold import load_gold as load_gold
    from deliberation.judge.scoring import JudgedFile as JudgedFile
    from deliberation.judge.scoring import Rescored as Rescored
    from deliberation.judge.scoring import score_file as score_file
    from deliberation.judging import AgreementJudge as AgreementJudge
    from deliberation.judging import ResolutionCase as ResolutionCase
    from deliberation.judging import ResolutionScorer as ResolutionScorer
    from deliberation.judging import Transcript as Transcript
    from deliberation.judging import Utterance as Utterance
    from deliberation.personas import Persona as Persona
    from deliberation.personas import PersonaPair as PersonaPair
    from deliberation.personas import PersonaSet as PersonaSet
    from deliberation.personas import load_personas as load_personas
    from deliberation.run import Run as Run
    from deliberation.scenario import Scenario as Scenario
    from deliberation.schedule import PlayedGroup as PlayedGroup
    from deliberation.schedule import draw_scenario as draw_scenario
    from deliberation.schema import KeyRow as KeyRow
    from deliberation.seats import PersonSeat as PersonSeat
    from deliberation.seats import open_seat as open_seat
    from deliberation.settings import describe_keys as describe_keys
    from deliberation.settings import packaged_configs as packaged_configs
    from deliberation.train import Trainer as Trainer
    from deliberation.train import TrainingConfig as TrainingConfig
    from deliberation.train.dry_run import DryRun as DryRun
    from deliberation.train.progress import ConsoleProgress as ConsoleProgress
    from deliberation.train.progress import Progress as Progress
    from deliberation.train.summary import Summary as Summary
    from deliberation.transcript import render_episode as render_episode
    from deliberation.transcript import render_outcome as render_outcome
    from deliberation.transcript import render_run as render_run
    from deliberation.transcript import render_turn as render_turn

__version__ = version("deliberation")

_HOMES = {
    "AgreementJudge": "deliberation.judging",
    "AgreementVerdict": "deliberation.episode",
    "AuthoringOptions": "deliberation.authoring",
    "AuthoringReport": "deliberation.authoring",
    "Calibration": "deliberation.judge.calibrate",
    "CheckedFile": "deliberation.dilemmas.check",
    "ConflictTask": "deliberation.dilemmas",
    "ConsoleProgress": "deliberation.train.progress",
    "DataCheck": "deliberation.dilemmas.check",
    "DataFinding": "deliberation.dilemmas.check",
    "DataLimits": "deliberation.dilemmas.check",
    "DataReport": "deliberation.dilemmas.check",
    "DataStats": "deliberation.dilemmas.stats",
    "Dilemma": "deliberation.dilemmas",
    "DilemmaEnvironment": "deliberation.environments",
    "DilemmaRules": "deliberation.environments",
    "DilemmaSet": "deliberation.dilemmas",
    "DryRun": "deliberation.train.dry_run",
    "Environment": "deliberation.engine",
    "EnvironmentSetup": "deliberation.environments",
    "Episode": "deliberation.episode",
    "EpisodeSpec": "deliberation.episode",
    "Estimate": "deliberation.judge.figures",
    "Finding": "deliberation.doctor",
    "Generation": "deliberation.episode",
    "GoldSet": "deliberation.judge.gold",
    "Judge": "deliberation.judge",
    "JudgeConfig": "deliberation.judge",
    "JudgedFile": "deliberation.judge.scoring",
    "KeyRow": "deliberation.schema",
    "Message": "deliberation.episode",
    "Missing": "deliberation.episode",
    "Move": "deliberation.engine",
    "OpenEndedTask": "deliberation.dilemmas",
    "Outcome": "deliberation.episode",
    "PersonSeat": "deliberation.seats",
    "Persona": "deliberation.personas",
    "PersonaPair": "deliberation.personas",
    "PersonaSet": "deliberation.personas",
    "Phase": "deliberation.episode",
    "PlayedGroup": "deliberation.schedule",
    "Progress": "deliberation.train.progress",
    "Quota": "deliberation.authoring",
    "Reaction": "deliberation.engine",
    "Rescored": "deliberation.judge.scoring",
    "ResolutionCase": "deliberation.judging",
    "ResolutionScorer": "deliberation.judging",
    "RewardFunction": "deliberation.engine",
    "Run": "deliberation.run",
    "Sampling": "deliberation.episode",
    "Scenario": "deliberation.scenario",
    "ScenarioSource": "deliberation.environments",
    "Score": "deliberation.episode",
    "Seat": "deliberation.engine",
    "SeatName": "deliberation.episode",
    "StopReason": "deliberation.episode",
    "Summary": "deliberation.train.summary",
    "TaskSet": "deliberation.dilemmas",
    "Trainer": "deliberation.train",
    "TrainingConfig": "deliberation.train",
    "Transcript": "deliberation.judging",
    "Turn": "deliberation.episode",
    "UserError": "deliberation.errors",
    "Utterance": "deliberation.judging",
    "WorkListener": "deliberation.authoring",
    "author_dilemmas": "deliberation.authoring",
    "author_personas": "deliberation.authoring",
    "calibrate": "deliberation.judge.calibrate",
    "check_data": "deliberation.dilemmas.check",
    "configured_dilemmas": "deliberation.environments.dilemmas",
    "configured_personas": "deliberation.environments.dilemmas",
    "data_stats": "deliberation.dilemmas.stats",
    "describe_keys": "deliberation.settings",
    "dilemma_rules": "deliberation.environments.dilemmas",
    "draw_scenario": "deliberation.schedule",
    "examine": "deliberation.doctor",
    "load_config": "deliberation.api",
    "load_conflict_tasks": "deliberation.dilemmas",
    "load_dilemmas": "deliberation.dilemmas",
    "load_gold": "deliberation.judge.gold",
    "load_judge_config": "deliberation.api",
    "load_open_ended": "deliberation.dilemmas",
    "load_personas": "deliberation.personas",
    "open_seat": "deliberation.seats",
    "packaged_configs": "deliberation.settings",
    "play": "deliberation.engine",
    "read_quotas": "deliberation.authoring",
    "render_episode": "deliberation.transcript",
    "render_outcome": "deliberation.transcript",
    "render_run": "deliberation.transcript",
    "render_turn": "deliberation.transcript",
    "rescore_run": "deliberation.api",
    "score_file": "deliberation.judge.scoring",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'deliberation' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]

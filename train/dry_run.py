"""What a run would do, without weights and without an update: prompts, a masked row, amounts.

The dialogue shown is made up; prompts, rows and masks come from the same code as in a run.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from deliberation.chat import Renderer
from deliberation.engine import Environment, play
from deliberation.environments import EnvironmentSetup
from deliberation.episode import (
    AgreementVerdict,
    Episode,
    EpisodeSpec,
    Record,
    Score,
    SeatName,
    StopReason,
    Turn,
)
from deliberation.judging import ResolutionCase, Transcript
from deliberation.samplers import Sample, SampleRequest
from deliberation.seats import ModelSeat

from ..judge.cost import most_usd
from .config import TrainingConfig
from .provenance import config_yaml
from .rows import TrainingRow, episode_rows
from .setup import open_policy_renderer, open_scenarios

MADE_UP = (
    "I see why that matters to you. What if we began with the part that neither of us disputes?",
    "That would help, but I need to know who answers for it if things go wrong.",
    "Then let us put a name and a date to it, and look at it again in a month.",
    "Good. With the name and the date, I can stand behind that.",
)


class PromptView(Record):
    """A prompt as the model gets it."""

    seat: SeatName
    phase: str
    turn: int
    text: str
    tokens: int


class RowPiece(Record):
    """A stretch of a training row; `trained` tokens carry gradient."""

    text: str
    tokens: int
    trained: bool


class DryRun(Record):
    """What `deliberation train CONFIG --dry-run` shows."""

    config: str
    """YAML, resolved."""
    scenario: str
    prompts: tuple[PromptView, ...]
    row: tuple[RowPiece, ...]
    rows_per_episode: int
    episodes_per_step: int
    sampled_tokens_per_step: int
    """At most: every turn at its limit."""
    prompt_tokens_per_step: int
    """Estimated from the prompts of the made-up dialogue, at the most turns."""
    judge_calls_per_step: int
    """At most: no dialogue ends early, and each of them is scored."""
    judge: str
    judge_usd_per_step: float | None
    """0 for a judge on this machine; None where its price is not known."""


class _MadeUpSampler:
    """Says the made-up lines, as ids."""

    def __init__(self, renderer: Renderer) -> None:
        self.weights = "none"
        self.context_tokens: int | None = None
        self._renderer = renderer
        self._asked = 0

    async def sample(self, request: SampleRequest) -> Sample:
        ids = self._renderer.text_ids(MADE_UP[self._asked % len(MADE_UP)])
        self._asked += 1
        ids = ids[: request.sampling.max_tokens - 1] + tuple(sorted(request.stop_ids)[:1])
        return Sample(ids=ids, logprobs=(0.0,) * len(ids), stop=StopReason.END_OF_TURN)


class _MadeUpJudge:
    """Sees agreement after the fourth turn."""

    async def agreement(self, transcript: Transcript) -> AgreementVerdict:
        return AgreementVerdict(agreed=len(transcript.utterances) >= len(MADE_UP))

    async def score(self, case: ResolutionCase) -> Score:
        return Score(value=3.0)


def dry_run(config: TrainingConfig, judge: dict[str, Any]) -> DryRun:
    """Everything that `DryRun` holds for a config; `judge` describes the judge.

    Raises:
        UserError: whatever a run would stop at before its weights load.
    """
    renderer = open_policy_renderer(config.policy, config.protocol.prompt_tokens)
    setup = EnvironmentSetup(config.protocol, config.sampling, config.data, _MadeUpJudge())
    source = open_scenarios(config.protocol.environment, setup)
    slots, group = config.train.scenarios_per_step, config.train.group_size
    scenario = source.draw(seed=config.run.seed, step=1, slot=0, slots=slots, attempt=0, history=())
    episode = _made_up_episode(config, renderer, scenario.id, source.open(scenario))
    rows, _ = episode_rows(episode, advantage=1.0)
    episodes = slots * group
    longest = max(len(turn.generation.prompt_ids) for turn in episode.negotiation)
    turns = config.protocol.max_turns
    per_episode = turns * config.sampling.negotiation.max_tokens
    verdicts = max(0, turns - config.protocol.first_verdict_after + 1)
    return DryRun(
        config=config_yaml(config, {}),
        scenario=scenario.id,
        prompts=_prompts(episode.turns, renderer),
        row=_pieces(rows[0], renderer) if rows else (),
        rows_per_episode=len(rows),
        episodes_per_step=episodes,
        sampled_tokens_per_step=episodes * (per_episode + config.sampling.resolution.max_tokens),
        prompt_tokens_per_step=episodes * (turns + 1) * longest,
        judge_calls_per_step=episodes * (verdicts + 1),
        judge=str(judge.get("model", config.judge.model)),
        judge_usd_per_step=most_usd(
            config.judge,
            verdicts=episodes * verdicts,
            scores=episodes,
            talk_tokens=per_episode // 2 + longest,
            resolution_tokens=config.sampling.resolution.max_tokens + longest,
        ),
    )


def _made_up_episode(
    config: TrainingConfig, renderer: Renderer, scenario_id: str, environment: Environment
) -> Episode:
    seat = ModelSeat(renderer, _MadeUpSampler(renderer))
    spec = EpisodeSpec(seed=config.run.seed, step=1, slot=0, episode=0, scenario_id=scenario_id)
    return asyncio.run(play(spec, environment, {"policy": seat, "partner": seat}))


def _prompts(turns: Sequence[Turn], renderer: Renderer) -> tuple[PromptView, ...]:
    """The latest negotiation prompt of each seat, and the resolution's."""
    latest: dict[tuple[SeatName, str], Turn] = {}
    for turn in turns:
        latest[turn.seat, turn.phase] = turn
    return tuple(
        PromptView(
            seat=turn.seat,
            phase=turn.phase,
            turn=turn.index,
            text=renderer.decode(turn.generation.prompt_ids),
            tokens=len(turn.generation.prompt_ids),
        )
        for turn in latest.values()
    )


def _pieces(row: TrainingRow, renderer: Renderer) -> tuple[RowPiece, ...]:
    """The row cut where its mask changes."""
    pieces = []
    start = 0
    for end in range(1, len(row.ids) + 1):
        if end == len(row.ids) or row.mask[end] != row.mask[start]:
            pieces.append(
                RowPiece(
                    text=renderer.decode(row.ids[start:end]),
                    tokens=end - start,
                    trained=bool(row.mask[start]),
                )
            )
            start = end
    return tuple(pieces)

"""Plays the episodes of one step: as many coroutines as episodes, each stored when it ends."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from deliberation.engine import RewardFunction, Seat, TurnListener, play
from deliberation.environments import ScenarioSource
from deliberation.episode import Episode, EpisodeSpec
from deliberation.schedule import PlayedGroup
from deliberation.store import RunStore

from .partner import PartnerOf

EpisodeListener = Callable[[Episode], None]


@dataclass(frozen=True)
class Rollout:
    """What is needed to play any step of a run."""

    scenarios: ScenarioSource
    policy: Seat
    partner_of: PartnerOf
    store: RunStore
    seed: int
    slots: int
    """Scenarios, hence groups, in a step."""
    group_size: int
    history: list[PlayedGroup] = field(default_factory=list)
    """Groups of the steps that are finished; grows as the run goes on."""
    reward: RewardFunction | None = None
    on_turn: TurnListener | None = None
    on_episode: EpisodeListener | None = None

    def plan(self, step: int) -> list[tuple[EpisodeSpec, Any]]:
        """Every episode of the step with its scenario, in the order of slots and episodes."""
        planned = []
        for slot in range(self.slots):
            scenario = self.scenarios.draw(
                seed=self.seed,
                step=step,
                slot=slot,
                slots=self.slots,
                attempt=0,
                history=self.history,
            )
            for index in range(self.group_size):
                spec = EpisodeSpec(
                    seed=self.seed,
                    step=step,
                    slot=slot,
                    episode=index,
                    scenario_id=scenario.id,
                )
                planned.append((spec, scenario))
        return planned

    async def play_step(self, step: int, fingerprint: str) -> list[Episode]:
        """All episodes of the step, in the order of `plan`.

        Episodes that were recorded with these very weights are kept, never sampled again. One
        that fails does not touch the others: they end and are stored, then its error is raised.
        """
        recorded = {
            episode.id: episode
            for episode in self.store.recorded(step)
            if episode.fingerprint == fingerprint
        }
        planned = self.plan(step)
        tasks = [
            asyncio.create_task(self._play(spec, scenario, fingerprint, recorded.get(spec.id)))
            for spec, scenario in planned
        ]
        try:
            results = await asyncio.gather(*tasks, return_exceptions=True)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        episodes = []
        for result in results:
            if isinstance(result, BaseException):
                raise result
            episodes.append(result)
        return episodes

    async def _play(
        self, spec: EpisodeSpec, scenario: Any, fingerprint: str, recorded: Episode | None
    ) -> Episode:
        if recorded is not None and recorded.spec == spec:
            episode = recorded
        else:
            episode = await play(
                spec,
                self.scenarios.open(scenario),
                {"policy": self.policy, "partner": self.partner_of(spec)},
                fingerprint=fingerprint,
                reward=self.reward,
                on_turn=self.on_turn,
            )
            # On the loop's own thread: episodes end one at a time, so lines never interleave.
            self.store.append(episode)
        if self.on_episode is not None:
            self.on_episode(episode)
        return episode

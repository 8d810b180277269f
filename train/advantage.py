"""Advantages: what each episode earned compared with the others of its group.

Pure Python on exact sums (`math.fsum`), so that neither the order in which episodes ended nor the
process that played them changes a bit. A group is one group wherever its members were played:
gather the episodes first, then call this once.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from deliberation.episode import Episode
from deliberation.schedule import PlayedGroup

SPREAD_FLOOR = 1e-4
"""Added to the standard deviation, as in TRL: a tiny spread makes no huge advantage."""
NO_SPREAD = 1e-6
"""A standard deviation below this is rounding: the advantages are exactly 0."""
SMALLEST_GROUP = 2
"""A group with fewer rewards than this has nothing to compare and is dropped."""


@dataclass(frozen=True)
class GroupCounts:
    """What became of the groups of a step."""

    groups: int = 0
    dropped: int = 0
    """Groups with fewer than two rewards."""
    zero_spread: int = 0
    """Groups that were kept and whose rewards are all equal: they teach nothing."""
    episodes: int = 0
    missing: int = 0
    """Episodes without a reward."""

    @property
    def zero_spread_share(self) -> float | None:
        """Among the groups that were kept; None where there are none."""
        kept = self.groups - self.dropped
        return self.zero_spread / kept if kept else None

    def figures(self) -> dict[str, Any]:
        """The part of a step's metrics that tells of its groups."""
        return {
            "groups": self.groups,
            "groups_dropped": self.dropped,
            "zero_spread_groups": self.zero_spread,
            "zero_spread_share": self.zero_spread_share,
        }


@dataclass(frozen=True)
class StepAdvantages:
    """A step's episodes with their advantages, and what became of the groups."""

    episodes: tuple[Episode, ...]
    """As given, in the same order, each with `advantage` set; None: it makes no training rows."""
    counts: GroupCounts


def present(reward: float | None) -> TypeGuard[float]:
    """Whether a reward is a number that can be compared. NaN and infinity are missing ones."""
    return reward is not None and math.isfinite(reward)


def standard_deviation(values: Sequence[float]) -> float:
    """The sample standard deviation (n - 1), as in TRL. Needs two values."""
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def group_advantages(rewards: Sequence[float | None]) -> list[float | None]:
    """Advantages of one group, in the order of its rewards.

    (reward - mean) / (sample standard deviation + 1e-4), over the rewards that are present. All
    exactly 0 where the deviation is below 1e-6. A missing reward (None, NaN) has no advantage and
    enters neither the mean nor the spread. Fewer than two rewards: all None, the group is dropped.
    """
    values = [reward for reward in rewards if present(reward)]
    if len(values) < SMALLEST_GROUP:
        return [None] * len(rewards)
    mean = math.fsum(values) / len(values)
    deviation = standard_deviation(values)
    if deviation < NO_SPREAD:
        return [0.0 if present(reward) else None for reward in rewards]
    scale = deviation + SPREAD_FLOOR
    return [(reward - mean) / scale if present(reward) else None for reward in rewards]


def episode_advantages(episodes: Iterable[Episode]) -> StepAdvantages:
    """Advantages of the episodes of a step, grouped by `episode.spec.group`.

    Raises:
        ValueError: an episode was given twice.
    """
    episodes = tuple(episodes)
    groups = _groups(episodes)
    by_id: dict[str, float | None] = {}
    dropped = zero_spread = 0
    for members in groups.values():
        advantages = group_advantages([member.outcome.reward for member in members])
        kept = [advantage for advantage in advantages if advantage is not None]
        dropped += not kept
        zero_spread += bool(kept) and not any(kept)
        by_id.update(zip((member.id for member in members), advantages, strict=True))
    if len(by_id) < len(episodes):
        raise ValueError("an episode was given twice")
    counts = GroupCounts(
        groups=len(groups),
        dropped=dropped,
        zero_spread=zero_spread,
        episodes=len(episodes),
        missing=sum(not present(episode.outcome.reward) for episode in episodes),
    )
    return StepAdvantages(
        tuple(episode.model_copy(update={"advantage": by_id[episode.id]}) for episode in episodes),
        counts,
    )


def group_spreads(step: int, episodes: Iterable[Episode]) -> list[PlayedGroup]:
    """What the schedule needs to know of the groups of a step, by slot and attempt."""
    spreads = []
    for (_, slot, attempt), members in sorted(_groups(episodes).items()):
        rewards = [member.outcome.reward for member in members]
        there = [reward for reward in rewards if present(reward)]
        spread = standard_deviation(there) if len(there) >= SMALLEST_GROUP else None
        spreads.append(PlayedGroup(step=step, slot=slot, attempt=attempt, spread=spread))
    return spreads


def _groups(episodes: Iterable[Episode]) -> dict[tuple[int, int, int], list[Episode]]:
    groups: dict[tuple[int, int, int], list[Episode]] = defaultdict(list)
    for episode in episodes:
        groups[episode.spec.group].append(episode)
    return groups

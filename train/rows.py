"""Training rows: the recorded generations of an episode as token ids with a mask.

Built only from what was sampled; no text is ever encoded again. Only turns with `trained` set are
looked at: the policy's negotiation. What the partner said, the template's tokens and the policy's
untrained turns come in as part of the next recorded prompt, with mask 0; the resolution, which is
untrained, makes no row.

Consecutive generations share a row while each prompt extends the tokens before it exactly. Where
one does not, a new row starts, and the reason is counted:

- `empty_turn`: the generation before was empty, so it is in no later prompt;
- `window`: the prompts differ before the generation, as when a window leaves out older turns;
- `end_of_turn`: only the last sampled token differs from what the template puts in its place;
- `template`: the prompt shows the generation otherwise than it was sampled, as when a template
  drops earlier thinking.

Imports no torch.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from deliberation.episode import Episode, Generation, StopReason

SplitReason = Literal["empty_turn", "window", "end_of_turn", "template"]


@dataclass(frozen=True)
class TrainingRow:
    """One sequence for the loss. All three tuples have the same length."""

    ids: tuple[int, ...]
    mask: tuple[int, ...]
    """1 on the sampled tokens of trained turns. The first token is never trained: nothing comes
    before it that could predict it."""
    logprobs: tuple[float, ...]
    """Of the trained tokens, as the sampler recorded them; 0.0 where the mask is 0."""
    advantage: float
    episode: str
    """Id of the episode."""
    first_turn: int
    """Index of the first turn that is trained in this row."""

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.mask) == len(self.logprobs):
            raise ValueError(f"ids, mask and log-probs of a row of {self.episode} differ in length")
        if not any(self.mask):
            raise ValueError(f"a row of {self.episode} has no trained token")
        if self.mask[0]:
            raise ValueError(f"the first token of a row of {self.episode} is trained")

    @property
    def trained_tokens(self) -> int:
        return sum(self.mask)

    @property
    def prompt_length(self) -> int:
        """Number of tokens before the first trained one; at least 1."""
        return self.mask.index(1)


@dataclass(frozen=True)
class StepRows:
    """What a step of play hands to the trainer."""

    rows: tuple[TrainingRow, ...]
    """Of the episodes that this process owns; in any order."""
    episodes: int = 0
    """How many episodes have an advantage, and so could make rows."""
    splits: Mapping[str, int] = field(default_factory=dict)
    """Why rows after the first of an episode were started, with how often."""
    truncation_gap: float | None = None
    """By how much, on average over the trained tokens, top-p or top-k made the sampled token
    likelier, in nats; None where nothing was truncated."""

    @property
    def trained_tokens(self) -> int:
        """0 where the step has nothing to learn from."""
        return sum(row.trained_tokens for row in self.rows)

    def figures(self) -> dict[str, Any]:
        """The part of a step's metrics that tells of its rows."""
        return {
            "rows": len(self.rows),
            "rows_per_episode": len(self.rows) / self.episodes if self.episodes else None,
            "row_splits": dict(self.splits),
            "trained_tokens": self.trained_tokens,
            "truncation_gap": self.truncation_gap,
        }


@dataclass
class _Open:
    """A row under construction."""

    first_turn: int
    ids: list[int]
    mask: list[int]
    logprobs: list[float]

    @classmethod
    def at(cls, first_turn: int) -> "_Open":
        return cls(first_turn, [], [], [])

    def extend(self, generation: Generation) -> None:
        """Take the rest of the prompt with mask 0, and the sampled ids with mask 1."""
        context = generation.prompt_ids[len(self.ids) :]
        self.ids += [*context, *generation.ids]
        self.mask += [0] * len(context) + [1] * len(generation.ids)
        self.logprobs += [0.0] * len(context) + list(generation.logprobs)

    def close(self, episode: str, advantage: float) -> TrainingRow | None:
        """The finished row; None where nothing in it can be trained."""
        if self.mask[0]:
            self.mask[0], self.logprobs[0] = 0, 0.0
        if not any(self.mask):
            return None
        return TrainingRow(
            ids=tuple(self.ids),
            mask=tuple(self.mask),
            logprobs=tuple(self.logprobs),
            advantage=advantage,
            episode=episode,
            first_turn=self.first_turn,
        )


def step_rows(episodes: Iterable[Episode]) -> StepRows:
    """The rows of a step's episodes, whose advantages are set."""
    rows: list[TrainingRow] = []
    splits: Counter[str] = Counter()
    gaps: list[float] = []
    compared = 0
    for episode in episodes:
        if episode.advantage is not None:
            compared += 1
            more, reasons = episode_rows(episode, episode.advantage)
            rows += more
            splits.update(reasons)
            gaps += truncation_gaps(episode)
    return StepRows(
        rows=tuple(order(rows)),
        episodes=compared,
        splits=dict(sorted(splits.items())),
        truncation_gap=math.fsum(gaps) / len(gaps) if gaps else None,
    )


def truncation_gaps(episode: Episode) -> list[float]:
    """Per token of the trained turns that were sampled with top-p or top-k: its log-probability
    under what they left, less that under the whole distribution."""
    gaps: list[float] = []
    for turn in episode.turns:
        truncated = turn.generation.truncated_logprobs
        if turn.trained and truncated is not None:
            pairs = zip(truncated, turn.generation.logprobs, strict=True)
            gaps += [left - whole for left, whole in pairs]
    return gaps


def episode_rows(
    episode: Episode, advantage: float | None
) -> tuple[list[TrainingRow], Counter[SplitReason]]:
    """The rows of an episode in the order of its turns, and why each new one was started.

    An episode without an advantage (a missing reward, a dropped group) makes no rows.
    """
    splits: Counter[SplitReason] = Counter()
    if advantage is None:
        return [], splits
    rows: list[_Open] = []
    before: Generation | None = None
    for turn in episode.turns:
        generation = turn.generation
        if not turn.trained or not generation.ids:
            continue
        reason = None if before is None else split_reason(before, generation)
        if before is None or reason is not None:
            rows.append(_Open.at(turn.index))
        if reason is not None:
            splits[reason] += 1
        rows[-1].extend(generation)
        before = generation
    closed = (row.close(episode.id, advantage) for row in rows)
    return [row for row in closed if row is not None], splits


def split_reason(before: Generation, after: Generation) -> SplitReason | None:
    """Why `after` cannot follow `before` in one row; None where its prompt extends it exactly."""
    spoken = before.prompt_ids + before.ids
    prompt = after.prompt_ids
    if prompt[: len(spoken)] == spoken:
        return None
    if before.empty:
        return "empty_turn"
    common = 0
    for ours, theirs in zip(spoken, prompt, strict=False):
        if ours != theirs:
            break
        common += 1
    if common < len(before.prompt_ids):
        return "window"
    if common == len(spoken) - 1 and before.stop is StopReason.END_OF_TURN:
        return "end_of_turn"
    return "template"


def order(rows: Iterable[TrainingRow]) -> list[TrainingRow]:
    """By episode and turn, whatever order the episodes ended in."""
    return sorted(rows, key=lambda row: (row.episode, row.first_turn))


def pack(rows: Iterable[TrainingRow], tokens_per_micro_batch: int) -> list[list[TrainingRow]]:
    """Micro-batches of at most so many tokens, padding included; the longest rows come first.

    Every row of a micro-batch is padded to its longest. A row that alone exceeds the bound gets a
    micro-batch of its own: it can be neither cut nor left out.
    """
    by_length = sorted(order(rows), key=lambda row: -len(row.ids))
    batches: list[list[TrainingRow]] = []
    for row in by_length:
        last = batches[-1] if batches else []
        if last and (len(last) + 1) * len(last[0].ids) <= tokens_per_micro_batch:
            last.append(row)
        else:
            batches.append([row])
    return batches

"""The records of a dialogue: what was sampled, what was judged, what it earned.

All are frozen pydantic models: an episode is written as one JSON line and read back the same.
The vocabulary never imports torch.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

SCHEMA_VERSION = 1
REWARD_STEP = 1e-3
"""Rewards are rounded to this, so that nothing in the loss depends on a last bit of the judge."""

SeatName = Literal["policy", "partner"]
Role = Literal["system", "user", "assistant"]


def other_seat(seat: SeatName) -> SeatName:
    return "partner" if seat == "policy" else "policy"


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StopReason(StrEnum):
    END_OF_TURN = "end_of_turn"
    """The model ended its turn itself."""
    LENGTH = "length"
    """The turn was cut by the token limit of its phase or by the context window."""
    CONTEXT_FULL = "context_full"
    """The prompt left no room for a single token: nothing was sampled."""


class Missing(StrEnum):
    """Why a judge's number is missing. A missing number is never 0."""

    PARSE = "parse"
    RANGE = "range"
    REFUSAL = "refusal"
    FILTER = "filter"
    TRUNCATED = "truncated"
    TIMEOUT = "timeout"
    RATE_LIMIT = "rate_limit"
    SERVER = "server"
    CONTEXT_FULL = "context_full"
    """No judge was at fault: the dialogue outgrew the context window before it could end."""
    ENVIRONMENT = "environment"
    """No judge was at fault: an environment or a reward function from outside gave none."""


class Sampling(Record):
    """Settings of one sampling call. `temperature=0` is greedy."""

    temperature: Annotated[float, Field(ge=0)] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Field(ge=0)] = 0
    """0 keeps the whole vocabulary."""
    max_tokens: Annotated[int, Field(ge=1)] = 256

    @property
    def truncates(self) -> bool:
        return self.top_p < 1 or self.top_k > 0


class Phase(Record):
    """A part of the protocol: how it is sampled, and whether its tokens are trained."""

    name: str
    sampling: Sampling
    trained: bool


class Generation(Record):
    """The exact record of one sampling call."""

    prompt_ids: tuple[int, ...]
    """Empty where the model is remote and takes text."""
    ids: tuple[int, ...]
    """What was sampled, the end-of-turn token included where the model gave one."""
    logprobs: tuple[float, ...]
    """Log-probabilities of `ids` under softmax(logits / temperature) over the full vocabulary:
    what the trainer recomputes. At temperature 0 those of softmax(logits)."""
    truncated_logprobs: tuple[float, ...] | None = None
    """The same under the distribution that top-p or top-k left, where they truncate."""
    sampling: Sampling
    stop: StopReason
    weights: str
    """Version of the weights that sampled it."""
    text: str
    """All of it as text, end-of-turn token removed."""
    visible: str
    """What the partner and the judge see: `text` without thinking."""

    @model_validator(mode="after")
    def _one_logprob_per_token(self) -> "Generation":
        for name in ("logprobs", "truncated_logprobs"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.ids):
                raise ValueError(f"{name} has {len(values)} entries for {len(self.ids)} ids")
        return self

    @property
    def empty(self) -> bool:
        """True where nobody but the speaker would see anything."""
        return not self.visible.strip()


class Message(Record):
    """One message of the chat that a seat observes.

    `generation` is set on the seat's own earlier turns: they enter the prompt as recorded ids.
    """

    role: Role
    content: str
    generation: Generation | None = None


class PanelVerdict(Record):
    """What one judge of a panel said on agreement; None where it failed."""

    judge: str
    agreed: bool | None


class PanelScore(Record):
    """The score that one judge of a panel gave; None where it failed."""

    judge: str
    value: float | None


class AgreementVerdict(Record):
    """The judge's word on "is the core direction settled?"."""

    agreed: bool | None
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    """How sure the judge is that they agree: 0 surely not, 1 surely."""
    reason: str = ""
    missing: Missing | None = None
    by_judge: tuple[PanelVerdict, ...] = ()
    """What each judge of a panel said; empty for a single judge."""

    @model_validator(mode="after")
    def _present_or_missing(self) -> "AgreementVerdict":
        if (self.agreed is None) == (self.missing is None):
            raise ValueError("a verdict either says yes or no, or names why it is missing")
        return self


class Score(Record):
    """The judge's collective agency (CA) score of a resolution, 0 to 5."""

    value: Annotated[float, Field(ge=0, le=5)] | None
    reason: str = ""
    missing: Missing | None = None
    by_judge: tuple[PanelScore, ...] = ()
    """What each judge of a panel gave; empty for a single judge."""

    @model_validator(mode="after")
    def _present_or_missing(self) -> "Score":
        if (self.value is None) == (self.missing is None):
            raise ValueError("a score either has a value or names why it is missing")
        return self


class Turn(Record):
    """One utterance of one seat."""

    index: int
    """Place among the episode's generations, from 0; keys the randomness of this one."""
    seat: SeatName
    phase: str
    trained: bool
    """Whether its tokens carry gradient: the phase is trained and the seat is the policy's."""
    generation: Generation
    verdict: AgreementVerdict | None = None
    """The agreement verdict asked after this turn, where one was asked."""
    notes: tuple[str, ...] = ()
    """What the environment had to say about this turn, for readers."""


class Outcome(Record):
    """How a dialogue ended and what it earned."""

    end: str
    """Why it ended: `agreement`, `no_agreement`, `empty_turn`, `context_full`, `judge_missing`, or
    a word of another environment's."""
    score: Score | None = None
    reward: float | None
    missing: Missing | None = None

    @model_validator(mode="after")
    def _present_or_missing(self) -> "Outcome":
        if (self.reward is None) == (self.missing is None):
            raise ValueError("an outcome either has a reward or names why it is missing")
        return self

    @classmethod
    def of(
        cls,
        end: str,
        reward: float | None,
        *,
        missing: Missing | None = None,
        score: Score | None = None,
    ) -> "Outcome":
        """An outcome with the reward rounded to `REWARD_STEP`."""
        rounded = None if reward is None else round(reward / REWARD_STEP) * REWARD_STEP
        rounded = None if rounded is None else round(rounded, 6)
        return cls(end=end, reward=rounded, missing=missing, score=score)


class EpisodeSpec(Record):
    """What identifies an episode, and with the turn's index each of its random draws."""

    seed: int
    """Seed of the run."""
    step: int
    slot: int
    """Place of the group within the step."""
    attempt: int = 0
    """Which draw of the slot, where groups are drawn again."""
    episode: int
    """Place of the episode within its group."""
    scenario_id: str

    @property
    def id(self) -> str:
        return f"step-{self.step:06d}-slot-{self.slot}-try-{self.attempt}-episode-{self.episode}"

    @property
    def group(self) -> tuple[int, int, int]:
        """Episodes with the same value are compared with each other."""
        return (self.step, self.slot, self.attempt)


class Episode(Record):
    """One finished dialogue."""

    schema_version: int = SCHEMA_VERSION
    id: str
    spec: EpisodeSpec
    environment: str
    facts: dict[str, JsonValue]
    """What a reader needs to follow it: the dilemma, the personas, who opens."""
    turns: tuple[Turn, ...]
    outcome: Outcome
    fingerprint: str
    """Of the weights that sampled it: a resumed run keeps it only if they are the same."""
    advantage: float | None = None
    """Set when the step's update is made; None where the episode was in no group."""

    @property
    def negotiation(self) -> tuple[Turn, ...]:
        return tuple(turn for turn in self.turns if turn.phase == "negotiation")

    @property
    def resolution(self) -> Turn | None:
        return next((turn for turn in self.turns if turn.phase == "resolution"), None)

    @property
    def rounds(self) -> float:
        """Two turns, one of each seat, make a round; empty attempts don't count."""
        return sum(not turn.generation.empty for turn in self.negotiation) / 2

    @property
    def agreed(self) -> bool | None:
        """Whether the judge saw agreement; None where it gave no usable verdict."""
        if self.outcome.end == "judge_missing":
            return None
        return any(turn.verdict is not None and turn.verdict.agreed for turn in self.turns)

"""What is to be judged, from files of anybody's and from recorded runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints

from deliberation.episode import Episode
from deliberation.judging import ResolutionCase, Transcript, Utterance

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class SaidTurn(BaseModel):
    """One turn of a talk from outside."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    speaker: Text
    text: str


class JudgedRow(BaseModel):
    """A dialogue, a resolution, or both; whatever else a row holds is kept and not read."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: Text
    situation: Text
    question: str = ""
    turns: tuple[SaidTurn, ...] = ()
    stakeholders: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    personas: tuple[str, ...] = ()
    resolution: str | None = None

    def transcript(self) -> Transcript:
        """The talk. Who speaks first takes the policy's seat; anybody else the partner's."""
        first = self.turns[0].speaker if self.turns else ""
        return Transcript(
            title="",
            situation=self.situation,
            question=self.question,
            utterances=tuple(
                Utterance(
                    seat="policy" if turn.speaker == first else "partner",
                    speaker=turn.speaker,
                    text=turn.text,
                )
                for turn in self.turns
            ),
        )

    def case(self, resolution: str | None = None) -> ResolutionCase:
        """The resolution, or another one in its place."""
        speakers = list(dict.fromkeys(turn.speaker for turn in self.turns))
        names = [*(self.personas or speakers), "one side", "the other side"]
        return ResolutionCase(
            transcript=self.transcript(),
            stakeholders=self.stakeholders,
            constraints=self.constraints,
            personas=(names[0], names[1]),
            resolution=self.resolution or "" if resolution is None else resolution,
        )


def case_of_episode(episode: Episode) -> ResolutionCase | None:
    """The resolution of a recorded dialogue; None where none was written."""
    written = [turn for turn in episode.turns if turn.phase == "resolution"]
    if not written:
        return None
    facts = episode.facts
    return ResolutionCase(
        transcript=transcript_of_episode(episode),
        stakeholders=_texts(facts.get("stakeholders")),
        constraints=_texts(facts.get("constraints")),
        personas=(str(facts.get("policy", "one side")), str(facts.get("partner", "the other"))),
        resolution=written[-1].generation.visible.strip(),
    )


def transcript_of_episode(episode: Episode) -> Transcript:
    """What was heard in a recorded dialogue."""
    facts = episode.facts
    heard = [turn for turn in episode.negotiation if not turn.generation.empty]
    return Transcript(
        title=str(facts.get("title") or ""),
        situation=str(facts.get("situation") or ""),
        question=str(facts.get("question") or ""),
        utterances=tuple(
            Utterance(
                seat=turn.seat,
                speaker=str(facts.get(turn.seat, turn.seat)),
                text=turn.generation.visible.strip(),
            )
            for turn in heard
        ),
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(text) for text in value) if isinstance(value, Sequence) else ()

"""What the engine asks of a judge. `judge/` implements it; so can a package from outside."""

from typing import Protocol

from deliberation.episode import AgreementVerdict, Record, Score, SeatName


class Utterance(Record):
    """A turn as the judge sees it: visible text only, never thinking or private information."""

    seat: SeatName
    speaker: str
    """Name of the persona."""
    text: str


class Transcript(Record):
    """What is asked about: the matter and all that was said on it so far, oldest first."""

    title: str
    """Empty where the dilemma has none, as `question` is."""
    situation: str
    question: str
    utterances: tuple[Utterance, ...]


class ResolutionCase(Record):
    """A resolution with what it is to be measured by."""

    transcript: Transcript
    stakeholders: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    personas: tuple[str, str]
    resolution: str


class AgreementJudge(Protocol):
    async def agreement(self, transcript: Transcript) -> AgreementVerdict:
        """Is the core direction settled? Open details are allowed. Never raises for a judge that
        fails: the verdict is then missing, with the reason."""
        ...


class ResolutionScorer(Protocol):
    async def score(self, case: ResolutionCase) -> Score:
        """Collective agency, 0 to 5. Never raises for a judge that fails: the score is then
        missing, with the reason."""
        ...

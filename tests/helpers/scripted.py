"""Seats and judges that say what they are told to, for tests of what happens around them."""

from collections.abc import Iterable

from deliberation.engine import Seat
from deliberation.episode import (
    AgreementVerdict,
    Generation,
    Message,
    Missing,
    Phase,
    Score,
    StopReason,
)
from deliberation.judging import ResolutionCase, Transcript


def generation(
    text: str,
    *,
    phase: Phase,
    visible: str | None = None,
    stop: StopReason = StopReason.END_OF_TURN,
) -> Generation:
    """A generation whose ids are the code points of `text`."""
    ids = tuple(ord(character) for character in text)
    return Generation(
        prompt_ids=(1, 2),
        ids=ids,
        logprobs=(-0.5,) * len(ids),
        sampling=phase.sampling,
        stop=stop,
        weights="scripted",
        text=text,
        visible=text if visible is None else visible,
    )


class ScriptedSeat(Seat):
    """Says its lines one after the other; keeps what it saw and by which keys it was asked."""

    def __init__(self, lines: Iterable[str | Generation]) -> None:
        self.weights = "scripted"
        self._lines = list(lines)
        self.saw: list[list[Message]] = []
        self.keys: list[int] = []

    async def speak(self, messages: list[Message], phase: Phase, key: int) -> Generation:
        self.saw.append(messages)
        self.keys.append(key)
        line = self._lines[len(self.saw) - 1]
        return line if isinstance(line, Generation) else generation(line, phase=phase)


class ScriptedJudge:
    """Sees agreement once a word was said in the last turn; scores by a table."""

    def __init__(
        self,
        *,
        agrees_on: str = "deal",
        score: float | Missing = 3.0,
        agreement_missing: Missing | None = None,
    ) -> None:
        self.agrees_on, self._score, self._agreement_missing = agrees_on, score, agreement_missing
        self.transcripts: list[Transcript] = []
        self.cases: list[ResolutionCase] = []

    async def agreement(self, transcript: Transcript) -> AgreementVerdict:
        self.transcripts.append(transcript)
        if self._agreement_missing is not None:
            return AgreementVerdict(agreed=None, missing=self._agreement_missing)
        agreed = self.agrees_on in transcript.utterances[-1].text
        return AgreementVerdict(agreed=agreed, confidence=1.0 if agreed else 0.0)

    async def score(self, case: ResolutionCase) -> Score:
        self.cases.append(case)
        if isinstance(self._score, Missing):
            return Score(value=None, missing=self._score)
        return Score(value=self._score, reason="by the table")

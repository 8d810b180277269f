"""Judges from outside, and the questions to put to them."""

import asyncio

from deliberation.episode import AgreementVerdict, Score
from deliberation.judge.config import JudgeConfig
from deliberation.judging import ResolutionCase, Transcript, Utterance


def talk(*turns: str) -> Transcript:
    """A transcript whose turns alternate, the policy's first."""
    return Transcript(
        title="The library",
        situation="The town can pay for one of two things.",
        question="Which one?",
        utterances=tuple(
            Utterance(
                seat="partner" if place % 2 else "policy",
                speaker="the steward" if place % 2 else "the craftsperson",
                text=text,
            )
            for place, text in enumerate(turns)
        ),
    )


def case(resolution: str) -> ResolutionCase:
    return ResolutionCase(
        transcript=talk("Three late nights?", "Yes, three late nights."),
        stakeholders=("night workers", "children"),
        constraints=("the budget is fixed",),
        personas=("the craftsperson", "the steward"),
        resolution=resolution,
    )


class Echo:
    """Agrees if the last turn says so; scores by the number of words."""

    def __init__(self, config: JudgeConfig) -> None:
        self.config = config
        self.asked: list[str] = []
        self.closed = False

    async def agreement(self, transcript: Transcript) -> AgreementVerdict:
        self.asked.append(transcript.utterances[-1].text)
        agreed = "agree" in self.asked[-1]
        return AgreementVerdict(agreed=agreed, confidence=float(agreed), reason="echo")

    async def score(self, case: ResolutionCase) -> Score:
        self.asked.append(case.resolution)
        return Score(value=min(5.0, len(case.resolution.split()) / 4), reason="echo")

    def describe(self) -> dict[str, str]:
        return {"version": "7"}

    async def close(self) -> None:
        self.closed = True


class Answers(Echo):
    """Gives back whatever `answer` says, or raises it."""

    answer: object = None

    async def agreement(self, transcript: Transcript) -> AgreementVerdict:
        return self._give()

    async def score(self, case: ResolutionCase) -> Score:
        return self._give()

    def _give(self) -> object:
        answer = type(self).answer
        if callable(answer):
            answer = answer()
        if isinstance(answer, BaseException):
            raise answer
        return answer


class Sleeper(Echo):
    async def score(self, case: ResolutionCase) -> Score:
        await asyncio.sleep(60)
        return Score(value=1.0)


class NoScore:
    def __init__(self, config: JudgeConfig) -> None:
        pass

    async def agreement(self, transcript: Transcript) -> AgreementVerdict:
        return AgreementVerdict(agreed=True)


class NeedsTwo(Echo):
    def __init__(self, config: JudgeConfig, key: str) -> None:
        super().__init__(config)

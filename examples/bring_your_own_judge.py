"""A judge of your own: a class with two coroutines. This one goes by words, and needs no model.

Try it on two fixed texts:

    python bring_your_own_judge.py

Train with it, from the folder that this file lies in:

    deliberation train quickstart judge.model=bring_your_own_judge:WordJudge
"""

import asyncio
import re

from deliberation import (
    AgreementVerdict,
    Judge,
    Missing,
    ResolutionCase,
    Score,
    Transcript,
    Utterance,
)

ASSENT = re.compile(r"\b(agree|agreed|deal|fine with me|settled)\b", re.IGNORECASE)
REFUSAL = re.compile(r"\b(no|not|never|disagree)\b", re.IGNORECASE)
WHO_AND_WHEN = re.compile(r"\b(will|by|until|every|from)\b", re.IGNORECASE)


class WordJudge:
    """Sees agreement where the last turn assents and refuses nothing."""

    def __init__(self, config: object) -> None:
        """Called once, with the config's `judge` section."""

    async def agreement(self, transcript: Transcript) -> AgreementVerdict:
        last = transcript.utterances[-1].text
        agreed = bool(ASSENT.search(last)) and not REFUSAL.search(last)
        return AgreementVerdict(
            agreed=agreed,
            confidence=0.8 if agreed else 0.2,
            reason="The last turn assents." if agreed else "The last turn does not assent.",
        )

    async def score(self, case: ResolutionCase) -> Score:
        if not case.stakeholders:
            # A judge that cannot tell says so: a missing score is never a zero.
            return Score(value=None, missing=Missing.ENVIRONMENT, reason="Nobody is affected.")
        text = case.resolution.casefold()
        named = sum(name.casefold() in text for name in case.stakeholders)
        value = 3.0 * named / len(case.stakeholders) + min(2, len(WHO_AND_WHEN.findall(text)))
        return Score(value=value, reason=f"Names {named} of {len(case.stakeholders)} affected.")

    def describe(self) -> dict[str, str]:
        """Goes into the run's config.yaml."""
        return {"rule": "words", "version": "1"}


async def main() -> None:
    judge = Judge("bring_your_own_judge:WordJudge")
    turns = (
        ("policy", "the early riser", "Then the choir sings until nine, and the dancers follow."),
        ("partner", "the night owl", "Agreed, as long as the dancers get the hall on Friday."),
    )
    talk = Transcript(
        title="One hall, two groups",
        situation="A choir and some dancers want the same hall on the same evening.",
        question="Who gets it when?",
        utterances=tuple(Utterance(seat=seat, speaker=who, text=text) for seat, who, text in turns),
    )
    case = ResolutionCase(
        transcript=talk,
        stakeholders=("the choir", "the dancers"),
        personas=("the early riser", "the night owl"),
        resolution="From Monday the choir will leave at nine. On Fridays the dancers come first.",
    )
    verdict = await judge.agreement(talk)
    score = await judge.score(case)
    print(f"agreed: {verdict.agreed} ({verdict.reason})")
    print(f"score: {score.value} ({score.reason})")
    await judge.close()


if __name__ == "__main__":
    asyncio.run(main())

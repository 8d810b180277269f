"""The dilemma environment: two personas deliberate until a judge sees agreement.

Paper protocol (arXiv 2603.10476): turns alternate; the judge is asked as the talk goes; on
agreement the policy's seat writes the resolution, which the judge scores. Ours: the judge is asked
from the second turn on (before that one side has not spoken), and never about an empty turn.
"""

from dataclasses import dataclass, field

from pydantic import JsonValue

from deliberation.engine import Move, Reaction
from deliberation.episode import (
    AgreementVerdict,
    Generation,
    Message,
    Missing,
    Outcome,
    Phase,
    Score,
    SeatName,
    StopReason,
    other_seat,
)
from deliberation.judging import (
    AgreementJudge,
    ResolutionCase,
    ResolutionScorer,
    Transcript,
    Utterance,
)
from deliberation.prompts import PromptSet, open_prompts
from deliberation.scenario import Scenario


@dataclass(frozen=True)
class DilemmaRules:
    """The protocol of a dilemma dialogue."""

    negotiation: Phase
    resolution: Phase
    max_turns: int
    """Most turns of both seats together that are heard."""
    last_turns: int | None = None
    """How many of the latest turns a seat sees; None for all of them."""
    first_verdict_after: int = 2
    """The judge is asked once this many turns have been heard."""
    empty_turn_retries: int = 1
    """How often in a dialogue a seat that said nothing is asked again."""
    always_resolve: bool = False
    """Write and score a resolution without agreement too, as evaluation does."""
    prompts: PromptSet = field(default_factory=open_prompts)


@dataclass
class Said:
    seat: SeatName
    generation: Generation


@dataclass
class DilemmaEnvironment:
    """One deliberation over one scenario."""

    scenario: Scenario
    rules: DilemmaRules
    agreement_judge: AgreementJudge
    scorer: ResolutionScorer
    name: str = "dilemma"
    _said: list[Said] = field(default_factory=list)
    _empty_turns: int = 0
    _end: str | None = None
    """Why the negotiation ended; None while it goes on."""
    _missing: Missing | None = None
    _resolution: Generation | None = None

    def status(self) -> Move | None:
        if self._end is None:
            opener = self.scenario.opens
            seat = opener if len(self._said) % 2 == 0 else other_seat(opener)
            return Move(seat, self.rules.negotiation)
        if self._resolution is None and self._wants_resolution():
            return Move("policy", self.rules.resolution)
        return None

    def _wants_resolution(self) -> bool:
        if self._end == "agreement":
            return True
        return self.rules.always_resolve and self._end == "no_agreement"

    def observe(self, seat: SeatName) -> list[Message]:
        resolving = self._end is not None
        template = "resolution" if resolving else "negotiation"
        system = self.rules.prompts.render(
            f"{template}.system",
            scenario=self.scenario,
            persona=self.scenario.persona(seat),
            counterpart=self.scenario.persona(other_seat(seat)),
        )
        window = self._said if self.rules.last_turns is None else self._window()
        matter = self.rules.prompts.render(
            f"{template}.user",
            scenario=self.scenario,
            persona=self.scenario.persona(seat),
            counterpart=self.scenario.persona(other_seat(seat)),
            opens=self.scenario.opens == seat,
        )
        messages = [Message(role="system", content=system), Message(role="user", content=matter)]
        for said in window:
            own = said.seat == seat
            messages.append(
                Message(
                    role="assistant" if own else "user",
                    content=said.generation.visible.strip(),
                    generation=said.generation if own else None,
                )
            )
        if resolving:
            instruction = self.rules.prompts.render(
                "resolution.instruction",
                scenario=self.scenario,
                persona=self.scenario.persona(seat),
                counterpart=self.scenario.persona(other_seat(seat)),
                agreed=self._end == "agreement",
            )
            messages.append(Message(role="user", content=instruction))
        return messages

    def _window(self) -> list[Said]:
        assert self.rules.last_turns is not None
        return self._said[len(self._said) - min(self.rules.last_turns, len(self._said)) :]

    async def act(self, seat: SeatName, generation: Generation) -> Reaction:
        if self._end is not None:
            self._resolution = generation
            return Reaction()
        if generation.stop is StopReason.CONTEXT_FULL:
            self._end, self._missing = "context_full", Missing.CONTEXT_FULL
            return Reaction(notes=("the prompt left no room for a reply",))
        if generation.empty:
            self._empty_turns += 1
            if self._empty_turns > self.rules.empty_turn_retries:
                self._end = "empty_turn"
            return Reaction(notes=("empty turn: not shown to the other seat",))
        self._said.append(Said(seat, generation))
        verdict = await self._verdict()
        if verdict is not None and verdict.missing is not None:
            self._end, self._missing = "judge_missing", verdict.missing
        elif verdict is not None and verdict.agreed:
            self._end = "agreement"
        elif len(self._said) >= self.rules.max_turns:
            self._end = "no_agreement"
        return Reaction(verdict=verdict)

    async def _verdict(self) -> AgreementVerdict | None:
        if len(self._said) < self.rules.first_verdict_after:
            return None
        return await self.agreement_judge.agreement(self.transcript())

    def transcript(self) -> Transcript:
        """The matter and what was said, as the judge sees it."""
        return Transcript(
            title=self.scenario.dilemma.title or "",
            situation=self.scenario.dilemma.situation,
            question=self.scenario.dilemma.question or "",
            utterances=tuple(
                Utterance(
                    seat=said.seat,
                    speaker=self.scenario.persona(said.seat).name,
                    text=said.generation.visible.strip(),
                )
                for said in self._said
            ),
        )

    async def outcome(self) -> Outcome:
        """Reward: the CA score on agreement, 0 without it (in training), missing where a judge
        failed or the context was full."""
        assert self._end is not None, "outcome() before the end"
        if self._missing is not None:
            return Outcome.of(self._end, None, missing=self._missing)
        if self._resolution is None:
            return Outcome.of(self._end, 0.0)
        if self._resolution.stop is StopReason.CONTEXT_FULL:
            return Outcome.of("context_full", None, missing=Missing.CONTEXT_FULL)
        if self._resolution.empty:
            # An empty resolution is never sent to the judge: it would be paid for nothing.
            score = Score(value=0.0, reason="The resolution is empty.")
        else:
            score = await self.scorer.score(self._case())
        if score.missing is not None:
            return Outcome.of("judge_missing", None, missing=score.missing, score=score)
        reward = score.value if self._end == "agreement" else 0.0
        return Outcome.of(self._end, reward, score=score)

    def _case(self) -> ResolutionCase:
        assert self._resolution is not None
        dilemma = self.scenario.dilemma
        return ResolutionCase(
            transcript=self.transcript(),
            stakeholders=tuple(stakeholder.name for stakeholder in dilemma.stakeholders),
            constraints=dilemma.constraints,
            personas=(self.scenario.policy.name, self.scenario.partner.name),
            resolution=self._resolution.visible.strip(),
        )

    def facts(self) -> dict[str, JsonValue]:
        scenario = self.scenario
        return {
            "dilemma": scenario.dilemma.id,
            "class": scenario.dilemma.dilemma_class,
            "domain": scenario.dilemma.domain,
            "title": scenario.dilemma.title,
            "situation": scenario.dilemma.situation,
            "question": scenario.dilemma.question,
            "stakeholders": [stakeholder.name for stakeholder in scenario.dilemma.stakeholders],
            "constraints": list(scenario.dilemma.constraints),
            "pair": scenario.pair_id,
            "policy": scenario.policy.name,
            "partner": scenario.partner.name,
            "opens": scenario.opens,
        }

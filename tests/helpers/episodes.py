"""Small episodes made by hand: complete records without a model, a judge or an engine."""

from collections.abc import Sequence

from deliberation.episode import (
    AgreementVerdict,
    Episode,
    EpisodeSpec,
    Generation,
    Missing,
    Outcome,
    Sampling,
    Score,
    SeatName,
    StopReason,
    Turn,
)

FACTS = {
    "dilemma": "night-shift-rota",
    "class": "professional",
    "title": "The night shift rota",
    "situation": "A ward of nine nurses must cover every night. Two of them care for parents.",
    "question": "How should the nights be shared?",
    "pair": "rule-and-case",
    "policy": "the rule-keeper",
    "partner": "the case-by-case judge",
    "opens": "policy",
}


def generation(
    text: str = "I agree.",
    *,
    ids: Sequence[int] | None = None,
    prompt_ids: Sequence[int] = (1, 2, 3),
    visible: str | None = None,
    stop: StopReason = StopReason.END_OF_TURN,
    weights: str = "step-0",
    sampling: Sampling | None = None,
) -> Generation:
    """One id a word and one for the end of turn, each with a log-prob of -0.5."""
    if ids is None:
        ended = stop is StopReason.END_OF_TURN
        ids = tuple(range(10, 10 + len(text.split()) + ended))
    sampling = sampling or Sampling(temperature=0.7, top_p=0.95, max_tokens=48)
    return Generation(
        prompt_ids=tuple(prompt_ids),
        ids=tuple(ids),
        logprobs=(-0.5,) * len(ids),
        truncated_logprobs=(-0.25,) * len(ids) if sampling.truncates else None,
        sampling=sampling,
        stop=stop,
        weights=weights,
        text=text,
        visible=text if visible is None else visible,
    )


def turn(
    index: int,
    text: str,
    *,
    seat: SeatName | None = None,
    phase: str = "negotiation",
    verdict: AgreementVerdict | None = None,
    notes: Sequence[str] = (),
    said: Generation | None = None,
) -> Turn:
    """A turn; the policy speaks at even places and writes the resolution."""
    if seat is None:
        seat = "policy" if index % 2 == 0 or phase == "resolution" else "partner"
    return Turn(
        index=index,
        seat=seat,
        phase=phase,
        trained=seat == "policy" and phase == "negotiation",
        generation=said or generation(text),
        verdict=verdict,
        notes=tuple(notes),
    )


def verdict(agreed: bool, confidence: float | None = None, reason: str = "") -> AgreementVerdict:
    return AgreementVerdict(agreed=agreed, confidence=confidence, reason=reason)


def spec(step: int = 1, slot: int = 0, episode: int = 0, attempt: int = 0) -> EpisodeSpec:
    return EpisodeSpec(
        seed=0,
        step=step,
        slot=slot,
        attempt=attempt,
        episode=episode,
        scenario_id="night-shift-rota/rule-keeping-vs-case-by-case/policy-opens",
    )


def make_episode(
    step: int = 1,
    slot: int = 0,
    episode: int = 0,
    *,
    turns: Sequence[Turn] | None = None,
    outcome: Outcome | None = None,
    advantage: float | None = None,
    fingerprint: str = "weights-0",
    facts: dict[str, str] | None = None,
) -> Episode:
    """Any episode; by default one that agrees after two turns and earns 3."""
    where = spec(step, slot, episode)
    if turns is None:
        turns = (
            turn(0, "Two nights each, then."),
            turn(1, "Yes, with swaps.", verdict=verdict(True, 0.9, "Both accept equal nights.")),
            turn(2, "Everyone takes two nights and may swap them.", phase="resolution"),
        )
    if outcome is None:
        score = Score(value=3.0, reason="Fair to all nine.")
        outcome = Outcome.of("agreement", 3.0, score=score)
    return Episode(
        id=where.id,
        spec=where,
        environment="dilemma",
        facts=dict(FACTS if facts is None else facts),
        turns=tuple(turns),
        outcome=outcome,
        fingerprint=fingerprint,
        advantage=advantage,
    )


def agreeing(step: int = 1, slot: int = 0, episode: int = 0, reward: float = 3.0) -> Episode:
    """Agreed, and the judge scored the resolution."""
    score = Score(value=reward, reason="Fair to all nine.")
    return make_episode(step, slot, episode, outcome=Outcome.of("agreement", reward, score=score))


def disagreeing(step: int = 1, slot: int = 0, episode: int = 0) -> Episode:
    """No agreement within the limit: a reward of 0."""
    turns = (
        turn(0, "Rules are rules."),
        turn(1, "Not here.", verdict=verdict(False, 0.1, "They still differ.")),
    )
    return make_episode(step, slot, episode, turns=turns, outcome=Outcome.of("no_agreement", 0.0))


def unreadable(
    step: int = 1, slot: int = 0, episode: int = 0, missing: Missing = Missing.PARSE
) -> Episode:
    """Agreed, but the judge's score could not be read: the reward is missing."""
    outcome = Outcome.of(
        "judge_missing", None, missing=missing, score=Score(value=None, missing=missing)
    )
    return make_episode(step, slot, episode, outcome=outcome)


def outgrown(step: int = 1, slot: int = 0, episode: int = 0) -> Episode:
    """The prompt left no room for a reply: no transcript to judge, the reward is missing."""
    full = generation("", ids=(), stop=StopReason.CONTEXT_FULL)
    note = "the prompt left no room for a reply"
    return make_episode(
        step,
        slot,
        episode,
        turns=(turn(0, "", said=full, notes=(note,)),),
        outcome=Outcome.of("context_full", None, missing=Missing.CONTEXT_FULL),
    )

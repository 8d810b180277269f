"""The engine plays any environment, and the dilemma environment keeps the paper's protocol."""

import asyncio
from typing import Any

import pytest

from deliberation.dilemmas import load_dilemmas
from deliberation.engine import generation_key, play
from deliberation.environments import DilemmaEnvironment, DilemmaRules
from deliberation.episode import (
    Episode,
    EpisodeSpec,
    Message,
    Missing,
    Outcome,
    Phase,
    Sampling,
    StopReason,
    Turn,
)
from deliberation.personas import load_personas
from deliberation.scenario import Scenario
from tests.helpers.bargaining import Bargaining
from tests.helpers.scripted import ScriptedJudge, ScriptedSeat, generation

NEGOTIATION = Phase(name="negotiation", sampling=Sampling(max_tokens=32), trained=True)
RESOLUTION = Phase(name="resolution", sampling=Sampling(max_tokens=64), trained=False)
SPEC = EpisodeSpec(seed=7, step=1, slot=0, episode=0, scenario_id="s")


def scenario(opens: str = "policy") -> Scenario:
    pair = load_personas().pairs[0]
    return Scenario(
        dilemma=load_dilemmas().dilemmas[0],
        pair_id=pair.id,
        policy=pair.personas[0],
        partner=pair.personas[1],
        opens=opens,
    )


def deliberate(
    policy: list[Any],
    partner: list[Any],
    *,
    judge: ScriptedJudge | None = None,
    opens: str = "policy",
    **rules: Any,
) -> tuple[Episode, ScriptedSeat, ScriptedSeat, ScriptedJudge]:
    judge = judge or ScriptedJudge()
    settings = {"max_turns": 6, **rules}
    environment = DilemmaEnvironment(
        scenario(opens), DilemmaRules(NEGOTIATION, RESOLUTION, **settings), judge, judge
    )
    seats = ScriptedSeat(policy), ScriptedSeat(partner)
    episode = asyncio.run(play(SPEC, environment, {"policy": seats[0], "partner": seats[1]}))
    return episode, *seats, judge


def said(messages: list[Message]) -> list[tuple[str, str]]:
    """What a seat saw after its system line and the matter."""
    return [(message.role, message.content) for message in messages[2:]]


def test_another_game_runs_on_the_same_engine():
    seats = {"policy": ScriptedSeat(["take"]), "partner": ScriptedSeat(["60"])}
    episode = asyncio.run(play(SPEC, Bargaining(), seats))
    assert [(turn.seat, turn.generation.text) for turn in episode.turns] == [
        ("partner", "60"),
        ("policy", "take"),
    ]
    assert episode.outcome == Outcome(end="take", reward=20.0)
    assert episode.facts == {"limit": 80, "cost": 50}


def test_private_information_reaches_only_its_own_seat():
    seats = {"policy": ScriptedSeat(["leave"]), "partner": ScriptedSeat(["90"])}
    episode = asyncio.run(play(SPEC, Bargaining(), seats))
    assert "80" in seats["policy"].saw[0][0].content
    assert "80" not in "".join(message.content for message in seats["partner"].saw[0])
    assert episode.outcome.reward == 0.0


def test_the_talk_goes_on_until_the_judge_sees_agreement():
    episode, _, _, judge = deliberate(
        ["first", "second", "the resolution"], ["no", "deal"], judge=ScriptedJudge(score=4.0)
    )
    assert [(turn.seat, turn.phase, turn.trained) for turn in episode.turns] == [
        ("policy", "negotiation", True),
        ("partner", "negotiation", False),
        ("policy", "negotiation", True),
        ("partner", "negotiation", False),
        ("policy", "resolution", False),
    ]
    assert episode.outcome.end == "agreement"
    assert episode.outcome.reward == 4.0
    assert episode.agreed is True
    assert episode.rounds == 2
    assert [case.resolution for case in judge.cases] == ["the resolution"]


def test_the_judge_is_asked_after_every_turn_once_both_have_spoken():
    episode, _, _, judge = deliberate(["a", "b", "r"], ["c", "deal"])
    assert [len(transcript.utterances) for transcript in judge.transcripts] == [2, 3, 4]
    assert [turn.verdict is not None for turn in episode.turns] == [False, True, True, True, False]


def test_no_agreement_within_the_limit_earns_zero_and_writes_no_resolution():
    episode, _, _, judge = deliberate(["a", "b"], ["c", "d"], max_turns=4)
    assert episode.outcome == Outcome(end="no_agreement", reward=0.0)
    assert episode.resolution is None
    assert judge.cases == []
    assert episode.agreed is False


def test_evaluation_writes_a_resolution_without_agreement_too():
    episode, *_ = deliberate(["a", "r"], ["c"], max_turns=2, always_resolve=True)
    assert episode.resolution is not None
    assert episode.outcome.score is not None
    assert episode.outcome.score.value == 3.0
    assert episode.outcome.reward == 0.0


@pytest.mark.parametrize("missing", list(Missing))
def test_a_failed_agreement_verdict_leaves_the_reward_missing(missing):
    """B41, B60: never a zero."""
    episode, *_ = deliberate(["a"], ["b"], judge=ScriptedJudge(agreement_missing=missing))
    assert episode.outcome.reward is None
    assert episode.outcome.missing is missing
    assert episode.agreed is None


def test_a_failed_score_leaves_the_reward_missing():
    """B41: three different outcomes; only a clean 0 is a reward of 0."""
    clean, *_ = deliberate(["a", "r"], ["deal"], judge=ScriptedJudge(score=0.0))
    failed, *_ = deliberate(["a", "r"], ["deal"], judge=ScriptedJudge(score=Missing.PARSE))
    assert clean.outcome.reward == 0.0
    assert clean.outcome.missing is None
    assert failed.outcome.reward is None
    assert failed.outcome.missing is Missing.PARSE


def test_an_empty_resolution_is_never_sent_to_the_judge():
    """B62."""
    episode, _, _, judge = deliberate(["a", "  "], ["deal"])
    assert judge.cases == []
    assert episode.outcome.reward == 0.0


def test_an_empty_turn_is_asked_again_and_shown_to_nobody():
    """B25: an empty reply is marked and retried; no blank message reaches the partner."""
    episode, policy, partner, judge = deliberate(["", "a", "r"], ["deal"])
    assert [turn.generation.empty for turn in episode.turns] == [True, False, False, False]
    assert episode.turns[0].notes
    assert said(partner.saw[0]) == [("user", "a")]
    assert [utterance.text for utterance in judge.transcripts[0].utterances] == ["a", "deal"]
    assert policy.keys[0] != policy.keys[1]
    assert episode.rounds == 1


def test_a_turn_of_thinking_alone_is_empty():
    """B25, second input."""
    thinking = generation("<think>hm</think>", phase=NEGOTIATION, visible="")
    episode, *_ = deliberate([thinking, thinking], [])
    assert episode.outcome == Outcome(end="empty_turn", reward=0.0)


def test_thinking_reaches_neither_partner_nor_judge():
    """B29."""
    line = generation("<think>floor 70</think>I ask 90", phase=NEGOTIATION, visible="I ask 90")
    _, _, partner, judge = deliberate([line, "r"], ["deal"])
    assert "70" not in "".join(message.content for message in partner.saw[0][2:])
    assert "70" not in judge.transcripts[0].utterances[0].text


def test_a_full_context_ends_the_dialogue_with_a_missing_reward():
    """B26: nothing to blame the policy for, so no number."""
    full = generation("", phase=NEGOTIATION, stop=StopReason.CONTEXT_FULL)
    episode, *_ = deliberate(["a", full], ["b"])
    assert episode.outcome.end == "context_full"
    assert episode.outcome.reward is None
    assert episode.outcome.missing is Missing.CONTEXT_FULL


def test_a_seat_sees_only_the_last_turns():
    _, policy, partner, _ = deliberate(["p1", "p2", "r"], ["q1", "deal"], last_turns=2)
    assert said(policy.saw[0]) == []
    assert said(partner.saw[0]) == [("user", "p1")]
    assert said(policy.saw[1]) == [("assistant", "p1"), ("user", "q1")]
    assert said(partner.saw[1]) == [("assistant", "q1"), ("user", "p2")]
    assert said(policy.saw[2])[:2] == [("assistant", "p2"), ("user", "deal")]


def test_a_seat_sees_everything_where_no_window_is_set():
    _, policy, *_ = deliberate(["p1", "p2", "r"], ["q1", "deal"], last_turns=None)
    assert said(policy.saw[2])[:-1] == [
        ("assistant", "p1"),
        ("user", "q1"),
        ("assistant", "p2"),
        ("user", "deal"),
    ]


def test_own_turns_carry_their_generation_and_others_do_not():
    _, policy, *_ = deliberate(["p1", "p2", "r"], ["q1", "deal"])
    own, other = policy.saw[1][2:]
    assert own.generation is not None
    assert other.generation is None


def test_the_partner_opens_where_the_scenario_says_so():
    episode, policy, partner, _ = deliberate(["deal", "r"], ["q1"], opens="partner")
    assert [turn.seat for turn in episode.turns] == ["partner", "policy", "policy"]
    assert "open the conversation" in partner.saw[0][1].content
    assert "open the conversation" not in policy.saw[0][1].content


def test_the_opening_line_stays_the_same_so_that_prompts_extend_each_other():
    _, policy, *_ = deliberate(["p1", "p2", "r"], ["q1", "deal"])
    assert policy.saw[0][:2] == policy.saw[1][:2]


def test_every_generation_has_its_own_key():
    specs = [SPEC.model_copy(update={name: 1}) for name in ("seed", "slot", "attempt", "episode")]
    specs += [SPEC, SPEC.model_copy(update={"step": 2})]
    specs += [SPEC.model_copy(update={"scenario_id": "t"})]
    move = Bargaining().status()
    assert move is not None
    keys = {generation_key(spec, index, move) for spec in specs for index in range(3)}
    assert len(keys) == len(specs) * 3


def test_a_listener_hears_each_turn_with_its_verdict():
    heard: list[Turn] = []
    judge = ScriptedJudge()
    environment = DilemmaEnvironment(
        scenario(), DilemmaRules(NEGOTIATION, RESOLUTION, max_turns=4), judge, judge
    )
    seats = {"policy": ScriptedSeat(["a", "r"]), "partner": ScriptedSeat(["deal"])}
    episode = asyncio.run(
        play(SPEC, environment, seats, on_turn=lambda spec, turn: heard.append(turn))
    )
    assert tuple(heard) == episode.turns


def test_a_reward_from_outside_replaces_the_outcome():
    async def length(episode: Episode) -> Outcome:
        return Outcome.of("counted", float(len(episode.turns)))

    seats = {"policy": ScriptedSeat(["take"]), "partner": ScriptedSeat(["60"])}
    episode = asyncio.run(play(SPEC, Bargaining(), seats, reward=length))
    assert episode.outcome == Outcome(end="counted", reward=2.0)


def test_rewards_are_rounded_to_a_thousandth():
    assert Outcome.of("x", 2.34567).reward == 2.346


def test_an_outcome_has_a_reward_or_a_reason_and_never_both():
    with pytest.raises(ValueError, match="names why it is missing"):
        Outcome.of("x", None)
    with pytest.raises(ValueError, match="names why it is missing"):
        Outcome.of("x", 1.0, missing=Missing.PARSE)


def test_an_episode_survives_being_written_and_read():
    episode, *_ = deliberate(["월세는 90만원으로 합시다 🙂", "r"], ["deal"])
    assert Episode.model_validate_json(episode.model_dump_json()) == episode

"""What was recorded is what the model says: real dialogues of the embedded model, fp32 on the CPU.

The oracle is a plain forward pass over a whole sequence: no cache, no padding, no batch, and none
of the sampler's code.
"""

import asyncio
from collections.abc import Sequence
from functools import cache

import pytest
import torch
from transformers import PreTrainedModel

from deliberation.chat import Renderer
from deliberation.dilemmas import load_dilemmas
from deliberation.engine import play
from deliberation.environments.dilemma import DilemmaEnvironment, DilemmaRules
from deliberation.episode import (
    AgreementVerdict,
    Episode,
    EpisodeSpec,
    Phase,
    Sampling,
    Score,
)
from deliberation.judging import ResolutionCase, Transcript
from deliberation.models import load_model, open_renderer, parse_model
from deliberation.personas import load_personas
from deliberation.samplers.transformers import TransformersSampler
from deliberation.scenario import Scenario
from deliberation.schedule import draw_scenario
from deliberation.seats import ModelSeat
from deliberation.train.rows import TrainingRow, episode_rows

TOLERANCE = 1e-4
TOKENS = 8
TEMPERATURE = {"negotiation": 0.7, "resolution": 0.1}
ROUNDING = {"negotiation": TOLERANCE, "resolution": TOLERANCE * 0.7 / 0.1}
"""Of what is trained, and of the resolution, whose cold logits are seven times as large and so are
their last bits."""
HISTORIES = pytest.mark.parametrize("last_turns", [None, 2], ids=["full", "last_turns_2"])


class AgreesAfterFourTurns:
    async def agreement(self, transcript: Transcript) -> AgreementVerdict:
        return AgreementVerdict(agreed=len(transcript.utterances) >= 4)

    async def score(self, case: ResolutionCase) -> Score:
        return Score(value=3.0)


@cache
def embedded() -> tuple[PreTrainedModel, Renderer]:
    ref = parse_model("embedded")
    renderer = open_renderer(ref, thinking=False, prompt_tokens=None, chat_template=None)
    return load_model(ref, dtype="float32", device="cpu"), renderer


def rules(last_turns: int | None) -> DilemmaRules:
    def phase(name: str, top_p: float, trained: bool) -> Phase:
        sampling = Sampling(temperature=TEMPERATURE[name], top_p=top_p, max_tokens=TOKENS)
        return Phase(name=name, sampling=sampling, trained=trained)

    return DilemmaRules(
        negotiation=phase("negotiation", 0.95, True),
        resolution=phase("resolution", 1.0, False),
        max_turns=6,
        last_turns=last_turns,
    )


def specs() -> list[tuple[EpisodeSpec, Scenario]]:
    """Sixteen episodes: groups of four over the four dilemmas that are told in fewest words. The
    partner opens, so that two turns back is not yet what the policy saw before."""
    dilemmas = sorted(load_dilemmas().dilemmas, key=lambda dilemma: len(dilemma.situation))[:4]
    made = []
    for slot in range(4):
        scenario = draw_scenario(
            dilemmas, load_personas().pairs, seed=0, step=1, slot=slot, slots=4, opens="partner"
        )
        for episode in range(4):
            spec = EpisodeSpec(seed=0, step=1, slot=slot, episode=episode, scenario_id=scenario.id)
            made.append((spec, scenario))
    return made


def dialogues(
    chosen: Sequence[tuple[EpisodeSpec, Scenario]], last_turns: int | None
) -> list[Episode]:
    """Played at once by a fresh sampler."""
    model, renderer = embedded()
    seat = ModelSeat(
        renderer, TransformersSampler(model, pad_id=renderer.pad_id, weights="v", max_batch=16)
    )
    judge = AgreesAfterFourTurns()

    async def together() -> list[Episode]:
        return await asyncio.gather(
            *(
                play(
                    spec,
                    DilemmaEnvironment(scenario, rules(last_turns), judge, judge),
                    {"policy": seat, "partner": seat},
                )
                for spec, scenario in chosen
            )
        )

    return asyncio.run(together())


@cache
def among_fifteen_others(last_turns: int | None) -> list[Episode]:
    return dialogues(specs(), last_turns)


@cache
def alone(last_turns: int | None) -> Episode:
    return dialogues(specs()[:1], last_turns)[0]


@torch.no_grad()
def recomputed(ids: Sequence[int], temperature: float) -> list[float]:
    """Log-probability of each id but the first, given those before it."""
    model, _ = embedded()
    sequence = torch.tensor([list(ids)])
    logprobs = (model(sequence[:, :-1]).logits[0] / temperature).log_softmax(-1)
    return [float(logprobs[place, token]) for place, token in enumerate(ids[1:])]


def check(episode: Episode) -> None:
    for turn in episode.turns:
        recorded = turn.generation
        assert recorded.ids
        found = recomputed(recorded.prompt_ids + recorded.ids, TEMPERATURE[turn.phase])
        near = ROUNDING[turn.phase]
        assert recorded.logprobs == pytest.approx(found[-len(recorded.ids) :], abs=near)
        truncated = recorded.truncated_logprobs
        assert (truncated is not None) == (turn.phase == "negotiation")
        for whole, kept in zip(recorded.logprobs, truncated or (), strict=truncated is not None):
            assert whole <= kept + TOLERANCE <= whole - torch.tensor(0.95).log() + 2 * TOLERANCE


def check_row(row: TrainingRow) -> None:
    found = [0.0, *recomputed(row.ids, TEMPERATURE["negotiation"])]
    for mask, recorded, again in zip(row.mask, row.logprobs, found, strict=True):
        if mask:
            assert recorded == pytest.approx(again, abs=TOLERANCE)


@HISTORIES
def test_recorded_log_probabilities_are_recomputed_when_sampled_alone(
    last_turns: int | None,
) -> None:
    """B27"""
    check(alone(last_turns))


@HISTORIES
def test_recorded_log_probabilities_are_recomputed_when_sampled_among_others(
    last_turns: int | None,
) -> None:
    """B27"""
    episodes = among_fifteen_others(last_turns)
    assert len(episodes) == 16
    check(episodes[9])


@HISTORIES
def test_the_tokens_of_a_dialogue_are_the_same_alone_and_among_fifteen_others(
    last_turns: int | None,
) -> None:
    """B13"""
    one, same = alone(last_turns), among_fifteen_others(last_turns)[0]
    assert [turn.phase for turn in one.turns] == ["negotiation"] * 4 + ["resolution"]
    for turn, again in zip(one.turns, same.turns, strict=True):
        assert turn.generation.prompt_ids == again.generation.prompt_ids
        assert turn.generation.ids == again.generation.ids
        near = ROUNDING[turn.phase]
        assert turn.generation.logprobs == pytest.approx(again.generation.logprobs, abs=near)


@pytest.mark.parametrize(("last_turns", "rows"), [(None, 1), (2, 2)], ids=["full", "last_turns_2"])
def test_training_rows_recompute_to_what_was_recorded(last_turns: int | None, rows: int) -> None:
    """Of full history one row holds both turns; of the last two, each turn is its own."""
    made, splits = episode_rows(among_fifteen_others(last_turns)[3], 1.0)
    assert len(made) == rows, splits
    assert sum(row.trained_tokens for row in made) == 2 * TOKENS
    for row in made:
        check_row(row)


def test_dialogues_of_one_group_differ() -> None:
    first, second = among_fifteen_others(2)[:2]
    assert first.turns[0].generation.prompt_ids == second.turns[0].generation.prompt_ids
    assert first.turns[0].generation.ids != second.turns[0].generation.ids

"""The gradient against a plain autograd GRPO that shares no function with `deliberation.train`.

The oracle takes the definition at its word, in float64: each trained turn on its own, a forward
pass over its recorded prompt and its sampled ids, log-probabilities under softmax(logits / T), and

    loss = - sum over episodes, trained turns, sampled ids of  advantage * log-prob / N

where N counts all those tokens. It knows no rows, no masks, no padding and no micro-batches.
"""

import copy
import json
import os
import socket
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

from deliberation.episode import Episode
from deliberation.train.advantage import episode_advantages
from deliberation.train.rows import StepRows, step_rows
from tests.helpers.gradients import (
    Gradients,
    gradients,
    load_gradients,
    make_trainer,
    relative_error,
    tiny_model,
)
from tests.helpers.records import TEMPERATURE, fixed_episodes

TOLERANCE = 1e-5


def oracle(model: torch.nn.Module, episodes: list[Episode], temperature: float) -> Gradients:
    """Gradients in float64, by the definition above."""
    exact = copy.deepcopy(model).double().eval()
    groups: dict[int, list[Episode]] = defaultdict(list)
    for episode in episodes:
        if episode.outcome.reward is not None:
            groups[episode.spec.slot].append(episode)
    loss = torch.zeros((), dtype=torch.float64)
    tokens = 0
    for members in groups.values():
        rewards = [member.outcome.reward for member in members]
        mean, deviation = statistics.mean(rewards), statistics.stdev(rewards)
        for member, reward in zip(members, rewards, strict=True):
            advantage = (reward - mean) / (deviation + 1e-4) if deviation else 0.0
            for turn in member.turns:
                if turn.seat != "policy" or turn.phase != "negotiation":
                    continue
                prompt, ids = turn.generation.prompt_ids, turn.generation.ids
                logits = exact(torch.tensor([[*prompt, *ids]])).logits[0]
                for place, token in enumerate(ids):
                    scores = logits[len(prompt) + place - 1] / temperature
                    loss = loss - advantage * (scores[token] - scores.logsumexp(-1))
                    tokens += 1
    (loss / tokens).backward()
    return gradients(exact)


def worst(ours: Gradients, right: Gradients) -> float:
    assert ours.keys() == right.keys()
    assert all(float(right[name].norm()) > 1e-4 for name in right), "the oracle has a gradient of 0"
    return max(relative_error(ours[name], right[name]) for name in right)


def our_rows(episodes: list[Episode]) -> StepRows:
    return step_rows(episode_advantages(episodes).episodes)


@pytest.mark.parametrize(("tokens_per_micro_batch", "count"), [(1000, 1), (30, 4), (1, 9)])
def test_the_gradient_is_the_oracles_for_any_number_of_micro_batches(
    tokens_per_micro_batch: int, count: int
) -> None:
    """B22, B39, B40: two groups with spread, partner tokens, an episode in two rows, a missing
    reward, a group without spread, and a temperature other than 1."""
    model, episodes = tiny_model(), fixed_episodes()
    right = oracle(model, episodes, TEMPERATURE)
    seen: list[Gradients] = []
    trainer = make_trainer(
        model,
        lambda step: our_rows(episodes),
        tokens_per_micro_batch=tokens_per_micro_batch,
        on_micro_batch=lambda: seen.append(gradients(model)),
    )
    trainer.run_steps(1, 1)
    assert len(seen) == count == trainer.last_update.micro_batches
    error = worst(seen[-1], right)
    print(f"{count} micro-batches: worst relative error {error:.1e}")
    assert error <= TOLERANCE


def test_a_wrong_temperature_would_be_noticed() -> None:
    """B27: the oracle's gradient at another temperature is far off, so the test above sees it."""
    model, episodes = tiny_model(), fixed_episodes()
    right, other = oracle(model, episodes, TEMPERATURE), oracle(model, episodes, 1.0)
    assert worst(other, right) > 0.1


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes (gloo) left behind that made a step on shares of the fixed episodes."""
    folder = tmp_path_factory.mktemp("processes")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    root = Path(__file__).parents[1]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.helpers.gradient_worker", str(folder)],
            cwd=root,
            env={
                **os.environ,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": "2",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in (0, 1)
    ]
    outputs = [process.communicate(timeout=240)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], "\n".join(outputs)
    return folder


@pytest.mark.parametrize("share", ["unequal", "masked"])
def test_the_gradient_is_the_oracles_on_two_processes(share: str, two_processes: Path) -> None:
    """B37, B39: unequal rows and tokens; and one process all of whose micro-batches are masked,
    while its tokens still count in the denominator."""
    right = oracle(tiny_model(), fixed_episodes(), TEMPERATURE)
    first, second = (load_gradients(two_processes / f"{share}-{rank}.pt") for rank in (0, 1))
    assert all(torch.equal(first[name], second[name]) for name in first)
    error = worst(first, right)
    print(f"2 processes, {share}: worst relative error {error:.1e}")
    assert error <= TOLERANCE


def test_two_processes_report_the_same_step(two_processes: Path) -> None:
    """The loss and the number of tokens are those that one process has with all rows: 41 tokens
    (by hand: slot 0 has 10 and 4, slot 1 has 5, 6 and 7, slot 2 three times 3)."""
    episodes = fixed_episodes()
    alone = make_trainer(tiny_model(), lambda step: our_rows(episodes))
    alone.run_steps(1, 1)
    assert alone.last_update.trained_tokens == 10 + 4 + 5 + 6 + 7 + 9
    for share in ("unequal", "masked"):
        first, second = (figures(two_processes / f"{share}-{rank}.json") for rank in (0, 1))
        assert first == second
        assert first["trained_tokens"] == 41
        assert first["loss"] == pytest.approx(alone.last_update.loss, abs=1e-7)
        assert first["grad_norm"] == pytest.approx(alone.last_update.grad_norm, rel=1e-5)
        assert first["logprob_gap"] == pytest.approx(alone.last_update.logprob_gap, rel=1e-5)


def test_two_processes_agree_to_skip_a_step_in_which_neither_can_learn(two_processes: Path) -> None:
    """B24."""
    first, second = (figures(two_processes / f"nothing-{rank}.json") for rank in (0, 1))
    assert first == second
    assert first["skipped_update"]
    assert (first["loss"], first["grad_norm"], first["trained_tokens"]) == (0.0, 0.0, 9)


def figures(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return read


def test_logits_that_predict_other_tokens_have_a_gradient_of_exactly_zero() -> None:
    """B22: partner, template and resolution tokens. The head is an invertible matrix, so the
    gradient on the last hidden state is 0 exactly where that on the logits is."""
    model, episodes = tiny_model(), fixed_episodes()
    rows = our_rows(episodes)
    found: dict[tuple[int, ...], list[bool]] = {}

    def watch(module: torch.nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        ids = shown[-1]

        def note(gradient: torch.Tensor) -> None:
            for row, sequence in enumerate(ids.tolist()):
                found[tuple(sequence)] = [bool(at.any()) for at in gradient[row]]

        output.register_hook(note)

    shown: list[torch.Tensor] = []
    model.model.embed_tokens.register_forward_hook(lambda _, inputs, __: shown.append(inputs[0]))
    model.model.norm.register_forward_hook(watch)
    trainer = make_trainer(model, lambda step: rows, tokens_per_micro_batch=1)
    trainer.run_steps(1, 1)

    teaching = [row for row in rows.rows if row.advantage]
    assert len(found) == len(teaching) == 9
    policy_words = {*range(20, 31)}
    for row in teaching:
        predicts = found[row.ids]
        # B21: position t predicts the id at t + 1; the last position predicts nothing.
        assert predicts == [bool(trained) for trained in (*row.mask[1:], 0)]
        assert {row.ids[t + 1] for t, moved in enumerate(predicts) if moved} <= policy_words
    # The resolutions' prompts are in no row at all.
    assert not any(7 in ids for ids in found)

"""One of two processes of the gradient test: its share of the rows, one step, its gradients.

python -m tests.helpers.gradient_worker FOLDER, with RANK and so on in the environment.
"""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import torch

from deliberation.train.advantage import episode_advantages
from deliberation.train.rows import StepRows, step_rows
from tests.helpers.gradients import gradients, make_trainer, tiny_model
from tests.helpers.records import fixed_episodes

SHARES = ("unequal", "masked", "nothing")


def rows_of(rank: int, share: str) -> StepRows:
    """Groups go to the processes by slot. `unequal`: rank 1 has slot 1, rank 0 the others.
    `masked`: rank 1 has only the group in which nothing is to be learnt. `nothing`: neither has
    anything else."""
    episodes = episode_advantages(fixed_episodes()).episodes
    slots = {
        "unequal": ({0, 2}, {1}),
        "masked": ({0, 1}, {2}),
        "nothing": ({2}, set[int]()),
    }[share][rank]
    return step_rows(episode for episode in episodes if episode.spec.slot in slots)


def one_step(rank: int, share: str, folder: Path) -> None:
    model = tiny_model()
    seen = []
    trainer = make_trainer(
        model,
        lambda step: rows_of(rank, share),
        tokens_per_micro_batch=30,
        on_micro_batch=lambda: seen.append(gradients(model)),
    )
    trainer.run_steps(1, 1)
    assert trainer.accelerator.num_processes == 2
    torch.save(seen[-1] if seen else gradients(model), folder / f"{share}-{rank}.pt")
    figures = asdict(trainer.last_update)
    (folder / f"{share}-{rank}.json").write_text(json.dumps(figures), encoding="utf-8")


def main(folder: Path) -> None:
    rank = int(os.environ["RANK"])
    for share in SHARES:
        one_step(rank, share, folder)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

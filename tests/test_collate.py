"""Micro-batches as tensors: shapes, padding and masks by hand."""

import torch

from deliberation.train.collate import blank, collate
from deliberation.train.rows import TrainingRow, episode_rows
from tests.helpers.records import END, episode, generation

PAD = END


def row(ids: list[int], mask: list[int], advantage: float = 1.0) -> TrainingRow:
    logprobs = tuple(-float(at) * trained for at, trained in enumerate(mask))
    return TrainingRow(tuple(ids), tuple(mask), logprobs, advantage, "a", 0)


def test_rows_are_padded_on_the_right_and_cut_at_the_shortest_prompt() -> None:
    """No row is padded on the left, so every token keeps the position it was sampled at."""
    long = row([1, 2, 3, 20, END], [0, 0, 0, 1, 1], 0.5)
    short = row([1, 2, 21], [0, 0, 1], -0.25)
    batch = collate([long, short], PAD, "cpu")
    assert batch["prompt_ids"].tolist() == [[1, 2], [1, 2]]
    assert batch["prompt_mask"].tolist() == [[1, 1], [1, 1]]
    assert batch["completion_ids"].tolist() == [[3, 20, END], [21, PAD, PAD]]
    assert batch["completion_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert batch["tool_mask"].tolist() == [[0, 1, 1], [1, 0, 0]]
    assert batch["advantages"].tolist() == [0.5, -0.25]
    assert batch["sampled_logprobs"].tolist() == [[0.0, -3.0, -4.0], [-2.0, 0.0, 0.0]]
    assert {name: tensor.dtype for name, tensor in batch.items()} == {
        "prompt_ids": torch.int64,
        "prompt_mask": torch.int64,
        "completion_ids": torch.int64,
        "completion_mask": torch.int64,
        "tool_mask": torch.int64,
        "advantages": torch.float32,
        "sampled_logprobs": torch.float32,
    }


def test_attention_comes_from_lengths_where_the_pad_token_is_the_end_token() -> None:
    """B08, B09: `[8,2]` ours, `[9,9,2]` the partner's, `[8,8,2]` ours, then two pads (also 2):
    attention on the first 8 positions, loss mask 1 1 0 0 0 1 1 1 0 0."""
    turns = [
        ("policy", generation([7], [8, 2])),
        ("partner", generation([7], [9, 9, 2])),
        ("policy", generation([7, 8, 2, 9, 9, 2], [8, 8, 2])),
    ]
    rows, _ = episode_rows(episode(turns, 1.0), 1.0)
    longer = row([7] * 10 + [2], [0] + [1] * 10)
    batch = collate([*rows, longer], 2, "cpu")
    assert batch["prompt_ids"].tolist()[0] == [7]
    assert batch["completion_ids"].tolist()[0] == [8, 2, 9, 9, 2, 8, 8, 2, 2, 2]
    assert batch["completion_mask"].tolist()[0] == [1] * 8 + [0] * 2
    assert batch["tool_mask"].tolist()[0] == [1, 1, 0, 0, 0, 1, 1, 1, 0, 0]


def test_a_row_alone_has_no_padding() -> None:
    batch = collate([row([1, 2, 20], [0, 0, 1])], PAD, "cpu")
    assert batch["prompt_mask"].all()
    assert batch["completion_mask"].all()


def test_a_blank_micro_batch_has_the_same_tensors_and_trains_nothing() -> None:
    usual = collate([row([1, 2, 20], [0, 0, 1])], PAD, "cpu")
    empty = blank(PAD, "cpu")
    assert {name: (t.dtype, t.dim()) for name, t in empty.items()} == {
        name: (t.dtype, t.dim()) for name, t in usual.items()
    }
    assert not empty["tool_mask"].any()
    assert not empty["advantages"].any()
    assert empty["completion_mask"].all()

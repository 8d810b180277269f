"""Stretches of code in which something of TRL's or transformers' behaves otherwise.

Each changes one thing, only while it is open. What they rest on is held by
`tests/test_grpo_contract.py`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from accelerate import Accelerator
from transformers.utils import logging as transformers_logging
from trl.trainer import utils as trl_utils


@contextmanager
def no_exchange(accelerator: Accelerator) -> Iterator[None]:
    """Keep the figures of TRL's log, which is not used, within the process.

    For them `_compute_loss` gathers one number a row, which takes the same number of rows on every
    process; and it waits for the others four times in each micro-batch.
    """
    accelerator.gather = accelerator.reduce = _as_it_is
    try:
        yield
    finally:
        del accelerator.gather, accelerator.reduce


@contextmanager
def no_scores_of_prompts(device: torch.device) -> Iterator[None]:
    """Let the fused head skip the prompts on a CPU, as it does on a GPU.

    Without Triton it runs the vocabulary over every position and throws the prompts' away, so that
    compilers of fixed shapes have little to do. There is none here, and with a small model and a
    large vocabulary that is a quarter to a third of the whole step.
    """
    if device.type != "cpu":
        yield
        return
    utils: Any = trl_utils
    usual = utils._use_triton
    utils._use_triton = lambda _: True
    try:
        yield
    finally:
        utils._use_triton = usual


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """The terminal shows the run's own progress."""
    bars: Any = transformers_logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()


def _as_it_is(tensor: Any, **_: Any) -> Any:
    return tensor

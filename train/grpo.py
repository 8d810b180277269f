"""The one subclass of TRL's `GRPOTrainer`.

TRL's loss, and the optimiser, schedule, precision, distribution and state files of transformers'
`Trainer`, with two things replaced: where the rows come from (`_prepare_inputs` plays a step of
dialogues), and how they are cut into micro-batches (`training_step`). One batch of TRL's is a
whole step here. What of TRL's and transformers' private surface this rests on is held by
`tests/test_grpo_contract.py`.

The loss is that of DAPO with beta 0: the sum over the step's trained tokens, on all processes, of
-ratio * advantage, divided by their number. The ratio is 1 in value: the rows are on-policy and
the old log-probabilities are the trainer's own. Rows of a group without spread count in that
number, as in TRL; they add exactly nothing to the sum and are not computed.
"""

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from trl import GRPOTrainer

from deliberation.errors import RunError

from .arguments import cast_trained_weights, training_arguments, turn_off_dropout
from .collate import blank, collate
from .config import TrainConfig
from .rows import StepRows, TrainingRow, pack
from .scopes import no_exchange, no_progress_bars, no_scores_of_prompts

logger = logging.getLogger(__name__)

STATE_FILES = ("trainer_state.json", "optimizer.pt", "scheduler.pt")
"""Without these a folder can be loaded as a model, but no run can be resumed from it."""


@dataclass(frozen=True)
class UpdateFigures:
    """What one optimiser step did. Over all processes, where there are several."""

    loss: float
    grad_norm: float
    """Before clipping; 0.0 where the update was skipped."""
    learning_rate: float
    """The one that this update used."""
    trained_tokens: int
    """The loss is divided by this."""
    micro_batches: int
    """Forward and backward passes of each process."""
    logprob_gap: float | None
    """Largest difference between a trained token's log-probability as it was recorded and as the
    trainer computed it: rounding, or else what is trained is not what was sampled. None where the
    update was skipped."""
    skipped_update: bool
    """Nothing to learn from (no trained tokens, or no advantage but 0): weights, momentum and
    weight decay were left alone."""

    def figures(self) -> dict[str, Any]:
        """The part of a step's metrics that tells of its update."""
        return {
            "loss": self.loss,
            "grad_norm": self.grad_norm,
            "learning_rate": self.learning_rate,
            "micro_batches": self.micro_batches,
            "logprob_gap": self.logprob_gap,
            "skipped_update": self.skipped_update,
        }


PlayStep = Callable[[int], StepRows]
"""Step number, from 1, to the rows of this process's share of the step."""
StepListener = Callable[[int, UpdateFigures], None]


class DialogueGRPOTrainer(GRPOTrainer):
    """Plays a step of dialogues, makes one optimiser step on it, and so on.

    Use: `run_steps(1, steps)`; to resume, `load_state(folder)` first. An exception that one of the
    callables raises leaves `run_steps` as it is; weights and optimiser are then those of the last
    finished step, and `save_state` still saves them.

    Args:
        model: trained in place. Weights in half precision that are trained are cast to float32
            first (an update of usual size is lost in their rounding); the forward passes then run
            under autocast in the precision the weights had. All dropout is turned off for good:
            the policy that is trained has to be the one that sampled.
        tokenizer: saved with the model.
        pad_id: any id; masked wherever it pads.
        config: the `train` section.
        temperature: at which the trained turns were sampled.
        seed: of the run; dialogues never draw from the generators it seeds.
        play_step: called with the step's number, from 1; gives the rows of this process.
        on_step_end: called after each optimiser step, when it counts as done; the place to save.
        on_micro_batch: called after each forward and backward pass; may raise to stop the run.

    Raises:
        ConfigError: weights in float16, or on another GPU than the first that is visible.
    """

    def __init__(
        self,
        *,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        pad_id: int,
        config: TrainConfig,
        temperature: float,
        seed: int,
        play_step: PlayStep,
        on_step_end: StepListener | None = None,
        on_micro_batch: Callable[[], None] | None = None,
    ) -> None:
        arguments = training_arguments(config, model, temperature=temperature, seed=seed)
        cast_trained_weights(model)
        turn_off_dropout(model)
        self._play_step = play_step
        self._on_micro_batch = on_micro_batch or (lambda: None)
        self._pad_id = pad_id
        self._tokens_per_micro_batch = config.tokens_per_micro_batch
        self._resume_from: Path | None = None
        self._logprobs: Tensor | None = None
        self._learning_rate = 0.0
        self._figures: tuple[int, int, Tensor, float] | None = None
        self._warned = False
        self.last_update: UpdateFigures | None = None
        super().__init__(
            model=model,
            reward_funcs=_no_reward,
            args=arguments,
            train_dataset=Dataset.from_dict({"step": list(range(1, config.steps + 1))}),
            processing_class=tokenizer,
            callbacks=[_AfterStep(self, on_step_end)],
        )
        self.remove_callback(PrinterCallback)

    # -- running, saving, resuming ---------------------------------------------------------------

    def run_steps(self, first: int, last: int) -> None:
        """Make the steps `first` to `last`, where `last` is the `train.steps` of the config.

        Raises:
            RunError: a gradient was not finite.
        """
        done = 0 if self._resume_from is None else self.state.global_step
        if first != done + 1 or last != self.args.max_steps:
            raise ValueError(
                f"can't make the steps {first} to {last}: {done} of {self.args.max_steps} are done"
            )
        resume = None if self._resume_from is None else str(self._resume_from)
        self.train(resume_from_checkpoint=resume)

    def save_state(self, folder: Path) -> None:
        """Write all that `load_state` reads into `folder`, which exists.

        The model in the usual layout (config, safetensors, tokenizer) and, in the files that
        transformers uses, optimiser, schedule, step number and random number generators.
        """
        with no_progress_bars():
            self.save_model(str(folder), _internal_call=True)
        # A pickle of the arguments that nothing here reads.
        (folder / "training_args.bin").unlink(missing_ok=True)
        self._save_optimizer_and_scheduler(str(folder))
        self._save_scaler(str(folder))
        self._save_rng_state(str(folder))
        if self.args.should_save:
            self.state.save_to_json(str(folder / "trainer_state.json"))

    def load_state(self, folder: Path) -> None:
        """Load the weights now, and let the next `run_steps` go on where they were saved.

        Raises:
            RunError: a file that is needed to resume is missing.
        """
        missing = [name for name in STATE_FILES if not (folder / name).is_file()]
        if missing:
            raise RunError(
                f"{folder} has no {', no '.join(missing)}, so no run can be resumed from it; "
                "resume from another checkpoint, or start a new run with policy.model="
                f"path:{folder}"
            )
        self._load_from_checkpoint(str(folder))
        self.state = TrainerState.load_from_json(str(folder / "trainer_state.json"))
        self._resume_from = folder

    # -- what TRL and transformers call ----------------------------------------------------------

    def get_train_dataloader(self) -> DataLoader[Any]:
        """One item a step, without content. With a generator of its own, since a loader draws from
        the global one whenever it is iterated, which a resumed run would do once more."""
        steps: Any = self.train_dataset
        return DataLoader(steps, batch_size=None, collate_fn=_same, generator=torch.Generator())

    def _prepare_inputs(self, batch: Any) -> StepRows:  # type: ignore[override]
        return self._play_step(self.state.global_step + 1)

    def training_step(
        self, model: nn.Module, inputs: Any, num_items_in_batch: Any = None
    ) -> Tensor:
        step_rows: StepRows = self._prepare_inputs(inputs)
        self._warn_of_truncation(step_rows)
        # Rows whose advantage is 0 have a gradient of exactly 0; computing it would only take time.
        teaching = [row for row in step_rows.rows if row.advantage != 0]
        batches = pack(teaching, self._tokens_per_micro_batch)
        trained_tokens, count = self._agree(step_rows.trained_tokens, len(batches))
        assert self.optimizer is not None
        self._learning_rate = self.optimizer.param_groups[0]["lr"]
        loss, gap = torch.zeros((), device=self.args.device), 0.0
        if count:
            model.train()
            normaliser = torch.tensor(float(trained_tokens), device=self.args.device)
            for last, tensors in self._micro_batches(batches, count):
                tensors["num_items_in_batch"] = normaliser
                with self._synchronised(model, last):
                    loss += self._backward(model, tensors)
                gap = max(gap, self._logprob_gap(tensors))
                self._on_micro_batch()
        self._metrics["train"].clear()
        self._figures = (trained_tokens, count, loss, gap)
        return loss

    def _warn_of_truncation(self, step_rows: StepRows) -> None:
        if step_rows.truncation_gap is not None and not self._warned:
            self._warned = True
            logger.warning(
                "the trained turns were sampled with top-p or top-k, while log-probabilities and "
                "gradient are those of the whole distribution: a small bias, as in the paper "
                "(the sampled tokens were %.3f nats likelier on average); set "
                "sampling.negotiation.top_p=1 and top_k=0 to be without it",
                step_rows.truncation_gap,
            )

    def _agree(self, trained_tokens: int, batches: int) -> tuple[int, int]:
        """The trained tokens of all processes, and the micro-batches that each of them runs."""
        ours = torch.tensor([[trained_tokens, batches]], device=self.args.device)
        everyone: Tensor = self.accelerator.gather(ours)
        return int(everyone[:, 0].sum()), int(everyone[:, 1].max())

    def _micro_batches(
        self, batches: Sequence[Sequence[TrainingRow]], count: int
    ) -> Iterator[tuple[bool, dict[str, Tensor]]]:
        """`count` micro-batches, blank ones after our own, each with whether it is the last."""
        for index in range(count):
            if index < len(batches):
                tensors = collate(batches[index], self._pad_id, self.args.device)
            else:
                tensors = blank(self._pad_id, self.args.device)
            yield index == count - 1, tensors

    def _synchronised(self, model: nn.Module, last: bool) -> AbstractContextManager[None]:
        """Gradients of all processes are summed in the last backward pass only."""
        self.accelerator.gradient_state._set_sync_gradients(last)
        if last:
            return nullcontext()
        context: AbstractContextManager[None] = self.accelerator.no_sync(model)
        return context

    def _backward(self, model: nn.Module, tensors: dict[str, Tensor]) -> Tensor:
        with (
            self.compute_loss_context_manager(),
            no_exchange(self.accelerator),
            no_scores_of_prompts(self.args.device),
        ):
            loss: Tensor = self.compute_loss(model, tensors)
        self.accelerator.backward(loss)
        return loss.detach()

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
        """TRL's; the log-probabilities are kept, to be compared with the sampler's."""
        result = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        self._logprobs = result[0].detach()
        return result

    def _logprob_gap(self, tensors: dict[str, Tensor]) -> float:
        assert self._logprobs is not None
        gaps = (self._logprobs - tensors["sampled_logprobs"]).abs() * tensors["tool_mask"]
        self._logprobs = None
        return float(gaps.max())

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> Any:
        """Called between the last backward pass and the optimiser: the place to stop."""
        norm = super()._get_grad_norm(model, grad_norm=grad_norm)  # type: ignore[no-untyped-call]
        self._finish(float(norm))
        if not math.isfinite(float(norm)):
            raise RunError(
                f"step {self.state.global_step + 1}: the gradient is not finite (norm {norm}), so "
                "no update was made; resume with a lower train.learning_rate or with "
                "policy.dtype=float32"
            )
        return norm

    def _finish(self, grad_norm: float) -> None:
        """Bring together what the step did, once the norm of its gradient is known."""
        assert self._figures is not None
        trained_tokens, count, loss, gap = self._figures
        ours = torch.stack([loss, torch.as_tensor(gap, device=loss.device)])
        everyone: Tensor = self.accelerator.gather(ours[None])
        self.last_update = UpdateFigures(
            loss=float(everyone[:, 0].mean()),
            grad_norm=grad_norm,
            learning_rate=self._learning_rate,
            trained_tokens=trained_tokens,
            micro_batches=count,
            logprob_gap=float(everyone[:, 1].max()) if count else None,
            skipped_update=not count,
        )

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        """Tied weights are stored once: that their second name is absent is no news."""
        tied: set[str] = set(getattr(self.model, "_tied_weights_keys", None) or ())
        if set(load_result.missing_keys) - tied or load_result.unexpected_keys:
            super()._issue_warnings_after_load(load_result)

    def floating_point_ops(self, inputs: Any) -> int:
        """Not counted: the batch that transformers would count is empty here."""
        return 0

    def _send_telemetry(self) -> None:
        """A run tells nobody about itself."""


class _AfterStep(TrainerCallback):
    """Hands each finished step on."""

    def __init__(self, trainer: DialogueGRPOTrainer, listener: StepListener | None) -> None:
        self.trainer, self.listener = trainer, listener

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        assert self.trainer.last_update is not None
        if self.listener is not None:
            self.listener(state.global_step, self.trainer.last_update)


def _no_reward(**_: Any) -> list[float | None]:
    """TRL wants a reward function; the rewards are in the rows' advantages already."""
    raise AssertionError("rewards come with the episodes")


def _same(item: Any) -> Any:
    return item

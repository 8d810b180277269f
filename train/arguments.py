"""What TRL is told, and what is done to a model before it is trained."""

import tempfile

import torch
from torch import nn
from transformers import PreTrainedModel
from trl import GRPOConfig

from deliberation.errors import ConfigError

from .config import TrainConfig


def training_arguments(
    config: TrainConfig, model: PreTrainedModel, *, temperature: float, seed: int
) -> GRPOConfig:
    """TRL's arguments for the `train` section: no KL term, and nothing of its own on disk, on the
    terminal or on the network."""
    trained = {parameter.dtype for parameter in model.parameters() if parameter.requires_grad}
    if torch.float16 in trained:
        raise ConfigError("policy.dtype is float16, which can't be trained; set it to bfloat16")
    arguments = GRPOConfig(
        output_dir=tempfile.gettempdir(),  # has to exist; nothing is written there
        max_steps=config.steps,
        learning_rate=config.learning_rate,
        lr_scheduler_type=str(config.lr_scheduler),
        warmup_steps=config.warmup_steps,
        weight_decay=config.weight_decay,
        max_grad_norm=config.max_grad_norm,
        gradient_checkpointing=config.gradient_checkpointing,
        temperature=temperature,
        seed=seed,
        beta=0.0,
        loss_type="dapo",
        # One batch of TRL's is one step. It asks for two completions of a prompt at least.
        per_device_train_batch_size=2,
        num_generations=2,
        gradient_accumulation_steps=1,
        steps_per_generation=1,
        bf16=torch.bfloat16 in trained,
        use_cpu=model.device.type == "cpu",
        remove_unused_columns=False,
        shuffle_dataset=False,
        ignore_data_skip=True,
        logging_strategy="no",
        save_strategy="no",
        eval_strategy="no",
        report_to="none",
        disable_tqdm=True,
        # A loss that is not finite is reported as what it is, never as the mean of the others.
        logging_nan_inf_filter=False,
    )
    # Without a launcher, one process trains on one GPU, however many are visible.
    arguments._n_gpu = min(arguments.n_gpu, 1)
    if model.device.type == "cuda" and model.device != arguments.device:
        raise ConfigError(
            f"policy.device is {model.device}, but training runs on the first visible GPU; set "
            f"policy.device to cuda and the variable CUDA_VISIBLE_DEVICES to {model.device.index}"
        )
    return arguments


def cast_trained_weights(model: nn.Module) -> None:
    """Trained weights in float32: an update of the usual size is lost in the rounding of others."""
    for parameter in model.parameters():
        if parameter.requires_grad and parameter.dtype is torch.bfloat16:
            parameter.data = parameter.data.float()


def turn_off_dropout(model: nn.Module) -> None:
    """All of it: the policy that is trained has to be the one that sampled."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name in ("attention_dropout", "dropout", "activation_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)

"""Opens what a run needs, in the order in which it can fail cheaply: data, tokenizer, weights."""

import hashlib
from dataclasses import dataclass
from typing import cast

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from deliberation.chat import Renderer
from deliberation.config import PolicyConfig
from deliberation.engine import RewardFunction
from deliberation.environments import EnvironmentSetup, ScenarioSource
from deliberation.environments.dilemmas import DilemmaScenarios
from deliberation.errors import ModelError
from deliberation.models import load_model, open_renderer, parse_model
from deliberation.plugins import load_plugin
from deliberation.samplers.transformers import TransformersSampler
from deliberation.seats import ModelSeat

from .config import TrainingConfig


@dataclass
class Policy:
    """The model that learns, with the seat that speaks for it."""

    name: str
    """Full form of its model string."""
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    renderer: Renderer
    sampler: TransformersSampler

    @property
    def seat(self) -> ModelSeat:
        return ModelSeat(self.renderer, self.sampler)

    def fingerprint(self) -> str:
        """Hash of the weights' bytes: equal exactly where the weights are bit-identical."""
        digest = hashlib.blake2b(digest_size=16)
        for name, parameter in self.model.named_parameters():
            digest.update(name.encode())
            tensor = parameter.detach().contiguous().cpu()
            digest.update(tensor.flatten().view(torch.uint8).numpy().data)
        return digest.hexdigest()


def open_policy_renderer(policy: PolicyConfig, prompt_tokens: int | None) -> Renderer:
    """The renderer alone: needs the tokenizer, no weights."""
    return open_renderer(
        parse_model(policy.model),
        thinking=policy.thinking,
        prompt_tokens=prompt_tokens,
        chat_template=policy.chat_template,
    )


def check_models(config: TrainingConfig) -> None:
    """Everything about policy and partner that can be checked without loading weights.

    Raises:
        ModelError: a policy that can't be trained, no such model, or no chat template.
    """
    reference = parse_model(config.policy.model)
    if reference.remote:
        raise ModelError(
            f"policy.model={reference} is behind a server and can't be trained; name a model "
            "whose weights are here, such as hf:ID or path:DIR"
        )
    if reference.adapter is not None:
        raise ModelError(
            f"policy.model={reference} has an adapter, and adapters can't be trained yet; name "
            "the model without it"
        )
    open_policy_renderer(config.policy, config.protocol.prompt_tokens)
    if config.partner.model != "current":
        partner = parse_model(config.partner.model)
        if not partner.remote:
            open_renderer(
                partner,
                thinking=config.policy.thinking,
                prompt_tokens=config.protocol.prompt_tokens,
                chat_template=None,
            )


def open_policy(config: TrainingConfig) -> Policy:
    """Load the policy of a config.

    Raises:
        ModelError: no such model, or a tokenizer without chat template (before weights load).
    """
    renderer = open_policy_renderer(config.policy, config.protocol.prompt_tokens)
    reference = parse_model(config.policy.model)
    model = load_model(reference, dtype=str(config.policy.dtype), device=config.policy.device)
    return assemble_policy(config, str(reference), model, renderer)


def assemble_policy(
    config: TrainingConfig, name: str, model: PreTrainedModel, renderer: Renderer
) -> Policy:
    """A policy from parts that are loaded already."""
    sampler = TransformersSampler(
        model,
        pad_id=renderer.pad_id,
        weights="initial",
        context_tokens=config.policy.context_tokens,
        max_batch=config.sampling.max_batch,
    )
    return Policy(name, model, renderer.tokenizer, renderer, sampler)


def open_scenarios(name: str, setup: EnvironmentSetup) -> ScenarioSource:
    """The scenario source that `protocol.environment` names."""
    if name == "dilemma":
        return DilemmaScenarios(setup)
    return cast(ScenarioSource, load_plugin("deliberation.environments", name)(setup))


def open_reward(name: str) -> RewardFunction | None:
    """The reward function that `train.reward` names; None for the environment's own outcome."""
    if name == "environment":
        return None
    return cast(RewardFunction, load_plugin("deliberation.rewards", name))

"""Open what a model string names: tokenizer first, then weights, each failure one sentence.

Nothing from a model's folder is executed: no remote code, and weights only as safetensors.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from deliberation.errors import DataError, ModelError
from deliberation.locate import locate
from deliberation.modelref import GRAMMAR, ModelRef, folder_path, parse_model
from deliberation.quiet import quiet_loading
from deliberation.textfile import read_text

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from deliberation.chat import Renderer

__all__ = [
    "GRAMMAR",
    "ModelRef",
    "generation_stop_ids",
    "load_model",
    "load_tokenizer",
    "locate",
    "open_renderer",
    "parse_model",
    "pick_device",
]

log = logging.getLogger(__name__)

_LOAD_ERRORS = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    ImportError,
    RuntimeError,
    SafetensorError,
)
"""What transformers raises for a folder that it cannot load, from broken JSON to wrong shapes."""


def load_tokenizer(ref: ModelRef, *, chat_template: str | None = None) -> PreTrainedTokenizerBase:
    """The model's tokenizer, before any weights.

    Args:
        ref: the model; not a server.
        chat_template: path of a Jinja file that replaces the tokenizer's own template
            (`policy.chat_template`).

    Raises:
        ModelError: there is none, or the template file cannot be read.
    """
    from transformers import AutoTokenizer

    place = locate(ref)
    try:
        with quiet_loading():
            tokenizer = AutoTokenizer.from_pretrained(
                place.source, trust_remote_code=False, **place.options
            )
    except _LOAD_ERRORS as error:
        raise ModelError(
            f"{ref}: its tokenizer cannot be loaded ({_reason(error)}); check that the tokenizer "
            "files lie beside the weights."
        ) from error
    if chat_template is not None:
        try:
            tokenizer.chat_template = read_text(chat_template)
        except DataError as error:
            raise ModelError(f"policy.chat_template: {error}") from None
    loaded: PreTrainedTokenizerBase = tokenizer
    return loaded


def open_renderer(
    ref: ModelRef,
    *,
    thinking: bool,
    prompt_tokens: int | None,
    chat_template: str | None,
) -> Renderer:
    """The renderer of a model's prompts, with every end-of-turn id that the model knows.

    Raises `ModelError` for whatever is wrong with tokenizer or chat template, before weights load.
    """
    from deliberation.chat import Renderer

    tokenizer = load_tokenizer(ref, chat_template=chat_template)
    return Renderer(
        tokenizer,
        thinking=thinking,
        prompt_tokens=prompt_tokens,
        stop_ids=generation_stop_ids(ref),
        name=str(ref),
    )


def generation_stop_ids(ref: ModelRef) -> frozenset[int]:
    """The end-of-sequence ids of the generation config, else of the config: one or several."""
    from transformers import AutoConfig, GenerationConfig

    place = locate(ref)
    try:
        with quiet_loading():
            config = AutoConfig.from_pretrained(
                place.source, trust_remote_code=False, **place.options
            )
    except _LOAD_ERRORS as error:
        raise ModelError(
            f"{ref}: its config cannot be loaded ({_reason(error)}); name a causal language model "
            "that this version of transformers knows."
        ) from error
    eos = config.get_text_config(decoder=True).eos_token_id
    try:
        with quiet_loading():
            generation = GenerationConfig.from_pretrained(place.source, **place.options)
        eos = eos if generation.eos_token_id is None else generation.eos_token_id
    except OSError:
        log.debug("%s has no generation config; its config names the end of a turn", ref)
    if eos is None:
        return frozenset()
    return frozenset([eos] if isinstance(eos, int) else eos)


def load_model(ref: ModelRef, *, dtype: str, device: str) -> PreTrainedModel:
    """The model's weights on a device, in eval mode; an adapter is loaded beside, never merged.

    Args:
        ref: the model; not a server.
        dtype: `float32`, `bfloat16` or `float16`.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.

    Raises:
        ModelError: there are no weights as safetensors, they do not fit the config or the device,
            or the adapter does not fit the model.
    """
    import torch
    from transformers import AutoModelForCausalLM

    place = locate(ref)
    if ref.adapter is not None:
        _check_adapter(ref.adapter, ref)
    where = pick_device(device)
    try:
        with quiet_loading():
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                place.source,
                dtype=getattr(torch, dtype),
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
                **place.options,
            )
    except _LOAD_ERRORS as error:
        raise ModelError(
            f"{ref}: its weights cannot be loaded ({_reason(error)}); name a causal language "
            "model whose weights are saved as safetensors."
        ) from error
    model: PreTrainedModel
    model, found = loaded
    if found["missing_keys"]:  # transformers would go on with random numbers in their place
        raise ModelError(
            f"{ref}: its weights lack {_some(found['missing_keys'])}; name a whole model."
        )
    try:
        model.to(where)  # type: ignore[arg-type]  # in place
    except torch.OutOfMemoryError as error:
        raise ModelError(
            f"{ref}: it does not fit into the memory of {where}; choose a smaller model, a smaller "
            "dtype or another device."
        ) from error
    if ref.adapter is not None:
        _load_adapter(model, ref.adapter, ref)
    model.eval()  # type: ignore[no-untyped-call]
    return model


def pick_device(device: str) -> str:
    """`auto` is the first CUDA device, else the CPU. Raises `ModelError` where there is none."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        wanted = torch.device(device)
    except RuntimeError:
        raise ModelError(
            f'policy.device: "{device}" is no device; write `auto`, `cpu`, `cuda` or `cuda:N`.'
        ) from None
    if wanted.type == "cuda" and (wanted.index or 0) >= torch.cuda.device_count():
        raise ModelError(
            f'policy.device: "{device}" is not there ({torch.cuda.device_count()} CUDA devices '
            "are); use `auto` or `cpu`."
        )
    return device


def _check_adapter(name: str, ref: ModelRef) -> None:
    folder = folder_path(name)
    for file in ("adapter_config.json", "adapter_model.safetensors"):
        if not (folder / file).is_file():
            raise ModelError(
                f"{ref}: {folder} holds no {file}; name the folder that a PEFT adapter was saved "
                "to as safetensors."
            )


def _load_adapter(model: PreTrainedModel, name: str, ref: ModelRef) -> None:
    try:
        with quiet_loading():
            found = model.load_adapter(str(folder_path(name)), adapter_name="policy")
    except _LOAD_ERRORS as error:
        raise ModelError(
            f"{ref}: the adapter does not fit the model ({_reason(error)}); name one that was "
            "trained on it."
        ) from error
    if stray := {*found.missing_keys, *found.unexpected_keys}:
        raise ModelError(
            f"{ref}: the adapter does not fit the model (it lacks or adds {_some(stray)}); name "
            "one that was trained on it."
        )


def _some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - 1} more" if len(ordered) > 1 else ""
    return f"{ordered[0]}{more}"


def _reason(error: Exception) -> str:
    """The first line of another library's message, shortened."""
    lines = str(error).strip().splitlines()
    first = lines[0].strip().rstrip(".:") if lines else type(error).__name__
    return first if len(first) <= 160 else first[:157] + "…"

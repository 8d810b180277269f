"""Model strings: the grammar, what they resolve to, and one clear sentence for each failure."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from huggingface_hub import errors as hub_errors
from hypothesis import given
from hypothesis import strategies as st
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file

from deliberation import hub
from deliberation import locate as places
from deliberation.errors import ModelError, RunError, UserError
from deliberation.modelref import ModelRef
from deliberation.models import (
    generation_stop_ids,
    load_model,
    load_tokenizer,
    locate,
    open_renderer,
    parse_model,
    pick_device,
)
from tests.helpers.tiny import save_tiny, tiny_model
from tests.helpers.tokenizers import byte_tokenizer


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("embedded", ModelRef("embedded")),
        ("hf:Qwen/Qwen3-14B", ModelRef("hf", "Qwen/Qwen3-14B")),
        ("hf:gpt2", ModelRef("hf", "gpt2")),
        ("hf:Qwen/Qwen3-14B@v1.0", ModelRef("hf", "Qwen/Qwen3-14B", revision="v1.0")),
        ("hf:a/b@refs/pr/3", ModelRef("hf", "a/b", revision="refs/pr/3")),
        ("path:models/a b", ModelRef("path", "models/a b")),
        ("path:odd@name", ModelRef("path", "odd@name")),
        ("run:runs/a", ModelRef("run", "runs/a", checkpoint="last")),
        ("run:runs/a@best", ModelRef("run", "runs/a", checkpoint="best")),
        ("run:runs/a@000120", ModelRef("run", "runs/a", checkpoint="120")),
        ("run:me@host/a", ModelRef("run", "me@host/a", checkpoint="last")),
        ("vllm:Qwen/Qwen3-14B", ModelRef("vllm", "Qwen/Qwen3-14B")),
        (
            "vllm:http://localhost:8000/v1/#Qwen/Qwen3-14B",
            ModelRef("vllm", "Qwen/Qwen3-14B", url="http://localhost:8000/v1"),
        ),
        ("openai:gpt-4o-mini", ModelRef("openai", "gpt-4o-mini")),
        (
            "openai:org/m:free@https://example.com/v1",
            ModelRef("openai", "org/m:free", url="https://example.com/v1"),
        ),
        ("embedded+path:ad", ModelRef("embedded", adapter="ad")),
        ("hf:a/b@c+path:/x/y", ModelRef("hf", "a/b", revision="c", adapter="/x/y")),
        ("  embedded ", ModelRef("embedded")),
    ],
)
def test_each_form_is_read_and_its_full_form_reads_the_same(text: str, ref: ModelRef) -> None:
    assert parse_model(text) == ref
    assert parse_model(str(ref)) == ref


def test_an_unprefixed_hub_id_and_an_existing_folder_are_understood(tmp_path: Path) -> None:
    assert str(parse_model("Qwen/Qwen3-14B")) == "hf:Qwen/Qwen3-14B"
    assert str(parse_model("Qwen/Qwen3-14B@main+path:ad")) == "hf:Qwen/Qwen3-14B@main+path:ad"
    assert str(parse_model(str(tmp_path))) == f"path:{tmp_path}"
    (tmp_path / "checkpoints").mkdir()
    assert str(parse_model(str(tmp_path))) == f"run:{tmp_path}@last"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no model is named"),
        ("embeded", "did you mean `embedded`?"),
        ("opnai:gpt", "no scheme `opnai:`; did you mean `openai`?"),
        ("zzz:x", "no scheme `zzz:`"),
        ("embedded:x", "stands alone"),
        ("hf:", "organisation/name"),
        ("hf:a/b/c", "organisation/name"),
        ("hf:a/b@", "branch, tag or commit"),
        ("path:", "wants a folder"),
        ("run:", "wants a run folder"),
        ("run:a@newest", "`best`, `last` or a step number"),
        ("vllm:http://host", "vllm:URL#NAME"),
        ("vllm:http://#x", "vllm:URL#NAME"),
        ("vllm:a b", "hub id"),
        ("openai:", "name of a model"),
        ("openai:x@localhost", "endpoint's URL"),
        ("~nobody-at-all/x", "there is no folder"),
        ("/" + "x" * 300, "there is no folder"),
        ("./nowhere", "there is no folder ./nowhere"),
        ("+path:x", "a model stands before"),
        ("embedded+path:", "a folder after it"),
        ("openai:x+path:y", "a server holds its adapters itself"),
        ("vllm:http://h/v1#x+path:y", "a server holds its adapters itself"),
    ],
)
def test_what_is_wrong_is_said_with_the_grammar(text: str, words: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse_model(text)
    assert words in str(caught.value)
    assert "`run:DIR[@best|@last|@STEP]`" in str(caught.value)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused_in_one_sentence(text: str) -> None:
    try:
        ref = parse_model(text)
    except ModelError:
        return
    assert parse_model(str(ref)) == ref


def test_only_servers_are_remote() -> None:
    remote = ["openai:x", "openai:x@http://h", "vllm:http://h#x"]
    assert all(parse_model(text).remote for text in remote)
    assert not any(parse_model(text).remote for text in ["embedded", "hf:x", "vllm:x/y", "run:a"])


# --- opening -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("tiny"))


def ref(path: Path | str) -> ModelRef:
    return ModelRef("path", str(path))


def sentence(error: UserError) -> str:
    text = str(error)
    assert "\n" not in text
    assert "Traceback" not in text
    return text


def test_a_saved_model_opens_as_it_was_saved(folder: Path) -> None:
    model = load_model(ref(folder), dtype="float32", device="cpu")
    assert not model.training
    assert all(
        torch.equal(value, tiny_model().state_dict()[name])
        for name, value in model.state_dict().items()
    )
    assert load_model(ref(folder), dtype="bfloat16", device="auto").dtype is torch.bfloat16


def test_the_renderer_knows_every_end_id_of_the_generation_config(tmp_path: Path) -> None:
    """B16: the tokenizer names 257 alone, the generation config 258 too."""
    save_tiny(tmp_path)
    settings = json.loads((tmp_path / "generation_config.json").read_text())
    (tmp_path / "generation_config.json").write_text(
        json.dumps(settings | {"eos_token_id": [257, 258]})
    )
    assert generation_stop_ids(ref(tmp_path)) == {257, 258}
    renderer = open_renderer(ref(tmp_path), thinking=False, prompt_tokens=None, chat_template=None)
    assert renderer.stop_ids == {257, 258}
    (tmp_path / "generation_config.json").unlink()
    assert generation_stop_ids(ref(tmp_path)) == {257}


def test_a_missing_chat_template_is_an_error_before_weights_load(tmp_path: Path) -> None:
    """B12: the folder's weights are broken, and nobody gets to notice."""
    save_tiny(tmp_path, byte_tokenizer(None))
    (tmp_path / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(ModelError, match=r"policy\.chat_template") as caught:
        open_renderer(ref(tmp_path), thinking=False, prompt_tokens=None, chat_template=None)
    assert str(tmp_path) in sentence(caught.value)


def test_a_chat_template_from_a_file_replaces_the_tokenizer_s_own(
    folder: Path, tmp_path: Path
) -> None:
    template = tmp_path / "t.jinja"
    template.write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    loaded = load_tokenizer(ref(folder), chat_template=str(template))
    assert loaded.chat_template == template.read_text()
    with pytest.raises(ModelError, match=r"policy\.chat_template: .*no such file"):
        load_tokenizer(ref(folder), chat_template=str(tmp_path / "none.jinja"))


def test_an_absent_folder_and_one_without_a_model_are_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no folder"):
        locate(ref(tmp_path / "none"))
    with pytest.raises(ModelError, match=r"holds no config\.json"):
        locate(ref(tmp_path))


@pytest.mark.parametrize(
    ("file", "content", "opens"),
    [
        ("config.json", "{broken", "config"),
        ("config.json", '{"model_type": "unheard-of"}', "config"),
        ("model.safetensors", "broken", "weights"),
        ("model.safetensors", None, "weights"),
        ("tokenizer.json", "{broken", "tokenizer"),
    ],
)
def test_damaged_files_are_one_sentence(
    tmp_path: Path, file: str, content: str | None, opens: str
) -> None:
    save_tiny(tmp_path)
    if content is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_text(content)
    opening: dict[str, Callable[[], object]] = {
        "weights": lambda: load_model(ref(tmp_path), dtype="float32", device="cpu"),
        "tokenizer": lambda: load_tokenizer(ref(tmp_path)),
        "config": lambda: generation_stop_ids(ref(tmp_path)),
    }
    with pytest.raises(ModelError, match="cannot be loaded") as caught:
        opening[opens]()
    assert f"path:{tmp_path}" in sentence(caught.value)


def test_weights_that_lack_a_part_are_not_filled_up_with_random_numbers(tmp_path: Path) -> None:
    save_tiny(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"lack model\.layers\.1\.mlp\.up_proj\.weight;"):
        load_model(ref(tmp_path), dtype="float32", device="cpu")


def test_pickled_weights_are_not_loaded(tmp_path: Path) -> None:
    save_tiny(tmp_path)
    torch.save(load_file(tmp_path / "model.safetensors"), tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="safetensors"):
        load_model(ref(tmp_path), dtype="float32", device="cpu")


def test_devices() -> None:
    assert pick_device("cpu") == "cpu"
    assert pick_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(ModelError, match=r'policy\.device: "gpu!" is no device'):
        pick_device("gpu!")
    with pytest.raises(ModelError, match=r'"cuda:99" is not there'):
        pick_device("cuda:99")


def test_models_that_cannot_be_loaded_here_say_what_to_write() -> None:
    with pytest.raises(ModelError, match="vLLM in this process is not supported") as caught:
        locate(parse_model("vllm:Qwen/Qwen3-14B"))
    assert "`vllm:URL#Qwen/Qwen3-14B`" in sentence(caught.value)
    assert "`hf:Qwen/Qwen3-14B`" in sentence(caught.value)
    with pytest.raises(ModelError, match="server's weights cannot be loaded"):
        locate(parse_model("openai:gpt-4o-mini"))


# --- adapters ------------------------------------------------------------------------------------


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    adapted = get_peft_model(tiny_model(), LoraConfig(r=2, target_modules=["q_proj"]))
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.5)
    adapted.save_pretrained(str(tmp_path / "adapter"))
    return tmp_path / "adapter"


def test_an_adapter_is_loaded_beside_and_the_base_stays_as_it_was(
    folder: Path, adapter: Path
) -> None:
    base = load_model(ref(folder), dtype="float32", device="cpu")
    with_it = load_model(
        ModelRef("path", str(folder), adapter=str(adapter)), dtype="float32", device="cpu"
    )
    ids = torch.arange(10)[None]
    with torch.no_grad():
        assert not torch.allclose(base(ids).logits, with_it(ids).logits, atol=1e-4)
        with_it.disable_adapters()
        assert torch.equal(base(ids).logits, with_it(ids).logits)
    kept = with_it.state_dict()["model.layers.0.self_attn.q_proj.base_layer.weight"]
    assert torch.equal(kept, base.state_dict()["model.layers.0.self_attn.q_proj.weight"])


def test_an_adapter_that_is_absent_pickled_or_of_another_model_is_told(
    folder: Path, adapter: Path, tmp_path: Path
) -> None:
    def opened(base: Path, beside: Path) -> None:
        load_model(ModelRef("path", str(base), adapter=str(beside)), dtype="float32", device="cpu")

    with pytest.raises(ModelError, match=r"holds no adapter_config\.json"):
        opened(folder, tmp_path / "none")
    other = save_tiny(tmp_path / "other", hidden_size=32)
    with pytest.raises(ModelError, match="adapter does not fit"):
        opened(other, adapter)
    weights = adapter / "adapter_model.safetensors"
    tensors = load_file(weights)
    save_file({name: tensors[name] for name in sorted(tensors)[1:]}, weights)
    with pytest.raises(ModelError, match="adapter does not fit"):
        opened(folder, adapter)
    torch.save(load_file(weights), adapter / "adapter_model.bin")
    weights.unlink()
    with pytest.raises(ModelError, match=r"holds no adapter_model\.safetensors"):
        opened(folder, adapter)


# --- runs ----------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Checkpoints of steps 2, 4 and 6; the rewards of 2, 3 and 4 are 1.0, 9.0 and 2.0."""
    (tmp_path / "config.yaml").write_text("{}\n")
    rewards: list[tuple[int, float | None]] = [(2, 1.0), (3, 9.0), (4, 2.0), (6, None)]
    (tmp_path / "metrics.jsonl").write_text(
        "".join(json.dumps({"step": s, "reward_mean": r}) + "\n" for s, r in rewards)
    )
    for step in (2, 4, 6):
        checkpoint = tmp_path / "checkpoints" / f"step-{step:06d}"
        checkpoint.mkdir(parents=True)
        (checkpoint / "config.json").write_text("{}")
        (checkpoint / "complete.json").write_text('{"files": {"config.json": 2}}')
    return tmp_path


@pytest.mark.parametrize(
    ("suffix", "step"), [("", 6), ("@last", 6), ("@best", 4), ("@2", 2), ("@000004", 4)]
)
def test_a_run_resolves_to_a_checkpoint(run: Path, suffix: str, step: int) -> None:
    place = locate(parse_model(f"run:{run}{suffix}"))
    assert place.source == str(run / "checkpoints" / f"step-{step:06d}")


def test_a_checkpoint_that_is_not_whole_is_not_the_last(run: Path) -> None:
    (run / "checkpoints" / "step-000006" / "complete.json").unlink()
    assert locate(parse_model(f"run:{run}")).source.endswith("step-000004")


def test_what_a_run_lacks_is_told(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no checkpoint of that step; there are 2, 4, 6"):
        locate(parse_model(f"run:{run}@3"))
    (run / "metrics.jsonl").unlink()
    with pytest.raises(ModelError, match=r"none of its checkpoints .* reward_mean"):
        locate(parse_model(f"run:{run}@best"))
    for step in (2, 4, 6):
        (run / "checkpoints" / f"step-{step:06d}" / "complete.json").unlink()
    with pytest.raises(ModelError, match="no whole checkpoint yet"):
        locate(parse_model(f"run:{run}"))
    with pytest.raises(RunError, match="not a run folder"):
        locate(parse_model(f"run:{tmp_path / 'none'}"))


# --- the hub -------------------------------------------------------------------------------------


def answer(status: int) -> Any:
    return SimpleNamespace(status_code=status, headers={}, request=None, text="")


def hub_error(kind: type[Exception], status: int) -> Exception:
    error = kind.__new__(kind)
    Exception.__init__(error, "long text of the hub\nwith lines")
    error.response = answer(status)  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (hub_error(hub_errors.GatedRepoError, 403), "accept its terms"),
        (hub_error(hub_errors.RepositoryNotFoundError, 404), "knows no such model"),
        (hub_error(hub_errors.RevisionNotFoundError, 404), "no such revision"),
        (hub_error(hub_errors.RemoteEntryNotFoundError, 404), "no config.json"),
        (hub_error(hub_errors.HfHubHTTPError, 503), "answered 503"),
        (hub_errors.LocalEntryNotFoundError("no"), "cannot be reached and there is no local copy"),
        (hub_errors.HFValidationError("no"), "no valid hub id"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_the_hub_s_answers_are_sentences(
    monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def download(*args: Any, **options: Any) -> str:
        raise error

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub, "_reachable", lambda endpoint: False)
    with pytest.raises(ModelError, match=words) as caught:
        hub.check_hub("a/b", "main")
    assert "long text" not in sentence(caught.value)


def test_offline_without_a_copy_says_so_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    places._hub_is_local.cache_clear()
    with pytest.raises(ModelError, match="HF_HUB_OFFLINE is set and there is no local copy"):
        load_tokenizer(parse_model("hf:nobody/nothing"))


def test_an_unreachable_hub_is_noticed_without_its_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The local copy is used then, and the hub is not asked again for each file."""
    asked: list[bool] = []

    def download(*args: Any, local_files_only: bool, **options: Any) -> str:
        asked.append(local_files_only)
        return "config.json"

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    assert hub.check_hub("a/b", None) is True
    assert asked == [True]

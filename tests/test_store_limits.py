"""A full disk is named and nothing is lost; a secret never gets into a run folder."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from deliberation import disk
from deliberation.errors import RunError
from deliberation.runfiles import final_path, partial_path
from deliberation.store import RunStore, redact
from tests.helpers.episodes import agreeing

CONFIG = "run:\n  seed: 0\n"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "runs" / "demo"


@pytest.fixture
def store(folder):
    with RunStore.create(folder, CONFIG) as store:
        yield store


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KiB. Where mounting is not allowed, the tests that need it skip."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small tmpfs needs root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_named_and_what_was_recorded_stays_whole(small_disk):
    """B100: message with bytes needed and folder; the older files are intact, no temporary one."""
    folder = small_disk / "demo"
    with RunStore.create(folder, CONFIG) as store:

        def fill():
            for episode in range(100):
                store.append(agreeing(episode=episode))

        with pytest.raises(RunError, match=r"disk full: \d+ bytes are needed in .*/episodes \(\d+"):
            fill()
        recorded = [episode.spec.episode for episode in store.recorded(1)]
        assert recorded == list(range(len(recorded)))
        assert 3 < len(recorded) < 100
        assert partial_path(folder, 1).read_bytes().endswith(b"\n")
        with pytest.raises(RunError, match=r"disk full: \d+ bytes.*then continue with `--resume`"):
            store.finish_step(1, store.recorded(1))
        files = {path.name for path in (folder / "episodes").iterdir()}
        assert files == {"README.md", "step-000001.partial.jsonl"}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_write_that_fails_half_way_leaves_the_file_as_it_was(store, folder, monkeypatch, code):
    """B100, with a quota too, where no small file system can be mounted."""
    store.append(agreeing(episode=0))
    real = os.write

    def half(descriptor, data):
        real(descriptor, bytes(data)[:40])
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(disk.os, "write", half)
    with pytest.raises(RunError, match="disk full"):
        store.append(agreeing(episode=1))
    with pytest.raises(RunError, match="disk full"):
        store.finish_step(1, [agreeing(episode=0)])
    monkeypatch.undo()
    assert [e.spec.episode for e in store.recorded(1)] == [0]
    assert not final_path(folder, 1).exists()
    assert not list((folder / "episodes").glob(".*"))


def test_short_writes_are_continued(store, monkeypatch):
    real = os.write
    monkeypatch.setattr(disk.os, "write", lambda fd, data: real(fd, bytes(data)[:7]))
    store.append(agreeing())
    assert store.recorded(1) == [agreeing()]


def test_a_library_that_reports_a_full_disk_in_words_is_understood(tmp_path):
    with pytest.raises(RunError, match="disk full: 12 bytes"), disk.disk_errors(tmp_path, 12):
        raise RuntimeError("I/O error: No space left on device (os error 28)")
    with pytest.raises(ValueError, match="else"), disk.disk_errors(tmp_path, 12):
        raise ValueError("something else")


def test_a_file_size_limit_is_one_clear_sentence(folder):
    script = (
        "import resource, signal, sys\n"
        "from tests.helpers.episodes import agreeing\n"
        "from deliberation.errors import RunError\n"
        "from deliberation.store import RunStore\n"
        "store = RunStore.create(sys.argv[1], 'a: 1\\n')\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\n"
        "try:\n"
        "    for episode in range(9): store.append(agreeing(episode=episode))\n"
        "except RunError as error: print(error)\n"
        "print(len(store.recorded(1)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    message, recorded = done.stdout.splitlines()
    assert "cannot be written (File too large)" in message
    assert int(recorded) >= 1


# --- secrets ---


def test_no_secret_gets_into_the_config_of_a_run(folder):
    config = {
        "judge": {"model": "openai:gpt-4o-mini", "api_key": "abc", "headers": ["Bearer xyz123"]},
        "policy": {"model": "vllm:http://me:pass@host:8000#m", "hub_token": "hf_abcdefgh1234"},
        "train": {"tokens_per_micro_batch": 8192, "note": "key sk-proj-abcdefgh12345678 in text"},
        "api_key_env": "OPENAI_API_KEY",
        "dbPassword": 1234,
    }
    RunStore.create(folder, yaml.safe_dump(config)).close()
    written = yaml.safe_load((folder / "config.yaml").read_text())
    assert written == {
        "judge": {"model": "openai:gpt-4o-mini", "api_key": "***", "headers": ["Bearer ***"]},
        "policy": {"model": "vllm:http://***@host:8000#m", "hub_token": "***"},
        "train": {"tokens_per_micro_batch": 8192, "note": "key *** in text"},
        "api_key_env": "OPENAI_API_KEY",
        "dbPassword": "***",
    }


def test_a_config_without_secrets_is_left_alone():
    config = {
        "sampling": {"max_tokens": 48, "stop_token_ids": [1], "top_k": 0},
        "protocol": {"prompt_tokens": None, "key": "", "token": None},
        "data": {"dilemmas": "task-skeleton-v1.jsonl"},
        "policy": {"model": "hf:org/risk-model-base", "url": "http://host:8000/v1"},
        "rubric_hash": "3f" * 32,
    }
    assert redact(config) == config


def test_a_config_that_is_no_mapping_is_refused(folder):
    with pytest.raises(RunError, match="must be a mapping"):
        RunStore.create(folder, "- a\n")

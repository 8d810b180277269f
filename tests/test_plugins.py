"""Parts from outside are found by entry point or `module:Name`; what fails says why."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deliberation.errors import ConfigError
from deliberation.plugins import load_plugin, plugin_names

GROUP = "deliberation.judges"


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with an importable module and an installed distribution that names it."""
    (tmp_path / "outside_judges.py").write_text(
        "class Kind:\n    class Inner:\n        pass\n\nlimit = 3\n", encoding="utf-8"
    )
    (tmp_path / "broken_judges.py").write_text("raise RuntimeError('no licence')\n")
    info = tmp_path / "outside_judges-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-judges\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{GROUP}]\nkind = outside_judges:Kind\nbroken = broken_judges:Kind\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("outside_judges", "broken_judges"):
        sys.modules.pop(name, None)


def refusal(name: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_plugin(GROUP, name)
    return str(caught.value)


def test_an_entry_point_is_found_by_its_name(outside: Path) -> None:
    assert load_plugin(GROUP, "kind").__name__ == "Kind"
    assert {"kind", "broken"} <= set(plugin_names(GROUP))


def test_a_module_and_name_are_found_without_an_entry_point(outside: Path) -> None:
    assert load_plugin(GROUP, "outside_judges:limit") == 3
    assert load_plugin(GROUP, "outside_judges:Kind.Inner").__name__ == "Inner"


def test_a_module_in_the_working_directory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "lying_here.py").write_text("value = 5\n")
    monkeypatch.chdir(tmp_path)
    assert load_plugin(GROUP, "lying_here:value") == 5


def test_a_misspelt_entry_point_names_the_nearest(outside: Path) -> None:
    sentence = refusal("kindd")
    assert 'did you mean "kind"?' in sentence
    assert GROUP in sentence


def test_an_unlike_name_lists_what_is_installed(outside: Path) -> None:
    assert "broken, kind" in refusal("zzzzzz")


def test_a_missing_module_says_so() -> None:
    sentence = refusal("no_such_module_anywhere:Kind")
    assert "ModuleNotFoundError: No module named 'no_such_module_anywhere'" in sentence


def test_a_module_that_fails_says_what_it_said(outside: Path) -> None:
    assert "RuntimeError: no licence" in refusal("broken")


def test_a_missing_name_in_a_module_names_the_nearest(outside: Path) -> None:
    assert 'did you mean "Kind"?' in refusal("outside_judges:Kin")
    assert "check the name" in refusal("outside_judges:zzzzzz")


@pytest.mark.parametrize("name", ["outside_judges:", ":Kind"])
def test_half_a_name_is_refused(name: str) -> None:
    assert "module:Name" in refusal(name)

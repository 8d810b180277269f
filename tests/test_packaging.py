"""The wheel holds everything that is needed to run, under one name."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
FOLDERS: dict[str, str] = SETUPTOOLS["package-dir"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel, built from a copy of the tree, was unpacked."""
    copy = tmp_path_factory.mktemp("tree")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    for folder in set(FOLDERS.values()):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    wheels = tmp_path_factory.mktemp("wheels")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(copy)],
        check=True,
    )
    (wheel,) = wheels.iterdir()
    target = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def test_nothing_lands_at_the_top_but_the_package(site: Path) -> None:
    names = {entry.name for entry in site.iterdir() if not entry.name.endswith(".dist-info")}
    assert names == {"deliberation"}


def test_every_file_of_every_package_travels(site: Path) -> None:
    for package, folder in FOLDERS.items():
        installed = site.joinpath(*package.split("."))
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                assert (installed / file.relative_to(ROOT / folder)).is_file(), file


@pytest.mark.parametrize(
    "name",
    [
        "py.typed",
        "configs/quickstart.yaml",
        "dilemmas/data/train.jsonl",
        "personas/data/train.yaml",
        "prompts/ja/negotiation.system.j2",
    ],
)
def test_what_is_not_code_travels_too(site: Path, name: str) -> None:
    assert (site / "deliberation" / name).is_file()


def test_every_package_of_the_tree_is_listed() -> None:
    listed = set(SETUPTOOLS["packages"])
    for package, folder in FOLDERS.items():
        for marker in (ROOT / folder).rglob("__init__.py"):
            parts = marker.parent.relative_to(ROOT / folder).parts
            assert ".".join((package, *parts)) in listed


def test_the_wheel_runs_in_an_empty_directory(site: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    code = "import deliberation; print(deliberation.__file__)"
    where = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert where.stdout.startswith(str(site))
    for arguments in (["configs"], ["doctor"]):
        done = subprocess.run(
            [sys.executable, "-m", "deliberation.cli.main", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode in (0, 1), done.stderr
        assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_constraints_pin_every_direct_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {
        _name(requirement)
        for extra in ("", "dev", "eval", "qlora")
        for requirement in (
            project["optional-dependencies"][extra] if extra else project["dependencies"]
        )
    }
    pinned = {
        _name(line): line.partition("==")[2]
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    }
    assert wanted <= set(pinned)
    assert all(version and "+" not in version for version in pinned.values())


def _name(requirement: str) -> str:
    name = requirement
    for mark in "[<>=!~ ;":
        name = name.partition(mark)[0]
    return name.lower().replace("_", "-")

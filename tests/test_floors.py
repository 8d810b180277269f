"""The five floors: imports run downward only, and nothing light drags in something heavy."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

HOMES = {
    "deliberation": "deliberation",
    "configs": "deliberation.configs",
    "dilemmas": "deliberation.dilemmas",
    "eval": "deliberation.eval",
    "judge": "deliberation.judge",
    "personas": "deliberation.personas",
    "train": "deliberation.train",
}

GROUND = (
    "deliberation.errors",
    "deliberation.textfile",
    "deliberation.keys",
    "deliberation.nearness",
    "deliberation.provenance",
)
FLOORS: tuple[tuple[tuple[str, ...], int], ...] = (
    (GROUND, 0),
    (("deliberation.dilemmas", "deliberation.personas", "deliberation.configs"), 1),
    (("deliberation.judge",), 3),
    (("deliberation.train", "deliberation.eval"), 4),
    (("deliberation.cli", "deliberation.api"), 5),
)
"""The longest prefix that fits decides; everything else in `deliberation` is floor 2."""

HUB = "deliberation"
"""The package itself re-exports the public API of all floors, late; only floor 5 imports it."""

VOCABULARY = (
    "deliberation.episode",
    "deliberation.engine",
    "deliberation.scenario",
    "deliberation.judging",
    "deliberation.config",
    "deliberation.samplers.base",
    "deliberation.chat",
    "deliberation.settings",
    "deliberation.plugins",
    "deliberation.train.config",
    "deliberation.judge.config",
    "deliberation.cli.main",
)


def modules() -> dict[str, Path]:
    """Every module of the package by its full name."""
    found = {}
    for folder, package in HOMES.items():
        for file in sorted((ROOT / folder).rglob("*.py")):
            parts = file.relative_to(ROOT / folder).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found[".".join((package, *parts))] = file
    return found


MODULES = modules()


def floor(module: str) -> int:
    for prefixes, number in FLOORS:
        if any(module == prefix or module.startswith(f"{prefix}.") for prefix in prefixes):
            return number
    return 2


def imported(module: str, file: Path) -> set[str]:
    """Full names of everything that the module imports, now or late, except for types only."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    names: set[str] = set()
    for node in _outside_type_checking(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1]
            start = ".".join(base) if node.level else ""
            source = ".".join(part for part in (start, node.module) if part)
            # `from package import module` imports the module.
            names |= {
                f"{source}.{alias.name}" if f"{source}.{alias.name}" in MODULES else source
                for alias in node.names
            }
    return names


def _outside_type_checking(node: ast.AST) -> list[ast.AST]:
    found = [node]
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        found += _outside_type_checking(child)
    return found


def test_every_module_is_seen() -> None:
    assert len(MODULES) > 30
    assert {floor(module) for module in MODULES} == {0, 1, 2, 3, 4, 5}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_arrows_run_downward_only(module: str) -> None:
    if module == HUB:
        return
    for name in imported(module, MODULES[module]):
        if not name.startswith("deliberation"):
            continue
        if name == HUB:
            assert floor(module) == 5, f"{module} imports the public API from above"
            continue
        assert floor(name) <= floor(module), f"{module} imports {name} from a floor above"
        pair = {module.split(".")[1], name.split(".")[1]}
        assert pair != {"train", "eval"}, "train and eval never import each other"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_nothing_is_imported_under_its_bare_name(module: str) -> None:
    bare = set(HOMES) - {"deliberation"}
    for name in imported(module, MODULES[module]):
        assert name.partition(".")[0] not in bare, f"{module} imports {name}"


def test_tests_and_scripts_use_full_names_too() -> None:
    bare = set(HOMES) - {"deliberation"}
    for folder in ("tests", "scripts", "examples", "benchmarks"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for name in imported(file.stem, file):
                assert name.partition(".")[0] not in bare, f"{file} imports {name}"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_only_training_knows_trl(module: str) -> None:
    if module.startswith("deliberation.train"):
        return
    names = {name.partition(".")[0] for name in imported(module, MODULES[module])}
    assert "trl" not in names


def test_the_vocabulary_imports_no_torch_and_never_a_bare_name() -> None:
    """In a process of its own, so that nothing that another test imported is seen."""
    heavy = "{'torch', 'trl', 'transformers', 'datasets', 'matplotlib'}"
    bare = set(HOMES) - {"deliberation"}
    code = (
        "import importlib, sys\n"
        f"for name in {VOCABULARY!r}:\n"
        "    importlib.import_module(name)\n"
        f"    found = {heavy} & set(sys.modules)\n"
        "    assert not found, f'{name} imports {found}'\n"
        f"assert not {bare!r} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", sorted(set(HOMES) - {"deliberation"}))
def test_importing_a_bare_name_fails_any_test(name: str) -> None:
    """`conftest.py` looks after it."""
    assert name not in sys.modules
    with pytest.raises(AssertionError, match="bare name"):
        importlib.import_module(name)

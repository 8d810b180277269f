"""mypy over the package as it is installed.

The folders at the top of the repository become sub-packages only when the package is built, so
`mypy -p deliberation` in the checkout sees just a part of it and reports success. This builds the
tree into `.typecheck`, checks it there, and fails if fewer files were checked than exist.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / ".typecheck"


def sources() -> set[str]:
    """Every module of the package, by its path when installed."""
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders: dict[str, str] = setuptools["package-dir"]
    found = set()
    for package in folders:
        folder = ROOT / folders[package]
        installed = Path(*package.split("."))
        found |= {str(installed / file.relative_to(folder)) for file in folder.rglob("*.py")}
    return found


def build() -> None:
    # setuptools packs whatever lies in build/, also modules that are long gone.
    for folder in (TREE, ROOT / "build"):
        shutil.rmtree(folder, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "--target", str(TREE), str(ROOT)], check=True
    )


def main() -> None:
    build()
    wanted = sources()
    built = {str(file.relative_to(TREE)) for file in (TREE / "deliberation").rglob("*.py")}
    if wanted != built:
        sys.exit(
            f"not built: {sorted(wanted - built)}; built from nowhere: {sorted(built - wanted)}"
        )
    cache = ["--cache-dir", str(ROOT / ".mypy_cache")]
    config = ["--config-file", str(ROOT / "pyproject.toml")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *cache, *config, "-p", "deliberation"],
        cwd=TREE,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(done.stdout, end="")
    if done.returncode:
        sys.exit(done.returncode)
    match = re.search(r"no issues found in (\d+) source files", done.stdout)
    checked = int(match[1]) if match else 0
    if checked < len(wanted):
        sys.exit(f"mypy checked {checked} files, but there are {len(wanted)}")


if __name__ == "__main__":
    main()

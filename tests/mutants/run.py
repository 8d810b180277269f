"""Breaks the code on purpose, one small change at a time, and sees whether a test notices.

    python tests/mutants/run.py                  all of them
    python tests/mutants/run.py rows gradient    those of rows.toml and gradient.toml
    python tests/mutants/run.py --list

Each `tests/mutants/*.toml` holds `[[mutant]]` tables: `name`, `file`, `old` (a text that occurs
there exactly once), `new`, and `tests`, the narrowest pytest arguments that should fail. The
changes are made in a temporary copy of the repository, laid out as it is when installed, so
the checkout is never touched. A mutant is killed where pytest reports a failed test; a test that
can't even be collected shows a mutant that is no fair one, and is an error.

Exit status: 0 where all are killed, 1 where one survived, 2 where one could not be tried.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
LEFT_OUT = shutil.ignore_patterns(
    ".*", "__pycache__", "*.egg-info", "runs", "build", "dist", "htmlcov"
)
TIMEOUT_S = 300
PASSED, FAILED = 0, 1


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, source: str) -> str:
        if source.count(self.old) != 1:
            raise ValueError(
                f"{self.name}: its old text occurs {source.count(self.old)} times in {self.file}, "
                "not once"
            )
        if self.old == self.new:
            raise ValueError(f"{self.name}: it changes nothing")
        return source.replace(self.old, self.new)


def read_mutants(names: list[str] | None = None) -> list[Mutant]:
    """Those of the named files, or of all."""
    paths = [HERE / f"{name}.toml" for name in names] if names else sorted(HERE.glob("*.toml"))
    mutants = [
        Mutant(**{**table, "tests": tuple(table["tests"])})
        for path in paths
        for table in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    ]
    twice = {mutant.name for mutant in mutants if [m.name for m in mutants].count(mutant.name) > 1}
    if twice:
        raise ValueError(f"more than one mutant is called {', '.join(sorted(twice))}")
    return mutants


class Copy:
    """A copy of the repository in which `deliberation` is one whole package."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT, folder, ignore=LEFT_OUT)
        settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        self._packages: dict[str, Path] = {}
        for name, source in settings["tool"]["setuptools"]["package-dir"].items():
            target = folder.joinpath(*name.split("."))
            self._packages[source] = target
            if target != folder / source:
                shutil.move(folder / source, target)
        self._check_that_it_is_what_gets_imported()

    def path(self, file: str) -> Path:
        """Where a file of the checkout is in the copy."""
        top, _, rest = file.partition("/")
        return self._packages.get(top, self.folder / top) / rest

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        # Run from the copy: its folder then comes before everything else on the import path.
        return subprocess.run(
            [sys.executable, "-B", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder), "HF_HUB_OFFLINE": "1"},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def test(self, tests: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", *tests)

    def _check_that_it_is_what_gets_imported(self) -> None:
        names = ", ".join(
            ".".join(p.relative_to(self.folder).parts) for p in self._packages.values()
        )
        code = f"import sys, {names}\nprint(*(m.__file__ for n, m in sys.modules.items() if "
        code += "n.partition('.')[0] == 'deliberation' and m.__file__), sep='\\n')"
        done = self.run("-c", code)
        elsewhere = [
            line
            for line in done.stdout.split()
            if not Path(line).resolve().is_relative_to(self.folder.resolve())
        ]
        if done.returncode or elsewhere:
            raise RuntimeError(f"the copy is not what gets imported: {elsewhere}{done.stderr}")


def verdict(copy: Copy, mutant: Mutant) -> tuple[str, str]:
    """`killed`, `SURVIVED` or `ERROR`, and what there is to say."""
    path = copy.path(mutant.file)
    source = path.read_text(encoding="utf-8")
    try:
        path.write_text(mutant.applied(source), encoding="utf-8")
        done = copy.test(mutant.tests)
    except subprocess.TimeoutExpired:
        return "killed", f"ran longer than {TIMEOUT_S} s"
    finally:
        path.write_text(source, encoding="utf-8")
    lines = done.stdout.strip().splitlines()
    if done.returncode == PASSED:
        return "SURVIVED", lines[-1]
    if done.returncode == FAILED:
        failed = [line.split(" - ")[0] for line in lines if line.startswith("FAILED ")]
        return "killed", failed[0].removeprefix("FAILED ") if failed else lines[-1]
    return "ERROR", "\n".join(lines[-20:]) + done.stderr


def sound(copy: Copy, mutants: list[Mutant]) -> bool:
    """Whether the tests pass as long as nothing is broken: else killing says nothing."""
    tests = tuple(sorted({test for mutant in mutants for test in mutant.tests}))
    done = copy.test(tests)
    if done.returncode != PASSED:
        print(done.stdout, done.stderr, "the tests fail without any mutant", sep="\n")
    return done.returncode == PASSED


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="files of this folder, without .toml")
    parser.add_argument("--list", action="store_true", help="name the mutants and stop")
    parser.add_argument("--only", default="", help="those whose name holds this text")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    options = parser.parse_args()
    mutants = [mutant for mutant in read_mutants(options.names) if options.only in mutant.name]
    if options.list:
        print(*(f"{mutant.file}: {mutant.name}" for mutant in mutants), sep="\n")
        return 0
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for job in range(options.jobs):
            copies.put(Copy(Path(folder) / str(job)))
        first = copies.get()
        if not sound(first, mutants):
            return 2
        copies.put(first)

        def attempt(mutant: Mutant) -> str:
            copy = copies.get()
            try:
                word, detail = verdict(copy, mutant)
            finally:
                copies.put(copy)
            print(f"{word:8}  {mutant.file}: {mutant.name}  [{detail}]", flush=True)
            return word

        with ThreadPoolExecutor(options.jobs) as pool:
            words = list(pool.map(attempt, mutants))
    counts = {word: words.count(word) for word in ("killed", "SURVIVED", "ERROR")}
    seconds = time.perf_counter() - started
    print(", ".join(f"{n} {word}" for word, n in counts.items()), f"in {seconds:.0f} s")
    return 2 if counts["ERROR"] else int(bool(counts["SURVIVED"]))


if __name__ == "__main__":
    sys.exit(main())

"""Whether pip can resolve each extra with its constraints file; installs nothing."""

import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

OWN_ENVIRONMENT = {"vllm": "constraints-vllm.txt"}
"""Extras that cannot share an environment with the rest, with their constraints."""


def command(extra: str) -> list[str]:
    constraints = OWN_ENVIRONMENT.get(extra, "constraints.txt")
    # What is installed already is taken as it is, unless the extra wants an environment of its own.
    afresh = ["--ignore-installed"] if extra in OWN_ENVIRONMENT else []
    return [
        *(sys.executable, "-m", "pip", "install", "-qq", "--dry-run", "--no-build-isolation"),
        *(*afresh, "-c", str(ROOT / constraints), f"{ROOT}[{extra}]"),
    ]


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    failed = []
    for extra in project["optional-dependencies"]:
        began = time.monotonic()
        done = subprocess.run(command(extra), check=False)
        verdict = "resolved" if done.returncode == 0 else "NOT RESOLVED"
        print(f"extra {extra}: {verdict} in {time.monotonic() - began:.0f} s", flush=True)
        if done.returncode:
            failed.append(extra)
    if failed:
        sys.exit(f"pip cannot resolve: {', '.join(failed)}")


if __name__ == "__main__":
    main()

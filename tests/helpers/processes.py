"""Training runs in processes of their own, which can be killed. Forked from a process that has
imported everything once, so that each takes a fraction of a second to start."""

import multiprocessing
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.helpers.tiny_run"])


class SampledLog:
    """A progress listener that writes down which episodes were sampled, turn by turn."""

    def __new__(cls, path: Path) -> Any:
        from deliberation.train.progress import QuietProgress

        class Log(QuietProgress):
            def turn(self, spec: Any, turn: Any) -> None:
                with path.open("a") as file:
                    file.write(f"{spec.id} {turn.index}\n")

        return Log()


def _train(folder: Path, log: Path, environment: dict[str, str], settings: dict[str, Any]) -> None:
    os.environ.update(environment)
    from tests.helpers import tiny_run

    tiny_run.train(folder, progress=SampledLog(log), **settings)


def run_training(
    folder: Path,
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    timeout: float = 120,
    **settings: Any,
) -> int:
    """Train in a process of its own; returns its exit code, negative for a signal."""
    process = start_training(folder, log, environment=environment, **settings)
    process.join(timeout)
    assert not process.is_alive(), "the training process hangs"
    assert process.exitcode is not None
    return process.exitcode


def start_training(
    folder: Path, log: Path, *, environment: Mapping[str, str] | None = None, **settings: Any
) -> Any:
    process = CONTEXT.Process(target=_train, args=(folder, log, dict(environment or {}), settings))
    process.start()
    return process

"""What a run shows while it works: a live line, and one summary line a step. All on stderr."""

import os
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as RichBars

from deliberation.episode import Episode, EpisodeSpec, Turn

from .monitors import step_line

HEARTBEAT_S = 30.0
"""Where there is no live line, dialogues that take long say so this often."""


class Progress(Protocol):
    """Told of everything that happens in a run; may be called from the engine's thread."""

    def __enter__(self) -> "Progress": ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def note(self, text: str) -> None:
        """Something worth a line of its own."""
        ...

    def stopping(self) -> None:
        """A stop was asked for. Called from a signal handler: no locks, no rich."""
        ...

    def step_begins(self, step: int, steps: int, episodes: int) -> None: ...

    def phase(self, name: str, units: int | None = None) -> None:
        """`playing`, `training`, `saving`, `reporting`; `units` of work, where they are known."""
        ...

    def advance(self) -> None:
        """One unit of the phase is done."""
        ...

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None: ...

    def episode(self, episode: Episode) -> None: ...

    def step_ends(self, row: Mapping[str, Any], steps: int) -> None: ...


STOPPING = b"stopping: waiting for what can't be left half-done, then saving\n"


class QuietProgress:
    """Shows nothing; the base for listeners that want some of it."""

    def __enter__(self) -> "QuietProgress":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def note(self, text: str) -> None: ...

    def stopping(self) -> None: ...

    def step_begins(self, step: int, steps: int, episodes: int) -> None: ...

    def phase(self, name: str, units: int | None = None) -> None: ...

    def advance(self) -> None: ...

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None: ...

    def episode(self, episode: Episode) -> None: ...

    def step_ends(self, row: Mapping[str, Any], steps: int) -> None: ...


class ConsoleProgress(QuietProgress):
    """A live line in a terminal, plain lines elsewhere: phase, dialogues, tokens/s, time left."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self._live = self.console.is_terminal
        self._bars = RichBars(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[detail]}"),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self._live,
        )
        self._task: TaskID | None = None
        self._title = ""
        self._phase_began = time.monotonic()
        self._begun_at: float | None = None
        self._first_step = 1
        self._step = self._steps = self._episodes = 0
        self._turns = self._tokens = self._ended = 0
        self._spoke_at = time.monotonic()

    def __enter__(self) -> "ConsoleProgress":
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def note(self, text: str) -> None:
        self._spoke_at = time.monotonic()
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def stopping(self) -> None:
        os.write(2, STOPPING)

    def step_begins(self, step: int, steps: int, episodes: int) -> None:
        if self._begun_at is None:
            self._begun_at, self._first_step = time.monotonic(), step
        self._step, self._steps, self._episodes = step, steps, episodes
        self._turns = self._tokens = self._ended = 0

    def phase(self, name: str, units: int | None = None) -> None:
        self._phase_began = time.monotonic()
        self._title = f"step {self._step}/{self._steps} {name}" if self._step else name
        if self._task is not None:
            self._bars.remove_task(self._task)
        if name == "playing":
            units = self._episodes
        self._task = self._bars.add_task(self._title, total=units, detail=self._time_left())
        if not self._live:
            amount = f" ({units} dialogues)" if name == "playing" else ""
            self.note(f"{self._title}{amount} …")

    def advance(self) -> None:
        if self._task is not None:
            self._bars.advance(self._task)

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:
        self._turns += 1
        self._tokens += len(turn.generation.ids)
        elapsed = max(time.monotonic() - self._phase_began, 1e-9)
        detail = f"{self._turns} turns · {self._tokens / elapsed:.0f} tokens/s{self._time_left()}"
        if self._task is not None:
            self._bars.update(self._task, detail=detail)
        if not self._live and time.monotonic() - self._spoke_at > HEARTBEAT_S:
            self.note(f"{self._title}: {self._ended}/{self._episodes} dialogues · {detail}")

    def episode(self, episode: Episode) -> None:
        self._ended += 1
        self.advance()

    def step_ends(self, row: Mapping[str, Any], steps: int) -> None:
        self.note(step_line(row, steps))

    def _time_left(self) -> str:
        """From the mean time of the steps done so far; nothing before one is done."""
        done = self._step - self._first_step
        if self._begun_at is None or done < 1:
            return ""
        per_step = (self._phase_began - self._begun_at) / done
        left = per_step * (self._steps - self._step + 1) - (time.monotonic() - self._phase_began)
        if left <= 0:  # this step takes longer than those before: nothing honest to say
            return ""
        minutes, seconds = divmod(int(left), 60)
        return f" · about {minutes}:{seconds:02d} left"

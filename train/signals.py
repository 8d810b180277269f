"""SIGINT and SIGTERM ask for a stop; they never interrupt an update or a save half-way."""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType


class StopFlag:
    """While entered (in the main thread), SIGINT and SIGTERM only set this flag.

    Work looks at `requested()` where it can stop with nothing lost: while it waits for dialogues,
    between micro-batches, between steps. Further signals change nothing, so a second one during
    the last save does not break it.
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self, notice: Callable[[], None] = lambda: None) -> None:
        """`notice` is called from the signal handler at the first signal."""
        self.signal: int | None = None
        self._notice = notice
        self._previous: dict[int, object] = {}

    def requested(self) -> bool:
        return self.signal is not None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = number
            self._notice()

    def __enter__(self) -> "StopFlag":
        if threading.current_thread() is threading.main_thread():
            for number in self.SIGNALS:
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._previous.clear()

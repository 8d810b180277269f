"""Coroutines that a Ctrl-C or a SIGTERM ends in an orderly way."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

STOPS = (signal.SIGINT, signal.SIGTERM)


def run_interruptibly(coroutine: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, but the first stop signal cancels the coroutine, so that what it holds is
    closed and what it has written is whole; then KeyboardInterrupt is raised.

    `asyncio.run` itself does so for Python's own SIGINT handler alone. Outside the main thread,
    which signals never reach, it is plain `asyncio.run`.
    """
    if threading.current_thread() is not threading.main_thread():
        return asyncio.run(coroutine)
    stopped = False

    async def main() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def stop() -> None:
            nonlocal stopped
            stopped = True
            task.cancel()

        before = [signal.getsignal(number) for number in STOPS]
        with contextlib.suppress(NotImplementedError):  # no signals in the loops of Windows
            for number in STOPS:
                loop.add_signal_handler(number, stop)
        try:
            return await coroutine
        finally:
            for number, handler in zip(STOPS, before, strict=True):
                with contextlib.suppress(NotImplementedError):
                    loop.remove_signal_handler(number)
                signal.signal(number, handler)

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        if stopped:
            raise KeyboardInterrupt from None
        raise

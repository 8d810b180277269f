"""A hook for tests that kill the process at a chosen moment; nothing happens without it.

With `DELIBERATION_FAULT=NAME:N` in the environment, the N-th call (from 1) of `fault_point(NAME)`
in a process ends that process by SIGKILL, as a power cut would: no handler runs, nothing is
flushed. The tests resume such runs and compare them with one that was never stopped.
"""

import os
import signal
from collections import Counter

VARIABLE = "DELIBERATION_FAULT"

_calls: Counter[str] = Counter()


def fault_point(name: str) -> None:
    """Mark a moment at which a test may kill the process."""
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return
    target, _, count = wanted.rpartition(":")
    if target != name:
        return
    _calls[name] += 1
    if _calls[name] == int(count):
        os.kill(os.getpid(), signal.SIGKILL)

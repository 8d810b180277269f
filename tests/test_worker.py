"""One loop for all dialogues, one thread for forward passes, and a wish to stop that is seen."""

import asyncio
import os
import signal
import threading
import time

import pytest

from deliberation.train.signals import StopFlag
from deliberation.worker import EngineLoop, StopRequested, busy_seconds, in_forward_worker


@pytest.fixture
def loop():
    made = EngineLoop()
    yield made
    made.close()


def test_what_is_submitted_runs_in_the_loops_own_thread(loop):
    async def where():
        return threading.current_thread().name

    assert loop.run(where()) == "engine"


@pytest.mark.parametrize("error", [KeyError("x"), TimeoutError("its own")])
def test_an_error_comes_back_as_it_is(loop, error):
    async def fail():
        await asyncio.sleep(EngineLoop.WAKE_S * 1.5)
        raise error

    with pytest.raises(type(error)):
        loop.run(fail())


def test_a_stop_that_is_asked_for_cancels_everything_and_leaves_the_loop_usable(loop):
    """B101: a wait of half a minute is left at once."""
    ended = []

    async def patient(name):
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(name)

    async def several():
        background = asyncio.create_task(patient("background"))
        await asyncio.gather(patient("a"), patient("b"))
        await background

    began = time.monotonic()
    with pytest.raises(StopRequested):
        loop.run(several(), lambda: time.monotonic() - began > 0.3)
    assert time.monotonic() - began < 5
    assert sorted(ended) == ["a", "b", "background"]

    async def still_there():
        return "yes"

    assert loop.run(still_there()) == "yes"


def test_forward_passes_never_overlap_and_their_time_is_counted_by_purpose(loop):
    running, most = [], []
    before = busy_seconds["judging"]

    def forward():
        running.append(1)
        most.append(len(running))
        time.sleep(0.02)
        running.pop()

    async def several():
        await asyncio.gather(*(in_forward_worker(forward, purpose="judging") for _ in range(5)))

    loop.run(several())
    assert most == [1] * 5
    assert busy_seconds["judging"] - before >= 0.1


def test_closing_twice_is_closing_once(loop):
    loop.close()
    loop.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_only_sets_the_flag_and_a_second_one_changes_nothing(number):
    handler = signal.getsignal(number)
    noticed = []
    with StopFlag(lambda: noticed.append(1)) as stop:
        assert not stop.requested()
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.requested()
        assert stop.signal == number
        assert noticed == [1]
    assert signal.getsignal(number) is handler


def test_outside_the_main_thread_no_handler_is_set():
    handler = signal.getsignal(signal.SIGTERM)

    def enter():
        with StopFlag():
            seen.append(signal.getsignal(signal.SIGTERM))

    seen = []
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [handler]

"""What waits at the same time goes through the model together."""

import asyncio
import threading

import pytest

from deliberation.judge.batching import Batcher


def doubling(batches: list[list[int]]) -> "Batcher[int, int]":
    def forward(items: list[int]) -> list[int]:
        batches.append(items)
        return [2 * item for item in items]

    return Batcher(forward, max_batch=3)


def test_those_who_wait_share_a_batch_of_at_most_the_limit() -> None:
    batches: list[list[int]] = []

    async def five() -> list[int]:
        batcher = doubling(batches)
        return await asyncio.gather(*(batcher.submit(item) for item in range(5)))

    assert asyncio.run(five()) == [0, 2, 4, 6, 8]
    assert batches == [[0, 1, 2], [3, 4]]


def test_a_batcher_works_in_one_loop_after_another() -> None:
    batcher = doubling([])
    assert asyncio.run(batcher.submit(1)) == 2
    assert asyncio.run(batcher.submit(2)) == 4


def test_an_error_reaches_every_caller_of_its_batch_and_no_later_one() -> None:
    def forward(items: list[int]) -> list[int]:
        if 13 in items:
            raise RuntimeError("out of luck")
        return items

    async def play() -> None:
        batcher = Batcher(forward, max_batch=8)
        both = await asyncio.gather(batcher.submit(13), batcher.submit(1), return_exceptions=True)
        assert [str(error) for error in both] == ["out of luck", "out of luck"]
        assert await batcher.submit(1) == 1

    asyncio.run(play())


def test_a_cancelled_caller_leaves_the_others_their_results() -> None:
    release = threading.Event()

    def forward(items: list[int]) -> list[int]:
        release.wait(5)
        return items

    async def play() -> None:
        batcher = Batcher(forward, max_batch=8)
        gone = asyncio.ensure_future(batcher.submit(1))
        stays = asyncio.ensure_future(batcher.submit(2))
        await asyncio.sleep(0.05)
        late = asyncio.ensure_future(batcher.submit(3))
        await asyncio.sleep(0)
        gone.cancel()
        late.cancel()
        release.set()
        assert await stays == 2
        with pytest.raises(asyncio.CancelledError):
            await gone
        assert await batcher.submit(4) == 4

    asyncio.run(play())


def test_cancelling_all_that_runs_leaves_nobody_waiting() -> None:
    release = threading.Event()

    def forward(items: list[int]) -> list[int]:
        release.wait(5)
        return items

    async def play() -> list[object]:
        batcher = Batcher(forward, max_batch=1)
        waiting = [asyncio.ensure_future(batcher.submit(item)) for item in range(3)]
        await asyncio.sleep(0.05)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        release.set()
        done: list[object] = list(
            await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 5)
        )
        assert await batcher.submit(9) == 9
        return done

    assert all(isinstance(end, asyncio.CancelledError) for end in asyncio.run(play()))

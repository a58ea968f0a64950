"""Wake-ups in batches: many waiters are notified a few at a time, each once per round."""

import asyncio

from dragoman.surfaces.http.feed import BATCH_SIZE, MAX_UNBATCHED, WakeupBatcher
from dragoman.surfaces.http.waiter import Waiter
from tests.requirements import proves

pytestmark = proves("HTTP-STREAM-SLOW")

LONG_S = 30.0


class CountingWaiter(Waiter):
    """Waiter that counts its notifications."""

    notifications = 0

    def notify(self) -> None:
        self.notifications += 1
        super().notify()


class CrowdOfWaiters:
    """Many waiters, some of them blocked."""

    def __init__(self, size: int) -> None:
        self.blocked: set[Waiter] = set()
        self.waiters = [CountingWaiter(self.blocked) for _ in range(size)]
        self.batcher = WakeupBatcher(self.waiters, self.blocked)

    async def start_waits(self, count: int) -> list[asyncio.Task[bool]]:
        """Block the first waiters; the others are busy."""
        tasks = [asyncio.create_task(waiter.wait(LONG_S)) for waiter in self.waiters[:count]]
        await asyncio.sleep(0)
        assert len(self.blocked) == count
        return tasks

    @property
    def notifications(self) -> list[int]:
        return [waiter.notifications for waiter in self.waiters]


def test_each_waiter_is_notified_once_per_round() -> None:
    async def run() -> list[int]:
        crowd = CrowdOfWaiters(10 * MAX_UNBATCHED)
        waits = await crowd.start_waits(10 * MAX_UNBATCHED)
        for _ in range(1_000):
            crowd.batcher.wake_all()
        # The others are notified after the first batch has run.
        assert sum(crowd.notifications) == BATCH_SIZE
        assert all(await asyncio.gather(*waits))
        waits = await crowd.start_waits(10 * MAX_UNBATCHED)
        crowd.batcher.wake_all()
        assert all(await asyncio.gather(*waits))
        return crowd.notifications

    assert set(asyncio.run(run())) == {2}


def test_waiter_that_is_not_blocked_is_not_notified() -> None:
    async def run() -> list[int]:
        crowd = CrowdOfWaiters(10 * MAX_UNBATCHED)
        waits = await crowd.start_waits(3)
        for _ in range(3):
            crowd.batcher.wake_all()
        assert all(await asyncio.gather(*waits))
        return crowd.notifications

    assert sum(asyncio.run(run())) == 3


def test_busy_waiter_does_not_starve_others() -> None:
    async def run() -> None:
        crowd = CrowdOfWaiters(MAX_UNBATCHED + 1)
        *others, busy = crowd.waiters
        waits = await crowd.start_waits(MAX_UNBATCHED)
        crowd.batcher.wake_all()
        while not all(waiter.notifications for waiter in others):
            crowd.batcher.wake_one(busy)
            assert await busy.wait(LONG_S)
        assert all(waiter.notifications == 1 for waiter in others)
        await asyncio.gather(*waits)

    asyncio.run(run())


def test_few_waiters_are_notified_at_once() -> None:
    async def run() -> None:
        crowd = CrowdOfWaiters(MAX_UNBATCHED)
        waits = await crowd.start_waits(MAX_UNBATCHED)
        assert not crowd.batcher.is_crowded
        crowd.batcher.wake_all()
        assert crowd.notifications == [1] * MAX_UNBATCHED
        assert all(await asyncio.gather(*waits))
        crowd.waiters.append(CountingWaiter(crowd.blocked))
        assert crowd.batcher.is_crowded

    asyncio.run(run())

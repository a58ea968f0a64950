"""Many callers at once on one event loop, and the hub that they ask."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from time import perf_counter

from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Store
from dragoman.system.clock import SystemClock, new_id

Call = Callable[[], Awaitable[object]]
"""Call that a caller repeats."""


@contextmanager
def open_hub(store: Store) -> Generator[Hub]:
    """A hub on a store, as in production; both are closed at the end."""
    hub = Hub(Engine(store, SystemClock(), b"bench" * 6), new_id)
    try:
        yield hub
    finally:
        hub.close()


async def drive(opening: AbstractAsyncContextManager[Call], callers: int, seconds: float) -> float:
    """Calls a second of all callers together."""
    done = 0
    async with opening as call:
        start = perf_counter()

        async def caller() -> None:
            nonlocal done
            while perf_counter() < start + seconds:
                await call()
                done += 1

        await asyncio.gather(*(caller() for _ in range(callers)))
        return done / (perf_counter() - start)

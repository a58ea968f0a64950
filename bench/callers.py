"""Many callers at once on one event loop, and the hub that they ask."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from time import perf_counter

from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Store
from dragoman.system.clock import SystemClock
from dragoman.system.ids import new_id

Deed = Callable[[], Awaitable[object]]
"""What a caller does again and again."""


@contextmanager
def open_hub(store: Store) -> Generator[Hub]:
    """A hub on a store, as in production; both are closed at the end."""
    hub = Hub(Engine(store, SystemClock(), b"bench" * 6), new_id)
    try:
        yield hub
    finally:
        hub.close()


async def drive(making: AbstractAsyncContextManager[Deed], callers: int, seconds: float) -> float:
    """How many deeds a second all callers get done together."""
    done = 0
    async with making as deed:
        start = perf_counter()

        async def caller() -> None:
            nonlocal done
            while perf_counter() < start + seconds:
                await deed()
                done += 1

        await asyncio.gather(*(caller() for _ in range(callers)))
        return done / (perf_counter() - start)

"""Noticing that a caller who waits has gone: nothing is kept, or taken, for nobody."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.types import Receive

from dragoman.surfaces.http.seat import Seat


@asynccontextmanager
async def until_gone(receive: Receive, seat: Seat) -> AsyncGenerator[None]:
    """Disconnect the waiter if the connection ends meanwhile."""
    watch = asyncio.create_task(_watch(receive, seat))
    try:
        yield
    finally:
        watch.cancel()


async def _watch(receive: Receive, seat: Seat) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
    seat.hang_up()

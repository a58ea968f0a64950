"""Noticing that a caller who waits has gone: nothing is kept, or taken, for nobody."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.types import Receive

from dragoman.surfaces.http.seat import Waiter


@asynccontextmanager
async def watch_disconnect(receive: Receive, waiter: Waiter) -> AsyncGenerator[None]:
    """Disconnect the waiter if the connection ends meanwhile."""
    watcher = asyncio.create_task(_close_on_disconnect(receive, waiter))
    try:
        yield
    finally:
        watcher.cancel()


async def _close_on_disconnect(receive: Receive, waiter: Waiter) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
    waiter.disconnect()

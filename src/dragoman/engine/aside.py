"""Looking things up beside the event loop: what is asked for in one turn of it goes together.

A way to a thread and back costs more than most look-ups do, so that several share one.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

TOGETHER = 64
"""So many share a way; those beyond have another, since a store may be far away."""

Resolved = Iterable[tuple[asyncio.Future[Any], Any]]
"""Futures, and what each is to have; an exception is raised to whoever waits for it."""
_Asked = list[tuple[Callable[[], Any], asyncio.Future[Any]]]


class Aside:
    """Runs look-ups in threads. Several event loops may use it."""

    def __init__(self) -> None:
        self._gathered: dict[asyncio.AbstractEventLoop, _Asked] = {}

    async def look(self, up: Callable[[], T]) -> T:
        """What this returns, called in a thread; others of the same turn may go before it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if loop not in self._gathered:
            self._gathered[loop] = []
            loop.call_soon(self._leave, loop)
        self._gathered[loop].append((up, future))
        return await future

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        gathered = self._gathered.pop(loop)
        for start in range(0, len(gathered), TOGETHER):
            looked = loop.run_in_executor(None, _look, gathered[start : start + TOGETHER])
            looked.add_done_callback(lambda ended: resolve(ended.result()))


def resolve(outcomes: Resolved) -> None:
    """Give futures what they wait for; whoever has stopped waiting is passed over."""
    for future, outcome in outcomes:
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


def _look(asked: _Asked) -> Resolved:
    return [(future, _outcome(up)) for up, future in asked]


def _outcome(up: Callable[[], Any]) -> Any:
    try:
        return up()
    except Exception as error:  # noqa: BLE001  handed to the caller that asked for it
        return error

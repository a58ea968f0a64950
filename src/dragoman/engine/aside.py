"""Looking things up beside the event loop: what is asked for in one turn of it goes together.

A way to a thread and back costs more than most look-ups do, so that all of them share one. When it
waits for long, because a store is far away, those who are left go by more and more ways. That there
is much to do is no reason: threads of Python do not work side by side. But behind one that takes
long by itself (a file is hashed, somebody is called) nobody stays.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from time import perf_counter, thread_time
from typing import Any, TypeVar

T = TypeVar("T")

_PATIENCE_S = 0.003
"""When it has waited so long, a way takes nobody along any more."""
_INSTEAD = 2
"""So many ways are gone instead of each one that has waited that long."""
_LONG_S = 0.25
"""Where nobody was looked up for so long, whoever is left goes by another way. Much sooner, and a
thread that only waits for its turn would count as one that takes long."""

Resolved = Iterable[tuple[asyncio.Future[Any], Any]]
"""Futures, and what each is to have; an exception is raised to whoever waits for it."""
_Asked = deque[tuple[Callable[[], Any], asyncio.Future[Any]]]


def _idle() -> float:
    """How long this thread has not been at work since it began."""
    return perf_counter() - thread_time()


class Aside:
    """Runs look-ups in threads. Several event loops may use it."""

    def __init__(self, idle: Callable[[], float] = _idle, long: float = _LONG_S) -> None:
        """`idle`: for how many seconds the thread that asks has not been at work; `long`: after how
        many seconds nobody stays behind one.
        """
        self._gathered: dict[asyncio.AbstractEventLoop, _Asked] = {}
        self._idle = idle
        self._long = long

    async def look(self, up: Callable[[], T]) -> T:
        """What this returns, called in a thread; others of the same turn may go before it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if loop not in self._gathered:
            self._gathered[loop] = deque()
            loop.call_soon(self._leave, loop)
        self._gathered[loop].append((up, future))
        return await future

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        asked = self._gathered.pop(loop)
        self._send(loop, asked, 1)
        self._watch(loop, asked)

    def _watch(self, loop: asyncio.AbstractEventLoop, asked: _Asked) -> None:
        if asked:
            loop.call_later(self._long, self._overtake, loop, asked, len(asked))

    def _overtake(self, loop: asyncio.AbstractEventLoop, asked: _Asked, left: int) -> None:
        if len(asked) == left:
            self._send(loop, asked, 1)
        self._watch(loop, asked)

    def _send(self, loop: asyncio.AbstractEventLoop, asked: _Asked, ways: int) -> None:
        for _ in range(min(ways, len(asked))):
            try:
                looked = loop.run_in_executor(None, self._look, asked)
            except (
                RuntimeError
            ) as error:  # there are no threads any more: nobody is to wait for one
                resolve((future, error) for _, future in asked)
                return
            looked.add_done_callback(partial(self._tell, loop, asked))

    def _tell(
        self, loop: asyncio.AbstractEventLoop, asked: _Asked, looked: "asyncio.Future[Resolved]"
    ) -> None:
        resolve(looked.result())
        self._send(loop, asked, _INSTEAD)

    def _look(self, asked: _Asked) -> Resolved:
        """As many as one way has the patience for; another one may take some of them at once."""
        outcomes = list[tuple[asyncio.Future[Any], Any]]()
        end = self._idle() + _PATIENCE_S
        with suppress(IndexError):  # there is none left
            while not outcomes or self._idle() < end:
                up, future = asked.popleft()
                outcomes.append((future, _outcome(up)))
        return outcomes


def resolve(outcomes: Resolved) -> None:
    """Give futures what they wait for; whoever has stopped waiting is passed over."""
    for future, outcome in outcomes:
        if future.done():
            continue
        if not isinstance(outcome, Exception):
            future.set_result(outcome)
        elif isinstance(outcome, StopIteration):
            # The one exception that no future takes.
            future.set_exception(RuntimeError("a StopIteration has come out of it"))
        else:
            future.set_exception(outcome)


def _outcome(up: Callable[[], Any]) -> Any:
    try:
        return up()
    except Exception as error:  # noqa: BLE001  handed to the caller that asked for it
        return error

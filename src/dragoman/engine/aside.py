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
"""After waiting so long a thread takes no further call of its tick."""
_INSTEAD = 2
"""The number of threads started in place of each one that has waited that long."""
_LONG_S = 0.25
"""After so long on a single call, the calls behind it move to another thread. Much sooner, and a
thread that only waits for its turn would count as slow."""

Resolved = Iterable[tuple[asyncio.Future[Any], Any]]
"""Futures and their results; an exception is raised to the awaiting caller."""
_Asked = deque[tuple[Callable[[], Any], asyncio.Future[Any]]]


def _idle() -> float:
    """Seconds that this thread has not been running since it began."""
    return perf_counter() - thread_time()


class Aside:
    """Runs blocking calls in threads. Several event loops may use it."""

    def __init__(self, idle: Callable[[], float] = _idle, long: float = _LONG_S) -> None:
        """`idle_seconds`: for how many seconds the calling thread has not been running;
        `slow_call_s`: after how many seconds on one call the calls behind it are moved to another
        thread."""
        self._gathered: dict[asyncio.AbstractEventLoop, _Asked] = {}
        self._idle = idle
        self._long = long

    async def look(self, up: Callable[[], T]) -> T:
        """Run a call in a thread; others of the same tick may run before it."""
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
            except RuntimeError as error:  # the executor has shut down: fail the callers
                resolve((future, error) for _, future in asked)
                return
            looked.add_done_callback(partial(self._tell, loop, asked))

    def _tell(
        self, loop: asyncio.AbstractEventLoop, asked: _Asked, looked: "asyncio.Future[Resolved]"
    ) -> None:
        resolve(looked.result())
        self._send(loop, asked, _INSTEAD)

    def _look(self, asked: _Asked) -> Resolved:
        """Run as many calls as one thread has patience for; another thread may take some of them at
        once."""
        outcomes = list[tuple[asyncio.Future[Any], Any]]()
        end = self._idle() + _PATIENCE_S
        with suppress(IndexError):  # no calls are left
            while not outcomes or self._idle() < end:
                up, future = asked.popleft()
                outcomes.append((future, _outcome(up)))
        return outcomes


def resolve(outcomes: Resolved) -> None:
    """Resolve futures; those whose caller has stopped waiting are skipped."""
    for future, outcome in outcomes:
        if future.done():
            continue
        if not isinstance(outcome, Exception):
            future.set_result(outcome)
        elif isinstance(outcome, StopIteration):
            # The one exception type that a future rejects.
            future.set_exception(RuntimeError("the call raised StopIteration"))
        else:
            future.set_exception(outcome)


def _outcome(up: Callable[[], Any]) -> Any:
    try:
        return up()
    except Exception as error:  # noqa: BLE001  handed to the caller that asked for it
        return error

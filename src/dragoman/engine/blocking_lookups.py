"""Blocking work of an event loop: lookups that wait for a store or a disk, long texts."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from time import perf_counter, thread_time
from typing import Any, TypeVar

# A hop to a thread and back costs more than most lookups do, so that all lookups of one tick share
# a hop. When a shared hop is idle for long, because a store is far away, the remaining lookups are
# spread over more and more threads. A busy hop is no reason for that: Python threads do not run in
# parallel. But nothing waits behind a single slow call (a file is hashed, a server is called).

T = TypeVar("T")

_MAX_IDLE_S = 0.003
"""After waiting so long a thread takes no further call of its tick."""
_THREADS_INSTEAD = 2
"""The number of threads started in place of each one that has waited that long."""
_SLOW_CALL_S = 0.25
"""After so long on a single call, the calls behind it move to another thread. Much sooner, and a
thread that only waits for its turn would count as slow."""

Outcomes = Iterable[tuple[asyncio.Future[Any], Any]]
"""Futures and their results; an exception is raised to the awaiting caller."""
_PendingCalls = deque[tuple[Callable[[], Any], asyncio.Future[Any]]]


def _idle_seconds() -> float:
    """Seconds that this thread has not been running since it began."""
    return perf_counter() - thread_time()


class BlockingLookups:
    """Runs blocking calls in threads. Several event loops may use it."""

    def __init__(
        self, idle_seconds: Callable[[], float] = _idle_seconds, slow_call_s: float = _SLOW_CALL_S
    ) -> None:
        """`idle_seconds`: for how many seconds the calling thread has not been running;
        `slow_call_s`: after how many seconds on one call the calls behind it are moved to another
        thread."""
        self._pending: dict[asyncio.AbstractEventLoop, _PendingCalls] = {}
        self._idle_seconds = idle_seconds
        self._slow_call_s = slow_call_s

    async def run(self, call: Callable[[], T]) -> T:
        """Run a call in a thread; others of the same tick may run before it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if loop not in self._pending:
            self._pending[loop] = deque()
            loop.call_soon(self._flush, loop)
        self._pending[loop].append((call, future))
        return await future

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        pending = self._pending.pop(loop)
        self._start_threads(loop, pending, 1)
        self._watch_progress(loop, pending)

    def _watch_progress(self, loop: asyncio.AbstractEventLoop, pending: _PendingCalls) -> None:
        if pending:
            loop.call_later(
                self._slow_call_s, self._overtake_slow_call, loop, pending, len(pending)
            )

    def _overtake_slow_call(
        self, loop: asyncio.AbstractEventLoop, pending: _PendingCalls, remaining: int
    ) -> None:
        if len(pending) == remaining:
            self._start_threads(loop, pending, 1)
        self._watch_progress(loop, pending)

    def _start_threads(
        self, loop: asyncio.AbstractEventLoop, pending: _PendingCalls, count: int
    ) -> None:
        for _ in range(min(count, len(pending))):
            try:
                outcomes = loop.run_in_executor(None, self._run_calls, pending)
            except RuntimeError as error:  # the executor has shut down: fail the callers
                resolve_futures((future, error) for _, future in pending)
                return
            outcomes.add_done_callback(partial(self._finish_hop, loop, pending))

    def _finish_hop(
        self,
        loop: asyncio.AbstractEventLoop,
        pending: _PendingCalls,
        outcomes: "asyncio.Future[Outcomes]",
    ) -> None:
        resolve_futures(outcomes.result())
        self._start_threads(loop, pending, _THREADS_INSTEAD)

    def _run_calls(self, pending: _PendingCalls) -> Outcomes:
        """Run as many calls as one thread has patience for; another thread may take some of them at
        once."""
        outcomes = list[tuple[asyncio.Future[Any], Any]]()
        end = self._idle_seconds() + _MAX_IDLE_S
        with suppress(IndexError):  # no calls are left
            while not outcomes or self._idle_seconds() < end:
                call, future = pending.popleft()
                outcomes.append((future, _call_outcome(call)))
        return outcomes


def resolve_futures(outcomes: Outcomes) -> None:
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


def _call_outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # noqa: BLE001  handed to the caller that asked for it
        return error


_PARSER = ThreadPoolExecutor(1, thread_name_prefix="parse")


async def parse_aside(parse: Callable[..., T], *arguments: Any) -> T:
    """Parse a long text in the one thread for that.

    The interpreter runs one thread at a time, and a parser lets go of it seldom: the event loop
    waits its turn behind each thread that parses, every time it has slept.
    """
    return await asyncio.get_running_loop().run_in_executor(_PARSER, partial(parse, *arguments))

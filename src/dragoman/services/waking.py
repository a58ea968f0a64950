"""Waking: when the dispatcher looks again, and which attempts look at their tasks.

What is written by this hub is hinted at, from any thread; of what others write into the same store
there is no hint, so the ledger is looked at as well, at regular times. Whoever misses a hint is
late by one such time, and misses nothing else.
"""

import asyncio
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager, suppress
from math import inf

from dragoman.core.errors import DragomanError
from dragoman.core.ids import agent_stream, task_stream
from dragoman.engine.ports import Store
from dragoman.services.attempt import Attempt

_PAUSE_SECONDS = 0.005
"""Pause between two rounds, so that a busy hub costs the dispatcher little."""
_MATTERS = (task_stream(""), agent_stream(""))
"""Streams whose entries may mean that there is work to dispatch."""


class Waking:
    """Wakes the dispatcher and its runs; use it in one event loop, except for hints."""

    def __init__(
        self, store: Store, poll_seconds: float, attempts: Callable[[], Iterable[Attempt]]
    ) -> None:
        self._store = store
        self._poll_seconds = poll_seconds
        self._attempts = attempts
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = asyncio.Event()

    @property
    def now(self) -> float:
        """Time of the loop; infinite when it is not listening, so that all waits are over."""
        return inf if self._loop is None else self._loop.time()

    @contextmanager
    def listening(self) -> Generator[None]:
        """Accept hints, and poll for entries of others, in this context."""
        self._loop = asyncio.get_running_loop()
        following = asyncio.create_task(self._follow_others())
        try:
            yield
        finally:
            following.cancel()
            self._loop = None

    def hint(self, streams: Collection[str]) -> None:
        """Wake up: these streams have new entries; from any thread."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop is closed: nobody listens any more
                loop.call_soon_threadsafe(self._look_at, frozenset(streams))

    def wake(self) -> None:
        """Wake the dispatcher."""
        self._woken.set()

    def clear(self) -> None:
        """Reset before looking, so that later changes wake it again."""
        self._woken.clear()

    async def woken(self) -> None:
        """Wait until there is something to do."""
        await self._woken.wait()

    async def rest(self) -> None:
        """Wait until there is something to do, or for one poll interval."""
        await asyncio.sleep(_PAUSE_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._poll_seconds):
                await self._woken.wait()

    def _look_at(self, streams: frozenset[str]) -> None:
        for attempt in self._attempts():
            if attempt.streams & streams:
                attempt.look()
        if any(stream.startswith(_MATTERS) for stream in streams):
            self._woken.set()

    async def _follow_others(self) -> None:
        """Notify runs when the ledger has grown."""
        followed = 0
        while True:
            await asyncio.sleep(self._poll_seconds)
            if not any(self._attempts()):
                continue
            with suppress(DragomanError, OSError):  # retried at the next poll
                head = await asyncio.to_thread(self._store.head)
                if head != followed:
                    followed = head
                    for attempt in self._attempts():
                        attempt.look()

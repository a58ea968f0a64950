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
"""Between two looks, so that a busy hub costs the dispatcher little."""
_MATTERS = (task_stream(""), agent_stream(""))
"""Streams whose news may be that there is work to give out."""


class Waking:
    """Used in one event loop, but for the hints."""

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
        """The time of the loop; when nobody listens, all that somebody waits for is over."""
        return inf if self._loop is None else self._loop.time()

    @contextmanager
    def listening(self) -> Generator[None]:
        """Hear hints, and follow what others write, as long as this lasts."""
        self._loop = asyncio.get_running_loop()
        following = asyncio.create_task(self._follow_others())
        try:
            yield
        finally:
            following.cancel()
            self._loop = None

    def hint(self, streams: Collection[str]) -> None:
        """Something was written into these streams; from any thread."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop has been closed: nobody looks any more
                loop.call_soon_threadsafe(self._look_at, frozenset(streams))

    def wake(self) -> None:
        """There is something to do."""
        self._woken.set()

    def clear(self) -> None:
        """Whatever comes from now on has not been seen."""
        self._woken.clear()

    async def woken(self) -> None:
        """Until there is something to do."""
        await self._woken.wait()

    async def rest(self) -> None:
        """The same, but not for long: some of what there is to do nobody tells."""
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
        """Have attempts look when the ledger has grown."""
        followed = 0
        while True:
            await asyncio.sleep(self._poll_seconds)
            if not any(self._attempts()):
                continue
            with suppress(DragomanError, OSError):  # the next look tells
                head = await asyncio.to_thread(self._store.head)
                if head != followed:
                    followed = head
                    for attempt in self._attempts():
                        attempt.look()

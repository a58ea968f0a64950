"""Wake-ups of the dispatcher: commits of this hub, and polling for those of others.

This hub's own commits arrive as hints, from any thread. Other writers of the same store send none,
so the ledger is polled as well. A missed hint costs one poll interval, and nothing else.
"""

import asyncio
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager, suppress
from math import inf

from dragoman.core.errors import DragomanError
from dragoman.core.ids import agent_stream, task_stream
from dragoman.engine.ports import Store
from dragoman.services.dispatch.agent_run import AgentRun

_DEBOUNCE_SECONDS = 0.005
"""Pause between two rounds, so that a busy hub costs the dispatcher little."""
_RELEVANT_STREAMS = (task_stream(""), agent_stream(""))
"""Streams whose entries may mean that there is work to dispatch."""


class DispatchWakeups:
    """Wakes the dispatcher and its runs; use it in one event loop, except for hints."""

    def __init__(
        self, store: Store, poll_seconds: float, runs: Callable[[], Iterable[AgentRun]]
    ) -> None:
        self._store = store
        self._poll_seconds = poll_seconds
        self._runs = runs
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake_event = asyncio.Event()

    @property
    def now(self) -> float:
        """Time of the loop; infinite when it is not listening, so that all waits are over."""
        return inf if self._loop is None else self._loop.time()

    @contextmanager
    def listening(self) -> Generator[None]:
        """Accept hints, and poll for entries of others, in this context."""
        self._loop = asyncio.get_running_loop()
        polling = asyncio.create_task(self._poll_ledger())
        try:
            yield
        finally:
            polling.cancel()
            self._loop = None

    def hint(self, streams: Collection[str]) -> None:
        """Wake up: these streams have new entries; from any thread."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop is closed: nobody listens any more
                loop.call_soon_threadsafe(self._notify_runs, frozenset(streams))

    def wake(self) -> None:
        self._wake_event.set()

    def clear(self) -> None:
        """Reset before looking, so that later changes wake it again."""
        self._wake_event.clear()

    async def wait(self) -> None:
        """Wait until there is something to do."""
        await self._wake_event.wait()

    async def wait_briefly(self) -> None:
        """Wait until there is something to do, or for one poll interval."""
        await asyncio.sleep(_DEBOUNCE_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._poll_seconds):
                await self._wake_event.wait()

    def _notify_runs(self, streams: frozenset[str]) -> None:
        for run in self._runs():
            if run.streams & streams:
                run.notify()
        if any(stream.startswith(_RELEVANT_STREAMS) for stream in streams):
            self._wake_event.set()

    async def _poll_ledger(self) -> None:
        """Notify runs when the ledger has grown."""
        last_head = 0
        while True:
            await asyncio.sleep(self._poll_seconds)
            if not any(self._runs()):
                continue
            with suppress(DragomanError, OSError):  # retried at the next poll
                head = await asyncio.to_thread(self._store.head)
                if head != last_head:
                    last_head = head
                    for run in self._runs():
                        run.notify()

"""An agent that is handed one request and hands back one result: behind a URL, or in this process.

Programs of that kind are run by `program`, like any others. The request is bytes here, made by
whoever knows its dialect; it names itself, so that one that is handed over twice counts once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from inspect import isawaitable
from typing import Final

from dragoman.agents.remote import RunningElsewhere
from dragoman.engine.runner import Assignment, Ended, Hear

_ACCEPTED: Final = range(200, 300)
_MOST_SHOWN: Final = 500

Write = Callable[[Assignment], bytes]
"""What an agent is handed for an assignment; it may look into the store."""
Exchange = Callable[[Mapping[str, str], bytes], tuple[int, bytes]]
"""Posts headers and a body; the status and the body that were answered, or OSError."""
Work = Callable[[bytes], bytes | Awaitable[bytes]]
"""Takes a request, gives its result; a plain function runs in a thread of its own."""


class UrlRunner:
    """Posts requests to one URL; a result in the answer is taken at once, else it comes later."""

    def __init__(self, write: Write, exchange: Exchange, slow: Executor) -> None:
        self._write = write
        self._exchange = exchange
        self._slow = slow

    async def start(self, assignment: Assignment, hear: Hear) -> RunningElsewhere:
        """Hand it over; any 2xx means that the agent has it."""
        loop = asyncio.get_running_loop()
        status, answer = await loop.run_in_executor(self._slow, self._post, assignment)
        if status not in _ACCEPTED:
            raise OSError(f"the agent's URL answered {status}")
        if answer.strip():
            await hear(answer)
        return RunningElsewhere()

    def _post(self, assignment: Assignment) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        return self._exchange(headers, self._write(assignment))


class FunctionRunner:
    """Calls a function of this process."""

    def __init__(self, write: Write, work: Work, slow: Executor) -> None:
        self._write = write
        self._work = work
        self._slow = slow

    async def start(self, assignment: Assignment, hear: Hear) -> "RunningFunction":
        """Let it begin."""
        request = await asyncio.to_thread(self._write, assignment)
        return RunningFunction(self._done(request, hear))

    async def _done(self, request: bytes, hear: Hear) -> Ended:
        loop = asyncio.get_running_loop()
        try:
            given = await loop.run_in_executor(self._slow, self._work, request)
            result = await given if isawaitable(given) else given
        except Exception as error:  # noqa: BLE001  whatever an agent does wrong is its failure
            return Ended(f"{type(error).__name__}: {error}"[:_MOST_SHOWN])
        return Ended(await hear(result))


class RunningFunction:
    """A function at work."""

    is_beating = True
    said = 0

    def __init__(self, work: Awaitable[Ended]) -> None:
        self._work = asyncio.ensure_future(work)

    async def wait(self) -> Ended:
        """Until it has given its result; one that was stopped has failed."""
        try:
            return await self._work
        except asyncio.CancelledError:
            if not self._work.cancelled():
                raise
            return Ended("it was stopped")

    async def stop(self, grace: float) -> None:
        """Ask it to end. A thread cannot be ended: what it gives is not taken any more."""
        del grace
        self._work.cancel()

    def forget(self) -> None:
        """There is nothing to look for."""

"""An agent that is handed one request and hands back one result: behind a URL, or in this process.

Programs of that kind are run by `program`, like any others. The request is bytes here, made by
whoever knows its dialect; it names itself, so that one that is handed over twice counts once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from inspect import isawaitable
from threading import Thread
from typing import Final

from dragoman.agents.remote import RunningElsewhere
from dragoman.engine.runner import Assignment, Ended, Hear

_ACCEPTED: Final = range(200, 300)
_MOST_SHOWN: Final = 500

Write = Callable[[Assignment], bytes]
"""Writes the request of an assignment; it may read the store."""
Exchange = Callable[[Mapping[str, str], bytes], tuple[int, bytes]]
"""Posts headers and a body; the status and body of the response, or OSError."""
Work = Callable[[bytes], bytes | Awaitable[bytes]]
"""A function that takes a request and returns its result; a plain one runs in a thread."""


class UrlRunner:
    """Posts requests to one URL; a result in the response counts, otherwise it comes later."""

    def __init__(self, write: Write, exchange: Exchange, slow: Executor) -> None:
        self._write = write
        self._exchange = exchange
        self._slow = slow

    async def start(self, assignment: Assignment, hear: Hear) -> RunningElsewhere:
        """Post the request; any 2xx means that the agent has it."""
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

    def __init__(self, write: Write, work: Work) -> None:
        self._write = write
        self._work = work

    async def start(self, assignment: Assignment, hear: Hear) -> "RunningFunction":
        """Call the function."""
        request = await asyncio.to_thread(self._write, assignment)
        return RunningFunction(self._done(request, hear))

    async def _done(self, request: bytes, hear: Hear) -> Ended:
        try:
            given = await _in_a_thread(self._work, request)
            result = await given if isawaitable(given) else given
        except Exception as error:  # noqa: BLE001  whatever an agent does wrong is its failure
            return _broken(error)
        if isinstance(result, Ended):
            return result
        if not isinstance(result, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
            return Ended(f"its function gave {type(result).__name__}, not bytes")
        return Ended(await hear(result))


async def _in_a_thread(work: Work, request: bytes) -> bytes | Awaitable[bytes] | Ended:
    """Call the function in a thread; one that never ends blocks nobody, nor the end of the
    process."""
    loop = asyncio.get_running_loop()
    given: asyncio.Future[bytes | Awaitable[bytes] | Ended] = loop.create_future()

    def tell(result: bytes | Awaitable[bytes] | Ended) -> None:
        if not given.done():  # else it was stopped meanwhile
            given.set_result(result)

    def run() -> None:
        try:
            result = work(request)
        except BaseException as error:  # noqa: BLE001  SystemExit, too, ends the agent and not us
            result = _broken(error)
        with suppress(RuntimeError):  # the hub has ended
            loop.call_soon_threadsafe(tell, result)

    Thread(target=run, name="agent-function", daemon=True).start()
    return await given


def _broken(error: BaseException) -> Ended:
    return Ended(f"{type(error).__name__}: {error}"[:_MOST_SHOWN])


class RunningFunction:
    """A running function."""

    is_beating = True
    said = 0

    def __init__(self, work: Awaitable[Ended]) -> None:
        self._work = asyncio.ensure_future(work)

    async def wait(self) -> Ended:
        """Wait for the result; a stopped function has failed."""
        try:
            return await self._work
        except asyncio.CancelledError:
            if not self._work.cancelled():
                raise
            return Ended("it was stopped")

    async def stop(self, grace: float, why: str = "") -> None:
        """Cancel the call. A thread cannot be ended: its result is ignored."""
        del grace, why
        self._work.cancel()

    def forget(self) -> None:
        """Do nothing: there is no record of it."""

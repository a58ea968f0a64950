"""Runs an agent that takes one request and returns one result: at a URL, or in this process.

Programs of that kind are run by `program_runner`, like any others. The request is bytes here,
written by the dialect; it carries an id, so that one that is delivered twice counts once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from inspect import isawaitable
from threading import Thread
from typing import Final

from dragoman.agents.http_runner import RemoteRun
from dragoman.engine.ports import Assignment, OnMessage, RunExit

_SUCCESS_STATUSES: Final = range(200, 300)
_MAX_ERROR: Final = 500

WriteRequest = Callable[[Assignment], bytes]
"""Writes the request of an assignment; it may read the store."""
Exchange = Callable[[Mapping[str, str], bytes], tuple[int, bytes]]
"""Posts headers and a body; the status and body of the response, or OSError."""
AgentFunction = Callable[[bytes], bytes | Awaitable[bytes]]
"""A function that takes a request and returns its result; a plain one runs in a thread."""


class HttpRequestRunner:
    """Posts requests to one URL; a result in the response counts, otherwise it comes later."""

    def __init__(self, write: WriteRequest, exchange: Exchange, blocking_pool: Executor) -> None:
        self._write = write
        self._exchange = exchange
        self._blocking_pool = blocking_pool

    async def start(self, assignment: Assignment, on_message: OnMessage) -> RemoteRun:
        """Post the request; any 2xx means that the agent has it."""
        loop = asyncio.get_running_loop()
        status, answer = await loop.run_in_executor(self._blocking_pool, self._post, assignment)
        if status not in _SUCCESS_STATUSES:
            raise OSError(f"the agent's URL answered {status}")
        if answer.strip():
            await on_message(answer)
        return RemoteRun()

    def _post(self, assignment: Assignment) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        return self._exchange(headers, self._write(assignment))


class FunctionRunner:
    """Calls a function of this process."""

    def __init__(self, write: WriteRequest, function: AgentFunction) -> None:
        self._write = write
        self._function = function

    async def start(self, assignment: Assignment, on_message: OnMessage) -> "RunningFunction":
        """Call the function."""
        request = await asyncio.to_thread(self._write, assignment)
        return RunningFunction(self._call(request, on_message))

    async def _call(self, request: bytes, hear: OnMessage) -> RunExit:
        try:
            returned = await _call_in_thread(self._function, request)
            result = await returned if isawaitable(returned) else returned
        except Exception as error:  # noqa: BLE001  whatever an agent does wrong is its failure
            return _failed_run(error)
        if isinstance(result, RunExit):
            return result
        if not isinstance(result, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
            return RunExit(f"its function gave {type(result).__name__}, not bytes")
        return RunExit(await hear(result))


async def _call_in_thread(
    function: AgentFunction, request: bytes
) -> bytes | Awaitable[bytes] | RunExit:
    """Call the function in a thread; one that never ends blocks nobody, nor the end of the
    process."""
    loop = asyncio.get_running_loop()
    returned: asyncio.Future[bytes | Awaitable[bytes] | RunExit] = loop.create_future()

    def resolve(result: bytes | Awaitable[bytes] | RunExit) -> None:
        if not returned.done():  # else it was stopped meanwhile
            returned.set_result(result)

    def run() -> None:
        try:
            result = function(request)
        except BaseException as error:  # noqa: BLE001  SystemExit, too, ends the agent and not us
            result = _failed_run(error)
        with suppress(RuntimeError):  # the hub has ended
            loop.call_soon_threadsafe(resolve, result)

    Thread(target=run, name="agent-function", daemon=True).start()
    return await returned


def _failed_run(error: BaseException) -> RunExit:
    return RunExit(f"{type(error).__name__}: {error}"[:_MAX_ERROR])


class RunningFunction:
    """A running function."""

    renews_lease = True
    output_bytes = 0

    def __init__(self, call: Awaitable[RunExit]) -> None:
        self._call = asyncio.ensure_future(call)

    async def wait(self) -> RunExit:
        """Wait for the result; a stopped function has failed."""
        try:
            return await self._call
        except asyncio.CancelledError:
            if not self._call.cancelled():
                raise
            return RunExit("it was stopped")

    async def stop(self, grace: float, reason: str = "") -> None:
        """Cancel the call. A thread cannot be ended: its result is ignored."""
        del grace, reason
        self._call.cancel()

    def forget(self) -> None:
        """Do nothing: there is no record of it."""

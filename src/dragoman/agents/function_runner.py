"""Runs an agent as a function of this process, which takes one request and returns one result."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from inspect import isawaitable
from threading import Thread
from typing import Final

from dragoman.agents.http_runner import WriteRequest
from dragoman.engine.ports import Assignment, OnMessage, RunExit

_MAX_ERROR: Final = 500

AgentFunction = Callable[[bytes], bytes | Awaitable[bytes]]
"""A function that takes a request and returns its result; a plain one runs in a thread."""


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

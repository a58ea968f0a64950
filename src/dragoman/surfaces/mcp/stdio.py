"""MCP on standard input and output; the hub is opened for each request, as by a command.

The SDK does not answer a line that it cannot read, and at the end of its input drops the requests
that it is still working on. Here such a line is answered, and the end comes after the last answer.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import BinaryIO, Protocol, Self, TypeVar, cast

from mcp import types
from mcp.server import Server
from mcp.shared.message import SessionMessage

from dragoman.engine.auth import Principal
from dragoman.surfaces.mcp.context import HubContext
from dragoman.surfaces.mcp.jsonrpc import InvalidMessage, parse_message

# --- streams ----------------------------------------------------------------------------------

_CANCELLED = "notifications/cancelled"


class PendingRequests:
    """Requests that are not answered yet; two may have the same id."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._is_empty = asyncio.Event()
        self._is_empty.set()

    def on_received(self, message: types.JSONRPCMessage) -> None:
        """Note a received message: a request, or the cancellation of one."""
        if isinstance(message, types.JSONRPCRequest):
            self._ids.append(str(message.id))
            self._is_empty.clear()
        elif isinstance(message, types.JSONRPCNotification) and message.method == _CANCELLED:
            self._settle((message.params or {}).get("requestId"))

    def on_sent(self, message: types.JSONRPCMessage) -> None:
        """Note a sent message: a response, or something else."""
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._settle(message.id)

    async def wait_until_none(self) -> None:
        """Wait until there are none."""
        await self._is_empty.wait()

    def _settle(self, request: object) -> None:
        if str(request) in self._ids:
            self._ids.remove(str(request))
        if not self._ids:
            self._is_empty.set()


class _ClosingStream:
    """A file that is closed at the end of a block."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    async def aclose(self) -> None:
        """Close it, whether or not its other end is open."""
        with suppress(BrokenPipeError):
            self._file.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        del exc_type, exc_val, exc_tb  # it is closed in any case
        await self.aclose()


class StdoutStream(_ClosingStream):
    """Messages of the server; each is one line."""

    def __init__(self, file: BinaryIO, pending: PendingRequests) -> None:
        super().__init__(file)
        self._pending = pending
        self._lock = asyncio.Lock()

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message, in a thread: the client may read slowly."""
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
        async with self._lock:
            await asyncio.to_thread(self._write, line.encode())
        self._pending.on_sent(item.message)

    def _write(self, line: bytes) -> None:
        # A client that reads no more sends no more either: its input ends, and then we do.
        with suppress(BrokenPipeError):
            self._file.write(line)
            self._file.flush()


class StdinStream(_ClosingStream):
    """Messages of the client, and the end of its input once all of them are answered."""

    def __init__(self, file: BinaryIO, stdout: StdoutStream, pending: PendingRequests) -> None:
        super().__init__(file)
        self._stdout = stdout
        self._pending = pending

    def __aiter__(self) -> "StdinStream":
        return self

    async def __anext__(self) -> SessionMessage:
        while line := await asyncio.to_thread(self._file.readline):
            # Some clients write empty lines between their messages.
            if line.isspace():
                continue
            try:
                message = parse_message(line.rstrip())
            except InvalidMessage as fault:
                await self._stdout.send(SessionMessage(fault.response))
                continue
            self._pending.on_received(message)
            return SessionMessage(message)
        await self._pending.wait_until_none()
        raise StopAsyncIteration

    async def receive(self) -> SessionMessage:
        """Return the next message."""
        return await anext(self)


# --- serving ----------------------------------------------------------------------------------

T = TypeVar("T")


class OpenContext(Protocol):
    """Opens a data directory for the caller that the process speaks for."""

    def __call__(self, *, reads: bool) -> AbstractContextManager[HubContext]:
        """Return the context; when it is closed, the files beside the ledger are caught up."""
        ...


class DirectoryContextProvider:
    """Opens and closes the context for each request.

    Between two of them a hub may start or stop beside us: each request goes to whichever is there.
    """

    def __init__(self, open_context: OpenContext) -> None:
        self._open_context = open_context
        self._lock = asyncio.Lock()

    async def run(
        self, principal: Principal | None, work: Callable[[HubContext], T], *, reads: bool
    ) -> T:
        """Run `work` in a thread, one request after the other."""
        assert principal is None, "a process has no principal"
        async with self._lock:
            return await asyncio.to_thread(self._run, work, reads=reads)

    def _run(self, work: Callable[[HubContext], T], *, reads: bool) -> T:
        with self._open_context(reads=reads) as context:
            return work(context)


async def serve(server: Server) -> None:
    """Serve until standard input ends and all is answered, or a signal comes."""
    # A thread that reads standard input cannot be woken, so Ctrl-C ends the process as SIGTERM
    # does; what was answered is committed.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    pending = PendingRequests()
    stdin_file, stdout_file = _take_over("rb", 0), _take_over("wb", 1)
    stdout = StdoutStream(stdout_file, pending)
    stdin = StdinStream(stdin_file, stdout, pending)
    await server.run(stdin, stdout, server.create_initialization_options())


def _take_over(mode: str, descriptor: int) -> BinaryIO:
    """Take over standard input or output for the protocol; everything else gets the null device."""
    stream = os.fdopen(os.dup(descriptor), mode)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, descriptor)
    os.close(null)
    return cast(BinaryIO, stream)

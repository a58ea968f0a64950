"""MCP on standard input and output; the hub is opened for each request, as by a command.

A line is decoded as a body of the HTTP surface is: within the same limits, and not in the event
loop. The SDK would take of two equal keys the last, and leave a line that is no JSON unanswered.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, suppress
from threading import Lock, Semaphore, Thread
from typing import Any, BinaryIO, Final, Protocol, Self, TypeVar, cast

import msgspec
from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server

from dragoman.core.errors import DragomanError
from dragoman.engine.auth import Principal
from dragoman.surfaces.mcp.context import HubContext
from dragoman.surfaces.mcp.leases import HeldLeases, renew_regularly
from dragoman.system.safe_fs import write_all
from dragoman.text.strict_json import (
    StrictJsonError,
    get_field,
    parse_json,
    too_large_error,
)

MAX_LINE_BYTES: Final = 24 * 1024 * 1024
"""As many as a request of the HTTP surface has, unless its settings say otherwise."""

_LAST_ANSWERS_S: Final = 1.0
"""Time for answers after the end of the input; clients that want no more wait two seconds."""

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

    async def keep_leases(self, leases: HeldLeases, ttl_ms: int) -> None:
        """Renew the leases of the client until cancelled: while the process lives."""

        async def renew() -> None:
            with suppress(DragomanError):  # it is tried again, or told with the next answer
                await self.run(
                    None, lambda context: leases.renew(context.hub, context.actor), reads=False
                )

        await renew_regularly(leases, renew, ttl_ms)

    def _run(self, work: Callable[[HubContext], T], *, reads: bool) -> T:
        with self._open_context(reads=reads) as context:
            return work(context)


class _Message(msgspec.Struct, frozen=True):
    """Head of a message: an answer has an id and no method."""

    id: Any = None
    method: str = ""


class _Output:
    """Standard output, where every line is written as a whole."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = Lock()
        self._answers = 0
        self._has_answered = asyncio.Event()

    def write_line(self, line: str) -> None:
        """Write a line, from any thread."""
        with self._lock:
            write_all(self._descriptor, line.encode())

    async def write(self, line: str) -> None:
        """Write a line; the event loop does not wait for a client that does not read."""
        await asyncio.to_thread(self.write_line, line)
        message = msgspec.json.decode(line, type=_Message)
        if message.id is not None and not message.method:
            self._answers += 1
            self._has_answered.set()

    async def wait_for_answers(self, count: int) -> None:
        """Wait until so many requests were answered, but not for long: some never are."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_ANSWERS_S):
                while self._answers < count:
                    self._has_answered.clear()
                    await self._has_answered.wait()

    async def flush(self) -> None:
        """Do nothing: nothing is held back."""


class _Input:
    """Lines of standard input that are JSON; any other is answered with a parse error."""

    def __init__(self, file: BinaryIO, output: _Output) -> None:
        self._file = file
        self._output = output
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._requests = 0
        self._wanted = Semaphore(0)
        """Released for each line that is to be read."""
        # A thread that reads cannot be woken: the process ends without it.
        Thread(target=self._read, name="stdin", daemon=True).start()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        """Return the next line."""
        self._wanted.release()
        line = await self._lines.get()
        if not line:
            # The SDK would drop what it has not answered yet.
            await self._output.wait_for_answers(self._requests)
            raise StopAsyncIteration
        return line

    def _read(self) -> None:
        # The loop may have ended meanwhile, or the client reads no more answers.
        with suppress(RuntimeError, BrokenPipeError):
            while self._wanted.acquire():
                self._loop.call_soon_threadsafe(self._lines.put_nowait, self._next_line())

    def _next_line(self) -> str:
        """Read up to the next line that is JSON; empty: there is none."""
        while line := self._file.readline(MAX_LINE_BYTES + 1):
            try:
                self._requests += _is_request(self._parse(line))
            except StrictJsonError as error:
                self._output.write_line(_parse_error(error))
                continue
            if line.strip():
                return line.decode()
        return ""

    def _parse(self, line: bytes) -> Any:
        """Parse a line, which may be blank; StrictJsonError if it is no JSON."""
        if len(line) > MAX_LINE_BYTES:
            while line and not line.endswith(b"\n"):
                line = self._file.readline(MAX_LINE_BYTES)
            raise too_large_error(MAX_LINE_BYTES)
        return parse_json(line, MAX_LINE_BYTES) if line.strip() else None


def _is_request(message: Any) -> bool:
    return get_field(message, "id") is not None and get_field(message, "method") is not None


def _parse_error(error: StrictJsonError) -> str:
    detail = {"code": types.PARSE_ERROR, "message": f"{error}"}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": detail}).decode() + "\n"


def _claim(descriptor: int, diversion: int) -> int:
    """Move a standard stream to a descriptor of its own, so that nothing else uses it."""
    claimed = os.dup(descriptor)
    os.dup2(diversion, descriptor)
    return claimed


async def serve(server: Server, keep_leases: Coroutine[Any, Any, None]) -> None:
    """Serve until standard input ends, or a signal comes; `keep_leases` runs meanwhile."""
    # A thread that reads standard input cannot be woken, so Ctrl-C ends the process as SIGTERM
    # does; what was answered is committed.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with open(os.devnull, "rb") as nothing:  # noqa: ASYNC230, PTH123  it does not block
        source = os.fdopen(_claim(0, nothing.fileno()), "rb")
    output = _Output(_claim(1, 2))
    lines = cast(Any, _Input(source, output))
    keeper = asyncio.create_task(keep_leases)
    try:
        async with stdio_server(lines, cast(Any, output)) as (received, sent):
            await server.run(received, sent, server.create_initialization_options())
    except* BrokenPipeError:
        pass  # the client reads no more answers
    finally:
        keeper.cancel()

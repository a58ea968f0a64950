"""MCP on standard input and output: the desk is opened for each request, as a command does it."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol, TypeVar, cast

from mcp.server import Server

from dragoman.engine.identity import Principal
from dragoman.surfaces.mcp.conversation import PendingRequests, StdinStream, StdoutStream
from dragoman.surfaces.mcp.desk import HubContext

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

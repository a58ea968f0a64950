"""MCP on standard input and output; the hub is opened for each request, as by a command."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from mcp.server import Server
from mcp.server.stdio import stdio_server

from dragoman.engine.auth import Principal
from dragoman.surfaces.mcp.context import HubContext

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
    """Serve until standard input ends, or a signal comes."""
    # A thread that reads standard input cannot be woken, so Ctrl-C ends the process as SIGTERM
    # does; what was answered is committed.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())
    except* BrokenPipeError:
        pass  # the client reads no more answers

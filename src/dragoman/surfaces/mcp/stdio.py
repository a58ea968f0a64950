"""MCP on standard input and output: the desk is opened for each request, as a command does it."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol, TypeVar, cast

from mcp.server import Server

from dragoman.engine.identity import Principal
from dragoman.surfaces.mcp.conversation import Ears, Mouth, Unanswered
from dragoman.surfaces.mcp.desk import Desk

T = TypeVar("T")


class OpenDesk(Protocol):
    """Opens a data directory for the caller that the process speaks for."""

    def __call__(self, *, reads: bool) -> AbstractContextManager[Desk]:
        """Return the context; when it is closed, the files beside the ledger are caught up."""
        ...


class OwnRoom:
    """Opens and closes the context for each request.

    Between two of them a hub may start or stop beside us: each request goes to whichever is there.
    """

    def __init__(self, open_desk: OpenDesk) -> None:
        self._open_desk = open_desk
        self._turn = asyncio.Lock()

    async def at_desk(
        self, principal: Principal | None, work: Callable[[Desk], T], *, reads: bool
    ) -> T:
        """Run `work` in a thread, one request after the other."""
        assert principal is None, "a process has no principal"
        async with self._turn:
            return await asyncio.to_thread(self._work, work, reads=reads)

    def _work(self, work: Callable[[Desk], T], *, reads: bool) -> T:
        with self._open_desk(reads=reads) as desk:
            return work(desk)


async def serve(server: Server) -> None:
    """Serve until standard input ends and all is answered, or a signal comes."""
    # A thread that reads standard input cannot be woken, so Ctrl-C ends the process as SIGTERM
    # does; what was answered is committed.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    unanswered = Unanswered()
    listening, speaking = _taken("rb", 0), _taken("wb", 1)
    mouth = Mouth(speaking, unanswered)
    ears = Ears(listening, mouth, unanswered)
    await server.run(ears, mouth, server.create_initialization_options())


def _taken(mode: str, number: int) -> BinaryIO:
    """Take over standard input or output for the protocol; everything else gets the null device."""
    taken = os.fdopen(os.dup(number), mode)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, number)
    os.close(nothing)
    return cast(BinaryIO, taken)

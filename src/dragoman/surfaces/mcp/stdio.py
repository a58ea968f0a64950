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
    """How a data directory is opened for whoever the process speaks for."""

    def __call__(self, *, reads: bool) -> AbstractContextManager[Desk]:
        """The desk; at the end what lies beside the ledger is level with it."""
        ...


class OwnRoom:
    """A room that is opened and closed for each request.

    Between two of them a hub may start or stop beside us: whoever is there then is spoken to.
    """

    def __init__(self, open_desk: OpenDesk) -> None:
        self._open_desk = open_desk
        self._turn = asyncio.Lock()

    async def at_desk(
        self, principal: Principal | None, work: Callable[[Desk], T], *, reads: bool
    ) -> T:
        """Work in a thread, one request after the other."""
        assert principal is None, "nobody else speaks through this process"
        async with self._turn:
            return await asyncio.to_thread(self._work, work, reads=reads)

    def _work(self, work: Callable[[Desk], T], *, reads: bool) -> T:
        with self._open_desk(reads=reads) as desk:
            return work(desk)


async def serve(server: Server) -> None:
    """Serve until standard input ends and all is answered, or a signal comes."""
    # Nothing wakes whoever reads standard input, so Ctrl-C ends the process as SIGTERM does; what
    # was answered is committed.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    unanswered = Unanswered()
    listening, speaking = _taken("rb", 0), _taken("wb", 1)
    mouth = Mouth(speaking, unanswered)
    ears = Ears(listening, mouth, unanswered)
    await server.run(ears, mouth, server.create_initialization_options())


def _taken(mode: str, number: int) -> BinaryIO:
    """Standard input or output for the conversation alone: whoever else uses it meets nothing."""
    taken = os.fdopen(os.dup(number), mode)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, number)
    os.close(nothing)
    return cast(BinaryIO, taken)

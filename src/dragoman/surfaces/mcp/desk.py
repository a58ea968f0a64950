"""What a tool works at: the hub, what is spoken there, and how to get to it without blocking."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from dragoman.config import Settings
from dragoman.core.actors import Actor
from dragoman.core.commands import AnyCommand
from dragoman.core.errors import Refusal, Refused
from dragoman.core.reading import Receipt
from dragoman.engine.hub import Hub
from dragoman.engine.identity import Principal
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.reads.ask import TaskView, find_task

VIA = "mcp"
_THREADS = 8

T = TypeVar("T")


class Desk(Struct, frozen=True):
    """The hub with a caller before it, while one request is answered."""

    hub: Hub
    interpreter: Interpreter
    settings: Settings
    actor: Actor
    remarks: list[str] = []
    """What the caller is told beside the answer."""

    @property
    def now(self) -> int:
        """The hub's time."""
        return self.hub.clock.now()

    def do(self, *commands: AnyCommand) -> Receipt:
        """Run commands, all or none; what the last one came to. A refusal is raised."""
        accepted = self.hub.do(self.actor, *commands)
        self.remarks.extend((*accepted.warnings, *accepted.masked))
        return accepted.receipts[-1]

    def task(self, name: str) -> TaskView:
        """The task of this name; a refusal is raised."""
        found = find_task(self.hub.store, name)
        if isinstance(found, Refusal):
            raise Refused(found)
        return found


class Room(Protocol):
    """How a server comes to a desk."""

    async def at_desk(
        self, principal: Principal | None, work: Callable[[Desk], T], *, reads: bool
    ) -> T:
        """Do the work for whoever this is, by the request or (None) by the room itself."""
        ...


class HubRoom:
    """The room of a hub that runs in this process."""

    def __init__(self, hub: Hub, interpreter: Interpreter, settings: Settings) -> None:
        self._reading = ThreadPoolExecutor(_THREADS, thread_name_prefix="mcp-reads")
        # Whoever writes waits for the writer, and meanwhile must not keep others from reading.
        self._writing = ThreadPoolExecutor(_THREADS, thread_name_prefix="mcp-writes")
        self._hub = hub
        self._interpreter = interpreter
        self._settings = settings

    async def at_desk(
        self, principal: Principal | None, work: Callable[[Desk], T], *, reads: bool
    ) -> T:
        """Work in a thread, because the store may wait for a disk or a network."""
        assert principal is not None, "the guard lets nobody through that it does not know"
        actor = replace(principal.actor, via=VIA)
        desk = Desk(self._hub, self._interpreter, self._settings, actor)
        threads = self._reading if reads else self._writing
        return await asyncio.get_running_loop().run_in_executor(threads, work, desk)

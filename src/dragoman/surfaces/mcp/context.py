"""Context of an MCP request: the hub, the router and the caller; and running work in a thread."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from dragoman.config import Settings
from dragoman.core.actor import Actor
from dragoman.core.base import Command
from dragoman.core.errors import Refusal, Refused
from dragoman.core.read import Receipt
from dragoman.engine.auth import Principal
from dragoman.engine.hub import Hub
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.engine.router import Router

VIA = "mcp"
_MAX_THREADS = 8

T = TypeVar("T")


class HubContext(Struct, frozen=True):
    """The hub, the router and the caller of one request."""

    hub: Hub
    router: Router
    settings: Settings
    actor: Actor
    warnings: list[str] = []
    """Warnings that are sent beside the result."""

    @property
    def now(self) -> int:
        """The hub's time."""
        return self.hub.clock.now()

    def submit(self, *commands: Command) -> Receipt:
        """Run commands, all or none; return the receipt of the last one. A refusal is raised."""
        accepted = self.hub.submit(self.actor, *commands)
        self.warnings.extend((*accepted.warnings, *accepted.redaction_warnings))
        return accepted.receipts[-1]

    def find_task(self, name: str) -> TaskView:
        """Find a task by any of its names; a refusal is raised."""
        found = find_task(self.hub.store, name)
        if isinstance(found, Refusal):
            raise Refused(found)
        return found


class ContextProvider(Protocol):
    """Provides the context of a request to a function."""

    async def run(
        self, principal: Principal | None, work: Callable[[HubContext], T], *, reads: bool
    ) -> T:
        """Run `work` for this caller; None: the process itself is the caller."""
        ...


class HubContextProvider:
    """Provides contexts of a hub that runs in this process."""

    def __init__(self, hub: Hub, router: Router, settings: Settings) -> None:
        self._read_threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="mcp-reads")
        # Writes have threads of their own: they wait for the writer, and must not block reads.
        self._write_threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="mcp-writes")
        self._hub = hub
        self._router = router
        self._settings = settings

    async def run(
        self, principal: Principal | None, work: Callable[[HubContext], T], *, reads: bool
    ) -> T:
        """Run `work` in a thread, because the store may wait for a disk or a network."""
        assert principal is not None, "an HTTP request has a principal"
        actor = replace(principal.actor, via=VIA)
        context = HubContext(self._hub, self._router, self._settings, actor)
        threads = self._read_threads if reads else self._write_threads
        return await asyncio.get_running_loop().run_in_executor(threads, work, context)

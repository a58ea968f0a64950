"""Context of an MCP request: the hub, the router and the caller; and running work in a thread."""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from dragoman.config import Settings
from dragoman.core.actor import Actor
from dragoman.core.base import Command
from dragoman.core.errors import DragomanError, Refusal, Refused
from dragoman.core.read import Receipt
from dragoman.engine.auth import Principal
from dragoman.engine.hub import Hub
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.engine.queries.visibility import Reader, find_reader
from dragoman.engine.router import Router
from dragoman.files.task_branches import TaskBranches
from dragoman.surfaces.mcp.leases import HeldLeases, Sleep, renew_regularly

VIA = "mcp"
_MAX_THREADS = 8

T = TypeVar("T")


class HubContext(Struct, frozen=True):
    """The hub, the router and the caller of one request."""

    hub: Hub
    router: Router
    settings: Settings
    actor: Actor
    leases: HeldLeases
    """Leases that the client holds."""
    branches: TaskBranches
    warnings: list[str] = []
    """Warnings that are sent beside the result."""

    @property
    def now(self) -> int:
        """The hub's time."""
        return self.hub.clock.now()

    @property
    def reader(self) -> Reader:
        """The caller, as a reader of what is not for everybody."""
        return find_reader(self.actor, self.settings.teamspaces)

    def submit(self, *commands: Command) -> Receipt:
        """Run commands, all or none; return the receipt of the last one. A refusal is raised."""
        accepted = self.hub.submit(self.actor, *commands)
        self.warnings.extend((*accepted.warnings, *accepted.redaction_warnings))
        self.note(accepted.receipts)
        return accepted.receipts[-1]

    def note(self, receipts: Iterable[Receipt]) -> None:
        """Note what the client holds after it has written."""
        self.leases.note(self.hub.store, self.actor, receipts)

    def take_warnings(self) -> list[str]:
        """Take the warnings for the answer; a lost lease is among them, once."""
        return [*self.warnings, *self.leases.take_lost(self.hub.store, self.actor)]

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
    """Provides contexts of a hub that runs in this process.

    A client is alive while it makes calls, or has a stream open: either renews its leases.
    """

    def __init__(
        self, hub: Hub, router: Router, settings: Settings, branches: TaskBranches
    ) -> None:
        self._read_threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="mcp-reads")
        # Writes have threads of their own: they wait for the writer, and must not block reads.
        self._write_threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="mcp-writes")
        self._hub = hub
        self._router = router
        self._settings = settings
        self._branches = branches
        self._leases: dict[Actor, HeldLeases] = {}
        self._renewals: set[asyncio.Future[None]] = set()

    async def run(
        self, principal: Principal | None, work: Callable[[HubContext], T], *, reads: bool
    ) -> T:
        """Run `work` in a thread, because the store may wait for a disk or a network."""
        assert principal is not None, "an HTTP request has a principal"
        actor, leases = self._caller(principal)
        if leases.is_due():
            # A read does not wait for it.
            renewal = asyncio.ensure_future(self._renew(actor, leases))
            self._renewals.add(renewal)
            renewal.add_done_callback(self._renewals.discard)
        context = HubContext(self._hub, self._router, self._settings, actor, leases, self._branches)
        threads = self._read_threads if reads else self._write_threads
        return await asyncio.get_running_loop().run_in_executor(threads, work, context)

    async def keep_leases(self, principal: Principal, sleep: Sleep = asyncio.sleep) -> None:
        """Renew the leases of a caller until cancelled: while it has a stream open."""
        actor, leases = self._caller(principal)
        ttl_ms = self._settings.leases.ttl_ms
        await renew_regularly(leases, lambda: self._renew(actor, leases), ttl_ms, sleep)

    async def _renew(self, actor: Actor, leases: HeldLeases) -> None:
        loop = asyncio.get_running_loop()
        with suppress(DragomanError):
            await loop.run_in_executor(self._write_threads, leases.renew, self._hub, actor)

    def _caller(self, principal: Principal) -> tuple[Actor, HeldLeases]:
        """Return the actor of a caller, and its leases; those of callers that have gone go."""
        actor = replace(principal.actor, via=VIA)
        if actor not in self._leases:
            kept = {other: held for other, held in self._leases.items() if not held.is_forgotten()}
            self._leases = kept | {actor: HeldLeases(self._hub.clock, is_shared=True)}
        return actor, self._leases[actor]

"""Backend of the SDK tests: a hub on disk that can be stopped and restarted, behind a relay."""

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from dragoman.client import Hub, connect
from dragoman.config import HttpSettings, LeaseSettings
from dragoman.core.actor import Actor
from dragoman.core.backoff import Backoff
from dragoman.core.task_state import CreateTask
from dragoman.engine.queries.entries import all_entries
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.ledger.entry import Line, read_line
from dragoman.services.timers import LeaseExpiry, RetryPromotion
from dragoman.store.sqlite import SqliteStore
from tests.client.relay import Relay, running_relay
from tests.surfaces.http.hub_server import HERA, START, HubServer, serving

T = TypeVar("T")
HEARTBEAT_MS = 200
"""Short, so that a loss is noticed soon; the lease outlasts every pause of the machine."""


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine with a timeout."""

    async def bounded() -> T:
        async with asyncio.timeout(60):
            return await coroutine

    return asyncio.run(bounded())


class Backend:
    """Hub that can be stopped and started again."""

    def __init__(self, folder: Path, relay: Relay, leases: LeaseSettings) -> None:
        self.relay = relay
        self._leases = leases
        self._path = folder / "dragoman.db"
        self._port = self._starts = 0
        self._serving = ExitStack()
        self.server = self._start(START)
        self.tokens = self.server.tokens
        for name in ("ada", "bob"):
            self.server.add_agent(name)

    @property
    def url(self) -> str:
        """URL of the hub without the relay."""
        return f"http://127.0.0.1:{self._port}"

    def connect(self, agent: str = "ada", patience: float = 30.0) -> Hub:
        """Connect as an agent, through the relay."""
        return connect(self.relay.url, self.tokens[agent], patience=patience)

    @property
    def owner(self) -> Actor:
        """Actor of the owner."""
        return HERA

    def create_task(self, title: str, **fields: Any) -> str:
        """Create a ready task."""
        return self.server.submit(CreateTask(title, ready=True, **fields))

    def stop(self) -> None:
        """Stop the hub."""
        self._serving.close()

    def start(self) -> None:
        """Start the hub again, on the same port and store."""
        self.server = self._start(self.server.clock.now())
        self.server.tokens = self.tokens

    def advance(self, milliseconds: int) -> None:
        """Advance the clock of the hub, and run its services."""
        self.server.clock.advance(milliseconds)
        now = self.server.clock.now()
        LeaseExpiry(self.server.hub, Backoff()).run_once(now)
        RetryPromotion(self.server.hub).run_once(now)

    def status(self, task: str) -> str:
        """Return the status of a task."""
        view = find_task(self.server.store, task)
        assert isinstance(view, TaskView)
        return view.task.status

    def streams_with(self, event: str) -> list[str]:
        """Return the stream of each event of this name."""
        return [line.stream for line in self.lines() if line.event == event]

    def lines(self) -> list[Line[Any]]:
        """Return all lines of the ledger."""
        return [read_line(entry.line) for entry in all_entries(self.server.store)]

    def _start(self, at: int) -> HubServer:
        http = HttpSettings(
            port=self._port,
            rate_per_second=0,
            allowed_hosts=(f"127.0.0.1:{self.relay.port}",),
        )
        server = HubServer(
            SqliteStore.open(self._path, lambda: "stage"), http=http, leases=self._leases
        )
        server.clock.advance(at - START)
        self._starts += 1
        for _ in range(10_000 * self._starts):
            server.ids()  # a restarted hub must not reuse ids of requests
        self._serving.enter_context(serving(server))
        self._port = self.relay.target = server.port
        return server


@contextmanager
def running_backend(folder: Path, leases: LeaseSettings | None = None) -> Generator[Backend]:
    """Run a backend, and stop it at the end."""
    with running_relay() as relay:
        backend = Backend(folder, relay, leases or LeaseSettings())
        try:
            yield backend
        finally:
            backend.stop()

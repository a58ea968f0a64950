"""Wake-ups: no hint is lost that comes between the last read and the sleep of its receiver.

Each part of the hub that waits for hints is tested with a commit in that very moment; its next
scheduled read is an hour away. A build that clears a hint after its read waits here until the test
times out.
"""

import asyncio
from collections.abc import Callable, Collection
from queue import SimpleQueue
from typing import Final, TypeVar

import pytest

from dragoman.core.actor import Actor
from dragoman.core.agent import RegisterAgent
from dragoman.core.backoff import Backoff
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Assignment, OnMessage, RunExit, StreamRow, Transaction
from dragoman.engine.queries.visibility import EntrySource
from dragoman.engine.subscribe import CommitHints, RecentEntries
from dragoman.ledger.entry import Entry
from dragoman.services.dispatch.agent_run import RunPolicy
from dragoman.services.dispatch.agent_slots import AgentSpec
from dragoman.services.dispatch.dispatcher import Dispatcher, DispatcherPorts, DispatchPolicy
from dragoman.services.scheduler import GroupWorker, ServiceGroup
from dragoman.store.memory import MemoryStore
from dragoman.surfaces.http.fanout import Feed
from dragoman.system.clock import ManualClock, SequentialIds
from tests.crash.scenario import START
from tests.requirements import proves
from tests.surfaces.http.hub_server import HERA

pytestmark = proves("CRASH-TEETH")

T = TypeVar("T")

HOUR_S: Final = 3_600
HOUR_MS: Final = HOUR_S * 1_000
PATIENCE_S: Final = 20
COMMITS: Final = 5
ADA: Final = "ada"


class HookedStore(MemoryStore):
    """Store that runs a hook right after a read, before the reader gets the result."""

    def __init__(self) -> None:
        super().__init__("snared")
        self.hooks: dict[str, Callable[[], object]] = {}
        """Read -> hook that runs once after it."""

    def run_hook(self, read: str) -> None:
        """Run the hook of this read."""
        self.hooks.pop(read, lambda: None)()

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        """Read a page of the ledger; the hook runs after the last one."""
        page = super().entries(after, limit, until=until)
        if len(page) < limit:
            self.run_hook("entries")
        return page

    def stream(self, name: str) -> StreamRow | None:
        """Read a stream; its hook has its name."""
        row = super().stream(name)
        self.run_hook(name)
        return row

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Run a transaction; the hook runs after one that found no work."""
        found = super().transact(work)
        if found == {}:
            self.run_hook("work")
        return found


class HookedTail(RecentEntries):
    """Tail of the ledger with the same hook."""

    def __init__(self, store: HookedStore) -> None:
        super().__init__()
        self._store = store

    def after(self, position: int, limit: int) -> list[Entry]:
        """Read what follows a position, then run the hook."""
        found = super().after(position, limit)
        self._store.run_hook("entries")
        return found


def make_hub(store: HookedStore, hints: CommitHints) -> Hub:
    """Make a hub on the store."""
    return Hub(
        Engine(store, ManualClock(START), bytes(32), on_commit=hints.notify), SequentialIds()
    )


@pytest.mark.parametrize("is_written_here", [True, False])
def test_feed_loses_no_wakeup(is_written_here: bool) -> None:
    store, hints = HookedStore(), CommitHints()
    hub = make_hub(store, hints)
    tail = RecentEntries()
    if is_written_here:
        tail = hub.engine.recent_entries = HookedTail(store)

    def commit() -> None:
        if store.head() < COMMITS:
            store.hooks["entries"] = commit
            hub.submit(HERA, CreateTask("In between"))

    async def run() -> None:
        feed = Feed(EntrySource(store, {}), hints, tail, poll_interval=HOUR_S)
        store.hooks["entries"] = commit
        async with asyncio.timeout(PATIENCE_S), feed.open_waiter() as waiter:
            while feed.head < COMMITS:
                await waiter.wait(HOUR_S)

    asyncio.run(run())


class IdleAgent:
    """Agent that does nothing until it is stopped."""

    renews_lease = True
    output_bytes = 0

    def __init__(self, on_start: Callable[[], None] = lambda: None) -> None:
        self._on_start = on_start
        self.started = asyncio.Event()
        self.stopped = asyncio.Event()

    async def start(self, assignment: Assignment, on_message: OnMessage) -> "IdleAgent":
        self._on_start()
        self.started.set()
        return self

    async def wait(self) -> RunExit:
        """Wait until it was stopped."""
        await self.stopped.wait()
        return RunExit()

    async def stop(self, grace: float, reason: str = "") -> None:
        self.stopped.set()

    def forget(self) -> None:
        """Keep nothing."""


class NullUsage:
    """Usage file that keeps nothing."""

    def load(self) -> bytes:
        return b""

    def save(self, data: bytes) -> None:
        """Ignore it."""


async def _ignore_output(_: Actor, __: bytes) -> str:
    """Ignore the output of an agent."""
    return ""


def make_dispatcher(hub: Hub, hints: CommitHints, runner: IdleAgent) -> Dispatcher:
    """Make a dispatcher whose own schedule is once an hour."""
    hub.submit(HERA, RegisterAgent(ADA))
    outside = DispatcherPorts(
        _ignore_output, frozenset, list[str]().append, NullUsage(), SequentialIds(), print
    )
    policy = DispatchPolicy("hub", 1, 3 * HOUR_MS, HOUR_MS, 0, RunPolicy(Backoff(), 1.0))
    agent = AgentSpec(ADA, runner, ("",), lambda task, _: task.title)
    dispatcher = Dispatcher(hub, [agent], policy, outside)
    hints.subscribe(dispatcher.hint)
    return dispatcher


def test_dispatcher_loses_no_wakeup() -> None:
    store, hints = HookedStore(), CommitHints()
    hub = make_hub(store, hints)

    async def run() -> None:
        agent = IdleAgent()
        dispatcher = make_dispatcher(hub, hints, agent)
        store.hooks["work"] = lambda: hub.submit(HERA, CreateTask("New", ready=True))
        async with asyncio.TaskGroup() as group, asyncio.timeout(PATIENCE_S):
            group.create_task(dispatcher.run())
            await agent.started.wait()
            dispatcher.stop()

    asyncio.run(run())


def test_watched_attempt_loses_no_wakeup() -> None:
    store, hints = HookedStore(), CommitHints()
    hub = make_hub(store, hints)

    def set_hook() -> None:
        # It begins with a read of its task; right after that read the task is cancelled.
        store.hooks["task:t"] = lambda: hub.submit(HERA, MoveTask("t", "cancelled"))

    async def run() -> None:
        agent = IdleAgent(set_hook)
        dispatcher = make_dispatcher(hub, hints, agent)
        hub.submit(HERA, CreateTask("One", id="t", ready=True))
        async with asyncio.TaskGroup() as group, asyncio.timeout(PATIENCE_S):
            group.create_task(dispatcher.run())
            await agent.stopped.wait()
            dispatcher.stop()

    asyncio.run(run())


class HintingService:
    """Duty during which a hint comes, after its read and before its end."""

    name = "busy"

    def __init__(self) -> None:
        self.runs = SimpleQueue[int]()
        self.hint: Callable[[Collection[str]], None] = print

    def run_once(self, now: int) -> int:
        """Record the run; then comes a hint."""
        self.runs.put(now)
        self.hint(("task:t",))
        return 0


def test_scheduled_duties_lose_no_wakeup() -> None:
    service = HintingService()
    wheel = GroupWorker(ServiceGroup("g", (), (service,), HOUR_S), lambda: START)
    service.hint = wheel.hint
    wheel.start()
    for _ in range(4):
        service.runs.get(timeout=PATIENCE_S)
    assert wheel.stop(PATIENCE_S)

"""Whoever sleeps until a hint loses none that comes between its last look and its sleep.

Each part of the hub that does so is tried with a commit in that very moment; the next look that it
would take by itself is an hour away. A build that forgets a hint after it has looked waits here
until the patience of the test is at its end.
"""

import asyncio
from collections.abc import Callable, Collection
from queue import SimpleQueue
from typing import Final, TypeVar

import pytest

from dragoman.core.actors import Actor
from dragoman.core.commands import CreateTask, MoveTask, RegisterAgent, RevokeToken
from dragoman.core.deadlines import Backoff
from dragoman.core.errors import Refusal
from dragoman.engine.handle import Engine
from dragoman.engine.hints import Hints
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Row, Session
from dragoman.engine.runner import Assignment, Ended, Hear
from dragoman.engine.tail import Tail
from dragoman.ledger.entry import Entry
from dragoman.services.attempt import Terms
from dragoman.services.clockwork import Group, Wheel
from dragoman.services.desk import Agent
from dragoman.services.dispatcher import Dispatcher, Outside, Policy
from dragoman.store.memory import MemoryStore
from dragoman.surfaces.http.feed import Feed
from dragoman.surfaces.http.stays import Stays
from dragoman.system.clock import HandClock
from dragoman.system.ids import CountingIds
from tests.crash.scenario import START
from tests.requirements import proves
from tests.surfaces.http.hub_server import HERA, HubServer

pytestmark = proves("CRASH-TEETH")

T = TypeVar("T")

HOUR_S: Final = 3_600
HOUR_MS: Final = HOUR_S * 1_000
PATIENCE_S: Final = 20
COMMITS: Final = 5
ADA: Final = "ada"


class HookedStore(MemoryStore):
    """A store in which, right after a look, something is committed before the looker knows it."""

    def __init__(self) -> None:
        super().__init__("snared")
        self.hooks: dict[str, Callable[[], object]] = {}
        """The look -> what is done after it, once."""

    def run_hook(self, read: str) -> None:
        """Do what is to be done after this look."""
        self.hooks.pop(read, lambda: None)()

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        """A page of the ledger; the snare is behind the last one."""
        page = super().entries(after, limit, until=until)
        if len(page) < limit:
            self.run_hook("entries")
        return page

    def stream(self, name: str) -> Row | None:
        """One stream; the snare has its name."""
        row = super().stream(name)
        self.run_hook(name)
        return row

    def transact(self, work: Callable[[Session], T]) -> T:
        """The snare is behind a look for work that found none."""
        found = super().transact(work)
        if found == {}:
            self.run_hook("work")
        return found


class HookedTail(Tail):
    """What was written here, with the same snare."""

    def __init__(self, store: HookedStore) -> None:
        super().__init__()
        self._store = store

    def after(self, position: int, limit: int) -> list[Entry]:
        """What follows a position; the snare is behind it."""
        found = super().after(position, limit)
        self._store.run_hook("entries")
        return found


def make_hub(store: HookedStore, hints: Hints) -> Hub:
    """A hub on it."""
    return Hub(Engine(store, HandClock(START), bytes(32), on_commit=hints.tell), CountingIds())


@pytest.mark.parametrize("is_written_here", [True, False])
def test_feed_loses_no_wakeup(is_written_here: bool) -> None:
    store, hints = HookedStore(), Hints()
    hub = make_hub(store, hints)
    tail = Tail()
    if is_written_here:
        tail = hub.engine.tail = HookedTail(store)

    def commit() -> None:
        if store.head() < COMMITS:
            store.hooks["entries"] = commit
            hub.do(HERA, CreateTask("In between"))

    async def run() -> None:
        feed = Feed(store, hints, tail, look=HOUR_S)
        store.hooks["entries"] = commit
        async with asyncio.timeout(PATIENCE_S), feed.seat() as seat:
            while feed.head < COMMITS:
                await seat.wait(HOUR_S)

    asyncio.run(run())


class IdleAgent:
    """An agent that does nothing until it is stopped."""

    is_beating = True
    said = 0

    def __init__(self, on_start: Callable[[], None] = lambda: None) -> None:
        self._on_start = on_start
        self.started = asyncio.Event()
        self.stopped = asyncio.Event()

    async def start(self, assignment: Assignment, hear: Hear) -> "IdleAgent":
        """Begin."""
        self._on_start()
        self.started.set()
        return self

    async def wait(self) -> Ended:
        """Until it was stopped."""
        await self.stopped.wait()
        return Ended()

    async def stop(self, grace: float, why: str = "") -> None:
        """End."""
        self.stopped.set()

    def forget(self) -> None:
        """Nothing is kept."""


class NullUsage:
    """What agents have used is not kept."""

    def load(self) -> bytes:
        """Nothing."""
        return b""

    def save(self, data: bytes) -> None:
        """Let it go."""


async def _ignore_output(_: Actor, __: bytes) -> str:
    """Nothing is to be noted beside what an agent says."""
    return ""


def make_dispatcher(hub: Hub, hints: Hints, runner: IdleAgent) -> Dispatcher:
    """A dispatcher that, of itself, looks once an hour."""
    hub.do(HERA, RegisterAgent(ADA))
    outside = Outside(
        _ignore_output, frozenset, list[str]().append, NullUsage(), CountingIds(), print
    )
    policy = Policy("hub", 1, 3 * HOUR_MS, HOUR_MS, 0, Terms(Backoff(), 1.0, "release"))
    agent = Agent(ADA, runner, ("",), lambda task, _: task.title)
    dispatcher = Dispatcher(hub, [agent], policy, outside)
    hints.listen(dispatcher.hint)
    return dispatcher


def test_dispatcher_loses_no_wakeup() -> None:
    store, hints = HookedStore(), Hints()
    hub = make_hub(store, hints)

    async def run() -> None:
        agent = IdleAgent()
        dispatcher = make_dispatcher(hub, hints, agent)
        store.hooks["work"] = lambda: hub.do(HERA, CreateTask("New", ready=True))
        async with asyncio.TaskGroup() as group, asyncio.timeout(PATIENCE_S):
            group.create_task(dispatcher.run())
            await agent.started.wait()
            dispatcher.stop()

    asyncio.run(run())


def test_watched_attempt_loses_no_wakeup() -> None:
    store, hints = HookedStore(), Hints()
    hub = make_hub(store, hints)

    def set_hook() -> None:
        # It begins with a look at its task; right behind that look somebody takes it away.
        store.hooks["task:t"] = lambda: hub.do(HERA, MoveTask("t", "cancelled"))

    async def run() -> None:
        agent = IdleAgent(set_hook)
        dispatcher = make_dispatcher(hub, hints, agent)
        hub.do(HERA, CreateTask("One", id="t", ready=True))
        async with asyncio.TaskGroup() as group, asyncio.timeout(PATIENCE_S):
            group.create_task(dispatcher.run())
            await agent.stopped.wait()
            dispatcher.stop()

    asyncio.run(run())


class HintingDuty:
    """A duty during which something is committed: it has looked, and has not ended."""

    name = "busy"

    def __init__(self) -> None:
        self.runs = SimpleQueue[int]()
        self.hint: Callable[[Collection[str]], None] = print

    def run_once(self, now: int) -> int:
        """Look; then there is a hint."""
        self.runs.put(now)
        self.hint(("task:t",))
        return 0


def test_scheduled_duties_lose_no_wakeup() -> None:
    duty = HintingDuty()
    wheel = Wheel(Group("g", (), (duty,), HOUR_S), lambda: START)
    duty.hint = wheel.hint
    wheel.start()
    for _ in range(4):
        duty.runs.get(timeout=PATIENCE_S)
    assert wheel.stop(PATIENCE_S)


def test_stream_closes_when_token_is_revoked_during_read() -> None:
    store = HookedStore()
    house = HubServer(store)
    token = house.add_agent(ADA)

    async def run() -> None:
        closed = asyncio.Event()
        stays = Stays(house.identity, house.hints, HOUR_S)
        principal = house.identity.who(token, "http")
        assert not isinstance(principal, Refusal)
        async with asyncio.timeout(PATIENCE_S):
            with stays.stay(principal, token, closed.set):
                await asyncio.sleep(0)
                house.clock.advance(HOUR_MS)
                store.hooks[f"agent:{ADA}"] = lambda: house.submit(RevokeToken(ADA))
                house.submit(RegisterAgent("bob"))
                await closed.wait()

    asyncio.run(run())

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
from tests.crash.story import START
from tests.requirements import proves
from tests.surfaces.http.hub_server import HERA, HubServer

pytestmark = proves("CRASH-TEETH")

T = TypeVar("T")

HOUR_S: Final = 3_600
HOUR_MS: Final = HOUR_S * 1_000
PATIENCE_S: Final = 20
IN_BETWEEN: Final = 5
ADA: Final = "ada"


class Snared(MemoryStore):
    """A store in which, right after a look, something is committed before the looker knows it."""

    def __init__(self) -> None:
        super().__init__("snared")
        self.after_look: dict[str, Callable[[], object]] = {}
        """The look -> what is done after it, once."""

    def spring(self, look: str) -> None:
        """Do what is to be done after this look."""
        self.after_look.pop(look, lambda: None)()

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        """A page of the ledger; the snare is behind the last one."""
        page = super().entries(after, limit, until=until)
        if len(page) < limit:
            self.spring("entries")
        return page

    def stream(self, name: str) -> Row | None:
        """One stream; the snare has its name."""
        row = super().stream(name)
        self.spring(name)
        return row

    def transact(self, work: Callable[[Session], T]) -> T:
        """The snare is behind a look for work that found none."""
        found = super().transact(work)
        if found == {}:
            self.spring("work")
        return found


class SnaredTail(Tail):
    """What was written here, with the same snare."""

    def __init__(self, store: Snared) -> None:
        super().__init__()
        self._store = store

    def after(self, position: int, limit: int) -> list[Entry]:
        """What follows a position; the snare is behind it."""
        found = super().after(position, limit)
        self._store.spring("entries")
        return found


def snared_hub(store: Snared, hints: Hints) -> Hub:
    """A hub on it."""
    return Hub(Engine(store, HandClock(START), bytes(32), on_commit=hints.tell), CountingIds())


@pytest.mark.parametrize("is_written_here", [True, False])
def test_the_feed_of_all_who_wait_loses_no_wake_up(is_written_here: bool) -> None:
    store, hints = Snared(), Hints()
    hub = snared_hub(store, hints)
    tail = Tail()
    if is_written_here:
        tail = hub.engine.tail = SnaredTail(store)

    def commit() -> None:
        if store.head() < IN_BETWEEN:
            store.after_look["entries"] = commit
            hub.do(HERA, CreateTask("In between"))

    async def story() -> None:
        feed = Feed(store, hints, tail, look=HOUR_S)
        store.after_look["entries"] = commit
        async with asyncio.timeout(PATIENCE_S), feed.seat() as seat:
            while feed.head < IN_BETWEEN:
                await seat.wait(HOUR_S)

    asyncio.run(story())


class Idle:
    """An agent that does nothing until it is stopped."""

    is_beating = True
    said = 0

    def __init__(self, on_start: Callable[[], None] = lambda: None) -> None:
        self._on_start = on_start
        self.started = asyncio.Event()
        self.stopped = asyncio.Event()

    async def start(self, assignment: Assignment, hear: Hear) -> "Idle":
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


class Unkept:
    """What agents have used is not kept."""

    def load(self) -> bytes:
        """Nothing."""
        return b""

    def save(self, data: bytes) -> None:
        """Let it go."""


async def _mute(_: Actor, __: bytes) -> str:
    """Nothing is to be noted beside what an agent says."""
    return ""


def dispatching(hub: Hub, hints: Hints, runner: Idle) -> Dispatcher:
    """A dispatcher that, of itself, looks once an hour."""
    hub.do(HERA, RegisterAgent(ADA))
    outside = Outside(_mute, frozenset, list[str]().append, Unkept(), CountingIds(), print)
    policy = Policy("hub", 1, 3 * HOUR_MS, HOUR_MS, 0, Terms(Backoff(), 1.0, "release"))
    agent = Agent(ADA, runner, ("",), lambda task, _: task.title)
    dispatcher = Dispatcher(hub, [agent], policy, outside)
    hints.listen(dispatcher.hint)
    return dispatcher


def test_the_dispatcher_loses_no_wake_up() -> None:
    store, hints = Snared(), Hints()
    hub = snared_hub(store, hints)

    async def story() -> None:
        agent = Idle()
        dispatcher = dispatching(hub, hints, agent)
        store.after_look["work"] = lambda: hub.do(HERA, CreateTask("New", ready=True))
        async with asyncio.TaskGroup() as group, asyncio.timeout(PATIENCE_S):
            group.create_task(dispatcher.run())
            await agent.started.wait()
            dispatcher.stop()

    asyncio.run(story())


def test_an_attempt_under_watch_loses_no_wake_up() -> None:
    store, hints = Snared(), Hints()
    hub = snared_hub(store, hints)

    def snare() -> None:
        # It begins with a look at its task; right behind that look somebody takes it away.
        store.after_look["task:t"] = lambda: hub.do(HERA, MoveTask("t", "cancelled"))

    async def story() -> None:
        agent = Idle(snare)
        dispatcher = dispatching(hub, hints, agent)
        hub.do(HERA, CreateTask("One", id="t", ready=True))
        async with asyncio.TaskGroup() as group, asyncio.timeout(PATIENCE_S):
            group.create_task(dispatcher.run())
            await agent.stopped.wait()
            dispatcher.stop()

    asyncio.run(story())


class Busy:
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


def test_duties_that_follow_lose_no_wake_up() -> None:
    duty = Busy()
    wheel = Wheel(Group("g", (), (duty,), HOUR_S), lambda: START)
    duty.hint = wheel.hint
    wheel.start()
    for _ in range(4):
        duty.runs.get(timeout=PATIENCE_S)
    assert wheel.stop(PATIENCE_S)


def test_whoever_stays_is_sent_away_though_its_token_ends_during_a_look() -> None:
    store = Snared()
    house = HubServer(store)
    token = house.add_agent(ADA)

    async def story() -> None:
        gone = asyncio.Event()
        stays = Stays(house.identity, house.hints, HOUR_S)
        principal = house.identity.who(token, "http")
        assert not isinstance(principal, Refusal)
        async with asyncio.timeout(PATIENCE_S):
            with stays.stay(principal, token, gone.set):
                await asyncio.sleep(0)
                house.clock.advance(HOUR_MS)
                store.after_look[f"agent:{ADA}"] = lambda: house.submit(RevokeToken(ADA))
                house.submit(RegisterAgent("bob"))
                await gone.wait()

    asyncio.run(story())

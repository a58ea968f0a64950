"""Batches: a poisoned request fails alone, and a commit with a lost answer is found again."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, cast

import pytest

from dragoman.core.errors import StoreLost
from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.engine.group_commit import Engine
from dragoman.engine.ports import Changes, Store, Transaction
from dragoman.engine.request import Committed, Outcome, Request, committed_or_raise
from dragoman.system.clock import ManualClock
from tests.conformance.store.hubs import ANN, BOB, NOW, SECRET, Hub, Hubs
from tests.requirements import proves

pytestmark = proves("STORE-CONTRACT", "ENGINE-BATCH-POISON")

T = TypeVar("T")


class Poisoned(Exception):
    """Error that the store raises for the poisoned request."""


class PoisonedSession:
    """Session that cannot write one request."""

    def __init__(self, session: Transaction, cause: str) -> None:
        self._session = session
        self._cause = cause.encode()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def write(self, changes: Changes) -> None:
        """Write, or raise if the poisoned request is among the changes."""
        self._session.write(changes)
        if any(self._cause in entry.line for entry in changes.entries):
            raise Poisoned


class PoisonedStore:
    """Store that cannot write one request."""

    def __init__(self, store: Store, cause: str) -> None:
        self._store = store
        self._cause = cause
        self.transactions = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Run the work in a poisoned session."""
        self.transactions += 1
        return self._store.transact(
            lambda session: work(cast(Transaction, PoisonedSession(session, self._cause)))
        )


class LosingStore:
    """Store that loses its connection once, right after a commit."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.has_lost_answer = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Commit, and lose the answer the first time."""
        result = self._store.transact(work)
        if not self.has_lost_answer:
            self.has_lost_answer = True
            raise StoreLost("the connection broke")
        return result


async def handle_all(engine: Engine, requests: list[Request]) -> list[Outcome | BaseException]:
    """Submit all requests in one tick of the loop, so that they become one batch."""
    return await asyncio.gather(*map(engine.handle, requests), return_exceptions=True)


def test_poisoned_request_fails_alone(hubs: Hubs) -> None:
    hub = hubs.new()
    hub.do(ANN, CreateTask("a task", "a"))
    requests = [
        hub.request(ANN, NoteTask("a", "first")),
        hub.request(BOB, CreateTask("a task", "b")),
        hub.request(BOB, NoteTask("a", "poison"), CreateTask("poisoned", "c")),
        hub.request(ANN, NoteTask("b", "needs the second"), key="k"),
        hub.request(ANN, NoteTask("a", "last")),
    ]
    store = PoisonedStore(hub.store, requests[2].id)
    engine = Engine(cast(Store, store), ManualClock(NOW), SECRET)

    outcomes = asyncio.run(handle_all(engine, requests))
    engine.close()

    assert [type(outcome) for outcome in outcomes] == [
        Committed,
        Committed,
        Poisoned,
        Committed,
        Committed,
    ]
    assert store.transactions == 1 + len(requests)
    lines = [entry.line for entry in hub.store.entries(1, 100)]
    recorded = zip((0, 1, 3, 4), lines, strict=True)
    assert all(requests[n].id.encode() in line for n, line in recorded)
    assert hub.store.stream("task:c") is None


def test_batch_after_a_poisoned_one_sees_only_written_data(hubs: Hubs) -> None:
    hub = hubs.new()
    hub.do(ANN, CreateTask("a task", "a"))
    poison = hub.request(ANN, NoteTask("a", "poison"), CreateTask("poisoned", "b"))
    engine = Engine(cast(Store, PoisonedStore(hub.store, poison.id)), ManualClock(NOW), SECRET)
    asyncio.run(handle_all(engine, [poison, poison]))

    outcomes = asyncio.run(
        handle_all(engine, [hub.request(ANN, CreateTask("a task", "b"), NoteTask("a", "well"))])
    )
    engine.close()

    assert [type(outcome) for outcome in outcomes] == [Committed]
    assert [entry.version for entry in hub.store.history("task:a", 0, 10)] == [1, 2]


def test_large_batch_needs_one_transaction_and_answers_each_caller(
    hubs: Hubs,
) -> None:
    hub = Hub(hubs.new().store, hubs.clock)
    store = PoisonedStore(hub.store, "nobody")
    engine = Engine(cast(Store, store), hubs.clock, SECRET)
    requests = [hub.request(ANN, CreateTask("a task", f"t{n}")) for n in range(300)]

    outcomes = asyncio.run(handle_all(engine, requests))
    engine.close()

    tasks = [
        committed_or_raise(outcome).receipts[0].task
        for outcome in outcomes
        if not isinstance(outcome, BaseException)
    ]
    assert tasks == [f"t{n}" for n in range(300)]
    assert store.transactions == 1
    assert [entry.position for entry in hub.store.entries(0, 1_000)] == list(range(1, 301))


@proves("IDEM-REPEAT")
@pytest.mark.parametrize("size", [1, 3])
def test_commit_with_a_lost_answer_is_found_and_not_repeated(hubs: Hubs, size: int) -> None:
    hub = hubs.new()
    store = LosingStore(hub.store)
    engine = Engine(cast(Store, store), hubs.clock, SECRET)
    requests = [hub.request(ANN, CreateTask("a task", f"t{n}")) for n in range(size)]

    outcomes = asyncio.run(handle_all(engine, requests))
    engine.close()

    assert store.has_lost_answer
    assert [type(outcome) for outcome in outcomes] == [Committed] * size
    streams = [entry.stream for entry in hub.store.entries(0, 100)]
    assert streams == [f"task:t{n}" for n in range(size)]

"""Deadlines: leases expire, delayed tasks return to their queue, and old folds are replayed."""

import pytest
from msgspec.structs import replace

from dragoman.core.attempt import ClaimTask, ExpireLease, RenewLease, ReportOutcome
from dragoman.core.backoff import Backoff
from dragoman.core.delegation import EscalateDelegation, RejectDelegation, RequestDelegation
from dragoman.core.errors import Refusal, Refused
from dragoman.core.task_state import CreateTask, MoveTask, NoteTask
from dragoman.engine.ports import Changes, Store, StreamRow, Transaction
from dragoman.engine.queries.tasks import find_task
from dragoman.ledger.stream_state import FOLD_VERSION
from tests.conformance.store.hubs import ALICE, ANN, BOB, HUB, Hubs
from tests.requirements import proves

pytestmark = proves("STORE-CONTRACT")

TTL = 60_000
BACKOFF = Backoff(base_ms=5_000)


def ready(store: Store, queue: str = "") -> list[str]:
    """List the streams in a queue."""
    keys = store.transact(lambda session: session.ready_page(queue, None, 100))
    return [key.name for key in keys]


def promote(store: Store, now: int, limit: int = 100) -> int:
    """Promote tasks whose delay is over."""
    return store.transact(lambda session: session.promote_due(now, limit))


@proves("LEASE-RECOVERY", "LEASE-LOST")
def test_expired_lease_is_found_and_recovered(hubs: Hubs) -> None:
    hub, other = hubs.new(), hubs.new()
    for name, ttl in (("late", 3 * TTL), ("early", TTL), ("middle", 2 * TTL)):
        hub.do(ANN, CreateTask("a task", name, ready=True))
        hub.do(ALICE, ClaimTask(name, "alice", ttl_ms=ttl))
    now = hubs.clock.now()

    assert other.store.expired_leases(now + TTL - 1, 10) == []
    assert other.store.expired_leases(now + TTL, 10) == ["task:early"]
    assert other.store.expired_leases(now + 9 * TTL, 2) == ["task:early", "task:middle"]

    hubs.clock.advance(TTL)
    other.do(HUB, ExpireLease("early", BACKOFF))
    assert other.store.expired_leases(hubs.clock.now(), 10) == []
    with pytest.raises(Refused, match="lease_lost"):
        hub.do(ALICE, RenewLease("early", fence=1))
    hub.do(ALICE, RenewLease("middle", fence=1))
    assert other.store.expired_leases(now + 9 * TTL, 10) == ["task:late", "task:middle"]


@proves("DELEGATION-SLA")
def test_overdue_delegation_is_found_until_escalated(hubs: Hubs) -> None:
    hub, other = hubs.new(), hubs.new()
    now = hubs.clock.now()
    hub.do(ANN, CreateTask("the whole", "p"))
    for name, due in (("late", 3 * TTL), ("early", TTL), ("middle", 2 * TTL), ("never", TTL)):
        hub.do(ANN, CreateTask("a part", name, ready=True))
        hub.do(ANN, RequestDelegation(name, "p", "bob", now + due))

    hub.do(BOB, RejectDelegation("never"))
    assert other.store.overdue_streams(now + TTL - 1, 10) == []
    assert other.store.overdue_streams(now + TTL, 10) == ["task:early"]
    assert other.store.overdue_streams(now + 9 * TTL, 2) == ["task:early", "task:middle"]

    hubs.clock.advance(2 * TTL)
    other.do(HUB, EscalateDelegation("early"))
    hub.do(ANN, MoveTask("middle", "cancelled"))
    assert other.store.overdue_streams(now + 9 * TTL, 10) == ["task:late"]
    hub.do(ANN, RequestDelegation("early", "p", "bob", now + 4 * TTL))
    assert other.store.overdue_streams(now + 9 * TTL, 10) == ["task:late", "task:early"]


@proves("DELEGATION-SLA", "RETRY-BACKOFF")
def test_promoted_task_keeps_its_deadline(hubs: Hubs) -> None:
    hub = hubs.new()
    now = hubs.clock.now()
    hub.do(ANN, CreateTask("the whole", "p"))
    hub.do(ANN, CreateTask("a part", "a", ready=True))
    hub.do(ANN, RequestDelegation("a", "p", "bob", now + TTL))
    hub.do(BOB, ClaimTask("a", "bob"))
    hub.do(BOB, ReportOutcome("a", "failed", apply=True, backoff=BACKOFF))

    assert promote(hub.store, now + 5_000) == 1

    assert ready(hub.store) == ["task:a"]
    assert hub.store.overdue_streams(now + TTL, 10) == ["task:a"]


@proves("RETRY-BACKOFF", "TASK-READY")
def test_delayed_task_returns_to_its_queue(hubs: Hubs) -> None:
    hub, other = hubs.new(), hubs.new()
    hub.do(ANN, CreateTask("a task", "a", ready=True))
    hub.do(ANN, CreateTask("for Bob", "b", ready=True, assignee="bob"))
    for name in ("a", "b"):
        hub.do(BOB, ClaimTask(name, "bob"))
        hub.do(BOB, ReportOutcome(name, "failed", apply=True, backoff=BACKOFF))
        hubs.clock.advance(1_000)
    due = hubs.clock.now() + 3_000

    assert ready(other.store) == ready(other.store, "bob") == []
    assert promote(other.store, due - 1) == 0
    assert promote(other.store, due + 1_000, limit=1) == 1
    assert (ready(other.store), ready(other.store, "bob")) == (["task:a"], [])
    assert promote(other.store, due + 1_000) == 1
    assert promote(other.store, due + 1_000) == 0
    assert (ready(other.store), ready(other.store, "bob")) == (["task:a"], ["task:b"])


@proves("RETRY-BACKOFF")
def test_claim_of_the_next_task_promotes_due_tasks(hubs: Hubs) -> None:
    hub, other = hubs.new(), hubs.new()
    hub.do(ANN, CreateTask("a task", "a", ready=True))
    hub.do(BOB, ClaimTask("a", "bob"))
    hub.do(BOB, ReportOutcome("a", "failed", apply=True, backoff=BACKOFF))

    hubs.clock.advance(4_999)
    with pytest.raises(Refused, match="nothing_ready"):
        other.do(ALICE, ClaimTask("", "alice"))
    hubs.clock.advance(1)
    assert other.do(ALICE, ClaimTask("", "alice")).task == "a"


def make_old(store: Store, name: str) -> StreamRow:
    """Store a row of an older fold, and return the current one."""

    def work(session: Transaction) -> StreamRow:
        (row,) = session.streams([name])
        old = replace(row, fold_version=FOLD_VERSION - 1, state=b'{"of":"another time"}')
        session.write(Changes(streams=[old]))
        return row

    return store.transact(work)


@proves("STORE-REFOLD")
def test_row_of_an_older_fold_is_refolded_when_read_and_written(hubs: Hubs) -> None:
    writer = hubs.new()
    writer.do(ANN, CreateTask("a task", "a", ready=True))
    writer.do(ALICE, ClaimTask("a", "alice"))
    before = find_task(writer.store, "a")
    make_old(writer.store, "task:a")
    hubs.reset()
    hub = hubs.new()

    assert not isinstance(before, Refusal)
    assert find_task(hub.store, "a") == before
    hub.do(ALICE, NoteTask("a", "still mine"))
    row = hub.store.stream("task:a")
    assert row is not None
    assert (row.fold_version, row.version) == (FOLD_VERSION, 3)
    after = find_task(hub.store, "a")
    assert not isinstance(after, Refusal)
    assert after.task == replace(before.task, notes=1, updated_at=after.task.updated_at)


@proves("STORE-REFOLD", "RETRY-BACKOFF")
def test_delayed_task_of_an_older_fold_is_promoted(hubs: Hubs) -> None:
    hub = hubs.new()
    hub.do(ANN, CreateTask("a task", "a", ready=True, priority="high"))
    hub.do(BOB, ClaimTask("a", "bob"))
    hub.do(BOB, ReportOutcome("a", "failed", apply=True, backoff=BACKOFF))
    make_old(hub.store, "task:a")

    assert promote(hub.store, hubs.clock.now() + 5_000) == 1

    assert ready(hub.store) == ["task:a"]


@proves("LEASE-OFF-LEDGER")
def test_heartbeat_changes_only_the_lease(hubs: Hubs) -> None:
    hub, other = hubs.new(), hubs.new()
    hub.do(ANN, CreateTask("a task", "a", ready=True))
    hub.do(ALICE, ClaimTask("a", "alice", ttl_ms=TTL))
    before = hub.store.stream("task:a")
    head = hub.store.head()
    hubs.clock.advance(1_000)

    other.do(ALICE, RenewLease("a"))

    after = hub.store.stream("task:a")
    assert before is not None
    assert after is not None
    assert before.lease is not None
    assert after.lease is not None
    assert after.lease.expires_at == before.lease.expires_at + 1_000
    assert replace(after, lease=before.lease) == before
    assert hub.store.head() == head


@proves("STORE-CACHE")
def test_changes_of_another_hub_are_visible_at_once(hubs: Hubs) -> None:
    hub, other = hubs.new(), hubs.new()
    hub.do(ANN, CreateTask("a task", "a", ready=True))
    for n in range(1, 4):
        hub.do(ALICE, ClaimTask("a", "alice", ttl_ms=TTL))
        hubs.clock.advance(TTL)
        other.do(HUB, ExpireLease("a", BACKOFF))
        with pytest.raises(Refused, match="lease_lost"):
            hub.do(ALICE, RenewLease("a", fence=n))
    assert [entry.version for entry in hub.store.history("task:a", 0, 100)] == list(range(1, 8))

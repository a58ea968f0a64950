"""Incidents of other projects with claims, leases and recovery, reproduced here."""

import signal
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest

from dragoman.core.actor import HUB_ACTOR, Actor
from dragoman.core.attempt import ClaimTask, ExpireLease, RenewLease, ReportOutcome
from dragoman.core.backoff import Backoff
from dragoman.core.errors import Refusal, Refused
from dragoman.core.reservation import ReserveFiles
from dragoman.core.task_state import CreateTask
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.queries.entries import all_entries
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.engine.verify import check_ledger, check_stored_states
from dragoman.services.timers import LeaseExpiry, RetryPromotion
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import ManualClock, new_id
from dragoman.system.hub_lock import HubLock, find_lock_holder
from dragoman.testing.hand_hub import HandHub, hand_hub
from tests.crash.scenario import START
from tests.crash.stale_writes import ADA, LEA, TTL, accepted_stale_writes, reclaim_task
from tests.requirements import proves
from tests.system.child_processes import child, next_line, resume

pytestmark = proves("INCIDENTS-OF-OTHERS")

HOUR: Final = 3_600_000
BOB: Final = Actor("agent", "bob")

HOLDER = """
import sys
from pathlib import Path
from dragoman.core.reservation import ReserveFiles
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import ManualClock
from dragoman.system.hub_lock import HubLock
from dragoman.system.clock import new_id
from tests.crash.stale_writes import ADA
from tests.crash.scenario import START
data = Path(sys.argv[1])
lock = HubLock.acquire(data, "the first hub")
hub = Hub(Engine(SqliteStore.open(data / "hub.db", new_id), ManualClock(START), bytes(32)), new_id)
hub.submit(ADA, ReserveFiles(("src/**",), ttl_ms=3_600_000))
print("held", flush=True)
sys.stdin.readline()
"""

CLAIMER = """
import sys
from pathlib import Path
from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.errors import Refusal
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import ManualClock
from dragoman.system.clock import new_id
from tests.crash.scenario import START
store = SqliteStore.open(Path(sys.argv[1]), new_id)
hub = Hub(Engine(store, ManualClock(START), bytes(32)), new_id)
agent, won = Actor("agent", sys.argv[2]), []
print("there", flush=True)
sys.stdin.readline()
for number in range(40):
    request = hub.make_request(agent, ClaimTask(f"t{number}", agent=agent.name))
    if not isinstance(hub.engine.handle_now(request), Refusal):
        won.append(f"t{number}")
hub.close()
print(*won, flush=True)
"""


@pytest.fixture
def hub() -> Generator[HandHub]:
    """Give a hub on SQLite with a manual clock; its ledger must verify at the end."""
    with hand_hub("sqlite") as manual_hub:
        yield manual_hub
        assert manual_hub.verify() == []


def open_hub(path: Path, clock: ManualClock) -> Hub:
    """Open a hub on a file."""
    return Hub(Engine(SqliteStore.open(path, new_id), clock, bytes(32)), new_id)


def test_lock_of_a_dead_process_is_released_and_its_reservation_expires(tmp_path: Path) -> None:
    """mcp_agent_mail#24: locks were never released, and a dead process was not noticed."""
    with child(HOLDER, tmp_path) as process:
        assert next_line(process) == "held"
        assert find_lock_holder(tmp_path) is not None
        process.send_signal(signal.SIGKILL)
        process.wait()
    HubLock.acquire(tmp_path, "the next hub").release()
    clock = ManualClock(START)
    next_hub = open_hub(tmp_path / "hub.db", clock)
    with pytest.raises(Refused, match="reserved"):
        next_hub.submit(BOB, ReserveFiles(("src/core/*",), ttl_ms=HOUR))
    clock.advance(HOUR)
    next_hub.submit(BOB, ReserveFiles(("src/core/*",), ttl_ms=HOUR))
    next_hub.close()


def test_concurrent_claims_never_both_succeed(tmp_path: Path) -> None:
    """beads#3570 and beads#3575: a claim was a read and then a write, and two agents got it."""
    path = tmp_path / "hub.db"
    first = open_hub(path, ManualClock(START))
    tasks = [f"t{number}" for number in range(40)]
    for task in tasks:
        first.submit(LEA, CreateTask("One of many", id=task, ready=True))
    with child(CLAIMER, path, "ada") as ada, child(CLAIMER, path, "bob") as bob:
        assert [next_line(ada), next_line(bob)] == ["there", "there"]
        resume(ada)
        resume(bob)
        won = [*next_line(ada).split(), *next_line(bob).split()]
    assert sorted(won) == sorted(tasks)
    assert list(check_ledger(first.store, (), lambda _: None)) == []
    first.close()


def test_task_with_a_long_backoff_is_claimed_once(tmp_path: Path) -> None:
    """kombu#337 and celery#3270: tasks due later than the visibility timeout ran many times."""
    clock = ManualClock(START)
    hub = open_hub(tmp_path / "hub.db", clock)
    hub.submit(LEA, CreateTask("Later", id="t", ready=True))
    hub.submit(ADA, ClaimTask("t", agent="ada", ttl_ms=TTL))
    backoff = Backoff(base_ms=6 * HOUR, cap_ms=6 * HOUR)
    hub.submit(ADA, ReportOutcome("t", "failed", fence=1, apply=True, backoff=backoff))
    claims = 0
    for _ in range(8 * HOUR // TTL):
        clock.advance(TTL)
        LeaseExpiry(hub, backoff).run_once(clock.now())
        RetryPromotion(hub).run_once(clock.now())
        request = hub.make_request(BOB, ClaimTask("", agent="bob", ttl_ms=10 * HOUR))
        if not isinstance(hub.engine.handle_now(request), Refusal):
            claims += 1
            assert clock.now() - START >= 6 * HOUR
    assert claims == 1
    hub.close()


def test_task_claimed_before_a_restart_is_not_lost(hub: HandHub) -> None:
    """celery#4354: shutdown lost tasks already popped; celery#1628: a lost worker was acked."""
    task = hub.create("Popped")
    work = hub.claim(agent="ada", ttl_ms=TTL)
    hub.restart()
    assert (hub.task(task).status, hub.task(task).attempts) == ("in-progress", 1)
    work.note("the hub was away, the work was not")
    hub.advance(minutes=2)
    hub.tick()
    hub.advance(minutes=2)
    hub.tick()
    assert hub.claim(agent="bob").task == task


def test_lease_expiry_on_a_stale_read_changes_nothing(tmp_path: Path) -> None:
    """dbos-transact-py#742: recovery acted on a stale read and executed work it did not own."""
    clock = ManualClock(START)
    hub = open_hub(tmp_path / "hub.db", clock)
    hub.submit(LEA, CreateTask("Late beat", id="t", ready=True))
    hub.submit(ADA, ClaimTask("t", agent="ada", ttl_ms=TTL))
    expired = hub.store.expired_leases(clock.now() + TTL, 10)
    assert expired == ["task:t"]
    hub.submit(ADA, RenewLease("t", fence=1))
    hub.submit(ADA, ReportOutcome("t", "done", fence=1, apply=True))
    before = hub.store.head()
    hub.submit(HUB_ACTOR, ExpireLease("t"))
    found = find_task(hub.store, "t")
    assert isinstance(found, TaskView)
    assert found.task.status == "review"
    assert hub.store.head() == before
    hub.close()


def test_queued_tasks_survive_a_restart_and_their_lease_starts_with_the_claim(
    hub: HandHub,
) -> None:
    """temporal#459: restart lost queued tasks; sdk-java#256: tasks timed out while queued."""
    tasks = {hub.create(f"Queued {number}") for number in range(5)}
    hub.advance(hours=24 * 7)
    hub.tick()
    hub.restart()
    works = [hub.claim(agent="ada", ttl_ms=TTL) for _ in tasks]
    assert {work.task for work in works} == tasks
    hub.advance(seconds=TTL / 1_000 - 1)
    hub.tick()
    for work in works:
        work.finish()
    assert {hub.task(task).status for task in tasks} == {"review"}


def test_credential_of_an_earlier_holder_does_not_renew_the_new_lease(tmp_path: Path) -> None:
    """aegra#502: a worker's name was its only token, and an old heartbeat renewed the new lease."""
    clock = ManualClock(START)
    hub = open_hub(tmp_path / "hub.db", clock)
    reclaim_task(hub, clock)
    clock.advance(TTL // 2)
    before = find_task(hub.store, "t")
    assert accepted_stale_writes(hub) == []
    by_credential = Actor("agent", "ada", task="t", fence=1)
    with pytest.raises(Refused):
        hub.submit(by_credential, RenewLease("t"))
    assert find_task(hub.store, "t") == before
    assert list(check_stored_states(hub.store, lambda _: None)) == []
    assert len(list(all_entries(hub.store))) == hub.store.head()
    hub.close()

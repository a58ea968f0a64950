"""Lease expiry: every expired lease is ended, and no other; a report takes effect."""

import pytest

from dragoman.core.attempt import ClaimTask, RenewLease, ReportOutcome
from dragoman.core.backoff import Backoff
from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.services import timers
from dragoman.services.timers import LeaseExpiry
from tests.engine.lab import ALICE, BOB, HUMAN, START, TTL, Lab, OpenStore, findings
from tests.requirements import proves


def claim_tasks(lab: Lab, count: int, ttl_ms: int = TTL) -> list[str]:
    """Create tasks that alice holds."""
    names = [f"T{number:03}" for number in range(count)]
    for name in names:
        lab.do(HUMAN, CreateTask(name, name, ready=True))
        lab.do(ALICE, ClaimTask(name, "alice", ttl_ms=ttl_ms))
    return names


def run(lab: Lab) -> int:
    """Run the service once, at the hub's own time."""
    return LeaseExpiry(lab.hub, Backoff(2_000, 60_000)).run_once(lab.clock.now())


@proves("LEASE-RECOVERY", "RETRY-BACKOFF")
def test_task_of_a_silent_holder_is_requeued_at_the_millisecond() -> None:
    lab = Lab()
    claim_tasks(lab, 1)
    lab.clock.advance(TTL - 1)
    assert run(lab) == 0
    lab.clock.advance(1)
    assert run(lab) == 1
    task = lab.task("T000")
    assert (task.status, task.failures, lab.lease("T000")) == ("ready", 1, None)
    assert task.not_before == START + TTL + 2_000, "the duty's own backoff"
    assert run(lab) == 0
    assert findings(lab.store) == []


@proves("LEASE-RECOVERY")
def test_report_takes_effect_when_its_lease_expires() -> None:
    lab = Lab()
    claim_tasks(lab, 2)
    lab.do(ALICE, ReportOutcome("T001", "done"))
    lab.clock.advance(TTL)
    assert run(lab) == 2
    assert (lab.task("T000").status, lab.task("T001").status) == ("ready", "review")


@proves("LEASE-RECOVERY", "LEASE-HEARTBEAT")
def test_holder_that_sent_a_heartbeat_or_note_keeps_the_task() -> None:
    lab = Lab()
    claim_tasks(lab, 3)
    lab.clock.advance(TTL - 1)
    lab.do(ALICE, RenewLease("T000"))
    lab.do(ALICE, NoteTask("T001", "alive"))
    lab.clock.advance(1)
    assert run(lab) == 1
    assert [lab.task(f"T00{n}").status for n in range(3)] == ["in-progress", "in-progress", "ready"]


@proves("LEASE-RECOVERY")
def test_any_number_of_leases_is_expired_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timers, "_PAGE", 10)
    lab = Lab()
    names = claim_tasks(lab, 25)
    lab.clock.advance(TTL)
    assert run(lab) == 25
    assert {lab.task(name).status for name in names} == {"ready"}


@proves("LEASE-RECOVERY")
def test_service_clock_ahead_of_the_hub_expires_nothing_and_terminates() -> None:
    lab = Lab()
    claim_tasks(lab, 2, ttl_ms=1_000)
    assert LeaseExpiry(lab.hub, Backoff()).run_once(lab.clock.now() + 5_000) == 0
    assert lab.task("T000").status == "in-progress"
    lab.clock.advance(1_000)
    assert LeaseExpiry(lab.hub, Backoff()).run_once(lab.clock.now() + 5_000) == 2


@proves("RETRY-DEADLETTER", "LEASE-RECOVERY")
def test_task_that_always_fails_is_deadlettered() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("t", "T", ready=True, max_attempts=3))
    for number in range(1, 4):
        lab.do(BOB, ClaimTask("T", "bob"))
        lab.clock.advance(TTL)
        assert run(lab) == 1
        assert lab.task("T").failures == number
        lab.clock.advance(60_000)
    assert lab.task("T").status == "deadletter"
    assert run(lab) == 0


class _LeaseKeepingStore(OpenStore):
    """A store that still lists a lease that has been ended."""

    def expired_leases(self, now: int, limit: int) -> list[str]:
        return super().expired_leases(now, limit) or ["task:T000"]


@proves("LEASE-RECOVERY")
def test_lease_that_the_store_keeps_listing_is_tried_once() -> None:
    lab = Lab(_LeaseKeepingStore())
    claim_tasks(lab, 2)
    lab.clock.advance(TTL)
    assert run(lab) == 2
    assert (lab.task("T000").status, lab.task("T001").status) == ("ready", "ready")

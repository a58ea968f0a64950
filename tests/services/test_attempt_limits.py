"""Attempt limits: no progress is flagged and escalated once, and too long an attempt is ended."""

import pytest

from dragoman.config import AttemptSettings
from dragoman.core.actor import HUB_ACTOR
from dragoman.core.attempt import (
    ClaimTask,
    ExpireLease,
    FlagAttempt,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.attempt_state import ESCALATED_QUIET, FLAGGED_QUIET, NOT_QUIET
from dragoman.core.backoff import Backoff
from dragoman.core.base import Command
from dragoman.core.errors import LedgerError, Refused
from dragoman.core.mail import PostMail
from dragoman.core.task_state import CreateTask, MoveTask, NoteTask, UpdateTask
from dragoman.engine.ports import StreamRow, TaskQuery
from dragoman.engine.queries.entries import all_entries
from dragoman.services import timers
from dragoman.services.timers import AttemptLimiter, LeaseExpiry
from tests.engine.lab import ALICE, HUMAN, TTL, Lab, OpenStore, findings
from tests.requirements import proves

QUIET, ESCALATE, LONG = 60_000, 30_000, 10 * TTL
SETTINGS = AttemptSettings(quiet_ms=QUIET, escalate_ms=ESCALATE)


def hold(lab: Lab, *names: str, ttl_ms: int = 24 * TTL) -> None:
    """Create tasks that alice holds."""
    for name in names:
        lab.do(HUMAN, CreateTask(name, name, ready=True))
        lab.do(ALICE, ClaimTask(name, "alice", "s1", ttl_ms))


def run(lab: Lab, settings: AttemptSettings = SETTINGS, *hub_started: str) -> int:
    """Run the service once, at the hub's own time."""
    expiry = LeaseExpiry(lab.hub, Backoff(2_000, 60_000))
    return AttemptLimiter(lab.hub, settings, expiry, hub_started).run_once(lab.clock.now())


def quiet_level(lab: Lab, task: str = "T") -> int:
    lease = lab.lease(task)
    assert lease is not None, "what is quiet keeps its lease"
    return lease.quiet_level


def recorded(lab: Lab, *events: str) -> list[str]:
    """Names of the entries among these, in order."""
    return [entry.event for entry in all_entries(lab.store) if entry.event in events]


@proves("ATTEMPT-QUIET")
def test_silence_is_flagged_then_escalated_once_each_and_keeps_its_lease() -> None:
    lab = Lab()
    hold(lab, "T")
    lab.clock.advance(QUIET - 1)
    assert run(lab) == 0
    lab.clock.advance(1)
    assert [run(lab), run(lab)] == [1, 0]
    assert (quiet_level(lab), lab.task("T").status) == (FLAGGED_QUIET, "in-progress")
    lab.clock.advance(ESCALATE - 1)
    assert run(lab) == 0
    lab.clock.advance(1)
    assert [run(lab), run(lab)] == [1, 0]
    assert quiet_level(lab) == ESCALATED_QUIET
    lab.clock.advance(LONG)
    assert run(lab) == 0
    assert recorded(lab, "attempt.quiet", "attempt.escalated") == [
        "attempt.quiet",
        "attempt.escalated",
    ]
    lab.do(ALICE, ReportOutcome("T", "done", apply=True))
    assert lab.task("T").status == "review"
    assert findings(lab.store) == []


PROGRESS: tuple[Command, ...] = (
    NoteTask("T", "half of it"),
    UpdateTask("T", progress="50 %"),
    PostMail(("hera",), "a word", "on the way", bead="T"),
    ReportOutcome("T", "done"),
    RenewLease("T", has_progress=True),
)


@proves("ATTEMPT-QUIET")
@pytest.mark.parametrize("command", PROGRESS, ids=lambda one: type(one).__name__)
def test_progress_ends_the_quiet_spell_and_the_next_one_is_flagged_again(command: Command) -> None:
    lab = Lab()
    hold(lab, "T")
    lab.clock.advance(QUIET)
    assert run(lab) == 1
    lab.do(ALICE, command)
    assert quiet_level(lab) == NOT_QUIET
    lab.clock.advance(QUIET - 1)
    assert run(lab) == 0
    lab.clock.advance(1)
    assert run(lab) == 1
    assert recorded(lab, "attempt.quiet") == ["attempt.quiet"] * 2


@proves("ATTEMPT-QUIET", "LEASE-OFF-LEDGER")
def test_heartbeat_repeat_and_refusal_are_no_progress() -> None:
    lab = Lab()
    hold(lab, "T")
    lab.do(ALICE, NoteTask("T", "once"), key="k")
    lab.clock.advance(QUIET - 1)
    lab.do(ALICE, RenewLease("T"))
    lab.do(ALICE, NoteTask("T", "once"), key="k")
    lab.do(ALICE, MoveTask("T", "in-progress"))
    with pytest.raises(Refused):
        lab.hub.submit(ALICE, ClaimTask("T", "alice"))
    lab.do(ALICE, ClaimTask("T", "alice", renew_if_held=True))
    lab.clock.advance(1)
    assert run(lab) == 1
    assert quiet_level(lab) == FLAGGED_QUIET


@proves("ATTEMPT-QUIET")
def test_flag_is_for_dispatching_roles_and_valid_leases_only() -> None:
    lab = Lab()
    hold(lab, "T", ttl_ms=TTL)
    lab.do(HUMAN, CreateTask("free", "free", ready=True))
    flag = FlagAttempt("T", 0, 1)
    for actor, command in ((ALICE, flag), (HUB_ACTOR, FlagAttempt("nobody", 0))):
        with pytest.raises(Refused):
            lab.hub.submit(actor, command)
    lab.do(HUB_ACTOR, FlagAttempt("free", 0))
    lab.clock.advance(TTL)
    lab.do(HUB_ACTOR, flag)
    assert recorded(lab, "attempt.quiet") == []


@proves("ATTEMPT-QUIET")
def test_settings_of_zero_flag_and_escalate_nothing() -> None:
    lab = Lab()
    hold(lab, "T")
    lab.clock.advance(QUIET)
    assert run(lab, AttemptSettings(quiet_ms=0, escalate_ms=ESCALATE)) == 0
    assert run(lab, AttemptSettings(quiet_ms=QUIET, escalate_ms=0)) == 1
    lab.clock.advance(LONG)
    assert run(lab, AttemptSettings(quiet_ms=QUIET, escalate_ms=0)) == 0


@proves("ATTEMPT-MAX", "LEASE-LATE", "RETRY-BACKOFF")
def test_long_attempt_ends_like_a_lost_lease_though_it_is_renewed() -> None:
    lab, settings = Lab(), AttemptSettings(max_ms=LONG, quiet_ms=0)
    hold(lab, "T")
    lab.clock.advance(LONG - 1)
    lab.do(ALICE, NoteTask("T", "still busy"))
    assert run(lab, settings) == 0
    lab.clock.advance(1)
    assert [run(lab, settings), run(lab, settings)] == [1, 0]
    task = lab.task("T")
    assert (task.status, task.failures, lab.lease("T")) == ("ready", 1, None)
    assert task.not_before == lab.clock.now() + 2_000
    with pytest.raises(Refused, match="lease_lost"):
        lab.hub.submit(ALICE, NoteTask("T", "late"))
    assert findings(lab.store) == []


@proves("ATTEMPT-MAX")
def test_report_of_a_long_attempt_takes_effect() -> None:
    lab, settings = Lab(), AttemptSettings(max_ms=LONG, quiet_ms=0)
    hold(lab, "T")
    lab.do(ALICE, ReportOutcome("T", "done"))
    lab.clock.advance(LONG)
    assert run(lab, settings) == 1
    assert lab.task("T").status == "review"
    assert b"reported_done" in lab.store.tables.entries[-1].line


@proves("ATTEMPT-MAX")
def test_attempt_of_an_agent_that_the_hub_runs_is_left_to_the_dispatcher() -> None:
    lab, settings = Lab(), AttemptSettings(max_ms=LONG, quiet_ms=QUIET, escalate_ms=0)
    hold(lab, "T")
    lab.clock.advance(LONG)
    assert [run(lab, settings, "alice"), run(lab, settings, "alice")] == [1, 0]
    assert (quiet_level(lab), lab.task("T").status) == (FLAGGED_QUIET, "in-progress")


@proves("ATTEMPT-MAX")
def test_expiry_without_a_limit_leaves_a_long_attempt_alone() -> None:
    lab = Lab()
    hold(lab, "T")
    lab.clock.advance(LONG)
    assert lab.do(HUB_ACTOR, ExpireLease("T")).status == "in-progress"


class _TornStore(OpenStore):
    """Store that cannot read some tasks, and counts the looks at what is held."""

    torn: frozenset[str] = frozenset()
    looks = 0

    def stream(self, name: str) -> StreamRow | None:
        if name in self.torn:
            raise LedgerError(f"{name} cannot be read")
        return super().stream(name)

    def task_page(self, query: TaskQuery) -> list[StreamRow]:
        self.looks += query.before is None
        return super().task_page(query)


@proves("ATTEMPT-QUIET", "ATTEMPT-MAX")
def test_attempts_are_reviewed_page_by_page_and_past_one_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timers, "_PAGE", 2)
    store = _TornStore()
    lab, names = Lab(store), [f"T{number}" for number in range(7)]
    hold(lab, *names)
    lab.clock.advance(QUIET)
    store.torn = frozenset({"task:T0", "task:T3"})
    assert run(lab) == 5
    store.torn = frozenset()
    assert [quiet_level(lab, name) for name in names] == [1] * 7, "flagged, though not seen to be"


@proves("ATTEMPT-QUIET")
def test_leases_are_looked_at_only_when_one_can_be_due() -> None:
    store = _TornStore()
    lab = Lab(store)
    limiter = AttemptLimiter(lab.hub, SETTINGS, LeaseExpiry(lab.hub, Backoff()))

    def look() -> tuple[int, int]:
        done = limiter.run_once(lab.clock.now())
        return done, store.looks

    hold(lab, "T")
    assert [look(), look()] == [(0, 1), (0, 1)]
    lab.clock.advance(1_000)
    hold(lab, "U")
    lab.clock.advance(ESCALATE - 1_000)
    assert [look(), look()] == [(0, 2), (0, 2)], "as soon as a later claim could be due"
    lab.clock.advance(QUIET - ESCALATE)
    assert [look(), look()] == [(1, 3), (0, 3)]
    lab.clock.advance(1_000)
    assert look() == (1, 4)
    lab.clock.advance(-5_000)
    assert look() == (0, 5), "after a clock that went back"


@proves("ATTEMPT-QUIET")
def test_service_clock_ahead_of_the_hub_flags_nothing_and_terminates() -> None:
    lab = Lab()
    hold(lab, "T")
    expiry = LeaseExpiry(lab.hub, Backoff())
    assert AttemptLimiter(lab.hub, SETTINGS, expiry).run_once(lab.clock.now() + QUIET) == 0
    assert quiet_level(lab) == NOT_QUIET

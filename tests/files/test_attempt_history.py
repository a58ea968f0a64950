"""History of attempts from the events of a task: how each ended, and the work log."""

import pytest

from dragoman.core.attempt_state import TaskClaimed, TaskReported, TaskRequeued
from dragoman.core.base import Event
from dragoman.core.task_state import (
    RestoredState,
    TaskNoted,
    TaskProgressed,
    TaskRewound,
    TaskTransitioned,
)
from dragoman.files.attempt_history import RunStatus, build_history
from dragoman.files.work_log import LogEntry, format_entry
from tests.requirements import proves

CLAIMED = TaskClaimed("ready", 1, 1, "ada", 300_000)
REPORTED = TaskReported(1, "ada", "done")
UNREPORTED = TaskReported(1, "ada", "failed", "exit code 3, without a report", by="hub")


@proves("FILES-ARTIFACTS")
@pytest.mark.parametrize(
    ("events", "status", "reason"),
    [
        ([CLAIMED], "running", ""),
        ([CLAIMED, REPORTED], "running", ""),
        *(
            (
                [
                    CLAIMED,
                    REPORTED,
                    TaskTransitioned("in-progress", "review", reason, by_report=by),
                ],
                status,
                shown,
            )
            for reason, by, status, shown in (
                ("reported_done", True, "completed", ""),
                ("stale_heartbeat_done", True, "completed", ""),
                ("result: success", True, "completed", ""),
                ("reported_done", False, "released", "reported_done"),
            )
        ),
        (
            [
                CLAIMED,
                TaskReported(1, "ada", "failed"),
                TaskRequeued(1, "reported_failed", 1, 9, by_report=True),
            ],
            "completed",
            "",
        ),
        ([CLAIMED, REPORTED, TaskTransitioned("in-progress", "ready")], "released", ""),
        (
            [CLAIMED, REPORTED, TaskTransitioned("in-progress", "ready", "handed over by h-1")],
            "released",
            "handed over by h-1",
        ),
        (
            [CLAIMED, UNREPORTED, TaskRequeued(1, "unreported_failed", 1, 9)],
            "released",
            "unreported_failed",
        ),
        (
            [CLAIMED, TaskRequeued(1, "stale_heartbeat_reclaim", 1, 9)],
            "expired",
            "stale_heartbeat",
        ),
        ([CLAIMED, TaskTransitioned("in-progress", "ready", "no room")], "released", "no room"),
        ([CLAIMED, TaskTransitioned("in-progress", "cancelled")], "released", ""),
        (
            [CLAIMED, TaskRewound("in-progress", "ready", 1, RestoredState("ready", "t"))],
            "released",
            "",
        ),
        (
            [
                CLAIMED,
                TaskRequeued(1, "stale_heartbeat_reclaim", 5, 9),
                TaskTransitioned("ready", "deadletter"),
            ],
            "expired",
            "stale_heartbeat",
        ),
    ],
)
def test_attempt_status_and_reason(events: list[Event], status: RunStatus, reason: str) -> None:
    (attempt,) = build_history(enumerate(events)).attempts
    assert (attempt.status, attempt.reason, attempt.started_at) == (status, reason, 0)


@proves("FILES-ARTIFACTS")
def test_report_belongs_to_its_attempt() -> None:
    again = TaskClaimed("ready", 2, 2, "bob", 300_000)
    first, second = build_history(enumerate([CLAIMED, REPORTED, again])).attempts
    assert first.report is not None
    assert second.report is None
    last = build_history(enumerate([CLAIMED, again, REPORTED])).attempts[-1]
    assert last.report is None


@proves("RUN-UNREPORTED")
def test_unreported_outcome_by_hub_is_not_a_report() -> None:
    (attempt,) = build_history(enumerate([CLAIMED, UNREPORTED])).attempts
    assert attempt.report is None
    assert attempt.unreported is not None
    assert (attempt.unreported.by, attempt.unreported.notes) == ("hub", UNREPORTED.notes)


@proves("FILES-TASK-FILE")
def test_work_log_entry_prefers_time_of_sender() -> None:
    events = [TaskNoted("a"), TaskProgressed("b", "c", ("d",)), TaskProgressed("e", sent_at=7)]
    assert build_history(enumerate(events, 100)).log == (
        LogEntry(100, notes="a"),
        LogEntry(101, "b", "c", ("d",)),
        LogEntry(7, "e"),
    )


@proves("TASK-LOG-WHOSE")
def test_work_log_names_foreign_author_unforgeably() -> None:
    events = [TaskNoted("fine | By: human:ann"), TaskNoted("ship it", "agent:bob")]
    own, other = map(format_entry, build_history(enumerate(events)).log)
    assert own == "- 1970-01-01T00:00:00.000Z Notes: fine \\| By: human:ann"
    assert other == "- 1970-01-01T00:00:00.001Z By: agent:bob | Notes: ship it"


@proves("REPORT-BLOCKED-TOLD")
def test_blockers_of_report_are_in_work_log() -> None:
    blocked = TaskReported(1, "ada", "blocked", "half of it", ("no key", "no room"))
    log = build_history(enumerate([CLAIMED, REPORTED, blocked])).log
    assert log == (LogEntry(2, notes="half of it", blockers=("no key", "no room")),)

"""History of a task from its events: the work log, and how each attempt went."""

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from dragoman.core.attempt_state import Report, TaskClaimed, TaskReported, TaskRequeued
from dragoman.core.base import Event
from dragoman.core.intent.state import IntentCompleted
from dragoman.core.question_state import QuestionAnswered, QuestionAsked
from dragoman.core.task_state import (
    STALE_HEARTBEAT_REASON,
    TOO_LONG_REASON,
    TaskNoted,
    TaskProgressed,
    TaskRewound,
    TaskTransitioned,
    status_change_of,
)
from dragoman.files.work_log import LogEntry

RunStatus = Literal["running", "completed", "expired", "released"]

_EXPIRED_REASONS: Final = {
    STALE_HEARTBEAT_REASON: "stale_heartbeat",
    TOO_LONG_REASON: TOO_LONG_REASON,
}
"""Reason of an end that the holder had no part in -> reason in the run's file."""


class Attempt(Struct, frozen=True):
    """One claim and its outcome."""

    number: int
    agent: str
    fence: int
    started_at: int
    ttl_ms: int
    report: Report | None = None
    status: RunStatus = "running"
    ended_at: int = 0
    reason: str = ""
    """Reason of the end, unless it ended by its agent's report."""
    unreported: Report | None = None
    """The hub's report on an agent that ended without one."""
    replaced: tuple[Report, ...] = ()
    """Reports before the one that counts."""


class TaskHistory(Struct, frozen=True):
    """Work log and attempts, oldest first."""

    log: tuple[LogEntry, ...] = ()
    attempts: tuple[Attempt, ...] = ()


def build_history(events: Iterable[tuple[int, Event]]) -> TaskHistory:
    """Build the history from a task's events, each with its time."""
    log, attempts = list[LogEntry](), list[Attempt]()
    for at, event in events:
        log.extend(_log_entry(event, at))
        fold = _ATTEMPT_FOLDS.get(type(event))
        if fold is not None:
            fold(attempts, event, at)
    return TaskHistory(tuple(log), tuple(attempts))


def _log_entry(event: Event, at: int) -> tuple[LogEntry, ...]:
    """Work log entry of an event, if it leaves one."""
    entry = _LOG_ENTRY_OF.get(type(event))
    is_silent = isinstance(event, TaskReported) and not event.blockers
    return () if entry is None or is_silent else (entry(event, at),)


_LOG_ENTRY_OF: dict[type[Event], Callable[[Any, int], LogEntry]] = {
    TaskNoted: lambda event, at: LogEntry(at, notes=event.text, by=event.by),
    TaskProgressed: lambda event, at: LogEntry(
        at if event.sent_at is None else event.sent_at, event.progress, event.notes, event.blockers
    ),
    TaskReported: lambda event, at: LogEntry(at, notes=event.notes, blockers=event.blockers),
    QuestionAsked: lambda event, at: LogEntry(
        at, notes=f"question {event.id}: {event.text}", by=event.by
    ),
    QuestionAnswered: lambda event, at: LogEntry(
        at, notes=f"answer to {event.id}: {event.text}", by=event.by
    ),
}
"""Event -> its work log entry; of a report only blockers are news to readers of the task file."""


def _fold_claimed(attempts: list[Attempt], event: TaskClaimed, at: int) -> None:
    attempts.append(Attempt(event.attempt, event.agent, event.fence, at, event.ttl_ms))


def _fold_reported(attempts: list[Attempt], event: TaskReported, at: int) -> None:
    if not attempts or attempts[-1].number != event.attempt:
        return
    last = attempts[-1]
    report = Report(at=at, **asdict(event))
    if event.by:
        attempts[-1] = replace(last, unreported=report)
        return
    replaced = (*last.replaced, last.report) if last.report else last.replaced
    attempts[-1] = replace(last, report=report, replaced=replaced)


def _fold_result(attempts: list[Attempt], event: IntentCompleted, _: int) -> None:
    """Add the output of a request to the report of the attempt that it ended."""
    for index, one in enumerate(attempts):
        report = one.report
        if report is not None and report.details.get("requestId") == event.request_id:
            details = {**report.details, "output": event.output}
            attempts[index] = replace(one, report=replace(report, details=details))


def _fold_requeued(attempts: list[Attempt], event: TaskRequeued, at: int) -> None:
    reason = _EXPIRED_REASONS.get(event.reason)
    if reason is not None:
        _end_attempt(attempts, at, "expired", reason)
    else:
        _fold_moved(attempts, event, at)


def _fold_moved(
    attempts: list[Attempt], event: TaskRequeued | TaskTransitioned | TaskRewound, at: int
) -> None:
    # A report that waited for the end of its session is void if another transition came first.
    change = status_change_of(event)
    by_report = change is not None and change.by_report
    if by_report and attempts and attempts[-1].report and not attempts[-1].unreported:
        _end_attempt(attempts, at, "completed")
    else:
        _end_attempt(attempts, at, "released", event.reason)


def _end_attempt(attempts: list[Attempt], at: int, status: RunStatus, reason: str = "") -> None:
    """End the last attempt, unless it has ended before."""
    if attempts and attempts[-1].status == "running":
        attempts[-1] = replace(attempts[-1], status=status, ended_at=at, reason=reason)


_ATTEMPT_FOLDS: dict[type[Event], Callable[[list[Attempt], Any, int], None]] = {
    TaskClaimed: _fold_claimed,
    TaskReported: _fold_reported,
    IntentCompleted: _fold_result,
    TaskRequeued: _fold_requeued,
    TaskTransitioned: _fold_moved,
    TaskRewound: _fold_moved,
}
"""Event -> its effect on the attempts; a transition always ends the running one."""

"""What a task's stream tells beyond its present state: the work log, and each attempt's course."""

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.events import (
    AnyEvent,
    TaskClaimed,
    TaskNoted,
    TaskProgressed,
    TaskReported,
    TaskRequeued,
    TaskRewound,
    TaskTransitioned,
)
from dragoman.core.states.moves import REPORTED, RESULT, STALE
from dragoman.core.states.task import Reported
from dragoman.files.tasks.work_log import LogEntry

RunStatus = Literal["running", "completed", "expired", "released"]

_RECLAIM: Final = "stale_heartbeat_reclaim"
_STALE: Final = "stale_heartbeat"
_BY_REPORT: Final = (REPORTED, STALE, RESULT)


class Attempt(Struct, frozen=True):
    """One claim and its outcome."""

    number: int
    agent: str
    fence: int
    started_at: int
    ttl_ms: int
    report: Reported | None = None
    status: RunStatus = "running"
    ended_at: int = 0
    reason: str = ""
    """Reason of the end, unless it ended by its agent's report."""
    unreported: Reported | None = None
    """The hub's report on an agent that ended without one."""
    replaced: tuple[Reported, ...] = ()
    """Reports before the one that counts."""


class Story(Struct, frozen=True):
    """Work log and attempts, oldest first."""

    log: tuple[LogEntry, ...] = ()
    attempts: tuple[Attempt, ...] = ()


def tell(events: Iterable[tuple[int, AnyEvent]]) -> Story:
    """Build the history from a task's events, each with its time."""
    log, attempts = list[LogEntry](), list[Attempt]()
    for at, event in events:
        log.extend(_logged(event, at))
        course = _COURSE.get(type(event))
        if course is not None:
            course(attempts, event, at)
    return Story(tuple(log), tuple(attempts))


def _logged(event: AnyEvent, at: int) -> tuple[LogEntry, ...]:
    """Work log entry of an event, if it leaves one."""
    entry = _LOGGED.get(type(event))
    is_silent = isinstance(event, TaskReported) and not event.blockers
    return () if entry is None or is_silent else (entry(event, at),)


_LOGGED: dict[type[AnyEvent], Callable[[Any, int], LogEntry]] = {
    TaskNoted: lambda event, at: LogEntry(at, notes=event.text, by=event.by),
    TaskProgressed: lambda event, at: LogEntry(
        at if event.sent_at is None else event.sent_at, event.progress, event.notes, event.blockers
    ),
    TaskReported: lambda event, at: LogEntry(at, notes=event.notes, blockers=event.blockers),
}
"""Event -> its work log entry; of a report only blockers are news to readers of the task file."""


def _claimed(attempts: list[Attempt], event: TaskClaimed, at: int) -> None:
    attempts.append(Attempt(event.attempt, event.agent, event.fence, at, event.ttl_ms))


def _reported(attempts: list[Attempt], event: TaskReported, at: int) -> None:
    if not attempts or attempts[-1].number != event.attempt:
        return
    last = attempts[-1]
    report = Reported(
        attempt=event.attempt,
        agent=event.agent,
        outcome=event.outcome,
        at=at,
        notes=event.notes,
        blockers=event.blockers,
        details=event.details,
        by=event.by,
    )
    if event.by:
        attempts[-1] = replace(last, unreported=report)
        return
    replaced = (*last.replaced, last.report) if last.report else last.replaced
    attempts[-1] = replace(last, report=report, replaced=replaced)


def _requeued(attempts: list[Attempt], event: TaskRequeued, at: int) -> None:
    if event.reason == _RECLAIM:
        _end(attempts, at, "expired", _STALE)
    else:
        _moved(attempts, event, at)


def _moved(
    attempts: list[Attempt], event: TaskRequeued | TaskTransitioned | TaskRewound, at: int
) -> None:
    # A report that waited for the end of its session is void if another transition came first.
    if attempts and attempts[-1].report and event.reason.startswith(_BY_REPORT):
        _end(attempts, at, "completed")
    else:
        _end(attempts, at, "released", event.reason)


def _end(attempts: list[Attempt], at: int, status: RunStatus, reason: str = "") -> None:
    """End the last attempt, unless it has ended before."""
    if attempts and attempts[-1].status == "running":
        attempts[-1] = replace(attempts[-1], status=status, ended_at=at, reason=reason)


_COURSE: dict[type[AnyEvent], Callable[[list[Attempt], Any, int], None]] = {
    TaskClaimed: _claimed,
    TaskReported: _reported,
    TaskRequeued: _requeued,
    TaskTransitioned: _moved,
    TaskRewound: _moved,
}
"""Event -> its effect on the attempts; a transition always ends the running one."""

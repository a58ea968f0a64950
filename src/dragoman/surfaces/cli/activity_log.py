"""Activity log: the lines that a running hub prints about its tasks and agents.

It follows the ledger behind the commits, at intervals, and prints a bounded number of lines each
time: neither a burst of work nor a slow terminal holds up the hub.
"""

from collections.abc import Callable, Iterator
from typing import Final

from dragoman.core.agent import AgentPaused, AgentResumed
from dragoman.core.attempt_state import TaskClaimed, TaskReported, TaskRequeued
from dragoman.core.base import Status
from dragoman.core.check_state import TaskChecked
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.task_state import Task, TaskTransitioned
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.event_sentences import describe_reason
from dragoman.engine.ports import Store
from dragoman.engine.queries.attention import one_line
from dragoman.engine.queries.entries import all_entries, decode_event, stream_state
from dragoman.engine.queries.notices import find_notice
from dragoman.ledger.entry import Entry, read_line

MAX_LINES: Final = 25
"""Lines that are printed at a time."""

INTERVAL_S: Final = 0.5
"""Time between two looks at the ledger."""

_SHOWN: Final = frozenset(
    EVENT_NAMES[event]
    for event in (
        TaskClaimed,
        TaskReported,
        TaskRequeued,
        TaskTransitioned,
        TaskChecked,
        AgentPaused,
        AgentResumed,
    )
)

_ENDS: Final[dict[Status, str]] = {
    "done": "done",
    "review": "waits for a review: dragoman task approve {task}",
    "blocked": 'blocked: dragoman task answer {task} "…"',
    "deadletter": "given up: dragoman task retry {task}",
    "cancelled": "cancelled",
}
"""Status -> the words for a task that has entered it; one that is ready again says why instead."""

_CHECKS_RUN: Final = "the hub runs its checks"

_ENTRIES_OF_MOVE: Final = 2
"""Entries in which a move follows its cause: the task may be reserved for its agent before."""


class ActivityLog:
    """A service that prints lines about new entries."""

    name = "terminal"

    def __init__(self, store: Store, print_line: Callable[[str], None]) -> None:
        self._store = store
        self._print_line = print_line
        self._position = store.head()
        self._reports: dict[str, TaskReported] = {}
        """Stream of a task -> the report that is not applied yet."""

    def run_once(self, now: int) -> int:
        """Print what has happened since the last time; return the number of lines."""
        del now
        printed = left_out = 0
        for entry in all_entries(self._store, self._position):
            self._position = entry.position
            for line in self._lines(entry):
                if printed < MAX_LINES:
                    self._print_line(line)
                    printed += 1
                else:
                    left_out += 1
        if left_out:
            self._print_line(f"… and {left_out} more: dragoman events")
        return printed

    def _lines(self, entry: Entry) -> Iterator[str]:
        name = entry.stream.partition(":")[2]
        text = self._describe(entry, name) if entry.event in _SHOWN else ""
        notice = find_notice(self._store, entry)
        if notice is not None:
            name, text = notice.task or notice.agent, f"{notice.text}: {notice.command}"
        if text:
            yield f"{to_rfc3339(read_line(entry.line).at)[11:19]}  {name}  {text}"

    def _describe(self, entry: Entry, task: str) -> str:
        """Describe an entry; empty: it is no news."""
        event = decode_event(entry)
        match event:
            case TaskClaimed():
                return f"{event.agent} began attempt {event.attempt}"
            case TaskReported():
                self._reports[entry.stream] = event
                return ""
            case TaskChecked():
                return self._describe_checks(entry, task)
            case TaskRequeued() | TaskTransitioned():
                is_passed = self._is_passed(entry, event)
                return "" if is_passed else self._describe_move(event, entry.stream, task)
            case AgentPaused():
                return one_line("paused", event.reason)
            case _:
                return "resumed"

    def _is_passed(self, entry: Entry, event: TaskRequeued | TaskTransitioned) -> bool:
        """True for a review that its own request has ended: work without review is done."""
        if isinstance(event, TaskRequeued) or event.to != "review":
            return False
        return self._next_move(entry) is not None

    def _next_move(self, entry: Entry) -> TaskTransitioned | None:
        """Move of the task that the same request has made after this entry."""
        cause = read_line(entry.line).cause
        following = self._store.history(entry.stream, entry.version, _ENTRIES_OF_MOVE)
        events = (decode_event(one) for one in following if read_line(one.line).cause == cause)
        return next((one for one in events if isinstance(one, TaskTransitioned)), None)

    def _describe_checks(self, entry: Entry, task: str) -> str:
        """Describe the end of checks, unless the move that follows says it."""
        move = self._next_move(entry)
        if move is None:
            return f"its checks have passed: {_ENDS['review'].format(task=task)}"
        return one_line("a check failed, sent back", move.reason) if move.to == "ready" else ""

    def _describe_move(self, event: TaskRequeued | TaskTransitioned, stream: str, task: str) -> str:
        reported = self._reports.pop(stream, None)
        report = _describe_report(reported) if reported else one_line(describe_reason(event.reason))
        if isinstance(event, TaskRequeued):
            return f"attempt {event.attempt} failed: {report}"
        if event.from_ == "in-progress" and event.to == "ready":
            return f"given back: {report}" if report else "given back"
        words = _ENDS.get(event.to, "").format(task=task)
        if event.to == "review" and self._has_checks(stream, reported):
            words = _CHECKS_RUN
        return ": ".join(filter(None, (report, words))) if words else ""

    def _has_checks(self, stream: str, reported: TaskReported | None) -> bool:
        """True if the hub runs checks of work that is reported like this."""
        row = self._store.stream(stream)
        state = row and stream_state(self._store, row)
        is_finished = reported is None or reported.outcome != "partial"
        return is_finished and isinstance(state, Task) and bool(state.required_checks)


def _describe_report(event: TaskReported) -> str:
    details = "; ".join(filter(None, (event.notes, *event.blockers)))
    return one_line(f"{event.by or event.agent} reports {event.outcome}", details)

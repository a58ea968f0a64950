"""Briefing: what earlier attempts, answers and reviews left for whoever works on a task next.

It is built here once, from the task and the end of its history; claims, prompts, task files and
requests show the same one.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.attempt_state import Checkpoint, TaskClaimed, TaskReported
from dragoman.core.base import Event, Outcome
from dragoman.core.ids import task_stream
from dragoman.core.question_state import Feedback, Question
from dragoman.core.task_state import Task, TaskNoted, TaskProgressed, status_change_of
from dragoman.engine.ports import Store
from dragoman.engine.queries.entries import decode_event
from dragoman.ledger.entry import read_line

MAX_LOG_LINES: Final = 10

MAX_LOG_TEXT: Final = 500
"""Characters shown of one line of the log."""

_MAX_ENTRIES: Final = 500
"""Entries of a task that are looked at, the last ones."""


class PastAttempt(Struct, frozen=True):
    """The last attempt before the present one, as far as its end is known."""

    attempt: int
    agent: str
    outcome: Outcome | None = None
    """None: it ended without a report."""
    notes: str = ""
    blockers: tuple[str, ...] = ()
    by: str = ""
    """Author of the report, if it was not the agent: the hub."""
    ended_at: int = 0
    reason: str = ""
    """Reason of the status change that ended it."""


class LogLine(Struct, frozen=True):
    """One of the last lines of the work log."""

    at: int
    by: str
    """Its author; empty: the agent of that time."""
    text: str


class Briefing(Struct, frozen=True):
    """All that is known about a task besides its text; every part may be empty."""

    questions: tuple[Question, ...]
    """Questions that are still open."""
    answers: tuple[Question, ...]
    feedback: tuple[Feedback, ...]
    last_attempt: PastAttempt | None
    checkpoint: Checkpoint | None
    log: tuple[LogLine, ...]

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to be told."""
        return self == _NOTHING


_NOTHING: Final = Briefing((), (), (), None, None, ())


def find_briefing(store: Store, task: Task, version: int = 0) -> Briefing | None:
    """The briefing of a task, as it is now or was after this entry of its own; None: empty."""
    events: Iterable[tuple[int, Event]] = ()
    # A task that nobody worked on before has left nothing in its history.
    if task.attempts > 1 or task.notes or (task.attempts and task.status != "in-progress"):
        stream = task_stream(task.id)
        row = store.stream(stream)
        last = version or (row.version if row is not None else 0)
        first = max(0, last - _MAX_ENTRIES)
        entries = store.history(stream, first, last - first)
        events = ((read_line(entry.line).at, decode_event(entry)) for entry in entries)
    return build_briefing(task, tuple(events))


def build_briefing(task: Task, events: Sequence[tuple[int, Event]]) -> Briefing | None:
    """Build the briefing of a task from its last events, each with its time; None: empty.

    While somebody works on the task, it is about what came before.
    """
    last_attempt, log = _read_back(_before_present_attempt(task, events))
    briefing = Briefing(
        task.questions, task.answers, task.feedback, last_attempt, task.checkpoint, log
    )
    return None if briefing.is_empty else briefing


def _before_present_attempt(
    task: Task, events: Sequence[tuple[int, Event]]
) -> Sequence[tuple[int, Event]]:
    if task.status != "in-progress":
        return events
    claims = (at for at, (_, event) in enumerate(events) if isinstance(event, TaskClaimed))
    # Without its claim among them, all of them came since.
    return events[: max(claims, default=0)]


def _read_back(
    events: Iterable[tuple[int, Event]],
) -> tuple[PastAttempt | None, tuple[LogLine, ...]]:
    last: PastAttempt | None = None
    log = deque[LogLine](maxlen=MAX_LOG_LINES)
    for at, event in events:
        if isinstance(event, TaskClaimed):
            last = PastAttempt(event.attempt, event.agent)
        elif isinstance(event, TaskReported):
            last = PastAttempt(
                event.attempt, event.agent, event.outcome, event.notes, event.blockers, event.by
            )
        elif isinstance(event, TaskNoted | TaskProgressed):
            log.append(_log_line(event, at))
        else:
            change = status_change_of(event)
            if last is not None and not last.ended_at and change is not None:
                last = replace(last, ended_at=at, reason=change.reason)
    return last, tuple(log)


def _log_line(event: TaskNoted | TaskProgressed, at: int) -> LogLine:
    if isinstance(event, TaskNoted):
        return LogLine(at, event.by, _excerpt(event.text))
    return LogLine(at, "", _excerpt("; ".join((event.progress, event.notes, *event.blockers))))


def _excerpt(text: str) -> str:
    line = " ".join(text.split()).strip("; ")
    return line if len(line) <= MAX_LOG_TEXT else f"{line[:MAX_LOG_TEXT]}…"

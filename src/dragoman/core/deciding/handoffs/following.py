"""What a task's course does to the handoff that it is on its way by (S-OWN)."""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.commands import AnyCommand, ExpireLease
from dragoman.core.deciding.handoffs.common import COORDINATOR
from dragoman.core.deciding.handoffs.watch import blocked_letter
from dragoman.core.deciding.handoffs.ways_out import overtaken
from dragoman.core.deciding.handoffs.work import COMPLETION, completed
from dragoman.core.deciding.tasks.rewinding import lost_handoff
from dragoman.core.events import (
    AnyEvent,
    HandoffEscalated,
    HandoffNoted,
    TaskCheckpointed,
    TaskEdited,
    TaskReported,
    TaskRequeued,
    TaskRewound,
    TaskTransitioned,
)
from dragoman.core.ids import handoff_stream, task_stream
from dragoman.core.reading import Decision, Read, StreamEvents
from dragoman.core.states.handoff import NEXT_STAGE, Handoff
from dragoman.core.states.intent import intent_of
from dragoman.core.states.moves import REPORTED, STALE
from dragoman.core.states.task import Reported, Task


class _Course(Struct, frozen=True):
    """What was asked for, and what it meets."""

    command: AnyCommand
    report: TaskReported | Reported | None
    """What was said of the attempt, now or before."""
    handoff: Handoff
    task: Task
    read: Read
    now: int


def with_handoff(command: AnyCommand, decision: Decision, read: Read, now: int) -> Decision:
    """The decision, and what follows from it for a handoff of its task."""
    report: TaskReported | None = None
    for stream, event in decision.events:
        report = event if isinstance(event, TaskReported) else report
        follow = _FOLLOW.get(type(event))
        task = read.task(stream.partition(":")[2]) if follow else None
        if follow is None or not isinstance(task, Task) or task.handoff is None:
            continue
        handoff = read.handoff(task.handoff.id)
        if handoff is None:
            continue
        said = report or task.reported
        more = follow(event, _Course(command, said, handoff, task, read, now))
        if more:
            return replace(decision, events=(*decision.events, *more))
    return decision


def _moved(event: TaskTransitioned, course: _Course) -> StreamEvents:
    """Cancelled, or finished by its sender: there is nothing left to hand over.

    What its recipient has brought so far as to be looked at, is done as far as the handoff goes.
    """
    handoff, task = course.handoff, course.task
    if handoff.status == "activated" and event.to in ("review", "done"):
        return completed(handoff, task, course.read, _said(event, course))
    # What is only partly done, or has to be looked at, can still be handed on.
    if _is_given_up(event, course):
        return overtaken(handoff, task, f"{task.id} was given up by {task.assignee}", course.read)
    is_finished = event.to in ("done", "cancelled")
    is_handed_in = course.report is not None and course.report.outcome == "done"
    if is_finished or (event.to == "review" and is_handed_in):
        return _over(handoff, replace(task, status=event.to), course.read)
    return ()


def _said(event: TaskTransitioned, course: _Course) -> HandoffNoted:
    """Whose word has brought the work so far, and what it was.

    A report is its agent's, whoever ends the session in which it takes effect.
    """
    if course.report is not None and event.reason.startswith((REPORTED, STALE)):
        return HandoffNoted(course.report.agent, COMPLETION, course.report.notes)
    return HandoffNoted(course.read.actor.name, COMPLETION, event.reason)


def _is_given_up(event: TaskTransitioned, course: _Course) -> bool:
    """Whether the intent of the task has come to nothing before anybody has taken it over."""
    if event.to != "deadletter" or course.handoff.status == "activated":
        return False
    return intent_of(course.task, course.read.intent) is not None


def _over(handoff: Handoff, task: Task, read: Read) -> StreamEvents:
    detail = f"{task.id} has ended before it was handed over"
    if handoff.status == "activated":
        detail = f"{task.id} was cancelled"
    return overtaken(handoff, task, detail, read)


def _given(event: TaskEdited, course: _Course) -> StreamEvents:
    """Delegated to somebody else, because whoever had it has failed an intent."""
    handoff, task = course.handoff, course.task
    if event.reserved_for in (None, task.assignee):
        return ()
    to = event.reserved_for
    return overtaken(handoff, task, f"{task.id} has gone to {to}", course.read, owner=to)


def _rewound(event: TaskRewound, course: _Course) -> StreamEvents:
    """What was taken over since is nobody's to go on with, and what was offered is not its own."""
    handoff, task = course.handoff, course.task
    if lost_handoff(task, event.restored) is None:
        return ()
    owner = event.restored.assignee
    return overtaken(handoff, task, f"{task.id} was rewound", course.read, owner=owner)


def _checkpointed(event: TaskCheckpointed, course: _Course) -> StreamEvents:
    """What the recipient leaves to a successor ends its part, and with it that it is its work;
    but an intent's goes on with whoever is asked for it.
    """
    handoff, task = course.handoff, course.task
    if handoff.status != "activated" or task.status != "in-progress":
        return ()
    why = f"checkpoint: {event.reason}" + (f": {event.description}" if event.description else "")
    said = HandoffNoted(course.read.actor.name, COMPLETION, why)
    done = completed(handoff, task, course.read, said, is_left=True)
    is_asked_for = intent_of(task, course.read.intent) is not None
    return done if is_asked_for else (*done, (task_stream(task.id), TaskEdited(reserved_for="")))


def _requeued(_: TaskRequeued, course: _Course) -> StreamEvents:
    """The recipient is gone: the handoff stays, and whoever runs the show is told at once."""
    handoff, command = course.handoff, course.command
    if handoff.status != "activated" or not isinstance(command, ExpireLease):
        return ()
    lease = course.read.lease(course.task)
    assert lease is not None, "nothing expires that nobody has held"
    lost = HandoffEscalated(
        "lease_lost",
        NEXT_STAGE[handoff.status],
        COORDINATOR,
        sla_ms=lease.ttl_ms,
        elapsed_ms=max(0, course.now - lease.beat_at),
        recommended="reassign",
        task=handoff.task,
    )
    told = blocked_letter(course.read, command.told, handoff, "lease_lost", "reassign")
    return ((handoff_stream(handoff.id), lost), told)


_FOLLOW: Final[dict[type[AnyEvent], Callable[[Any, _Course], StreamEvents]]] = {
    TaskTransitioned: _moved,
    TaskEdited: _given,
    TaskRewound: _rewound,
    TaskCheckpointed: _checkpointed,
    TaskRequeued: _requeued,
}
"""Event of a task -> what it means for its handoff."""

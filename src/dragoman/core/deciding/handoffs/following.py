"""What a task's course does to the handoff that it is on its way by (S-OWN)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.commands import ExpireLease
from dragoman.core.deciding.handoffs.common import COORDINATOR
from dragoman.core.deciding.handoffs.watch import blocked_letter
from dragoman.core.deciding.handoffs.ways_out import overtaken
from dragoman.core.deciding.handoffs.work import COMPLETION, completed
from dragoman.core.deciding.tasks.rewinding import lost_handoff
from dragoman.core.events import (
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

if TYPE_CHECKING:
    from dragoman.core.commands import AnyCommand
    from dragoman.core.events import AnyEvent


class _Course(Struct, frozen=True):
    """A change of a task: the command, and what it affects."""

    command: "AnyCommand"
    report: TaskReported | Reported | None
    """Report of the attempt, from this decision or an earlier one."""
    handoff: Handoff
    task: Task
    read: Read
    now: int


def with_handoff(command: "AnyCommand", decision: Decision, read: Read, now: int) -> Decision:
    """Extend a decision by its consequences for the active handoff of a task."""
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
    """React to a transition: a task that is cancelled, or finished by its sender, needs no handoff.

    If the recipient has brought the task to review or done, the handoff is complete.
    """
    handoff, task = course.handoff, course.task
    if handoff.status == "activated" and event.to in ("review", "done"):
        return completed(handoff, task, course.read, _said(event, course))
    # Partial work, and work in review, can still be handed on.
    if _is_given_up(event, course):
        return overtaken(handoff, task, f"{task.id} was given up by {task.assignee}", course.read)
    is_finished = event.to in ("done", "cancelled")
    is_handed_in = course.report is not None and course.report.outcome == "done"
    if is_finished or (event.to == "review" and is_handed_in):
        return _over(handoff, replace(task, status=event.to), course.read)
    return ()


def _said(event: TaskTransitioned, course: _Course) -> HandoffNoted:
    """Completion note: by whom, and in which words.

    A report is attributed to its agent, whoever ends the session in which it takes effect.
    """
    if course.report is not None and event.reason.startswith((REPORTED, STALE)):
        return HandoffNoted(course.report.agent, COMPLETION, course.report.notes)
    return HandoffNoted(course.read.actor.name, COMPLETION, event.reason)


def _is_given_up(event: TaskTransitioned, course: _Course) -> bool:
    """Return whether the intent of the task was given up before the recipient activated it."""
    if event.to != "deadletter" or course.handoff.status == "activated":
        return False
    return intent_of(course.task, course.read.intent) is not None


def _over(handoff: Handoff, task: Task, read: Read) -> StreamEvents:
    detail = f"{task.id} has ended before it was handed over"
    if handoff.status == "activated":
        detail = f"{task.id} was cancelled"
    return overtaken(handoff, task, detail, read)


def _given(event: TaskEdited, course: _Course) -> StreamEvents:
    """React to a new owner: the task was delegated to another agent, because its owner failed an
    intent.
    """
    handoff, task = course.handoff, course.task
    if event.reserved_for in (None, task.assignee):
        return ()
    to = event.reserved_for
    return overtaken(handoff, task, f"{task.id} was reassigned to {to}", course.read, owner=to)


def _rewound(event: TaskRewound, course: _Course) -> StreamEvents:
    """React to a rewind: it undoes what was taken over since, and what was proposed is not the
    task's any more.
    """
    handoff, task = course.handoff, course.task
    if lost_handoff(task, event.restored) is None:
        return ()
    owner = event.restored.assignee
    return overtaken(handoff, task, f"{task.id} was rewound", course.read, owner=owner)


def _checkpointed(event: TaskCheckpointed, course: _Course) -> StreamEvents:
    """React to a checkpoint: the recipient leaves the work to a successor, which ends its part and
    its ownership.

    A task of an intent goes on with the agent that is requested next.
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
    """React to an expired lease: the handoff stays, and the coordinators are notified at once."""
    handoff, command = course.handoff, course.command
    if handoff.status != "activated" or not isinstance(command, ExpireLease):
        return ()
    lease = course.read.lease(course.task)
    assert lease is not None, "a task that is requeued had a lease"
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


_FOLLOW: "Final[dict[type[AnyEvent], Callable[[Any, _Course], StreamEvents]]]" = {
    TaskTransitioned: _moved,
    TaskEdited: _given,
    TaskRewound: _rewound,
    TaskCheckpointed: _checkpointed,
    TaskRequeued: _requeued,
}
"""Event of a task -> reaction of its handoff."""

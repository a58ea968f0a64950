"""Keep a handoff in step with its task, in the same transaction (S-OWN)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.attempt import ExpireLease
from dragoman.core.attempt_state import Report, TaskCheckpointed, TaskReported, TaskRequeued
from dragoman.core.handoff.common import COORDINATOR
from dragoman.core.handoff.complete import COMPLETION_NOTE_KIND, completion_events
from dragoman.core.handoff.reject import hub_rejection_events
from dragoman.core.handoff.sla import blocked_letter_event
from dragoman.core.handoff.state import STAGE_LABELS, Handoff, HandoffEscalated, HandoffNoted
from dragoman.core.ids import handoff_stream, task_stream
from dragoman.core.intent.state import intent_of_task
from dragoman.core.read import Decision, Read, StreamEvents
from dragoman.core.task import handoff_ended_by_rewind
from dragoman.core.task_state import (
    REPORTED_PREFIX,
    STALE_HEARTBEAT_PREFIX,
    Task,
    TaskEdited,
    TaskRewound,
    TaskTransitioned,
)

if TYPE_CHECKING:
    from dragoman.core.command_table import AnyCommand
    from dragoman.core.event_table import AnyEvent


class _TaskChange(Struct, frozen=True):
    """A change of a task: the command, and what it affects."""

    command: "AnyCommand"
    report: TaskReported | Report | None
    """Report of the attempt, from this decision or an earlier one."""
    handoff: Handoff
    task: Task
    read: Read
    now: int


def sync_handoff(command: "AnyCommand", decision: Decision, read: Read, now: int) -> Decision:
    """Extend a decision by its consequences for the active handoff of a task."""
    report: TaskReported | None = None
    for stream, event in decision.events:
        report = event if isinstance(event, TaskReported) else report
        react = _REACTIONS.get(type(event))
        task = read.task(stream.partition(":")[2]) if react else None
        if react is None or not isinstance(task, Task) or task.handoff is None:
            continue
        handoff = read.handoff(task.handoff.id)
        if handoff is None:
            continue
        last_report = report or task.reported
        reactions = react(event, _TaskChange(command, last_report, handoff, task, read, now))
        if reactions:
            return replace(decision, events=(*decision.events, *reactions))
    return decision


def _on_transition(event: TaskTransitioned, change: _TaskChange) -> StreamEvents:
    """React to a transition: a task that is cancelled, or finished by its sender, needs no handoff.

    If the recipient has brought the task to review or done, the handoff is complete.
    """
    handoff, task = change.handoff, change.task
    if handoff.status == "activated" and event.to in ("review", "done"):
        return completion_events(handoff, task, change.read, _completion_note(event, change))
    # Partial work, and work in review, can still be handed on.
    if _is_intent_given_up(event, change):
        return hub_rejection_events(
            handoff, task, f"{task.id} was given up by {task.assignee}", change.read
        )
    is_finished = event.to in ("done", "cancelled")
    is_handed_in = change.report is not None and change.report.outcome == "done"
    if is_finished or (event.to == "review" and is_handed_in):
        return _end_handoff(handoff, replace(task, status=event.to), change.read)
    return ()


def _completion_note(event: TaskTransitioned, change: _TaskChange) -> HandoffNoted:
    """Completion note: by whom, and in which words.

    A report is attributed to its agent, whoever ends the session in which it takes effect.
    """
    if change.report is not None and event.reason.startswith(
        (REPORTED_PREFIX, STALE_HEARTBEAT_PREFIX)
    ):
        return HandoffNoted(change.report.agent, COMPLETION_NOTE_KIND, change.report.notes)
    return HandoffNoted(change.read.actor.name, COMPLETION_NOTE_KIND, event.reason)


def _is_intent_given_up(event: TaskTransitioned, change: _TaskChange) -> bool:
    """Return whether the intent of the task was given up before the recipient activated it."""
    if event.to != "deadletter" or change.handoff.status == "activated":
        return False
    return intent_of_task(change.task, change.read.intent) is not None


def _end_handoff(handoff: Handoff, task: Task, read: Read) -> StreamEvents:
    detail = f"{task.id} has ended before it was handed over"
    if handoff.status == "activated":
        detail = f"{task.id} was cancelled"
    return hub_rejection_events(handoff, task, detail, read)


def _on_edit(event: TaskEdited, change: _TaskChange) -> StreamEvents:
    """React to a new owner: the task was delegated to another agent, because its owner failed an
    intent.
    """
    handoff, task = change.handoff, change.task
    if event.reserved_for in (None, task.assignee):
        return ()
    to = event.reserved_for
    return hub_rejection_events(
        handoff, task, f"{task.id} was reassigned to {to}", change.read, owner=to
    )


def _on_rewind(event: TaskRewound, change: _TaskChange) -> StreamEvents:
    """React to a rewind: it undoes what was taken over since, and what was proposed is not the
    task's any more.
    """
    handoff, task = change.handoff, change.task
    if handoff_ended_by_rewind(task, event.restored) is None:
        return ()
    owner = event.restored.assignee
    return hub_rejection_events(handoff, task, f"{task.id} was rewound", change.read, owner=owner)


def _on_checkpoint(event: TaskCheckpointed, change: _TaskChange) -> StreamEvents:
    """React to a checkpoint: the recipient leaves the work to a successor, which ends its part and
    its ownership.

    A task of an intent goes on with the agent that is requested next.
    """
    handoff, task = change.handoff, change.task
    if handoff.status != "activated" or task.status != "in-progress":
        return ()
    text = f"checkpoint: {event.reason}" + (f": {event.description}" if event.description else "")
    note = HandoffNoted(change.read.actor.name, COMPLETION_NOTE_KIND, text)
    completion = completion_events(handoff, task, change.read, note, is_checkpoint=True)
    has_intent = intent_of_task(task, change.read.intent) is not None
    return (
        completion
        if has_intent
        else (*completion, (task_stream(task.id), TaskEdited(reserved_for="")))
    )


def _on_requeue(_: TaskRequeued, change: _TaskChange) -> StreamEvents:
    """React to an expired lease: the handoff stays, and the coordinators are notified at once."""
    handoff, command = change.handoff, change.command
    if handoff.status != "activated" or not isinstance(command, ExpireLease):
        return ()
    lease = change.read.lease(change.task)
    assert lease is not None, "a task that is requeued had a lease"
    escalation = HandoffEscalated(
        "lease_lost",
        STAGE_LABELS[handoff.status],
        COORDINATOR,
        sla_ms=lease.ttl_ms,
        elapsed_ms=max(0, change.now - lease.last_heartbeat),
        recommended="reassign",
        task=handoff.task,
    )
    letter = blocked_letter_event(change.read, command.notify, handoff, "lease_lost", "reassign")
    return ((handoff_stream(handoff.id), escalation), letter)


_REACTIONS: "Final[dict[type[AnyEvent], Callable[[Any, _TaskChange], StreamEvents]]]" = {
    TaskTransitioned: _on_transition,
    TaskEdited: _on_edit,
    TaskRewound: _on_rewind,
    TaskCheckpointed: _on_checkpoint,
    TaskRequeued: _on_requeue,
}
"""Event of a task -> reaction of its handoff."""

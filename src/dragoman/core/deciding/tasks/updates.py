"""Deciders of what is said about a task on its way: update, edit, warn."""

from typing import TypeVar

from msgspec.structs import replace

from dragoman.core.authority import (
    FILE_MOVABLE_STATUSES,
    MAY_EDIT,
    check_fence,
    check_may_act_for_work,
    check_write,
    relation_to_task,
)
from dragoman.core.commands import EditTask, UpdateTask, WarnTask
from dragoman.core.deciding.tasks.lifecycle import check_may_move, check_repeat, transition_events
from dragoman.core.errors import Refusal
from dragoman.core.events import Status, TaskEdited, TaskEvent, TaskProgressed, TaskWarned
from dragoman.core.ids import check_agent, task_stream
from dragoman.core.limits import (
    MAX_BODY,
    MAX_REASON,
    MAX_TEXT,
    MAX_TITLE,
    check_range,
    check_text,
    check_texts,
)
from dragoman.core.moments import TIMESTAMP_RANGE
from dragoman.core.reading import Decision, LeaseChange, Read, task_receipt
from dragoman.core.rules.handoff_chain import active_handoff_refusal
from dragoman.core.states.task import CLAIMABLE_STATUSES, Task, can_transition

Value = TypeVar("Value")

_EDIT_FIELDS = ("title", "body", "priority", "review_required", "assignee")


def decide_update_task(command: UpdateTask, read: Read, now: int) -> Decision | Refusal:
    """Make a transition if the table has it, else add a line to the work log (S-AOF-2, 4)."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = check_write(read.actor) or _check_update_fields(command)
    if refusal:
        return refusal
    if command.to is not None and _can_update_to(task, command.to):
        return _decide_transition(command, command.to, task, read, now)
    is_silent = not _first_text(command)
    if is_silent and command.to in (None, task.status):
        return check_repeat(command.fence, task, read, now) or Decision(
            task_receipt(task, task.status)
        )
    refusal = check_may_act_for_work(read.actor, task, read.lease(task), command.fence, now)
    if refusal:
        return refusal
    if is_silent:
        return _with_remark(
            Decision(task_receipt(task, task.status)), _no_transition_remark(command, task)
        )
    progressed = _single_event_decision(
        task, TaskProgressed(command.progress, command.notes, command.blockers, command.sent_at)
    )
    return _with_remark(progressed, _no_transition_remark(command, task))


def _no_transition_remark(command: UpdateTask, task: Task) -> str:
    """Remark for a sender that asked for an impossible status; empty: none."""
    if command.to in (None, task.status):
        return ""
    consequence = "written into the work log" if _first_text(command) else "nothing was changed"
    if command.to == "in-progress" and task.status in CLAIMABLE_STATUSES:
        return f"{task.id} enters in-progress only by a claim: {consequence}"
    return f"there is no transition from {task.status} to {command.to}: {consequence}"


def _with_remark(decision: Decision, remark: str) -> Decision:
    """Add a remark to the receipt, so that a repeat shows it, too."""
    return replace(decision, receipt=replace(decision.receipt, remark=remark))


def decide_edit_task(command: EditTask, read: Read, now: int) -> Decision | Refusal:
    """Edit fields of a task. Values that it has already are no change."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = _check_edit_fields(command) or _check_editor(command, task, read, now)
    if refusal:
        return refusal
    event = TaskEdited(
        title=_changed_value(command.title, task.title),
        body=_changed_value(command.body, task.body),
        priority=_changed_value(command.priority, task.priority),
        review_required=_changed_value(command.review_required, task.review_required),
        reserved_for=None if _is_assigned_to(task, command.assignee) else command.assignee,
    )
    if event == TaskEdited():
        return Decision(task_receipt(task, task.status))
    return _single_event_decision(task, event)


def decide_warn_task(command: WarnTask, read: Read, now: int) -> Decision | Refusal:
    """Record a warning about the message of the same request."""
    del now
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = (
        check_write(read.actor)
        or check_text("reason", command.reason, MAX_TITLE, minimum=1)
        or check_text("detail", command.detail, MAX_REASON)
    )
    if refusal:
        return refusal
    return _with_remark(
        _single_event_decision(task, TaskWarned(command.reason, command.detail)), command.detail
    )


def _single_event_decision(task: Task, event: TaskEvent) -> Decision:
    return Decision(task_receipt(task, task.status), ((task_stream(task.id), event),))


def _check_update_fields(command: UpdateTask) -> Refusal | None:
    return (
        check_text("progress", command.progress, MAX_TEXT)
        or check_text("notes", command.notes, MAX_TEXT)
        or check_texts("blockers", command.blockers, MAX_REASON)
        or check_text("blockers", _first_text(command), MAX_TEXT)
        or (
            None
            if command.sent_at is None
            else check_range("sent_at", command.sent_at, *TIMESTAMP_RANGE)
        )
    )


def _first_text(command: UpdateTask) -> str:
    """Reason in the sender's words: the first given of blockers, notes, progress."""
    return next(iter(_given_texts(command)), "")


def _given_texts(command: UpdateTask) -> list[str]:
    texts = ("; ".join(command.blockers), command.notes, command.progress)
    return [text for text in texts if text]


def _can_update_to(task: Task, to: Status) -> bool:
    """True if an update can lead there: in-progress is entered by a claim only."""
    return to != "in-progress" and can_transition(task.status, to)


def _decide_transition(
    command: UpdateTask, to: Status, task: Task, read: Read, now: int
) -> Decision | Refusal:
    refusal = check_may_move(to, command.fence, task, read, now)
    if refusal:
        return refusal
    ended = LeaseChange(task.id, None) if task.status == "in-progress" else None
    other_text = "; ".join(_given_texts(command)[1:])
    return Decision(
        task_receipt(task, to),
        transition_events(task, to, _first_text(command), read, other_text),
        ended,
    )


def _check_edit_fields(command: EditTask) -> Refusal | None:
    title, body, assignee = command.title, command.body, command.assignee
    return (
        (None if title is None else check_text("title", title, MAX_TITLE, minimum=1))
        or (None if body is None else check_text("body", body, MAX_BODY))
        or (check_agent(assignee, "assignee") if assignee else None)
    )


def _check_editor(command: EditTask, task: Task, read: Read, now: int) -> Refusal | None:
    actor, lease = read.actor, read.lease(task)
    allowed = MAY_EDIT[actor.role]
    for field in _EDIT_FIELDS:
        if getattr(command, field) is not None and field not in allowed:
            return Refusal("not_authorized", f"{actor.label} may not change {field} of {task.id}")
    if actor.role == "agent":
        return check_may_act_for_work(actor, task, lease, command.fence, now)
    refusal = check_fence(actor, task, lease, command.fence, now)
    if refusal:
        return refusal
    changes_review = _changed_value(command.review_required, task.review_required) is not None
    caller_relation = relation_to_task(actor, task, lease, now)
    if changes_review and caller_relation == "file" and task.status not in FILE_MOVABLE_STATUSES:
        return Refusal(
            "not_authorized",
            f"{task.id} is {task.status}: an edited file does not change whether it is reviewed, "
            "unless files.trust_moves is set",
        )
    if task.handoff is not None and not _is_assigned_to(task, command.assignee):
        return active_handoff_refusal(task, task.handoff)
    if lease is not None and not _is_assigned_to(task, command.assignee):
        return Refusal(
            "already_claimed",
            f"{lease.holder} holds {task.id}: its assignee can be changed when it is given back",
        )
    return None


def _changed_value(value: Value | None, current: Value) -> Value | None:
    return None if value == current else value


def _is_assigned_to(task: Task, assignee: str | None) -> bool:
    """True if nothing has to change for the task to be this agent's."""
    if assignee is None or assignee != task.assignee:
        return assignee is None
    return task.status == "in-progress" or task.reserved_for == assignee

"""Deciders of what is said about a task on its way: update, edit, warn."""

from typing import TypeVar

from msgspec.structs import replace

from dragoman.core.authority import (
    BY_FILE,
    MAY_EDIT,
    check_fence,
    check_own,
    check_write,
    relation,
)
from dragoman.core.commands import EditTask, UpdateTask, WarnTask
from dragoman.core.deciding.tasks.lifecycle import check_move, check_token, moved
from dragoman.core.errors import Refusal
from dragoman.core.events import Status, TaskEdited, TaskEvent, TaskProgressed, TaskWarned
from dragoman.core.ids import check_agent, task_stream
from dragoman.core.limits import BODY, REASON, TEXT, TITLE, check_range, check_text, check_texts
from dragoman.core.moments import SPAN
from dragoman.core.reading import Decision, LeaseChange, Read, receipt
from dragoman.core.rules.handoff_chain import on_its_way
from dragoman.core.states.task import CLAIMABLE, Task, can_move

Value = TypeVar("Value")

_FIELDS = ("title", "body", "priority", "review_required", "assignee")


def update(command: UpdateTask, read: Read, now: int) -> Decision | Refusal:
    """Make a transition if the table has it, else add a line to the work log (S-AOF-2, 4)."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = check_write(read.actor) or _check_update(command)
    if refusal:
        return refusal
    if command.to is not None and _has_way(task, command.to):
        return _transition(command, command.to, task, read, now)
    is_silent = not _reason(command)
    if is_silent and command.to in (None, task.status):
        return check_token(command.fence, task, read, now) or Decision(receipt(task, task.status))
    refusal = check_own(read.actor, task, read.lease(task), command.fence, now)
    if refusal:
        return refusal
    if is_silent:
        return _remarked(Decision(receipt(task, task.status)), _no_way(command, task))
    progressed = _one(
        task, TaskProgressed(command.progress, command.notes, command.blockers, command.sent_at)
    )
    return _remarked(progressed, _no_way(command, task))


def _no_way(command: UpdateTask, task: Task) -> str:
    """Remark for a sender that asked for an impossible status; empty: none."""
    if command.to in (None, task.status):
        return ""
    instead = "written into the work log" if _reason(command) else "nothing was changed"
    if command.to == "in-progress" and task.status in CLAIMABLE:
        return f"{task.id} enters in-progress only by a claim: {instead}"
    return f"there is no transition from {task.status} to {command.to}: {instead}"


def _remarked(decision: Decision, remark: str) -> Decision:
    """Add a remark to the receipt, so that a repeat shows it, too."""
    return replace(decision, receipt=replace(decision.receipt, remark=remark))


def edit(command: EditTask, read: Read, now: int) -> Decision | Refusal:
    """Edit fields of a task. Values that it has already are no change."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = _check_edit(command) or _check_editor(command, task, read, now)
    if refusal:
        return refusal
    event = TaskEdited(
        title=_new(command.title, task.title),
        body=_new(command.body, task.body),
        priority=_new(command.priority, task.priority),
        review_required=_new(command.review_required, task.review_required),
        reserved_for=None if _belongs(task, command.assignee) else command.assignee,
    )
    if event == TaskEdited():
        return Decision(receipt(task, task.status))
    return _one(task, event)


def warn(command: WarnTask, read: Read, now: int) -> Decision | Refusal:
    """Record a warning about the message of the same request."""
    del now
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = (
        check_write(read.actor)
        or check_text("reason", command.reason, TITLE, least=1)
        or check_text("detail", command.detail, REASON)
    )
    if refusal:
        return refusal
    return _remarked(_one(task, TaskWarned(command.reason, command.detail)), command.detail)


def _one(task: Task, event: TaskEvent) -> Decision:
    return Decision(receipt(task, task.status), ((task_stream(task.id), event),))


def _check_update(command: UpdateTask) -> Refusal | None:
    return (
        check_text("progress", command.progress, TEXT)
        or check_text("notes", command.notes, TEXT)
        or check_texts("blockers", command.blockers, REASON)
        or check_text("blockers", _reason(command), TEXT)
        or (None if command.sent_at is None else check_range("sent_at", command.sent_at, *SPAN))
    )


def _reason(command: UpdateTask) -> str:
    """Reason in the sender's words: the first given of blockers, notes, progress."""
    return next(iter(_words(command)), "")


def _words(command: UpdateTask) -> list[str]:
    said = ("; ".join(command.blockers), command.notes, command.progress)
    return [text for text in said if text]


def _has_way(task: Task, to: Status) -> bool:
    """True if an update can lead there: in-progress is entered by a claim only."""
    return to != "in-progress" and can_move(task.status, to)


def _transition(
    command: UpdateTask, to: Status, task: Task, read: Read, now: int
) -> Decision | Refusal:
    refusal = check_move(to, command.fence, task, read, now)
    if refusal:
        return refusal
    ended = LeaseChange(task.id, None) if task.status == "in-progress" else None
    beside = "; ".join(_words(command)[1:])
    return Decision(receipt(task, to), moved(task, to, _reason(command), read, beside), ended)


def _check_edit(command: EditTask) -> Refusal | None:
    title, body, assignee = command.title, command.body, command.assignee
    return (
        (None if title is None else check_text("title", title, TITLE, least=1))
        or (None if body is None else check_text("body", body, BODY))
        or (check_agent(assignee, "assignee") if assignee else None)
    )


def _check_editor(command: EditTask, task: Task, read: Read, now: int) -> Refusal | None:
    actor, lease = read.actor, read.lease(task)
    allowed = MAY_EDIT[actor.role]
    for field in _FIELDS:
        if getattr(command, field) is not None and field not in allowed:
            return Refusal("not_authorized", f"{actor.label} may not change {field} of {task.id}")
    if actor.role == "agent":
        return check_own(actor, task, lease, command.fence, now)
    refusal = check_fence(actor, task, lease, command.fence, now)
    if refusal:
        return refusal
    changes_review = _new(command.review_required, task.review_required) is not None
    stands = relation(actor, task, lease, now)
    if changes_review and stands == "file" and task.status not in BY_FILE:
        return Refusal(
            "not_authorized",
            f"{task.id} is {task.status}: an edited file does not change whether it is reviewed, "
            "unless files.trust_moves is set",
        )
    if task.handoff is not None and not _belongs(task, command.assignee):
        return on_its_way(task, task.handoff)
    if lease is not None and not _belongs(task, command.assignee):
        return Refusal(
            "already_claimed",
            f"{lease.holder} holds {task.id}: its assignee can be changed when it is given back",
        )
    return None


def _new(value: Value | None, current: Value) -> Value | None:
    return None if value == current else value


def _belongs(task: Task, assignee: str | None) -> bool:
    """True if nothing has to change for the task to be this agent's."""
    if assignee is None or assignee != task.assignee:
        return assignee is None
    return task.status == "in-progress" or task.reserved_for == assignee

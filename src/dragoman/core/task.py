"""Decisions about tasks, except attempts: create, link, move, update, edit, rewind (S-TASK).

A rewind (S-SAOP-10) makes a task what it was at one of its status changes, by a new entry. What
happened since stays on record, and so does what concerns others: names, links, delegations, the
number of attempts and their fencing tokens. Only tasks that wait for this one are told: it has
ended, or it has not.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from dragoman.core import limits
from dragoman.core.actor import Actor
from dragoman.core.attempt_state import TaskCheckpointed, TaskReported
from dragoman.core.authority import (
    FILE_MOVABLE_STATUSES,
    MAY_DELEGATE,
    MAY_EDIT,
    MAY_MOVE,
    MAY_REWIND,
    check_fence,
    check_holds,
    check_may_act_for_work,
    check_may_comment,
    check_write,
    holds,
    is_own_review,
    relation_to_task,
)
from dragoman.core.base import Event, LinkKind, Status
from dragoman.core.check_state import check_commands, check_may_name_checks
from dragoman.core.errors import Refusal
from dragoman.core.ids import (
    check_agent,
    check_alias,
    check_task_id,
    format_aof_id,
    is_aof_id,
    safe_name,
    task_stream,
)
from dragoman.core.not_found import linked_task
from dragoman.core.read import Decision, LeaseChange, Read, Receipt, StreamEvents, task_receipt
from dragoman.core.task_state import (
    CLAIMABLE_STATUSES,
    FINAL_STATUSES,
    INTENT_ALIAS_KIND,
    RESTORED_FIELDS,
    TASK_TRANSITIONS,
    ActiveHandoff,
    AliasTask,
    CreateTask,
    EditTask,
    LinkTask,
    MoveTask,
    NoteTask,
    RestoredState,
    RewindTask,
    SendBackTask,
    Task,
    TaskAliased,
    TaskBacklinked,
    TaskCreated,
    TaskEdited,
    TaskLinked,
    TaskNoted,
    TaskProgressed,
    TaskRewound,
    TaskTransitioned,
    TaskUnbacklinked,
    TaskUnblocked,
    TaskUnlinked,
    TaskWarned,
    UnlinkTask,
    UpdateTask,
    WarnTask,
    can_transition,
)
from dragoman.core.timestamps import TIMESTAMP_RANGE, to_rfc3339

# --- create, name and note --------------------------------------------------------------------


class _FoundLinks(Struct, frozen=True):
    """Tasks that a new task links to."""

    parent: Task | None
    blockers: tuple[Task, ...]
    source: Task | None

    def add_to(self, event: TaskCreated) -> TaskCreated:
        return replace(
            event,
            parent=self.parent.id if self.parent else "",
            blocked_by=tuple(task.id for task in self.blockers),
            open_blockers=tuple(task.id for task in self.blockers if not task.is_final),
            discovered_from=self.source.id if self.source else "",
        )

    def backlinks(self, task_id: str) -> StreamEvents:
        ends: list[tuple[LinkKind, Task]] = [("blocked-by", task) for task in self.blockers]
        if self.parent:
            ends.append(("parent", self.parent))
        if self.source:
            ends.append(("discovered-from", self.source))
        return tuple((task_stream(t.id), TaskBacklinked(kind, task_id)) for kind, t in ends)


def decide_create_task(command: CreateTask, read: Read, now: int) -> Decision | Refusal:
    """Create a task, linked to the tasks it names."""
    return (
        _check_review_policy(command, read.actor)
        or check_may_name_checks(command.checks, read.actor)
        or _check_intent_aliases(command.aliases, read)
        or create_task(command, read, now)
    )


def create_task(command: CreateTask, read: Read, now: int) -> Decision | Refusal:
    """Create a task, which may be an intent's."""
    refusal = check_write(read.actor) or _check_create_fields(command)
    if refusal:
        return refusal
    links = _find_links(command, read) if _has_links(command) else None
    if isinstance(links, Refusal):
        return links
    task_id, new_aof_id, number = _assign_ids(command.id, read, now)
    aliases = _distinct_aliases(command, new_aof_id) if command.aliases else ()
    name_refusal = _check_names_are_free((command.id, *aliases), read)
    if name_refusal:
        return name_refusal
    event = TaskCreated(
        id=task_id,
        aof_id=new_aof_id,
        title=command.title,
        status="ready" if command.ready else "backlog",
        body=command.body,
        priority=command.priority,
        review_required=command.review_required,
        max_attempts=command.max_attempts,
        reserved_for=command.assignee,
        origin=command.origin,
        aliases=aliases,
        deadline=command.deadline,
        checks=command.checks,
    )
    events: StreamEvents = ((task_stream(task_id), event),)
    if links is not None:
        events = ((task_stream(task_id), links.add_to(event)), *links.backlinks(task_id))
    return Decision(Receipt(task_id, event.status), events, aof_number=number)


def decide_alias_task(command: AliasTask, read: Read, now: int) -> Decision | Refusal:
    """Give a task one more name. The same name again is a no-op."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = check_may_comment(
        read.actor, task, read.lease(task), command.fence, now
    ) or check_alias(command.alias, "aliases")
    if refusal:
        return refusal
    named = read.task(command.alias)
    if isinstance(named, Task) and named.id == task.id:
        return Decision(task_receipt(task, task.status))
    refusal = (
        _check_intent_aliases((command.alias,), read)
        or limits.check_count("aliases", (*task.aliases, command.alias), limits.MAX_LINKS)
        or _check_names_are_free((command.alias,), read)
    )
    if refusal:
        return refusal
    event = TaskAliased(command.alias)
    return Decision(task_receipt(task, task.status), ((task_stream(task.id), event),))


def decide_note_task(command: NoteTask, read: Read, now: int) -> Decision | Refusal:
    """Add a line to the work log; one that is not by the task's worker names its author."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    actor, lease = read.actor, read.lease(task)
    refusal = check_may_comment(actor, task, lease, command.fence, now) or limits.check_text(
        "text", command.text, limits.MAX_TEXT, minimum=1
    )
    if refusal:
        return refusal
    is_own = holds(actor, lease, now) or actor.name == task.assignee
    event = TaskNoted(command.text, "" if is_own else actor.label)
    return Decision(task_receipt(task, task.status), ((task_stream(task.id), event),))


def _check_review_policy(command: CreateTask, actor: Actor) -> Refusal | None:
    """Refuse a task without review by an agent, unless the settings allow it: it, or an agent that
    it has chosen, would else decide alone that its work is good.
    """
    if command.review_required or command.may_skip_review or actor.role != "agent":
        return None
    detail = (
        f"{actor.label} may not create a task without review: leave the review on, or have a "
        "person set [tasks] agents_skip_review"
    )
    return Refusal("not_authorized", detail, path="review_required")


def _check_create_fields(command: CreateTask) -> Refusal | None:
    return (
        limits.check_text("title", command.title, limits.MAX_TITLE, minimum=1)
        or limits.check_text("body", command.body, limits.MAX_BODY)
        or limits.check_text("origin", command.origin, limits.MAX_TITLE)
        or (check_task_id(command.id, "id") if command.id else None)
        or (check_agent(command.assignee, "assignee") if command.assignee else None)
        or limits.check_count("aliases", command.aliases, limits.MAX_LINKS)
        or limits.check_count("blocked_by", command.blocked_by, limits.MAX_LINKS)
        or limits.check_range("max_attempts", command.max_attempts, 1, limits.MAX_ATTEMPTS)
        or _check_deadline(command.deadline)
        or check_commands(command.checks)
        or next(filter(None, (check_alias(one, "aliases") for one in command.aliases)), None)
    )


def _distinct_aliases(command: CreateTask, own_aof_id: str) -> tuple[str, ...]:
    return tuple(a for a in dict.fromkeys(command.aliases) if a != f"aof:{own_aof_id}")


def _has_links(command: CreateTask) -> bool:
    return bool(command.parent or command.blocked_by or command.discovered_from)


def _find_links(command: CreateTask, read: Read) -> _FoundLinks | Refusal:
    found: dict[str, Task] = {}
    single = (("parent", command.parent), ("discovered_from", command.discovered_from))
    links = [(field, linked) for field, linked in single if linked]
    for field, linked in (*links, *(("blocked_by", one) for one in command.blocked_by)):
        task = read.task(linked)
        if isinstance(task, Refusal):
            return linked_task(task, linked, field)
        found[linked] = task
    blockers = {found[linked].id: found[linked] for linked in command.blocked_by}
    return _FoundLinks(
        found.get(command.parent), tuple(blockers.values()), found.get(command.discovered_from)
    )


def _assign_ids(requested_id: str, read: Read, now: int) -> tuple[str, str, tuple[str, int] | None]:
    """Primary id, AOF id, and the day's number if one was used up (S-NAME)."""
    if is_aof_id(requested_id):
        return requested_id, requested_id, None
    day = to_rfc3339(now)[:10]
    number = read.last_number(day) + 1
    while read.is_taken(new_id := format_aof_id(day, number)):
        number += 1
    return requested_id or new_id, new_id, (day, number)


def _check_intent_aliases(names: tuple[str, ...], read: Read) -> Refusal | None:
    """Refuse an intent's alias unless the caller may delegate existing tasks."""
    if not names or read.actor.role in MAY_DELEGATE:
        return None
    intent_alias = next((one for one in names if one.startswith(f"{INTENT_ALIAS_KIND}:")), "")
    if not intent_alias:
        return None
    return Refusal(
        "not_authorized",
        f"{read.actor.label} may not name a task {safe_name(intent_alias)}: only a person or an "
        "orchestrator may assign an intent to a task",
    )


def _check_names_are_free(names: tuple[str, ...], read: Read) -> Refusal | None:
    for name in names:
        if name and read.is_taken(name):
            detail = f"a task with the name {name} exists already"
            return Refusal("already_exists", detail, path="aliases" if ":" in name else "id")
    return None


# --- link -------------------------------------------------------------------------------------

_MAX_CYCLE_SEARCH = 10_000
"""Tasks that a search for a cycle visits before it gives up and refuses."""

_CYCLE_MEANINGS: dict[LinkKind, str] = {
    "blocked-by": "wait for itself",
    "parent": "a part of itself",
    "discovered-from": "discovered from itself",
}
"""Kind of link -> meaning of a cycle of them."""


def decide_link_tasks(command: LinkTask, read: Read, now: int) -> Decision | Refusal:
    """Link a task to another one. The same link again is a no-op."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    target = read.task(command.target)
    if isinstance(target, Refusal):
        return linked_task(target, command.target, _link_field(command.kind))
    refusal = check_may_comment(read.actor, task, read.lease(task), command.fence, now)
    if refusal:
        return refusal
    linked = _linked_ids(task, command.kind)
    if target.id in linked:
        return Decision(task_receipt(task, task.status))
    refusal = (
        limits.check_count(command.kind, (*linked, target.id), limits.MAX_LINKS)
        or _check_single_link(task, command.kind, linked)
        or check_link_cycle(task, target, command.kind, read)
    )
    if refusal:
        return refusal
    is_open = command.kind == "blocked-by" and not target.is_final
    return Decision(
        task_receipt(task, task.status),
        (
            (task_stream(task.id), TaskLinked(command.kind, target.id, is_open)),
            (task_stream(target.id), TaskBacklinked(command.kind, task.id)),
        ),
    )


def decide_unlink_task(command: UnlinkTask, read: Read, now: int) -> Decision | Refusal:
    """Remove a dependency. One that is not there is a no-op."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    target = read.task(command.target)
    if isinstance(target, Refusal):
        return linked_task(target, command.target, "blocked_by")
    refusal = check_may_act_for_work(read.actor, task, read.lease(task), command.fence, now)
    if refusal:
        return refusal
    if target.id not in task.blocked_by:
        return Decision(task_receipt(task, task.status))
    return Decision(
        task_receipt(task, task.status),
        (
            (task_stream(task.id), TaskUnlinked(target.id)),
            (task_stream(target.id), TaskUnbacklinked(task.id)),
        ),
    )


def _linked_ids(task: Task, kind: LinkKind) -> tuple[str, ...]:
    if kind == "blocked-by":
        return task.blocked_by
    single = task.parent if kind == "parent" else task.discovered_from
    return (single,) if single else ()


def _check_single_link(task: Task, kind: LinkKind, linked: Iterable[str]) -> Refusal | None:
    if kind == "blocked-by":
        return None
    for other in linked:
        return Refusal("already_linked", f"{task.id} has {other} as its {kind} already")
    return None


def _link_field(kind: LinkKind) -> str:
    """Name of the field that holds the other end of such a link."""
    return kind.replace("-", "_")


def check_link_cycle(task: Task, target: Task, kind: LinkKind, read: Read) -> Refusal | None:
    """Refuse a cycle: search from the target along links of this kind for the task itself."""
    seen: set[str] = set()
    pending = [target]
    while pending:
        at = pending.pop()
        if at.id == task.id or len(seen) > _MAX_CYCLE_SEARCH:
            detail = f"{task.id} {kind} {target.id} would make {task.id} {_CYCLE_MEANINGS[kind]}"
            return Refusal("link_cycle", detail, path=_link_field(kind))
        if at.id not in seen:
            seen.add(at.id)
            found = map(read.task, _linked_ids(at, kind))
            pending += [other for other in found if isinstance(other, Task)]
    return None


# --- move -------------------------------------------------------------------------------------


def decide_move_task(command: MoveTask, read: Read, now: int) -> Decision | Refusal:
    """Change the status. The same status again is a no-op."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = limits.check_text("reason", command.reason, limits.MAX_REASON)
    if refusal:
        return refusal
    if task.status == command.to:
        return check_repeat(command.fence, task, read, now) or Decision(
            task_receipt(task, task.status)
        )
    if command.unless_in_progress and task.status == "in-progress":
        return Refusal("already_claimed", f"{task.id} is held by {task.assignee}")
    if command.only_from and task.status not in command.only_from:
        return Refusal(
            "invalid_transition",
            f"{task.id} is {task.status}, not {' or '.join(command.only_from)}: "
            f"`dragoman task move {task.id} {command.to}` moves it from there",
        )
    refusal = check_may_move(command.to, command.fence, task, read, now)
    if refusal:
        return refusal
    return Decision(
        task_receipt(task, command.to),
        transition_events(task, command.to, command.reason, read),
        LeaseChange(task.id, None) if task.status == "in-progress" else None,
    )


def decide_send_back(command: SendBackTask, read: Read, now: int) -> Decision | Refusal:
    """Send work in review back to its assignee, for whom the task is reserved from then on."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = limits.check_text("reason", command.reason, limits.MAX_REASON, minimum=1)
    if refusal:
        return refusal
    if task.status != "review":
        return Refusal(
            "invalid_transition", f"{task.id} is {task.status}: only work in review is sent back"
        )
    refusal = check_may_move("ready", command.fence, task, read, now)
    if refusal:
        return refusal
    return Decision(task_receipt(task, "ready"), send_back_events(task, command.reason))


def send_back_events(task: Task, reason: str, not_before: int = 0) -> StreamEvents:
    """Events that send work in review back to its assignee, not before a time."""
    sent_back = TaskTransitioned(task.status, "ready", reason, not_before=not_before)
    events: StreamEvents = ((task_stream(task.id), sent_back),)
    if task.handoff is None and task.reserved_for != task.assignee:
        return ((task_stream(task.id), TaskEdited(reserved_for=task.assignee)), *events)
    return events


def transition_events(
    task: Task, to: Status, reason: str, read: Read, other_text: str = ""
) -> StreamEvents:
    """Events of one transition; a final status also unblocks the tasks that waited for this one."""
    lease = read.lease(task) if task.status == "in-progress" else None
    is_taken = lease is not None and lease.holder != read.actor.name
    event = TaskTransitioned(task.status, to, reason, other_text=other_text, is_taken=is_taken)
    transition = (task_stream(task.id), event)
    if to not in FINAL_STATUSES:
        return (transition,)
    return (transition, *unblock_events(task, to, read))


def unblock_events(task: Task, status: Status, read: Read) -> StreamEvents:
    """Events that tell waiting tasks of this task's end."""
    if not task.blocks:
        return ()
    return tuple(
        (task_stream(waiting.id), TaskUnblocked(task.id, status))
        for waiting in map(read.task, task.blocks)
        if isinstance(waiting, Task) and task.id in waiting.open_blockers
    )


def reblock_events(task: Task, read: Read) -> StreamEvents:
    """Events that tell unblocked tasks that this task has not ended after all."""
    return tuple(
        (task_stream(freed.id), TaskLinked("blocked-by", task.id, open=True))
        for freed in map(read.task, task.blocks)
        if isinstance(freed, Task) and not freed.is_final
    )


def check_repeat(fence: int | None, task: Task, read: Read, now: int) -> Refusal | None:
    """Refuse a repeat under an old fencing token; else it is a no-op for all who may write."""
    if read.actor.role == "observer":
        return check_write(read.actor)
    if fence == task.fence and task.status != "in-progress":
        return None
    return check_fence(read.actor, task, read.lease(task), fence, now)


def check_may_move(
    to: Status, fence: int | None, task: Task, read: Read, now: int
) -> Refusal | None:
    """Refuse a transition that is not in the table, or that the caller may not request."""
    actor, lease = read.actor, read.lease(task)
    caller_relation = relation_to_task(actor, task, lease, now)
    must_hold = actor.role == "agent" and (
        caller_relation == "stranger" or task.status == "in-progress"
    )
    check = check_holds if must_hold else check_fence
    refusal = check(actor, task, lease, fence, now)
    if refusal:
        return refusal
    if not can_transition(task.status, to):
        allowed = _format_allowed_targets(task.status, caller_relation) or "nowhere"
        return Refusal(
            "invalid_transition",
            f"{task.id} is {task.status} and cannot become {to}; it can go to: {allowed}",
        )
    if to == "in-progress":
        return Refusal("claim_required", f"{task.id} enters in-progress only by a claim")
    if (task.status, to) == ("review", "done") and is_own_review(actor, task):
        return Refusal(
            "not_authorized",
            f"{actor.label} does not approve {task.id}, which is its own work: another person or "
            "an orchestrator has to (`dragoman agent add NAME --role orchestrator`, then `--as "
            "NAME`); a task that nobody else will look at is created with --no-review",
        )
    if to == "done" and task.awaits_checks:
        return Refusal(
            "invalid_transition",
            f"the hub has not run the checks of {task.id} yet ({'; '.join(task.required_checks)}): "
            "approve it when they have passed, or take them away with "
            f"`dragoman task edit {task.id} --no-checks`",
        )
    if (task.status, to) not in MAY_MOVE[caller_relation]:
        allowed = _format_allowed_targets(task.status, caller_relation)
        return Refusal(
            "not_authorized",
            f"{actor.label} may not move {task.id} from {task.status} to {to}, "
            + (f"only to: {allowed}" if allowed else "nor anywhere else")
            + _trust_moves_hint(task.status, to, caller_relation),
        )
    return None


def _trust_moves_hint(status: Status, to: Status, caller_relation: str) -> str:
    """Hint for the owner of a moved file, where a setting is all that it takes."""
    if caller_relation != "file" or (status, to) not in MAY_MOVE["trusted-file"]:
        return ""
    return "; use `dragoman task move`, or set files.trust_moves to let moved files decide"


def _format_allowed_targets(status: Status, caller_relation: str) -> str:
    """Statuses that a caller of this relation can move a task to, as text."""
    if not TASK_TRANSITIONS[status]:
        return "nowhere, it is final"
    targets = [to for to in TASK_TRANSITIONS[status] if (status, to) in MAY_MOVE[caller_relation]]
    return ", ".join(targets)


def active_handoff_refusal(task: Task, by: ActiveHandoff) -> Refusal:
    """Refusal of a change of owner while a handoff is active."""
    where, instead = f"being handed over to {by.recipient}", ", or its sender withdraw it"
    if by.is_taken:
        where, instead = f"{by.recipient}'s", ""
    return Refusal(
        "ownership_conflict",
        f"{task.id} is {where} by {by.id}: {by.recipient} or a coordinator has to reject that "
        f"handoff first{instead}",
        "active_handoff",
    )


# --- update, edit and warn --------------------------------------------------------------------

Value = TypeVar("Value")

_EDIT_FIELDS = (
    *("title", "body", "priority", "review_required", "assignee", "deadline"),
    "checks",
)


def decide_update_task(command: UpdateTask, read: Read, now: int) -> Decision | Refusal:
    """Make a transition if the table has it, else add a line to the work log (S-AOF-2, 4)."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = check_write(read.actor) or _check_update_fields(command)
    if refusal:
        return refusal
    if command.to is not None and (_can_update_to(task, command.to) or _must_move(command, task)):
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
    return replace(decision, receipt=replace(decision.receipt, warning=remark))


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
        deadline=_changed_value(command.deadline, task.deadline),
        checks=_changed_value(command.checks, task.required_checks),
    )
    if event == TaskEdited():
        return Decision(task_receipt(task, task.status))
    if event.reserved_for is None or read.lease(task) is None:
        return _single_event_decision(task, event)
    reason = command.reason or f"assigned to {event.reserved_for or 'anyone'}"
    return Decision(
        task_receipt(task, "ready"),
        (*transition_events(task, "ready", reason, read), (task_stream(task.id), event)),
        LeaseChange(task.id, None),
    )


def decide_warn_task(command: WarnTask, read: Read, _: int) -> Decision | Refusal:
    """Record a warning about the message of the same request."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = (
        check_write(read.actor)
        or limits.check_text("reason", command.reason, limits.MAX_TITLE, minimum=1)
        or limits.check_text("detail", command.detail, limits.MAX_REASON)
    )
    if refusal:
        return refusal
    return _with_remark(
        _single_event_decision(task, TaskWarned(command.reason, command.detail)), command.detail
    )


def _single_event_decision(task: Task, event: Event) -> Decision:
    return Decision(task_receipt(task, task.status), ((task_stream(task.id), event),))


def _check_update_fields(command: UpdateTask) -> Refusal | None:
    return (
        limits.check_text("progress", command.progress, limits.MAX_TEXT)
        or limits.check_text("notes", command.notes, limits.MAX_TEXT)
        or limits.check_texts("blockers", command.blockers, limits.MAX_REASON)
        or limits.check_text("blockers", _first_text(command), limits.MAX_TEXT)
        or (
            None
            if command.sent_at is None
            else limits.check_range("sent_at", command.sent_at, *TIMESTAMP_RANGE)
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


def _must_move(command: UpdateTask, task: Task) -> bool:
    return command.must_move and command.to != task.status


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
        (None if title is None else limits.check_text("title", title, limits.MAX_TITLE, minimum=1))
        or (None if body is None else limits.check_text("body", body, limits.MAX_BODY))
        or (check_agent(assignee, "assignee") if assignee else None)
        or _check_deadline(command.deadline)
        or check_commands(command.checks or ())
        or limits.check_text("reason", command.reason, limits.MAX_REASON)
    )


def _check_deadline(deadline: int | None) -> Refusal | None:
    return limits.check_range("deadline", deadline, 0, TIMESTAMP_RANGE[1]) if deadline else None


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
    if lease is None or _is_assigned_to(task, command.assignee):
        return None
    if command.take:
        return check_may_move("ready", None, task, read, now)
    return Refusal(
        "already_claimed",
        f"{lease.holder} holds {task.id}: its assignee can be changed when it is given back, or "
        f"with `dragoman task assign {task.id} --take`, which ends the attempt",
    )


def _changed_value(value: Value | None, current: Value) -> Value | None:
    return None if value == current else value


def _is_assigned_to(task: Task, assignee: str | None) -> bool:
    """True if nothing has to change for the task to be this agent's."""
    if assignee is None or assignee != task.assignee:
        return assignee is None
    return task.status == "in-progress" or task.reserved_for == assignee


# --- rewind -----------------------------------------------------------------------------------

_COMMIT: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})?", re.ASCII)


def decide_rewind_task(command: RewindTask, read: Read, now: int) -> Decision | Refusal:
    """Restore the task as it was then; a no-op if nothing differs."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = _check_rewind(command, task, read)
    if refusal:
        return refusal
    version = command.version or read.before_end(task)
    task_then = read.task_at(task, version)
    if task_then is None:
        return Refusal("invalid_field", f"{task.id} has no entry {version} in its stream")
    target = without_attempt(restorable_state(task_then))
    if target.status == "done" and relation_to_task(
        read.actor, task, read.lease(task), now
    ) not in (MAY_REWIND):
        return Refusal(
            "not_authorized",
            f"{read.actor.label} has worked on {task.id}, and may not make it done again",
        )
    if restorable_state(task) == target:
        return Decision(task_receipt(task, task.status))
    event = TaskRewound(
        task.status,
        target.status,
        version,
        target,
        command.commit,
        command.branch,
        command.reason,
    )
    return Decision(
        task_receipt(task, target.status),
        ((task_stream(task.id), event), *_dependent_events(task, target.status, read)),
        LeaseChange(task.id, None) if task.status == "in-progress" else None,
    )


def _dependent_events(task: Task, status: Status, read: Read) -> StreamEvents:
    if status in FINAL_STATUSES:
        return unblock_events(task, status, read)
    return reblock_events(task, read) if task.is_final else ()


def restorable_state(task: Task) -> RestoredState:
    """State that a rewind to this version of a task brings back."""
    report, checkpoint = task.reported, task.checkpoint
    return RestoredState(
        **{field: getattr(task, field) for field in RESTORED_FIELDS},
        status=task.status,
        report=report and TaskReported(**_without_timestamp(asdict(report))),
        reported_at=report.at if report else 0,
        checkpoint=checkpoint and TaskCheckpointed(**_without_timestamp(asdict(checkpoint))),
        checkpointed_at=checkpoint.at if checkpoint else 0,
    )


def without_attempt(state: RestoredState) -> RestoredState:
    """The state without an attempt: in-progress becomes ready, for the agent it is reserved for."""
    if state.status != "in-progress":
        return state
    return replace(state, status="ready", assignee=state.reserved_for, report=None, reported_at=0)


def handoff_ended_by_rewind(task: Task, target: RestoredState) -> ActiveHandoff | None:
    """Handoff that ends by a rewind: the task is final then, or not with its claimant."""
    under_way = task.handoff
    if under_way is None or (
        target.status not in FINAL_STATUSES and target.assignee == under_way.claimant
    ):
        return None
    return under_way


def _check_rewind(command: RewindTask, task: Task, read: Read) -> Refusal | None:
    if read.actor.role not in MAY_REWIND:
        return Refusal(
            "not_authorized",
            f"{read.actor.label} may not rewind {task.id}: a human or an orchestrator may",
        )
    if not command.version and not task.is_final:
        return Refusal(
            "invalid_transition",
            f"{task.id} is {task.status}: only what is done or cancelled can be reopened",
        )
    if not _COMMIT.fullmatch(command.commit):
        return Refusal("invalid_field", "commit is not a full commit hash")
    return limits.check_text("branch", command.branch, limits.MAX_TITLE) or limits.check_text(
        "reason", command.reason, limits.MAX_REASON
    )


def _without_timestamp(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != "at"}

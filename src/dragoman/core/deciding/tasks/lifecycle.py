"""Deciders of a task's life apart from its attempts: create, move, name, note."""

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.authority import (
    MAY_DELEGATE,
    MAY_MOVE,
    check_fence,
    check_holds,
    check_may_comment,
    check_write,
    holds,
    is_own_review,
    relation_to_task,
)
from dragoman.core.commands import AliasTask, CreateTask, MoveTask, NoteTask
from dragoman.core.deciding.tasks.links import linked_task
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    LinkKind,
    Status,
    TaskAliased,
    TaskBacklinked,
    TaskCreated,
    TaskLinked,
    TaskNoted,
    TaskTransitioned,
    TaskUnblocked,
)
from dragoman.core.ids import (
    check_agent,
    check_alias,
    check_task_id,
    format_aof_id,
    is_aof_id,
    safe_name,
    task_stream,
)
from dragoman.core.limits import (
    MAX_ATTEMPTS,
    MAX_BODY,
    MAX_LINKS,
    MAX_REASON,
    MAX_TEXT,
    MAX_TITLE,
    check_count,
    check_range,
    check_text,
)
from dragoman.core.moments import to_rfc3339
from dragoman.core.reading import Decision, LeaseChange, Read, Receipt, StreamEvents, task_receipt
from dragoman.core.states.intent import INTENT_ALIAS_KIND
from dragoman.core.states.task import FINAL_STATUSES, TASK_TRANSITIONS, Task, can_transition


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
    return _check_intent_aliases(command.aliases, read) or create_task(command, read, now)


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
    )
    events: StreamEvents = ((task_stream(task_id), event),)
    if links is not None:
        events = ((task_stream(task_id), links.add_to(event)), *links.backlinks(task_id))
    return Decision(Receipt(task_id, event.status), events, number=number)


def decide_move_task(command: MoveTask, read: Read, now: int) -> Decision | Refusal:
    """Change the status. The same status again is a no-op."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = check_text("reason", command.reason, MAX_REASON)
    if refusal:
        return refusal
    if task.status == command.to:
        return check_repeat(command.fence, task, read, now) or Decision(
            task_receipt(task, task.status)
        )
    if command.if_at_rest and task.status == "in-progress":
        return Refusal("already_claimed", f"{task.id} is held by {task.assignee}")
    refusal = check_may_move(command.to, command.fence, task, read, now)
    if refusal:
        return refusal
    return Decision(
        task_receipt(task, command.to),
        transition_events(task, command.to, command.reason, read),
        LeaseChange(task.id, None) if task.status == "in-progress" else None,
    )


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
        or check_count("aliases", (*task.aliases, command.alias), MAX_LINKS)
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
    refusal = check_may_comment(actor, task, lease, command.fence, now) or check_text(
        "text", command.text, MAX_TEXT, minimum=1
    )
    if refusal:
        return refusal
    is_own = holds(actor, lease, now) or actor.name == task.assignee
    event = TaskNoted(command.text, "" if is_own else actor.label)
    return Decision(task_receipt(task, task.status), ((task_stream(task.id), event),))


def transition_events(
    task: Task, to: Status, reason: str, read: Read, other_text: str = ""
) -> StreamEvents:
    """Events of one transition; a final status also unblocks the tasks that waited for this one."""
    event = TaskTransitioned(task.status, to, reason, beside=other_text)
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


def _check_create_fields(command: CreateTask) -> Refusal | None:
    return (
        check_text("title", command.title, MAX_TITLE, minimum=1)
        or check_text("body", command.body, MAX_BODY)
        or check_text("origin", command.origin, MAX_TITLE)
        or (check_task_id(command.id, "id") if command.id else None)
        or (check_agent(command.assignee, "assignee") if command.assignee else None)
        or check_count("aliases", command.aliases, MAX_LINKS)
        or check_count("blocked_by", command.blocked_by, MAX_LINKS)
        or check_range("max_attempts", command.max_attempts, 1, MAX_ATTEMPTS)
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

"""Decider of links between tasks: blocked-by, parent, discovered-from."""

from collections.abc import Iterable
from dataclasses import replace

from dragoman.core import missing
from dragoman.core.authority import check_may_comment
from dragoman.core.commands import LinkTask
from dragoman.core.errors import Refusal
from dragoman.core.events import LinkKind, TaskBacklinked, TaskLinked
from dragoman.core.ids import task_stream
from dragoman.core.limits import MAX_LINKS, check_count
from dragoman.core.reading import Decision, Read, task_receipt
from dragoman.core.states.task import Task

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
        check_count(command.kind, (*linked, target.id), MAX_LINKS)
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


def linked_task(refusal: Refusal, name: str, field: str) -> Refusal:
    """Refusal for a link to a missing task; says which field names it."""
    if refusal.code == "task_not_found":
        is_parent = field == "parent"
        refusal = (
            missing.parent(name) if is_parent else missing.task(name, f", which `{field}` names")
        )
    return replace(refusal, path=field)


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

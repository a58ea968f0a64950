"""How each event changes a task."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import asdict, replace

from dragoman.core.events import (
    DelegationAccepted,
    DelegationEscalated,
    DelegationRejected,
    DelegationRequested,
    LinkKind,
    TaskAliased,
    TaskBacklinked,
    TaskCheckpointed,
    TaskClaimed,
    TaskCreated,
    TaskEdited,
    TaskEvent,
    TaskHandedOver,
    TaskLinked,
    TaskNoted,
    TaskProgressed,
    TaskReported,
    TaskRequeued,
    TaskRewound,
    TaskTransitioned,
    TaskUnblocked,
    TaskWarned,
)
from dragoman.core.states.moves import REPORTED_BLOCKED
from dragoman.core.states.task import (
    ActiveHandoff,
    Checkpoint,
    Delegation,
    Reported,
    Task,
    Unstarted,
)


def _created(_: Task | None, event: TaskCreated, at: int) -> Task:
    return Task(
        id=event.id,
        aof_id=event.aof_id,
        title=event.title,
        status=event.status,
        created_at=at,
        updated_at=at,
        moved_at=at,
        body=event.body,
        priority=event.priority,
        review_required=event.review_required,
        max_attempts=event.max_attempts,
        reserved_for=event.reserved_for,
        assignee=event.reserved_for,
        origin=event.origin,
        aliases=event.aliases,
        parent=event.parent,
        blocked_by=event.blocked_by,
        open_blockers=event.open_blockers,
        discovered_from=event.discovered_from,
        head_hash=event.commit,
    )


def _aliased(task: Task, event: TaskAliased, at: int) -> Task:
    return replace(task, aliases=(*task.aliases, event.alias), updated_at=at)


def _linked(task: Task, event: TaskLinked, at: int) -> Task:
    if event.kind == "parent":
        return replace(task, parent=event.target, updated_at=at)
    if event.kind == "discovered-from":
        return replace(task, discovered_from=event.target, updated_at=at)
    still_open = _with(event.target, task.open_blockers) if event.open else task.open_blockers
    return replace(
        task,
        blocked_by=_with(event.target, task.blocked_by),
        open_blockers=still_open,
        updated_at=at,
    )


def _with(name: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Add a name unless it is there: a blocker that has not ended after all is linked again."""
    return names if name in names else (*names, name)


_BACKLINKS: dict[LinkKind, str] = {
    "blocked-by": "blocks",
    "parent": "children",
    "discovered-from": "discovered",
}


def _backlinked(task: Task, event: TaskBacklinked, at: int) -> Task:
    field = _BACKLINKS[event.kind]
    return replace(task, updated_at=at, **{field: (*getattr(task, field), event.source)})


def _unblocked(task: Task, event: TaskUnblocked, at: int) -> Task:
    still_open = tuple(name for name in task.open_blockers if name != event.blocker)
    return replace(task, open_blockers=still_open, updated_at=at)


def _claimed(task: Task, event: TaskClaimed, at: int) -> Task:
    agents = task.agents if event.agent in task.agents else (*task.agents, event.agent)
    return replace(
        task,
        status="in-progress",
        assignee=event.agent,
        attempts=event.attempt,
        fence=event.fence,
        session=event.session,
        dispatched_by=event.dispatched_by,
        agents=agents,
        handoff=task.handoff and replace(task.handoff, was_free=False),
        not_before=0,
        reported=None,
        head_hash=event.commit or task.head_hash,
        updated_at=at,
        moved_at=at,
    )


def _transitioned(task: Task, event: TaskTransitioned, at: int) -> Task:
    # A task that becomes ready goes back to its queue, and one that a person takes out of the
    # deadletter gets a fresh set of attempts.
    revived = event.from_ == "deadletter" or event.to in ("review", "done")
    return replace(
        task,
        status=event.to,
        head_hash=event.commit or task.head_hash,
        assignee=task.reserved_for if event.to == "ready" else task.assignee,
        handoff=_since_moved(task.handoff),
        failures=0 if revived else task.failures,
        not_before=0,
        obstacle=_obstacle(task, event) if event.to == "blocked" else "",
        checkpoint=None if event.to in ("review", "done") else task.checkpoint,
        unstarted=_unstarted(task, event.reason) if event.unstarted else task.unstarted,
        updated_at=at,
        moved_at=at,
    )


def _obstacle(task: Task, event: TaskTransitioned) -> str:
    if task.reported is None or event.reason not in REPORTED_BLOCKED:
        return event.reason
    return "; ".join(filter(str.strip, task.reported.blockers))


def _unstarted(task: Task, why: str) -> Unstarted:
    before, attempt = task.unstarted, task.attempts
    is_next = before is not None and before.last == attempt - 1
    return Unstarted(before.first if before is not None and is_next else attempt, attempt, why)


def _since_moved(handoff: ActiveHandoff | None) -> ActiveHandoff | None:
    """Follows the order of the ledger: two events may have the same millisecond."""
    return handoff and replace(handoff, lifts_block=False)


def _requeued(task: Task, event: TaskRequeued, at: int) -> Task:
    return replace(
        task,
        status="ready",
        head_hash=event.commit or task.head_hash,
        assignee=task.reserved_for,
        failures=event.failures,
        not_before=event.not_before,
        updated_at=at,
        moved_at=at,
    )


def _reported(task: Task, event: TaskReported, at: int) -> Task:
    reported = Reported(
        attempt=event.attempt,
        agent=event.agent,
        outcome=event.outcome,
        at=at,
        notes=event.notes,
        blockers=event.blockers,
        details=event.details,
        by=event.by,
    )
    return replace(task, reported=reported, updated_at=at)


def _noted(task: Task, _: TaskNoted | TaskProgressed, at: int) -> Task:
    return replace(task, notes=task.notes + 1, updated_at=at)


def _edited(task: Task, event: TaskEdited, at: int) -> Task:
    changes = {field: value for field, value in asdict(event).items() if value is not None}
    assignee = task.assignee if event.reserved_for is None else event.reserved_for
    return replace(task, assignee=assignee, updated_at=at, **changes)


def _warned(task: Task, _: TaskWarned, at: int) -> Task:
    return replace(task, warnings=task.warnings + 1, updated_at=at)


def _handed_over(task: Task, event: TaskHandedOver, at: int) -> Task:
    under_way = ActiveHandoff(
        event.handoff,
        event.owner,
        event.recipient,
        event.is_taken,
        event.lifts_block,
        event.was_free,
    )
    return replace(
        task,
        chain=event.chain,
        handoff=under_way if event.recipient else None,
        updated_at=at,
    )


def _checkpointed(task: Task, event: TaskCheckpointed, at: int) -> Task:
    # Without contents it withdraws the checkpoint, unless it is the worker's own.
    if event.by and not (event.commit or event.description or event.next_steps):
        return replace(task, checkpoint=None, updated_at=at)
    left = Checkpoint(
        event.by or task.assignee,
        at,
        event.reason,
        event.commit,
        event.description,
        event.next_steps,
    )
    return replace(task, checkpoint=left, updated_at=at)


def _requested(task: Task, event: DelegationRequested, at: int) -> Task:
    asked = Delegation(
        parent=event.parent,
        from_agent=event.from_agent,
        to_agent=event.to_agent,
        due_by=event.due_by,
        acceptance_criteria=event.acceptance_criteria,
        expected_outputs=event.expected_outputs,
        context_refs=event.context_refs,
        constraints=event.constraints,
    )
    return replace(task, delegation=asked, depth=event.depth, updated_at=at)


def _accepted(task: Task, _: DelegationAccepted, at: int) -> Task:
    return _with_delegation(task, at, state="accepted")


def _rejected(task: Task, _: DelegationRejected, at: int) -> Task:
    return _with_delegation(task, at, state="rejected")


def _escalated(task: Task, _: DelegationEscalated, at: int) -> Task:
    return _with_delegation(task, at, escalated=True)


def _with_delegation(task: Task, at: int, **changes: object) -> Task:
    asked = task.delegation
    return replace(task, delegation=asked and replace(asked, **changes), updated_at=at)


def _rewound(task: Task, event: TaskRewound, at: int) -> Task:
    was = event.restored
    report, left = was.report, was.checkpoint
    return replace(
        task,
        status=event.to,
        head_hash=event.commit or task.head_hash,
        title=was.title,
        body=was.body,
        priority=was.priority,
        review_required=was.review_required,
        reserved_for=was.reserved_for,
        assignee=was.assignee,
        handoff=_since_moved(task.handoff),
        failures=was.failures,
        not_before=0,
        obstacle=was.obstacle,
        reported=report and Reported(at=was.reported_at, **asdict(report)),
        checkpoint=left and Checkpoint(at=was.checkpointed_at, **asdict(left)),
        updated_at=at,
        moved_at=at,
    )


EVOLVE_TASK: dict[type[TaskEvent], Callable[[Any, Any, int], Task]] = {
    TaskCreated: _created,
    TaskAliased: _aliased,
    TaskLinked: _linked,
    TaskBacklinked: _backlinked,
    TaskUnblocked: _unblocked,
    TaskClaimed: _claimed,
    TaskTransitioned: _transitioned,
    TaskRequeued: _requeued,
    TaskReported: _reported,
    TaskNoted: _noted,
    TaskProgressed: _noted,
    TaskEdited: _edited,
    TaskWarned: _warned,
    DelegationRequested: _requested,
    DelegationAccepted: _accepted,
    DelegationRejected: _rejected,
    DelegationEscalated: _escalated,
    TaskCheckpointed: _checkpointed,
    TaskHandedOver: _handed_over,
    TaskRewound: _rewound,
}
"""Event -> fold: the task after it, from the task before it (None at first) and its time."""

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
from dragoman.core.states.moves import REPORTED_BLOCKED_REASONS
from dragoman.core.states.task import (
    ActiveHandoff,
    Checkpoint,
    Delegation,
    FailedStarts,
    Report,
    Task,
)


def _fold_created(_: Task | None, event: TaskCreated, at: int) -> Task:
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


def _fold_aliased(task: Task, event: TaskAliased, at: int) -> Task:
    return replace(task, aliases=(*task.aliases, event.alias), updated_at=at)


def _fold_linked(task: Task, event: TaskLinked, at: int) -> Task:
    if event.kind == "parent":
        return replace(task, parent=event.target, updated_at=at)
    if event.kind == "discovered-from":
        return replace(task, discovered_from=event.target, updated_at=at)
    still_open = _with_name(event.target, task.open_blockers) if event.open else task.open_blockers
    return replace(
        task,
        blocked_by=_with_name(event.target, task.blocked_by),
        open_blockers=still_open,
        updated_at=at,
    )


def _with_name(name: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Add a name unless it is there: a blocker that has not ended after all is linked again."""
    return names if name in names else (*names, name)


_BACKLINKS: dict[LinkKind, str] = {
    "blocked-by": "blocks",
    "parent": "children",
    "discovered-from": "discovered",
}


def _fold_backlinked(task: Task, event: TaskBacklinked, at: int) -> Task:
    field = _BACKLINKS[event.kind]
    return replace(task, updated_at=at, **{field: (*getattr(task, field), event.source)})


def _fold_unblocked(task: Task, event: TaskUnblocked, at: int) -> Task:
    still_open = tuple(name for name in task.open_blockers if name != event.blocker)
    return replace(task, open_blockers=still_open, updated_at=at)


def _fold_claimed(task: Task, event: TaskClaimed, at: int) -> Task:
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


def _fold_transitioned(task: Task, event: TaskTransitioned, at: int) -> Task:
    # A task that becomes ready goes back to its queue, and one that a person takes out of the
    # deadletter gets a fresh set of attempts.
    has_fresh_attempts = event.from_ == "deadletter" or event.to in ("review", "done")
    return replace(
        task,
        status=event.to,
        head_hash=event.commit or task.head_hash,
        assignee=task.reserved_for if event.to == "ready" else task.assignee,
        handoff=_without_lifted_block(task.handoff),
        failures=0 if has_fresh_attempts else task.failures,
        not_before=0,
        obstacle=_obstacle_after(task, event) if event.to == "blocked" else "",
        checkpoint=None if event.to in ("review", "done") else task.checkpoint,
        unstarted=_count_failed_start(task, event.reason) if event.unstarted else task.unstarted,
        updated_at=at,
        moved_at=at,
    )


def _obstacle_after(task: Task, event: TaskTransitioned) -> str:
    if task.reported is None or event.reason not in REPORTED_BLOCKED_REASONS:
        return event.reason
    return "; ".join(filter(str.strip, task.reported.blockers))


def _count_failed_start(task: Task, reason: str) -> FailedStarts:
    before, attempt = task.unstarted, task.attempts
    is_next = before is not None and before.last == attempt - 1
    return FailedStarts(
        before.first if before is not None and is_next else attempt, attempt, reason
    )


def _without_lifted_block(handoff: ActiveHandoff | None) -> ActiveHandoff | None:
    """Follows the order of the ledger: two events may have the same millisecond."""
    return handoff and replace(handoff, lifts_block=False)


def _fold_requeued(task: Task, event: TaskRequeued, at: int) -> Task:
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


def _fold_reported(task: Task, event: TaskReported, at: int) -> Task:
    report = Report(
        attempt=event.attempt,
        agent=event.agent,
        outcome=event.outcome,
        at=at,
        notes=event.notes,
        blockers=event.blockers,
        details=event.details,
        by=event.by,
    )
    return replace(task, reported=report, updated_at=at)


def _fold_noted(task: Task, _: TaskNoted | TaskProgressed, at: int) -> Task:
    return replace(task, notes=task.notes + 1, updated_at=at)


def _fold_edited(task: Task, event: TaskEdited, at: int) -> Task:
    changes = {field: value for field, value in asdict(event).items() if value is not None}
    assignee = task.assignee if event.reserved_for is None else event.reserved_for
    return replace(task, assignee=assignee, updated_at=at, **changes)


def _fold_warned(task: Task, _: TaskWarned, at: int) -> Task:
    return replace(task, warnings=task.warnings + 1, updated_at=at)


def _fold_handed_over(task: Task, event: TaskHandedOver, at: int) -> Task:
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


def _fold_checkpointed(task: Task, event: TaskCheckpointed, at: int) -> Task:
    # Without contents it withdraws the checkpoint, unless it is the worker's own.
    if event.by and not (event.commit or event.description or event.next_steps):
        return replace(task, checkpoint=None, updated_at=at)
    checkpoint = Checkpoint(
        event.by or task.assignee,
        at,
        event.reason,
        event.commit,
        event.description,
        event.next_steps,
    )
    return replace(task, checkpoint=checkpoint, updated_at=at)


def _fold_delegation_requested(task: Task, event: DelegationRequested, at: int) -> Task:
    delegation = Delegation(
        parent=event.parent,
        from_agent=event.from_agent,
        to_agent=event.to_agent,
        due_by=event.due_by,
        acceptance_criteria=event.acceptance_criteria,
        expected_outputs=event.expected_outputs,
        context_refs=event.context_refs,
        constraints=event.constraints,
    )
    return replace(task, delegation=delegation, depth=event.depth, updated_at=at)


def _fold_delegation_accepted(task: Task, _: DelegationAccepted, at: int) -> Task:
    return _change_delegation(task, at, state="accepted")


def _fold_delegation_rejected(task: Task, _: DelegationRejected, at: int) -> Task:
    return _change_delegation(task, at, state="rejected")


def _fold_delegation_escalated(task: Task, _: DelegationEscalated, at: int) -> Task:
    return _change_delegation(task, at, escalated=True)


def _change_delegation(task: Task, at: int, **changes: object) -> Task:
    delegation = task.delegation
    return replace(task, delegation=delegation and replace(delegation, **changes), updated_at=at)


def _fold_rewound(task: Task, event: TaskRewound, at: int) -> Task:
    restored = event.restored
    report, checkpoint = restored.report, restored.checkpoint
    return replace(
        task,
        status=event.to,
        head_hash=event.commit or task.head_hash,
        title=restored.title,
        body=restored.body,
        priority=restored.priority,
        review_required=restored.review_required,
        reserved_for=restored.reserved_for,
        assignee=restored.assignee,
        handoff=_without_lifted_block(task.handoff),
        failures=restored.failures,
        not_before=0,
        obstacle=restored.obstacle,
        reported=report and Report(at=restored.reported_at, **asdict(report)),
        checkpoint=checkpoint and Checkpoint(at=restored.checkpointed_at, **asdict(checkpoint)),
        updated_at=at,
        moved_at=at,
    )


TASK_FOLDS: dict[type[TaskEvent], Callable[[Any, Any, int], Task]] = {
    TaskCreated: _fold_created,
    TaskAliased: _fold_aliased,
    TaskLinked: _fold_linked,
    TaskBacklinked: _fold_backlinked,
    TaskUnblocked: _fold_unblocked,
    TaskClaimed: _fold_claimed,
    TaskTransitioned: _fold_transitioned,
    TaskRequeued: _fold_requeued,
    TaskReported: _fold_reported,
    TaskNoted: _fold_noted,
    TaskProgressed: _fold_noted,
    TaskEdited: _fold_edited,
    TaskWarned: _fold_warned,
    DelegationRequested: _fold_delegation_requested,
    DelegationAccepted: _fold_delegation_accepted,
    DelegationRejected: _fold_delegation_rejected,
    DelegationEscalated: _fold_delegation_escalated,
    TaskCheckpointed: _fold_checkpointed,
    TaskHandedOver: _fold_handed_over,
    TaskRewound: _fold_rewound,
}
"""Event -> fold: the task after it, from the task before it (None at first) and its time."""

"""Decisions about AOF delegations: request, accept, reject, escalate a part of a task (S-AOF-7)."""

from msgspec.structs import replace

from dragoman.core import limits, not_found
from dragoman.core.attempt_state import Lease
from dragoman.core.authority import MAY_DELEGATE, MAY_DISPATCH, check_holds, check_write
from dragoman.core.base import Event, Status, TaskCommand
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_agent, task_stream
from dragoman.core.read import Decision, LeaseChange, Read, task_receipt
from dragoman.core.task import (
    active_handoff_refusal,
    check_link_cycle,
    decide_create_task,
    transition_events,
)
from dragoman.core.task_state import (
    TASK_FOLDS,
    ActiveHandoff,
    CreateTask,
    Delegation,
    DelegationAccepted,
    DelegationEscalated,
    DelegationRejected,
    DelegationRequested,
    DelegationState,
    Task,
    TaskBacklinked,
    TaskCreated,
    TaskLinked,
)
from dragoman.core.timestamps import TIMESTAMP_RANGE


class RequestDelegation(TaskCommand, frozen=True, tag="delegation.request"):
    """Request that an agent takes a task as a part of a parent task."""

    free_text = ("acceptance_criteria", "expected_outputs", "context_refs", "constraints")

    parent: str
    to_agent: str
    due_by: int
    acceptance_criteria: tuple[str, ...] = ()
    expected_outputs: tuple[str, ...] = ()
    context_refs: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    from_agent: str = ""
    """Agent that delegates; empty: the caller."""

    @property
    def heartbeat_task(self) -> str:
        """The parent: its holder delegates."""
        return self.parent


class AcceptDelegation(TaskCommand, frozen=True, tag="delegation.accept"):
    """Accept a delegation, as the agent that was asked."""


class RejectDelegation(TaskCommand, frozen=True, tag="delegation.reject"):
    """Reject a delegation, as the agent that was asked."""

    free_text = ("reason",)

    reason: str = ""


class EscalateDelegation(TaskCommand, frozen=True, tag="delegation.escalate"):
    """Record that a delegation is late; no-op while it is not."""


MAX_DELEGATION_DEPTH = 1
"""Delegated work cannot be delegated on."""

DELEGATION_TRANSITIONS: dict[DelegationState, tuple[DelegationState, ...]] = {
    "requested": ("accepted", "rejected"),
    "accepted": ("rejected",),
    "rejected": (),
}
"""State of a delegation -> the states its agent may move it to; only a new request reopens one."""

STATUSES_BLOCKED_BY_REJECTION: frozenset[Status] = frozenset({"backlog", "ready", "in-progress"})
"""Statuses that a rejection turns into blocked: work still to be done; it undoes nothing else."""


def decide_create_or_delegate(command: CreateTask, read: Read, now: int) -> Decision | Refusal:
    """Create a task; with a deadline, delegate it to its assignee in the same decision."""
    incomplete = _check_delegated_fields(command)
    created = incomplete or decide_create_task(command, read, now)
    if isinstance(created, Refusal) or command.due_by is None:
        return created
    ((_, born), *_) = created.events
    child = TASK_FOLDS[TaskCreated](None, born, now)
    request = RequestDelegation(
        child.id,
        command.parent,
        command.assignee,
        command.due_by,
        command.acceptance_criteria,
        command.expected_outputs,
        command.context_refs,
        command.constraints,
    )
    refusal = _check_request_fields(request)
    if refusal:
        return refusal
    parent = read.task(command.parent)
    assert isinstance(parent, Task), "the child was linked to it"
    requested = _request_delegation(request, child, parent, read, now)
    if isinstance(requested, Refusal):
        return requested
    return replace(created, events=(*created.events, *requested.events))


def _check_delegated_fields(command: CreateTask) -> Refusal | None:
    """Refuse a delegation that says only in part who does what until when."""
    details = ("acceptance_criteria", "expected_outputs", "context_refs", "constraints")
    if command.due_by is None:
        extra = next((field for field in details if getattr(command, field)), "")
        if not extra:
            return None
        return Refusal(
            "invalid_field", f"{extra}: only a delegated task has them: add due_by", path=extra
        )
    for field in ("parent", "assignee"):
        if not getattr(command, field):
            detail = f"{field}: a task with due_by is delegated: name its parent and its assignee"
            return Refusal("invalid_field", detail, path=field)
    return None


def decide_request_delegation(
    command: RequestDelegation, read: Read, now: int
) -> Decision | Refusal:
    """Offer a task to an agent as a part of another. The same request again is a no-op."""
    refusal = check_write(read.actor) or _check_request_fields(command)
    if refusal:
        return refusal
    child, parent = read.task(command.task), _find_parent(command, read)
    if isinstance(child, Refusal):
        return child
    if isinstance(parent, Refusal):
        return parent
    return _request_delegation(command, child, parent, read, now)


def _request_delegation(
    command: RequestDelegation, child: Task, parent: Task, read: Read, now: int
) -> Decision | Refusal:
    event = _delegation_event(command, parent, read)
    if _is_repeat(event, child.delegation):
        return Decision(task_receipt(child, child.status))
    refusal = _check_delegator(event, child, parent, read, now) or _check_delegable(
        child, parent, read
    )
    if refusal:
        return refusal
    events: list[tuple[str, Event]] = [(task_stream(child.id), event)]
    if not child.parent:
        events += [
            (task_stream(child.id), TaskLinked("parent", parent.id)),
            (task_stream(parent.id), TaskBacklinked("parent", child.id)),
        ]
    return Decision(task_receipt(child, child.status), tuple(events))


def decide_accept_delegation(command: AcceptDelegation, read: Read, _: int) -> Decision | Refusal:
    """Accept a delegation; the task's status stays."""
    task = _find_answerable(command.task, "accepted", read)
    if isinstance(task, Refusal | Decision):
        return task
    event = DelegationAccepted(read.actor.name)
    return Decision(task_receipt(task, task.status), ((task_stream(task.id), event),))


def decide_reject_delegation(command: RejectDelegation, read: Read, _: int) -> Decision | Refusal:
    """Reject a delegation: the task waits, blocked, for somebody to see to it."""
    refusal = limits.check_text("reason", command.reason, limits.MAX_REASON)
    if refusal:
        return refusal
    task = _find_answerable(command.task, "rejected", read)
    if isinstance(task, Refusal | Decision):
        return task
    rejected = (task_stream(task.id), DelegationRejected(read.actor.name, command.reason))
    lease = read.lease(task)
    if task.status not in STATUSES_BLOCKED_BY_REJECTION or _has_another_worker(task, lease, read):
        return Decision(task_receipt(task, task.status), (rejected,))
    blocked = transition_events(task, "blocked", command.reason or "handoff rejected", read)
    lease_change = LeaseChange(task.id, None) if lease is not None else None
    return Decision(task_receipt(task, "blocked"), (*blocked, rejected), lease_change)


def decide_escalate_delegation(
    command: EscalateDelegation, read: Read, now: int
) -> Decision | Refusal:
    """Record once that a delegation is late; no status changes."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    if read.actor.role not in MAY_DISPATCH:
        return Refusal("not_authorized", f"{read.actor.label} may not escalate delegations")
    if task.delegation_deadline is None or now < task.delegation_deadline:
        return Decision(task_receipt(task, task.status))
    event = DelegationEscalated(task.delegation_deadline)
    return Decision(task_receipt(task, task.status), ((task_stream(task.id), event),))


def _check_request_fields(command: RequestDelegation) -> Refusal | None:
    return (
        check_agent(command.to_agent)
        or (check_agent(command.from_agent) if command.from_agent else None)
        or limits.check_range("due_by", command.due_by, *TIMESTAMP_RANGE)
        or limits.check_texts("acceptance_criteria", command.acceptance_criteria, limits.MAX_REASON)
        or limits.check_texts("expected_outputs", command.expected_outputs, limits.MAX_REASON)
        or limits.check_texts("context_refs", command.context_refs, limits.MAX_REASON)
        or limits.check_texts("constraints", command.constraints, limits.MAX_REASON)
    )


def _find_parent(command: RequestDelegation, read: Read) -> Task | Refusal:
    parent = read.task(command.parent)
    if isinstance(parent, Refusal) and parent.code == "task_not_found":
        return not_found.parent(command.parent)
    return parent


def _delegation_event(command: RequestDelegation, parent: Task, read: Read) -> DelegationRequested:
    return DelegationRequested(
        parent=parent.id,
        from_agent=command.from_agent or read.actor.name,
        to_agent=command.to_agent,
        due_by=command.due_by,
        depth=parent.depth + 1,
        acceptance_criteria=command.acceptance_criteria,
        expected_outputs=command.expected_outputs,
        context_refs=command.context_refs,
        constraints=command.constraints,
    )


def _is_repeat(event: DelegationRequested, known: Delegation | None) -> bool:
    """True if exactly this was the last request, whatever the answer was."""
    return known is not None and all(
        getattr(known, field) == getattr(event, field) for field in _REQUEST_FIELDS
    )


_REQUEST_FIELDS = (
    "parent",
    "from_agent",
    "to_agent",
    "due_by",
    "acceptance_criteria",
    "expected_outputs",
    "context_refs",
    "constraints",
)


def _check_delegator(
    event: DelegationRequested, child: Task, parent: Task, read: Read, now: int
) -> Refusal | None:
    actor = read.actor
    if actor.role in MAY_DELEGATE:
        return None
    if event.from_agent != actor.name:
        return Refusal(
            "identity_mismatch", f"{actor.name} cannot delegate on behalf of {event.from_agent}"
        )
    refusal = check_holds(actor, parent, read.lease(parent), None, now)
    if refusal is None:
        return _check_no_other_arrangement(event, child, parent)
    if refusal.code == "lease_lost":
        return refusal
    return Refusal(
        "unauthorized_agent",
        f"{actor.name} does not hold {parent.id}: only its holder delegates a part of it",
    )


def _check_no_other_arrangement(
    event: DelegationRequested, child: Task, parent: Task
) -> Refusal | None:
    """Refuse where another agent's arrangement stands in the way of an agent's request."""
    if child.parent not in ("", parent.id):
        arrangement = f"is a part of {child.parent}, not of {parent.id}"
    elif child.assignee not in ("", event.from_agent, event.to_agent):
        arrangement = f"belongs to {child.assignee}"
    elif (other := _other_open_delegation(event, child, parent)) is not None:
        arrangement = f"was delegated by {other.from_agent} to {other.to_agent}"
    else:
        return None
    return Refusal(
        "unauthorized_agent",
        f"{child.id} {arrangement}: a person or an orchestrator can delegate it anew",
    )


def _other_open_delegation(
    event: DelegationRequested, child: Task, parent: Task
) -> Delegation | None:
    """Open delegation of the child by somebody else.

    A request of an earlier holder of the same parent may be changed by its successor.
    """
    delegation = child.delegation
    if delegation is None or not child.is_delegated or delegation.from_agent == event.from_agent:
        return None
    is_inherited = delegation.parent == parent.id and delegation.from_agent in parent.agents
    return None if is_inherited else delegation


def _check_delegable(child: Task, parent: Task, read: Read) -> Refusal | None:
    if child.is_final:
        return Refusal(
            "invalid_transition", f"{child.id} is {child.status}: there is nothing left to delegate"
        )
    if child.handoff is not None:
        return active_handoff_refusal(child, child.handoff)
    if parent.depth + 1 > MAX_DELEGATION_DEPTH:
        return _nested_delegation(f"{parent.id} was delegated itself")
    delegated_part = next((part for part in _subtasks(child, read) if part.is_delegated), None)
    if delegated_part is not None:
        return _nested_delegation(f"{delegated_part.id}, a part of {child.id}, is delegated")
    return check_link_cycle(child, parent, "parent", read)


def _nested_delegation(reason: str) -> Refusal:
    return Refusal("nested_delegation", f"{reason}; delegated work cannot be delegated on")


def _subtasks(task: Task, read: Read) -> list[Task]:
    return [part for part in map(read.task, task.children) if isinstance(part, Task)]


def _find_answerable(name: str, answer: DelegationState, read: Read) -> Task | Decision | Refusal:
    """Task whose delegation the caller may answer so; a decision without events for a repeat."""
    task = read.task(name)
    if isinstance(task, Refusal):
        return task
    delegation = task.delegation
    if delegation is None:
        return Refusal(
            "invalid_transition", f"{task.id} was not delegated: there is no request to answer"
        )
    refusal = check_write(read.actor)
    if refusal is None and delegation.state == answer:
        return Decision(task_receipt(task, task.status))
    if refusal is None and delegation.to_agent != read.actor.name:
        refusal = Refusal(
            "unauthorized_agent",
            f"{task.id} was delegated to {delegation.to_agent}, not to {read.actor.name}",
        )
    if refusal is None and task.handoff is not None and _is_out_of_hand(task.handoff, answer, read):
        refusal = active_handoff_refusal(task, task.handoff)
    if refusal is None and answer not in DELEGATION_TRANSITIONS[delegation.state]:
        refusal = Refusal(
            "invalid_transition",
            f"{delegation.to_agent} has {delegation.state} {task.id}; only a new request opens "
            "it again",
        )
    return refusal or task


def _is_out_of_hand(by: ActiveHandoff, answer: DelegationState, read: Read) -> bool:
    """True if a handoff keeps the delegate from this answer: the work may go to another agent, or
    another one has it, whom a rejection would leave without a deadline.
    """
    return answer == "accepted" or (by.is_taken and by.recipient != read.actor.name)


def _has_another_worker(task: Task, lease: Lease | None, read: Read) -> bool:
    """True if a third agent has the work by now, or it was given to one: it does not wait for the
    agent that was asked.
    """
    if lease is not None:
        return lease.holder != read.actor.name
    delegation = task.delegation
    assert delegation is not None, "only the requested agent can reject"
    return task.assignee not in ("", delegation.from_agent, read.actor.name)

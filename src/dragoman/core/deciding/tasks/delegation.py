"""Deciders of delegation: a part of a task is offered, taken or not, and may be late (S-AOF-7)."""

from typing import TYPE_CHECKING

from dragoman.core import missing
from dragoman.core.authority import MAY_DELEGATE, MAY_DISPATCH, check_hold, check_write
from dragoman.core.commands import (
    AcceptDelegation,
    EscalateDelegation,
    RejectDelegation,
    RequestDelegation,
)
from dragoman.core.deciding.tasks.lifecycle import moved
from dragoman.core.deciding.tasks.links import check_cycle
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    DelegationAccepted,
    DelegationEscalated,
    DelegationRejected,
    DelegationRequested,
    Status,
    TaskBacklinked,
    TaskLinked,
)
from dragoman.core.ids import check_agent, task_stream
from dragoman.core.limits import REASON, check_range, check_text, check_texts
from dragoman.core.moments import SPAN
from dragoman.core.reading import Decision, LeaseChange, Read, receipt
from dragoman.core.rules.handoff_chain import on_its_way
from dragoman.core.states.lease import Lease
from dragoman.core.states.task import Delegation, DelegationState, Task

if TYPE_CHECKING:
    from dragoman.core.events import AnyEvent

MOST_DEPTH = 1
"""Delegated work cannot be delegated on."""

ANSWERS: dict[DelegationState, tuple[DelegationState, ...]] = {
    "requested": ("accepted", "rejected"),
    "accepted": ("rejected",),
    "rejected": (),
}
"""State of a delegation -> the states its agent may move it to; only a new request reopens one."""

BLOCKED_BY_REJECTION: frozenset[Status] = frozenset({"backlog", "ready", "in-progress"})
"""Statuses that a rejection turns into blocked: work still to be done; it undoes nothing else."""


def request(command: RequestDelegation, read: Read, now: int) -> Decision | Refusal:
    """Offer a task to an agent as a part of another. The same request again is a no-op."""
    refusal = check_write(read.actor) or _check_request(command)
    if refusal:
        return refusal
    child, parent = read.task(command.task), _parent(command, read)
    if isinstance(child, Refusal):
        return child
    if isinstance(parent, Refusal):
        return parent
    event = _requested(command, parent, read)
    if _is_repeat(event, child.delegation):
        return Decision(receipt(child, child.status))
    refusal = _check_delegator(event, child, parent, read, now) or _check_place(child, parent, read)
    if refusal:
        return refusal
    events: list[tuple[str, AnyEvent]] = [(task_stream(child.id), event)]
    if not child.parent:
        events += [
            (task_stream(child.id), TaskLinked("parent", parent.id)),
            (task_stream(parent.id), TaskBacklinked("parent", child.id)),
        ]
    return Decision(receipt(child, child.status), tuple(events))


def accept(command: AcceptDelegation, read: Read, now: int) -> Decision | Refusal:
    """Accept a delegation; the task's status stays."""
    del now
    task = _asked(command.task, "accepted", read)
    if isinstance(task, Refusal | Decision):
        return task
    event = DelegationAccepted(read.actor.name)
    return Decision(receipt(task, task.status), ((task_stream(task.id), event),))


def reject(command: RejectDelegation, read: Read, now: int) -> Decision | Refusal:
    """Reject a delegation: the task waits, blocked, for somebody to see to it."""
    del now
    refusal = check_text("reason", command.reason, REASON)
    if refusal:
        return refusal
    task = _asked(command.task, "rejected", read)
    if isinstance(task, Refusal | Decision):
        return task
    rejected = (task_stream(task.id), DelegationRejected(read.actor.name, command.reason))
    lease = read.lease(task)
    if task.status not in BLOCKED_BY_REJECTION or _is_anothers(task, lease, read):
        return Decision(receipt(task, task.status), (rejected,))
    blocked = moved(task, "blocked", command.reason or "handoff rejected", read)
    ended = LeaseChange(task.id, None) if lease is not None else None
    return Decision(receipt(task, "blocked"), (*blocked, rejected), ended)


def escalate(command: EscalateDelegation, read: Read, now: int) -> Decision | Refusal:
    """Record once that a delegation is late; no status changes."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    if read.actor.role not in MAY_DISPATCH:
        return Refusal("not_authorized", f"{read.actor.label} may not escalate delegations")
    if task.deadline is None or now < task.deadline:
        return Decision(receipt(task, task.status))
    event = DelegationEscalated(task.deadline)
    return Decision(receipt(task, task.status), ((task_stream(task.id), event),))


def _check_request(command: RequestDelegation) -> Refusal | None:
    return (
        check_agent(command.to_agent)
        or (check_agent(command.from_agent) if command.from_agent else None)
        or check_range("due_by", command.due_by, *SPAN)
        or check_texts("acceptance_criteria", command.acceptance_criteria, REASON)
        or check_texts("expected_outputs", command.expected_outputs, REASON)
        or check_texts("context_refs", command.context_refs, REASON)
        or check_texts("constraints", command.constraints, REASON)
    )


def _parent(command: RequestDelegation, read: Read) -> Task | Refusal:
    parent = read.task(command.parent)
    if isinstance(parent, Refusal) and parent.code == "task_not_found":
        return missing.parent(command.parent)
    return parent


def _requested(command: RequestDelegation, parent: Task, read: Read) -> DelegationRequested:
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
        getattr(known, field) == getattr(event, field) for field in _ASKED
    )


_ASKED = (
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
    refusal = check_hold(actor, parent, read.lease(parent), None, now)
    if refusal is None:
        return _check_foreign(event, child, parent)
    if refusal.code == "lease_lost":
        return refusal
    return Refusal(
        "unauthorized_agent",
        f"{actor.name} does not hold {parent.id}: only its holder delegates a part of it",
    )


def _check_foreign(event: DelegationRequested, child: Task, parent: Task) -> Refusal | None:
    """Refuse where another agent's arrangement stands in the way of an agent's request."""
    if child.parent not in ("", parent.id):
        whose = f"is a part of {child.parent}, not of {parent.id}"
    elif child.assignee not in ("", event.from_agent, event.to_agent):
        whose = f"belongs to {child.assignee}"
    elif (asked := _promise(event, child, parent)) is not None:
        whose = f"was delegated by {asked.from_agent} to {asked.to_agent}"
    else:
        return None
    return Refusal(
        "unauthorized_agent",
        f"{child.id} {whose}: a person or an orchestrator can delegate it anew",
    )


def _promise(event: DelegationRequested, child: Task, parent: Task) -> Delegation | None:
    """Open delegation of the child by somebody else.

    A request of an earlier holder of the same parent may be changed by its successor.
    """
    asked = child.delegation
    if asked is None or not child.is_delegated or asked.from_agent == event.from_agent:
        return None
    is_inherited = asked.parent == parent.id and asked.from_agent in parent.agents
    return None if is_inherited else asked


def _check_place(child: Task, parent: Task, read: Read) -> Refusal | None:
    if child.is_final:
        return Refusal(
            "invalid_transition", f"{child.id} is {child.status}: there is nothing left to delegate"
        )
    if child.handoff is not None:
        return on_its_way(child, child.handoff)
    if parent.depth + 1 > MOST_DEPTH:
        return _nested(f"{parent.id} was delegated itself")
    handed_on = next((part for part in _parts(child, read) if part.is_delegated), None)
    if handed_on is not None:
        return _nested(f"{handed_on.id}, a part of {child.id}, is delegated")
    return check_cycle(child, parent, "parent", read)


def _nested(why: str) -> Refusal:
    return Refusal("nested_delegation", f"{why}; delegated work cannot be delegated on")


def _parts(task: Task, read: Read) -> list[Task]:
    return [part for part in map(read.task, task.children) if isinstance(part, Task)]


def _asked(name: str, answer: DelegationState, read: Read) -> Task | Decision | Refusal:
    """Task whose delegation the caller may answer so; a decision without events for a repeat."""
    task = read.task(name)
    if isinstance(task, Refusal):
        return task
    asked = task.delegation
    if asked is None:
        return Refusal(
            "invalid_transition", f"{task.id} was not delegated: there is no request to answer"
        )
    refusal = check_write(read.actor)
    if refusal is None and asked.state == answer:
        return Decision(receipt(task, task.status))
    if refusal is None and asked.to_agent != read.actor.name:
        refusal = Refusal(
            "unauthorized_agent",
            f"{task.id} was delegated to {asked.to_agent}, not to {read.actor.name}",
        )
    if refusal is None and answer == "accepted" and task.handoff is not None:
        refusal = on_its_way(task, task.handoff)
    if refusal is None and answer not in ANSWERS[asked.state]:
        refusal = Refusal(
            "invalid_transition",
            f"{asked.to_agent} has {asked.state} {task.id}; only a new request opens it again",
        )
    return refusal or task


def _is_anothers(task: Task, lease: Lease | None, read: Read) -> bool:
    """True if a third agent has the work by now, or it was given to one: it does not wait for the
    agent that was asked.
    """
    if lease is not None:
        return lease.holder != read.actor.name
    asked = task.delegation
    assert asked is not None, "only the requested agent can reject"
    return task.assignee not in ("", asked.from_agent, read.actor.name)

"""Decider of claims: who may begin with a task, and with which one (S-RUN)."""

from dragoman.core.actors import HUB_NAME, HUB_NAME_TAKEN
from dragoman.core.authority import MAY_DISPATCH, MAY_WRITE, holder_objection, recorded_dispatcher
from dragoman.core.commands import (
    ClaimTask,
)
from dragoman.core.deciding.beginning import may_claim
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    TaskClaimed,
)
from dragoman.core.ids import check_agent, check_session, task_stream
from dragoman.core.limits import (
    LEASE_RANGE_MS,
    MAX_QUEUES,
    check_count,
    check_duration,
)
from dragoman.core.moments import TIMESTAMP_RANGE, format_duration, to_rfc3339
from dragoman.core.reading import Decision, LeaseChange, Read, Receipt, task_receipt
from dragoman.core.states.lease import Lease, grant_lease, renew_lease
from dragoman.core.states.task import CLAIMABLE_STATUSES, Task


def decide_claim_task(command: ClaimTask, read: Read, now: int) -> Decision | Refusal:
    """Start an attempt under a higher fencing token."""
    refusal = check_may_claim(command, read)
    if refusal:
        return refusal
    queues = command.queues or ("", command.agent)
    task = (
        read.task(command.task)
        if command.task
        else _next_eligible(queues, command.agent, read, now)
    )
    if task is None:
        return Refusal("nothing_ready", f"no task is ready for {command.agent}")
    if isinstance(task, Refusal):
        return task
    lease_now = read.lease(task)
    if (
        command.or_renew
        and lease_now
        and lease_now.holder == command.agent
        and lease_now.is_valid(now)
    ):
        lease_now = renew_lease(lease_now, now)
        return Decision(
            task_receipt(task, task.status, lease_now), (), LeaseChange(task.id, lease_now)
        )
    refusal = check_claimable(task, command, lease_now, now)
    if refusal:
        return refusal
    attempt, fence = task.attempts + 1, task.fence + 1
    lease = grant_lease(command.agent, fence, command.session, command.ttl_ms, now)
    refusal = check_lease_end(task, lease, now)
    if refusal:
        return refusal
    event = TaskClaimed(
        task.status,
        attempt,
        fence,
        command.agent,
        command.ttl_ms,
        command.session,
        recorded_dispatcher(read.actor, command.agent),
    )
    return Decision(
        Receipt(task.id, "in-progress", attempt, fence, lease.expires_at),
        ((task_stream(task.id), event),),
        LeaseChange(task.id, lease),
    )


def _next_eligible(queues: tuple[str, ...], agent: str, read: Read, now: int) -> Task | None:
    return read.next_ready(queues, now, lambda task: may_claim(task, agent, read, now))


def check_may_claim(command: ClaimTask, read: Read) -> Refusal | None:
    """Refuse unless the caller may claim a task for this agent, with these arguments."""
    actor = read.actor
    malformed = check_agent(command.agent, "agent")
    if malformed:
        return malformed
    if command.agent == HUB_NAME and actor.role != "system":
        return Refusal("not_authorized", HUB_NAME_TAKEN, path="agent")
    if actor.role == "agent":
        if command.agent != actor.name:
            return Refusal("identity_mismatch", f"{actor.name} cannot claim for {command.agent}")
        if command.queues:
            return Refusal("not_authorized", f"{actor.label} may not choose its queues")
    elif actor.role not in MAY_DISPATCH and not _has_taken_over(command, read):
        return Refusal("not_authorized", f"{actor.label} may not claim tasks")
    cannot_hold = holder_objection(read.agent(command.agent))
    if cannot_hold:
        return Refusal("not_authorized", cannot_hold)
    return (
        (check_session(command.session, "session") if command.session else None)
        or check_duration("the lease", command.ttl_ms, *LEASE_RANGE_MS)
        or check_count("queues", command.queues, MAX_QUEUES)
        or next(filter(None, map(check_agent, filter(None, command.queues))), None)
    )


def _has_taken_over(command: ClaimTask, read: Read) -> bool:
    """True if the caller claims, for itself, what was handed over to it."""
    task = read.task(command.task) if command.task else None
    if not isinstance(task, Task) or task.handoff is None or command.queues:
        return False
    return (
        read.actor.role in MAY_WRITE and task.handoff.claimant == command.agent == read.actor.name
    )


def check_claimable(
    task: Task, command: ClaimTask, lease: Lease | None, now: int
) -> Refusal | None:
    """Refuse unless this agent can start on the task as it stands."""
    if lease is not None:
        until = to_rfc3339(lease.expires_at)
        holder_text = f"{lease.holder} holds {task.id} (attempt {task.attempts})"
        if lease.is_valid(now):
            return Refusal("already_claimed", f"{holder_text} until {until}")
        return Refusal(
            "already_claimed", f"{holder_text}; its lease ended at {until} and awaits recovery"
        )
    if task.status not in CLAIMABLE_STATUSES:
        return Refusal(
            "not_ready",
            f"{task.id} is {task.status}; only a ready task can be claimed, or one in review by "
            "the agent that had it last",
        )
    if task.status == "review" and task.assignee != command.agent:
        return Refusal(
            "unauthorized_agent",
            f"{task.id} is in review; only {task.assignee or 'its owner'} can rework it",
        )
    if task.handoff is not None and command.agent != task.handoff.claimant:
        return Refusal(
            "reserved",
            f"{task.id} is handed over by {task.handoff.id}: only {task.handoff.claimant} can "
            "claim it",
        )
    if task.reserved_for not in ("", command.agent, *command.queues):
        return Refusal("reserved", f"{task.id} is reserved for {task.reserved_for}")
    if task.open_blockers:
        return Refusal("waits_for", f"{task.id} waits for {', '.join(task.open_blockers)}")
    return None


def check_lease_end(task: Task, lease: Lease, now: int) -> Refusal | None:
    """Refuse a lease whose end is no date: it could be neither shown nor written."""
    if lease.expires_at <= TIMESTAMP_RANGE[1]:
        return None
    return Refusal(
        "invalid_field",
        f"the clock says {to_rfc3339(now)}, so a lease of {format_duration(lease.ttl_ms)} on "
        f"{task.id} "
        f"would end after {to_rfc3339(TIMESTAMP_RANGE[1])}, the last timestamp that exists: "
        "look at the "
        "hub's clock, or at --now",
    )

"""Claim a task: begin an attempt, with a lease and a new fencing token (S-RUN)."""

from dragoman.core.agent import describe_pause
from dragoman.core.attempt import ClaimTask, check_claimable, check_may_claim
from dragoman.core.attempt_state import TaskClaimed, grant_lease, renew_lease
from dragoman.core.authority import recorded_dispatcher
from dragoman.core.errors import Refusal
from dragoman.core.ids import task_stream
from dragoman.core.intent.request_workflow import may_claim
from dragoman.core.read import Decision, LeaseChange, Read, Receipt, task_receipt
from dragoman.core.task_state import Task


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
        command.renew_if_held
        and lease_now
        and lease_now.holder == command.agent
        and lease_now.is_valid(now)
    ):
        lease_now = renew_lease(lease_now, now)
        return Decision(
            task_receipt(task, task.status, lease_now), (), LeaseChange(task.id, lease_now)
        )
    refusal = _check_paused(command.agent, read, now) or check_claimable(
        task, command, lease_now, now
    )
    if refusal:
        return refusal
    attempt, fence = task.attempts + 1, task.fence + 1
    lease = grant_lease(command.agent, fence, command.session, command.ttl_ms, now)
    event = TaskClaimed(
        task.status,
        attempt,
        fence,
        command.agent,
        command.ttl_ms,
        command.session,
        recorded_dispatcher(read.actor, command.agent),
        checks=command.checks,
    )
    return Decision(
        Receipt(task.id, "in-progress", attempt, fence, lease.expires_at),
        ((task_stream(task.id), event),),
        LeaseChange(task.id, lease),
    )


def _check_paused(agent: str, read: Read, now: int) -> Refusal | None:
    """Refuse work to an agent that is paused, as one that has reached a usage limit."""
    known = read.agent(agent)
    pause = known.active_pause(now) if known is not None else None
    if pause is None:
        return None
    detail = f"{agent} is {describe_pause(pause.until)}: {pause.reason}"
    return Refusal("nothing_ready", f"{detail}; `dragoman agent resume {agent}` ends that")


def _next_eligible(queues: tuple[str, ...], agent: str, read: Read, now: int) -> Task | None:
    return read.next_ready(queues, now, lambda task: may_claim(task, agent, read, now))

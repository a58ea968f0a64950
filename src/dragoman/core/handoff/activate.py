"""Activate a handoff: the recipient begins the work, or resumes it after its lease has expired."""

from collections.abc import Mapping
from typing import Final

from dragoman.core.attempt_state import TaskClaimed, grant_lease
from dragoman.core.authority import is_idle_owner
from dragoman.core.base import Event, Outcome, Status
from dragoman.core.errors import Refusal
from dragoman.core.handoff.common import (
    find_in_state,
    not_authorized_refusal,
    policy_objection,
)
from dragoman.core.handoff.state import (
    ActivateHandoff,
    Handoff,
    HandoffNoted,
    HandoffTransitioned,
)
from dragoman.core.ids import check_session, handoff_stream, task_stream
from dragoman.core.limits import LEASE_RANGE_MS, check_duration, check_json
from dragoman.core.read import Decision, LeaseChange, Read, Receipt, StreamEvents
from dragoman.core.task_state import (
    CLAIMABLE_STATUSES,
    Task,
    TaskEdited,
    TaskHandedOver,
    TaskTransitioned,
)

READY_ROLES_TEXT: Final = "a person, a coordinator or an orchestrator"
"""Roles that may make a blocked, backlogged or deadlettered task ready, in words."""

PARKED_STATUSES: Final[Mapping[Status, str]] = {
    "blocked": "blocked",
    "backlog": "in the backlog",
}
"""Statuses that keep a recipient from beginning unless the owner offered the task in them -> the
status in words.
"""

_ENDING_OUTCOMES: Final[frozenset[Outcome]] = frozenset({"done", "blocked"})
"""After a report with one of these outcomes nobody can begin; after a partial one they can."""


def decide_activate(command: ActivateHandoff, read: Read, now: int) -> Decision | Refusal:
    """Begin the work: a new attempt of the recipient, which invalidates the sender's fencing token
    (S-OWN).

    A recipient whose lease has expired activates again: a new attempt, and no change of state.
    """
    is_resumed = has_lost_lease(read.handoff(command.handoff), read, now)
    at = find_in_state(
        command.handoff, read, ("activated" if is_resumed else "accepted",), "activate"
    )
    if isinstance(at, Refusal):
        return at
    handoff, task = at
    if read.actor.name != handoff.recipient:
        return not_authorized_refusal(handoff, read.actor, "activate", handoff.recipient)
    attempt, fence = task.attempts + 1, task.fence + 1
    lease = grant_lease(handoff.recipient, fence, command.session, command.ttl_ms, now)
    refusal = (
        check_duration("the lease", command.ttl_ms, *LEASE_RANGE_MS)
        or (check_session(command.session) if command.session else None)
        or check_json("work_state_update", command.work_state_update)
        or check_can_begin(task)
        or (None if is_resumed else _check_recipient_policy(handoff, task, read, now))
    )
    if refusal:
        return refusal
    if command.failed:
        code, detail = command.failed[0]
        return Refusal(code, detail)
    receipt = Receipt(
        task.id,
        "in-progress",
        attempt,
        fence,
        lease.expires_at,
        handoff_stream(handoff.id),
        state="activated",
    )
    claim = TaskClaimed(
        "ready" if task.status not in CLAIMABLE_STATUSES else task.status,
        attempt,
        fence,
        handoff.recipient,
        command.ttl_ms,
        command.session,
    )
    claim_events = (
        _resume_events(task, claim) if is_resumed else _takeover_events(handoff, task, claim)
    )
    return Decision(
        receipt, (*claim_events, *_work_state_notes(command, handoff)), LeaseChange(task.id, lease)
    )


def has_lost_lease(handoff: Handoff | None, read: Read, now: int) -> bool:
    """Return whether the handoff is activated and nobody holds a valid lease on its task."""
    if handoff is None or handoff.status != "activated":
        return False
    task = read.task(handoff.task)
    lease = None if isinstance(task, Refusal) else read.lease(task)
    return lease is None or not lease.is_valid(now)


def check_can_begin(task: Task) -> Refusal | None:
    """Check that the status of the task lets the recipient begin or resume."""
    if task.is_final:
        return Refusal("invalid_transition", f"{task.id} is {task.status}: nothing is left to do")
    if task.status == "deadletter":
        return Refusal(
            "invalid_transition",
            f"{task.id} is in the deadletter: {READY_ROLES_TEXT} has to make it ready",
        )
    if task.status in PARKED_STATUSES and not (task.handoff and task.handoff.unblocks_task):
        may_unblock = task.status == "blocked" and is_idle_owner(task.assignee, task)
        owner = f"{task.assignee or 'its owner'}, " if may_unblock else ""
        return Refusal(
            "not_ready",
            f"{task.id} is {PARKED_STATUSES[task.status]}: {owner}{READY_ROLES_TEXT} has to make "
            "it ready first",
        )
    if task.open_blockers:
        return Refusal(
            "blocked_by_dependency", f"{task.id} waits for {', '.join(task.open_blockers)}"
        )
    return _check_no_ending_report(task)


def _check_no_ending_report(task: Task) -> Refusal | None:
    """Check that the holder has not reported the task done or blocked.

    Such a report counts even while it waits for the end of the holder's session.
    """
    reported = task.reported if task.status == "in-progress" else None
    if reported is None or reported.outcome not in _ENDING_OUTCOMES:
        return None
    takes_effect = "which takes effect when its session ends, or its lease"
    return Refusal(
        "not_ready", f"{reported.agent} has reported {task.id} {reported.outcome}, {takes_effect}"
    )


def _check_recipient_policy(handoff: Handoff, task: Task, read: Read, now: int) -> Refusal | None:
    """Check that the policy of the task's intent still permits the recipient."""
    objection = policy_objection(handoff.recipient, task, read, now, handoff.package)
    return Refusal("policy_violation", objection) if objection else None


def _resume_events(task: Task, claim: TaskClaimed) -> StreamEvents:
    """Events by which the recipient resumes; the task leaves its expired lease first.

    That is no failed attempt: the recipient came back before the expired lease was handled.
    """
    stream = task_stream(task.id)
    if task.status in CLAIMABLE_STATUSES:
        return ((stream, claim),)
    release = TaskTransitioned(task.status, "ready", "taken up again after its lease has ended")
    return ((stream, release), (stream, claim))


def _takeover_events(handoff: Handoff, task: Task, claim: TaskClaimed) -> StreamEvents:
    """Events by which the task changes hands; a task that is in progress is released first."""
    stream = task_stream(task.id)
    events: list[tuple[str, Event]] = [
        (
            handoff_stream(handoff.id),
            HandoffTransitioned("accepted", "activated", by=handoff.recipient),
        )
    ]
    if task.status not in CLAIMABLE_STATUSES:
        release = TaskTransitioned(task.status, "ready", f"handed over by {handoff.id}")
        events.append((stream, release))
    owner = task.handoff.owner if task.handoff else handoff.sender
    chain = handoff.chain_after_activation
    return (
        *events,
        (stream, TaskEdited(reserved_for=handoff.recipient)),
        (stream, claim),
        (stream, TaskHandedOver(handoff.id, chain, owner, handoff.recipient, True)),
    )


def _work_state_notes(command: ActivateHandoff, handoff: Handoff) -> StreamEvents:
    """Note with the present state of the work; the package itself never changes (S-ACP-11)."""
    if not command.work_state_update:
        return ()
    update = HandoffNoted(handoff.recipient, "work_state_update", data=command.work_state_update)
    return ((handoff_stream(handoff.id), update),)

"""Deciders of the way through: the recipient begins, finishes, and the record is closed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from dragoman.core.commands import (
    ActivateHandoff,
    CloseHandoff,
    CompleteHandoff,
    ReportOutcome,
)
from dragoman.core.deciding.handoffs.common import (
    COORDINATES,
    about,
    found,
    letter,
    not_yours,
)
from dragoman.core.deciding.handoffs.policy import why_not_to
from dragoman.core.deciding.tasks.attempts import report
from dragoman.core.deciding.tasks.claims import check_lease_end
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    HandoffMoved,
    HandoffNoted,
    Outcome,
    Status,
    TaskClaimed,
    TaskEdited,
    TaskHandedOver,
    TaskTransitioned,
)
from dragoman.core.ids import check_session, handoff_stream, task_stream
from dragoman.core.limits import TEXT, TTL_MS, check_duration, check_json, check_text
from dragoman.core.reading import Decision, LeaseChange, Read, Receipt, StreamEvents
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.lease import granted
from dragoman.core.states.task import CLAIMABLE, Task

if TYPE_CHECKING:
    from dragoman.core.events import AnyEvent

COMPLETION: Final = "completion_notes"
"""Kind of the note that ends the work."""
MAKE_READY: Final = "a person, a coordinator or an orchestrator"
"""Roles that may make a blocked, backlogged or deadlettered task ready, in words."""
HELD_BACK: Final[Mapping[Status, tuple[str, str]]] = {
    "blocked": ("blocked", "{owner}, " + MAKE_READY),
    "backlog": ("in the backlog", MAKE_READY),
}
"""Statuses that keep a recipient from beginning unless the owner offered the task in them -> the
status in words, and who may make it ready.
"""
_ENDS_THE_OFFER: Final[frozenset[Outcome]] = frozenset({"done", "blocked"})
"""After a report with one of these outcomes nobody can begin; after a partial one they can."""


def activate(command: ActivateHandoff, read: Read, now: int) -> Decision | Refusal:
    """Begin the work: a new attempt of the recipient, which invalidates the sender's fencing token
    (S-OWN).

    A recipient whose lease has expired activates again: a new attempt, and no change of state.
    """
    has_begun = is_adrift(read.handoff(command.handoff), read, now)
    at = found(command.handoff, read, ("activated" if has_begun else "accepted",), "activate")
    if isinstance(at, Refusal):
        return at
    handoff, task = at
    if read.actor.name != handoff.recipient:
        return not_yours(handoff, read.actor, "activate", handoff.recipient)
    attempt, fence = task.attempts + 1, task.fence + 1
    lease = granted(handoff.recipient, fence, command.session, command.ttl_ms, now)
    refusal = (
        check_duration("the lease", command.ttl_ms, *TTL_MS)
        or (check_session(command.session) if command.session else None)
        or check_json("work_state_update", command.work_state_update)
        or check_beginning(task)
        or (None if has_begun else _check_policy(handoff, task, read, now))
        or check_lease_end(task, lease, now)
    )
    if refusal:
        return refusal
    if command.failed:
        code, detail = command.failed[0]
        return Refusal(code, detail)
    told = Receipt(
        task.id,
        "in-progress",
        attempt,
        fence,
        lease.expires_at,
        handoff_stream(handoff.id),
        state="activated",
    )
    taken = TaskClaimed(
        "ready" if task.status not in CLAIMABLE else task.status,
        attempt,
        fence,
        handoff.recipient,
        command.ttl_ms,
        command.session,
    )
    begun = _taken_up(task, taken) if has_begun else _taken_over(handoff, task, taken)
    return Decision(told, (*begun, *_noted(command, handoff)), LeaseChange(task.id, lease))


def is_adrift(handoff: Handoff | None, read: Read, now: int) -> bool:
    """Return whether the handoff is activated and nobody holds a valid lease on its task."""
    if handoff is None or handoff.status != "activated":
        return False
    task = read.task(handoff.task)
    lease = None if isinstance(task, Refusal) else read.lease(task)
    return lease is None or not lease.is_live(now)


def check_beginning(task: Task) -> Refusal | None:
    """Check that the status of the task lets the recipient begin or resume."""
    if task.is_final:
        return Refusal("invalid_transition", f"{task.id} is {task.status}: nothing is left to do")
    if task.status == "deadletter":
        return Refusal(
            "invalid_transition",
            f"{task.id} is in the deadletter: {MAKE_READY} has to make it ready",
        )
    if task.status in HELD_BACK and not (task.handoff and task.handoff.lifts_block):
        where, who = HELD_BACK[task.status]
        owner = task.assignee or "its owner"
        return Refusal(
            "not_ready",
            f"{task.id} is {where}: {who.format(owner=owner)} has to make it ready first",
        )
    if task.open_blockers:
        return Refusal("waits_for", f"{task.id} waits for {', '.join(task.open_blockers)}")
    return _check_report(task)


def _check_report(task: Task) -> Refusal | None:
    """Check that the holder has not reported the task done or blocked.

    Such a report counts even while it waits for the end of the holder's session.
    """
    said = task.reported if task.status == "in-progress" else None
    if said is None or said.outcome not in _ENDS_THE_OFFER:
        return None
    takes_effect = "which takes effect when its session ends, or its lease"
    return Refusal(
        "not_ready", f"{said.agent} has reported {task.id} {said.outcome}, {takes_effect}"
    )


def _check_policy(handoff: Handoff, task: Task, read: Read, now: int) -> Refusal | None:
    """Check that the policy of the task's intent still permits the recipient."""
    forbidden = why_not_to(handoff.recipient, task, read, now, handoff.package)
    return Refusal("policy_violation", forbidden) if forbidden else None


def _taken_up(task: Task, taken: TaskClaimed) -> StreamEvents:
    """Events by which the recipient resumes; the task leaves its expired lease first.

    That is no failed attempt: the recipient came back before the expired lease was handled.
    """
    stream = task_stream(task.id)
    if task.status in CLAIMABLE:
        return ((stream, taken),)
    put_down = TaskTransitioned(task.status, "ready", "taken up again after its lease has ended")
    return ((stream, put_down), (stream, taken))


def _taken_over(handoff: Handoff, task: Task, taken: TaskClaimed) -> StreamEvents:
    """Events by which the task changes hands; a task that is in progress is released first."""
    stream = task_stream(task.id)
    events: list[tuple[str, AnyEvent]] = [
        (
            handoff_stream(handoff.id),
            HandoffMoved("accepted", "activated", by=handoff.recipient),
        )
    ]
    if task.status not in CLAIMABLE:
        put_down = TaskTransitioned(task.status, "ready", f"handed over by {handoff.id}")
        events.append((stream, put_down))
    owner = task.handoff.owner if task.handoff else handoff.sender
    chain = handoff.chain_once_taken
    return (
        *events,
        (stream, TaskEdited(reserved_for=handoff.recipient)),
        (stream, taken),
        (stream, TaskHandedOver(handoff.id, chain, owner, handoff.recipient, True)),
    )


def _noted(command: ActivateHandoff, handoff: Handoff) -> StreamEvents:
    """Note with the present state of the work; the package itself never changes (S-ACP-11)."""
    if not command.work_state_update:
        return ()
    update = HandoffNoted(handoff.recipient, "work_state_update", data=command.work_state_update)
    return ((handoff_stream(handoff.id), update),)


def complete(command: CompleteHandoff, read: Read, now: int) -> Decision | Refusal:
    """Complete the handoff: this is also the report of the recipient's attempt (S-SESSION)."""
    at = found(command.handoff, read, ("activated",), "complete")
    if isinstance(at, Refusal):
        return at
    handoff, task = at
    if read.actor.name != handoff.recipient:
        return not_yours(handoff, read.actor, "complete", handoff.recipient)
    details: dict[str, object] = {"handoff": handoff.id}
    if command.final_artifacts:
        details["final_artifacts"] = list(command.final_artifacts)
    reported = report(
        ReportOutcome(
            task.id, "done", command.notes, details=details, apply=True, backoff=command.backoff
        ),
        read,
        now,
    )
    if isinstance(reported, Refusal) and reported.code == "lease_lost":
        lost = f"{handoff.recipient} does not hold {task.id} any more"
        held_up = check_beginning(task)
        first = f"{held_up.detail}; then " if held_up else ""
        again = f"{first}activate {handoff.id} again, then complete it"
        return Refusal("lease_lost", f"{lost}: {again}")
    if isinstance(reported, Refusal):
        return reported
    data = {k: v for k, v in details.items() if k != "handoff"}
    said = HandoffNoted(read.actor.name, COMPLETION, command.notes, data)
    done = completed(handoff, task, read, said)
    return replace(
        reported,
        events=(*reported.events, *done),
        receipt=replace(reported.receipt, stream=handoff_stream(handoff.id), state="completed"),
    )


def completed(
    handoff: Handoff, task: Task, read: Read, said: HandoffNoted, *, is_left: bool = False
) -> StreamEvents:
    """Events that end the recipient's part, whatever dialect reported it, and a letter to the
    sender.

    The task cannot be handed back any more. `is_checkpoint`: the work is left to a successor, not
    done.
    """
    stream = handoff_stream(handoff.id)
    over: StreamEvents = (
        (stream, HandoffMoved("activated", "completed", said.text, by=said.by)),
        (stream, said),
        (task_stream(task.id), TaskHandedOver(handoff.id, task.chain)),
    )
    if read.actor.name == handoff.sender:
        return over
    whose, more = handoff.recipient, {"note": said.text} if is_left else {}
    told = letter(read, "handoff.complete", (handoff.sender,), handoff, more, whose=whose)
    return (*over, told)


def close(command: CloseHandoff, read: Read, now: int) -> Decision | Refusal:
    """Close the record of the handoff."""
    del now
    at = found(command.handoff, read, ("rejected", "completed"), "close")
    if isinstance(at, Refusal):
        return at
    handoff, task = at
    if read.actor.name != handoff.sender and read.actor.role not in COORDINATES:
        return not_yours(handoff, read.actor, "close", f"{handoff.sender} or a coordinator")
    refusal = check_text("closure_notes", command.notes, TEXT)
    if refusal:
        return refusal
    closed = HandoffMoved(handoff.status, "closed", command.notes, by=read.actor.name)
    return Decision(about(handoff.id, "closed", task), ((handoff_stream(handoff.id), closed),))

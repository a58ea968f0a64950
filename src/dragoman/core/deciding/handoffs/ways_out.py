"""Deciders of the ways out: the work is not taken, given back, or its offer is taken back."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from dragoman.core.actors import HUB
from dragoman.core.commands import RejectHandoff, WithdrawHandoff
from dragoman.core.deciding.handoffs.common import (
    COORDINATES,
    about,
    found,
    letter,
    not_yours,
)
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    HandoffMoved,
    HandoffRejected,
    HandoffStatus,
    MailPosted,
    TaskEdited,
    TaskHandedOver,
    TaskTransitioned,
)
from dragoman.core.ids import handoff_stream, task_stream
from dragoman.core.limits import TEXT, check_text
from dragoman.core.reading import Decision, LeaseChange, Read, StreamEvents
from dragoman.core.states.handoff import Handoff, with_owner
from dragoman.core.states.task import Task

if TYPE_CHECKING:
    from dragoman.core.events import AnyEvent


def reject(command: RejectHandoff, read: Read, now: int) -> Decision | Refusal:
    """Reject the handoff, or give the work back, by its recipient; a coordinator may force it."""
    del now
    refusal = check_text("detail", command.detail, TEXT, least=1) or check_text(
        "suggested_fix", command.suggested_fix, TEXT
    )
    if refusal:
        return refusal
    states = ("proposed", "validating", "accepted", "activated")
    at = found(command.handoff, read, states, "reject")
    if isinstance(at, Refusal):
        return at
    handoff, task = at
    if read.actor.name != handoff.recipient and read.actor.role not in COORDINATES:
        return not_yours(handoff, read.actor, "reject", f"{handoff.recipient} or a coordinator")
    why = HandoffRejected(read.actor.name, command.reason, command.detail, command.suggested_fix)
    events = turned_down(handoff, task, why, read)
    told = about(handoff.id, "rejected", given_back(handoff, task))
    return Decision(told, events, lease_ended(handoff, task, read))


def withdraw(command: WithdrawHandoff, read: Read, now: int) -> Decision | Refusal:
    """Withdraw a proposal, by its sender, before anybody works on it (S-ACP-4)."""
    del now
    at = found(command.handoff, read, ("proposed", "validating", "accepted"), "withdraw")
    if isinstance(at, Refusal):
        return at
    handoff, task = at
    if read.actor.name != handoff.sender:
        return not_yours(handoff, read.actor, "withdraw", handoff.sender)
    refusal = check_text("note", command.note, TEXT)
    if refusal:
        return refusal
    why = HandoffRejected(read.actor.name, "other", withdrawal(command.note))
    events = turned_down(handoff, task, why, read)
    return Decision(about(handoff.id, "rejected", task), events)


def withdrawal(note: str) -> str:
    """Detail of a rejection by the sender itself."""
    return f"withdrawn: {note}" if note else "withdrawn"


def reassignment(notes: str) -> str:
    """Detail of the rejection that reassigns the work to somebody else."""
    return f"reassigned: {notes}" if notes else "reassigned"


def turned_down(
    handoff: Handoff,
    task: Task,
    why: HandoffRejected,
    read: Read,
    *,
    at: HandoffStatus | None = None,
    superseded_by: str = "",
) -> StreamEvents:
    """Events of a rejection: the handoff, the task back to its owner, a letter to the other
    parties.
    """
    stream = handoff_stream(handoff.id)
    after = given_back(handoff, task, reopens=not superseded_by)
    moved = HandoffMoved(
        at or handoff.status,
        "rejected",
        why.detail,
        superseded_by,
        why.by,
        frees=not after.assignee,
    )
    return (
        (stream, why),
        (stream, moved),
        *_task_given_back(handoff, task, after),
        told_off(handoff, why, read, superseded_by),
    )


def overtaken(
    handoff: Handoff, task: Task, detail: str, read: Read, *, owner: str | None = None
) -> StreamEvents:
    """Events by which the hub rejects and closes a handoff because its task has changed otherwise.

    `owner` is the new owner of the task (empty: nobody), None if the owner does not change. With a
    new owner the recipient leaves the chain, as by any rejection (S-ACP-5); a task that has only
    ended stays with its owner.
    """
    stream, why = handoff_stream(handoff.id), HandoffRejected(HUB, "other", detail)
    goes_to = None if owner == task.assignee else owner
    chain = task.chain if goes_to is None else with_owner(handoff.chain, goes_to)
    return (
        (stream, why),
        (stream, HandoffMoved(handoff.status, "rejected", detail, by=HUB, owner=goes_to)),
        (task_stream(task.id), TaskHandedOver(handoff.id, chain)),
        told_off(handoff, why, read),
        (stream, HandoffMoved("rejected", "closed", detail, by=HUB)),
    )


def told_off(
    handoff: Handoff, why: HandoffRejected, read: Read, superseded_by: str = ""
) -> tuple[str, MailPosted]:
    """Letter about a rejection to the sender, the recipient and the owner, except the caller.

    The owner is another than the sender if the work was passed on before it was activated. The
    reason is sent in full: the size limit of payloads is for what agents send.
    """
    said = {"reason": why.reason, "detail": why.detail}
    if why.suggested_fix:
        said["suggested_fix"] = why.suggested_fix
    if superseded_by:
        said["superseded_by"] = superseded_by
    concerned = dict.fromkeys((handoff.sender, handoff.recipient, handoff.owner))
    others = tuple(name for name in concerned if name != read.actor.name)
    return letter(read, "system.error", others, handoff, said)


def lease_ended(handoff: Handoff, task: Task, read: Read) -> LeaseChange | None:
    """End of the recipient's lease, if it is held; a lease of the sender is not ended."""
    is_held = handoff.status == "activated" and read.lease(task) is not None
    return LeaseChange(task.id, None) if is_held else None


def _task_given_back(handoff: Handoff, task: Task, after: Task) -> StreamEvents:
    """Events that end the active handoff of a task and make its former owner the owner again."""
    stream = task_stream(task.id)
    events: list[tuple[str, AnyEvent]] = []
    if after.status != task.status:
        moved = TaskTransitioned(task.status, after.status, f"{handoff.id} rejected")
        events.append((stream, moved))
    if after.assignee != task.assignee:
        events.append((stream, TaskEdited(reserved_for=after.assignee)))
    return (*events, (stream, TaskHandedOver(handoff.id, after.chain)))


def given_back(handoff: Handoff, task: Task, *, reopens: bool = True) -> Task:
    """The task after this handoff of it is rejected (S-OWN).

    A task that has ended stays with its owner of that time. A deadlettered task goes back to its
    former owner, but is not made ready. A task that had no owner before the offer has none again,
    unless somebody has begun. A rejection reopens work that was begun (S-ACP-4); a reassignment
    only takes it from whoever works on it: a blocked task stays blocked.
    """
    under_way = task.handoff
    if under_way is not None and under_way.was_free:
        return replace(task, assignee="", reserved_for="", handoff=None)
    if under_way is None or handoff.status != "activated" or task.is_final:
        return replace(task, handoff=None)
    chain = handoff.chain if task.chain[-1:] == (handoff.recipient,) else task.chain
    is_opened = task.status == "in-progress" or (reopens and task.status != "deadletter")
    return replace(
        task,
        status="ready" if is_opened else task.status,
        assignee=under_way.owner,
        reserved_for=under_way.owner,
        chain=chain,
        handoff=None,
    )

"""Reject and withdraw a handoff: the task goes back to its owner (S-ACP-4)."""

from msgspec.structs import replace

from dragoman.core.actor import HUB_NAME
from dragoman.core.base import Event
from dragoman.core.errors import Refusal
from dragoman.core.handoff.common import (
    COORDINATOR_ROLES,
    find_in_state,
    handoff_receipt,
    letter_event,
    not_authorized_refusal,
)
from dragoman.core.handoff.state import (
    Handoff,
    HandoffRejected,
    HandoffStatus,
    HandoffTransitioned,
    RejectHandoff,
    WithdrawHandoff,
    extend_chain,
)
from dragoman.core.ids import handoff_stream, task_stream
from dragoman.core.limits import MAX_TEXT, check_text
from dragoman.core.mail import MailPosted
from dragoman.core.read import Decision, LeaseChange, Read, StreamEvents
from dragoman.core.task_state import Task, TaskEdited, TaskHandedOver, TaskTransitioned


def decide_reject(command: RejectHandoff, read: Read, _: int) -> Decision | Refusal:
    """Reject the handoff, or give the work back, by its recipient; a coordinator may force it."""
    refusal = check_text("detail", command.detail, MAX_TEXT, minimum=1) or check_text(
        "suggested_fix", command.suggested_fix, MAX_TEXT
    )
    if refusal:
        return refusal
    states = ("proposed", "validating", "accepted", "activated")
    at = find_in_state(command.handoff, read, states, "reject")
    if isinstance(at, Refusal):
        return at
    handoff, task = at
    if read.actor.name != handoff.recipient and read.actor.role not in COORDINATOR_ROLES:
        return not_authorized_refusal(
            handoff, read.actor, "reject", f"{handoff.recipient} or a coordinator"
        )
    rejection = HandoffRejected(
        read.actor.name, command.reason, command.detail, command.suggested_fix
    )
    events = rejection_events(handoff, task, rejection, read)
    receipt = handoff_receipt(handoff.id, "rejected", restore_task(handoff, task))
    return Decision(receipt, events, recipient_lease_end(handoff, task, read))


def decide_withdraw(command: WithdrawHandoff, read: Read, _: int) -> Decision | Refusal:
    """Withdraw a proposal, by its sender, before anybody works on it (S-ACP-4)."""
    at = find_in_state(command.handoff, read, ("proposed", "validating", "accepted"), "withdraw")
    if isinstance(at, Refusal):
        return at
    handoff, task = at
    if read.actor.name != handoff.sender:
        return not_authorized_refusal(handoff, read.actor, "withdraw", handoff.sender)
    refusal = check_text("note", command.note, MAX_TEXT)
    if refusal:
        return refusal
    rejection = HandoffRejected(read.actor.name, "other", withdrawal_detail(command.note))
    events = rejection_events(handoff, task, rejection, read)
    return Decision(handoff_receipt(handoff.id, "rejected", task), events)


def withdrawal_detail(note: str) -> str:
    """Detail of a rejection by the sender itself."""
    return f"withdrawn: {note}" if note else "withdrawn"


def reassignment_detail(notes: str) -> str:
    """Detail of the rejection that reassigns the work to somebody else."""
    return f"reassigned: {notes}" if notes else "reassigned"


def rejection_events(
    handoff: Handoff,
    task: Task,
    rejection: HandoffRejected,
    read: Read,
    *,
    from_state: HandoffStatus | None = None,
    superseded_by: str = "",
) -> StreamEvents:
    """Events of a rejection: the handoff, the task back to its owner, a letter to the other
    parties.
    """
    stream = handoff_stream(handoff.id)
    restored = restore_task(handoff, task, reopens=not superseded_by)
    moved = HandoffTransitioned(
        from_state or handoff.status,
        "rejected",
        rejection.detail,
        superseded_by,
        rejection.by,
        releases_task=not restored.assignee,
    )
    return (
        (stream, rejection),
        (stream, moved),
        *_restore_events(handoff, task, restored),
        rejection_letter(handoff, rejection, read, superseded_by),
    )


def hub_rejection_events(
    handoff: Handoff, task: Task, detail: str, read: Read, *, owner: str | None = None
) -> StreamEvents:
    """Events by which the hub rejects and closes a handoff because its task has changed otherwise.

    `owner` is the new owner of the task (empty: nobody), None if the owner does not change. With a
    new owner the recipient leaves the chain, as by any rejection (S-ACP-5); a task that has only
    ended stays with its owner.
    """
    stream, rejection = handoff_stream(handoff.id), HandoffRejected(HUB_NAME, "other", detail)
    new_owner = None if owner == task.assignee else owner
    chain = task.chain if new_owner is None else extend_chain(handoff.chain, new_owner)
    return (
        (stream, rejection),
        (
            stream,
            HandoffTransitioned(handoff.status, "rejected", detail, by=HUB_NAME, owner=new_owner),
        ),
        (task_stream(task.id), TaskHandedOver(handoff.id, chain)),
        rejection_letter(handoff, rejection, read),
        (stream, HandoffTransitioned("rejected", "closed", detail, by=HUB_NAME)),
    )


def rejection_letter(
    handoff: Handoff, rejection: HandoffRejected, read: Read, superseded_by: str = ""
) -> tuple[str, MailPosted]:
    """Letter about a rejection to the sender, the recipient and the owner, except the caller.

    The owner is another than the sender if the work was passed on before it was activated. The
    reason is sent in full: the size limit of payloads is for what agents send.
    """
    fields = {"reason": rejection.reason, "detail": rejection.detail}
    if rejection.suggested_fix:
        fields["suggested_fix"] = rejection.suggested_fix
    if superseded_by:
        fields["superseded_by"] = superseded_by
    parties = dict.fromkeys((handoff.sender, handoff.recipient, handoff.owner))
    recipients = tuple(name for name in parties if name != read.actor.name)
    return letter_event(read, "system.error", recipients, handoff, fields)


def recipient_lease_end(handoff: Handoff, task: Task, read: Read) -> LeaseChange | None:
    """End of the recipient's lease, if it is held; a lease of the sender is not ended."""
    is_held = handoff.status == "activated" and read.lease(task) is not None
    return LeaseChange(task.id, None) if is_held else None


def _restore_events(handoff: Handoff, task: Task, restored: Task) -> StreamEvents:
    """Events that end the active handoff of a task and make its former owner the owner again."""
    stream = task_stream(task.id)
    events: list[tuple[str, Event]] = []
    if restored.status != task.status:
        moved = TaskTransitioned(task.status, restored.status, f"{handoff.id} rejected")
        events.append((stream, moved))
    if restored.assignee != task.assignee:
        events.append((stream, TaskEdited(reserved_for=restored.assignee)))
    return (*events, (stream, TaskHandedOver(handoff.id, restored.chain)))


def restore_task(handoff: Handoff, task: Task, *, reopens: bool = True) -> Task:
    """The task after this handoff of it is rejected (S-OWN).

    A task that has ended stays with its owner of that time. A deadlettered task goes back to its
    former owner, but is not made ready. A task that had no owner before the offer has none again,
    unless somebody has begun. A rejection reopens work that was begun (S-ACP-4); a reassignment
    only takes it from whoever works on it: a blocked task stays blocked.
    """
    active = task.handoff
    if active is not None and active.was_unowned:
        return replace(task, assignee="", reserved_for="", handoff=None)
    if active is None or handoff.status != "activated" or task.is_final:
        return replace(task, handoff=None)
    chain = handoff.chain if task.chain[-1:] == (handoff.recipient,) else task.chain
    is_reopened = task.status == "in-progress" or (reopens and task.status != "deadletter")
    return replace(
        task,
        status="ready" if is_reopened else task.status,
        assignee=active.owner,
        reserved_for=active.owner,
        chain=chain,
        handoff=None,
    )

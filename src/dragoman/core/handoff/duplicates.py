"""Repeated handoff commands: one that stands on record already is answered again (S-IDEM).

The events that a command leaves in the stream of its handoff say that it was applied, so that no
further state is needed.
"""

from collections.abc import Sequence

from dragoman.core.actor import HUB_NAME
from dragoman.core.base import Event
from dragoman.core.handoff import state as handoff_state
from dragoman.core.handoff.complete import completion_note
from dragoman.core.handoff.reject import reassignment_detail, withdrawal_detail
from dragoman.core.ids import handoff_stream
from dragoman.core.read import Read
from dragoman.core.task_state import Task


def find_applied(command: handoff_state.HandoffCommand, read: Read) -> handoff_state.Handoff | None:
    """Find the handoff to which the caller has applied this command before; of a reassignment, the
    new one.
    """
    handoff = read.handoff(command.handoff)
    assert handoff is not None, "only an existing handoff refuses what it has seen before"
    events = [event for event, _ in read.history(handoff_stream(handoff.id))]
    if isinstance(command, handoff_state.ExtendHandoff):
        return handoff if _is_extended(command, read.actor.name, events) else None
    if _recorded_event(command, handoff, read) not in events:
        return None
    if not isinstance(command, handoff_state.ReassignHandoff):
        return handoff
    new = read.handoff(handoff.superseded_by)
    return new if new is not None and new.recipient == command.recipient else None


def _recorded_event(
    command: handoff_state.HandoffCommand, handoff: handoff_state.Handoff, read: Read
) -> Event | None:
    """The event that this command leaves; None: a rejection has undone it, or its arguments are
    others.
    """
    by = read.actor.name
    match command:
        case handoff_state.AcceptHandoff():
            event = _acceptance(command, handoff, by)
        case handoff_state.ActivateHandoff() if not handoff.find_step("rejected"):
            is_same = command.work_state_update == _last_work_state(handoff, read)
            is_same = is_same and not _is_sent_back(handoff, read)
            event = (
                handoff_state.HandoffTransitioned("accepted", "activated", by=by)
                if is_same
                else None
            )
        case handoff_state.RejectHandoff():
            event = handoff_state.HandoffRejected(
                by, command.reason, command.detail, command.suggested_fix
            )
        case handoff_state.WithdrawHandoff():
            event = handoff_state.HandoffRejected(by, "other", withdrawal_detail(command.note))
        case handoff_state.ReassignHandoff():
            event = handoff_state.HandoffRejected(by, "other", reassignment_detail(command.notes))
        case handoff_state.CompleteHandoff():
            event = completion_note(command, by)
        case handoff_state.CloseHandoff():
            from_ = "rejected" if handoff.find_step("rejected") else "completed"
            event = handoff_state.HandoffTransitioned(from_, "closed", command.notes, by=by)
        case handoff_state.ApproveHandoff() if command.approved == handoff.is_approved:
            seen = command.package_hash or handoff.package_hash
            event = handoff_state.HandoffApproved(by, seen, command.approved, command.note)
        case _:
            event = None
    return event


def _is_sent_back(handoff: handoff_state.Handoff, read: Read) -> bool:
    """True if the work was completed and sent back: to activate again would be new work."""
    task = read.task(handoff.task) if handoff.status == "completed" else None
    return isinstance(task, Task) and task.status in ("ready", "blocked")


def _is_extended(command: handoff_state.ExtendHandoff, by: str, events: Sequence[Event]) -> bool:
    """Return whether the stage that the command names was extended like that before it ended."""
    status: handoff_state.HandoffStatus = "proposed"
    for event in events:
        if isinstance(event, handoff_state.HandoffTransitioned):
            status = event.to
            continue
        is_same = isinstance(event, handoff_state.HandoffExtended) and (event.by, event.by_ms) == (
            by,
            command.by_ms,
        )
        if is_same and command.stage in ("", status, handoff_state.STAGE_LABELS[status]):
            return True
    return False


def _acceptance(
    command: handoff_state.AcceptHandoff, handoff: handoff_state.Handoff, by: str
) -> Event | None:
    """The event of an acceptance; one that the gate rejected is refused again, for its reason."""
    rejection = handoff.rejection
    if by != handoff.recipient or not set(command.left_out) <= set(handoff.left_out):
        return None
    if rejection is None:
        return handoff_state.HandoffTransitioned("validating", "accepted", command.notes, by=by)
    if rejection.by != HUB_NAME or not handoff.failed:
        return None
    return handoff_state.HandoffVerified(
        handoff.passed, handoff.failed, handoff.artifacts, handoff.left_out
    )


def _last_work_state(handoff: handoff_state.Handoff, read: Read) -> dict[str, object]:
    """Update of the work state with which the recipient last began; empty: none."""
    task = read.task(handoff.task) if handoff.status == "activated" else None
    step = handoff.find_step("activated")
    # An activation after a lost lease may come with another one.
    since = task.moved_at if isinstance(task, Task) else step.at if step else 0
    note = handoff.find_note("work_state_update", since)
    return note.data if note else {}

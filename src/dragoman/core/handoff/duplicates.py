"""Repeated handoff commands: one that stands on record already is answered again (S-IDEM).

The events that a command leaves in the stream of its handoff say that it was applied, so that no
further state is needed.
"""

from collections.abc import Sequence

from dragoman.core.actor import HUB_NAME
from dragoman.core.base import Event
from dragoman.core.handoff.complete import completion_note
from dragoman.core.handoff.reject import reassignment_detail, withdrawal_detail
from dragoman.core.handoff.state import (
    STAGE_LABELS,
    AcceptHandoff,
    ActivateHandoff,
    ApproveHandoff,
    CloseHandoff,
    CompleteHandoff,
    ExtendHandoff,
    Handoff,
    HandoffApproved,
    HandoffCommand,
    HandoffEvent,
    HandoffExtended,
    HandoffRejected,
    HandoffStatus,
    HandoffTransitioned,
    HandoffVerified,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.ids import handoff_stream
from dragoman.core.read import Read
from dragoman.core.task_state import Task


def find_applied(command: HandoffCommand, read: Read) -> Handoff | None:
    """Find the handoff to which the caller has applied this command before; of a reassignment, the
    new one.
    """
    handoff = read.handoff(command.handoff)
    assert handoff is not None, "only an existing handoff refuses what it has seen before"
    events = [event for event, _ in read.history(handoff_stream(handoff.id))]
    if isinstance(command, ExtendHandoff):
        return handoff if _is_extended(command, read.actor.name, events) else None
    if _recorded_event(command, handoff, read) not in events:
        return None
    if not isinstance(command, ReassignHandoff):
        return handoff
    new = read.handoff(handoff.superseded_by)
    return new if new is not None and new.recipient == command.recipient else None


def _recorded_event(command: HandoffCommand, handoff: Handoff, read: Read) -> HandoffEvent | None:
    """The event that this command leaves; None: a rejection has undone it, or its arguments are
    others.
    """
    by = read.actor.name
    match command:
        case AcceptHandoff():
            event = _acceptance(command, handoff, by)
        case ActivateHandoff() if not handoff.find_step("rejected"):
            is_same = command.work_state_update == _last_work_state(handoff, read)
            is_same = is_same and not _is_sent_back(handoff, read)
            event = HandoffTransitioned("accepted", "activated", by=by) if is_same else None
        case RejectHandoff():
            event = HandoffRejected(by, command.reason, command.detail, command.suggested_fix)
        case WithdrawHandoff():
            event = HandoffRejected(by, "other", withdrawal_detail(command.note))
        case ReassignHandoff():
            event = HandoffRejected(by, "other", reassignment_detail(command.notes))
        case CompleteHandoff():
            event = completion_note(command, by)
        case CloseHandoff():
            from_ = "rejected" if handoff.find_step("rejected") else "completed"
            event = HandoffTransitioned(from_, "closed", command.notes, by=by)
        case ApproveHandoff() if command.approved == handoff.is_approved:
            seen = command.package_hash or handoff.package_hash
            event = HandoffApproved(by, seen, command.approved, command.note)
        case _:
            event = None
    return event


def _is_sent_back(handoff: Handoff, read: Read) -> bool:
    """True if the work was completed and sent back: to activate again would be new work."""
    task = read.task(handoff.task) if handoff.status == "completed" else None
    return isinstance(task, Task) and task.status in ("ready", "blocked")


def _is_extended(command: ExtendHandoff, by: str, events: Sequence[Event]) -> bool:
    """Return whether the stage that the command names was extended like that before it ended."""
    status: HandoffStatus = "proposed"
    for event in events:
        if isinstance(event, HandoffTransitioned):
            status = event.to
            continue
        is_same = isinstance(event, HandoffExtended) and (event.by, event.by_ms) == (
            by,
            command.by_ms,
        )
        if is_same and command.stage in ("", status, STAGE_LABELS[status]):
            return True
    return False


def _acceptance(command: AcceptHandoff, handoff: Handoff, by: str) -> HandoffEvent | None:
    """The event of an acceptance; one that the gate rejected is refused again, for its reason."""
    rejection = handoff.rejection
    if by != handoff.recipient or not set(command.left_out) <= set(handoff.left_out):
        return None
    if rejection is None:
        return HandoffTransitioned("validating", "accepted", command.notes, by=by)
    if rejection.by != HUB_NAME or not handoff.failed:
        return None
    return HandoffVerified(handoff.passed, handoff.failed, handoff.artifacts, handoff.left_out)


def _last_work_state(handoff: Handoff, read: Read) -> dict[str, object]:
    """Update of the work state with which the recipient last began; empty: none."""
    task = read.task(handoff.task) if handoff.status == "activated" else None
    step = handoff.find_step("activated")
    # An activation after a lost lease may come with another one.
    since = task.moved_at if isinstance(task, Task) else step.at if step else 0
    note = handoff.find_note("work_state_update", since)
    return note.data if note else {}

"""Duplicate handoff commands: a command that was applied before changes nothing (S-IDEM).

Whether it was applied is read from the handoff itself, so that no further state is needed. It
stays applied when the handoff has moved on since; only after a rejection it counts as a new
command.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from dragoman.core.actor import HUB_NAME
from dragoman.core.handoff.activate import has_lost_lease
from dragoman.core.handoff.package import add_hub_fields, compute_package_hash, handoff_thread
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
    HandoffCommand,
    HandoffExtended,
    HandoffStatus,
    HandoffStep,
    HandoffTransitioned,
    ProposeHandoff,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
    package_section,
)
from dragoman.core.ids import handoff_stream
from dragoman.core.read import Read
from dragoman.core.task_state import Task

if TYPE_CHECKING:
    from dragoman.core.read import TimedEvent


def find_same_offer(command: ProposeHandoff, task: Task, read: Read) -> Handoff | None:
    """Find the handoff that an equal proposal has created: the one it names, or the active one."""
    under_way = task.handoff.id if task.handoff else ""
    existing = read.handoff(command.id or under_way) if command.id or under_way else None
    if existing is None or existing.sender != read.actor.name:
        return None
    session = package_section(existing.package, "provenance").get("origin_session", "")
    is_there = command.thread in ("", existing.thread)  # which may have had another name then
    thread = existing.thread if is_there else handoff_thread(command.thread, task)
    sender = read.actor.label
    package = add_hub_fields(
        command, existing.id, thread, sender, session=session, chain=existing.chain
    )
    stated = (command.recipient, command.reason or "requested", command.teamspace)
    recorded = (existing.recipient, existing.reason, existing.teamspace)
    if stated != recorded or command.supersedes != existing.supersedes:
        return None
    if (command.sla_ms, command.due_at) != (existing.sla_ms, existing.due_at):
        return None
    return existing if compute_package_hash(package) == existing.package_hash else None


def find_applied(command: HandoffCommand, read: Read, now: int) -> Handoff | None:
    """Find the handoff to which the caller has applied this command before; of a reassignment, the
    new one.
    """
    is_applied = APPLIED_CHECKS.get(type(command))
    handoff = read.handoff(command.handoff) if is_applied else None
    if is_applied is None or handoff is None or not is_applied(command, handoff, read):
        return None
    if isinstance(command, ActivateHandoff) and has_lost_lease(handoff, read, now):
        return None
    if isinstance(command, ReassignHandoff):
        return read.handoff(handoff.superseded_by)
    return handoff


def _is_accepted(command: AcceptHandoff, handoff: Handoff, read: Read) -> bool:
    """Includes an acceptance that the gate rejected: it is refused again, for the same reason."""
    if read.actor.name != handoff.recipient or handoff.left_out != command.left_out:
        return False
    step = _step_unless_rejected(handoff, "accepted")
    if step is not None:
        return step.note == command.notes
    rejection = handoff.rejection
    return rejection is not None and rejection.by == HUB_NAME and bool(handoff.failed)


def _step_unless_rejected(handoff: Handoff, to: HandoffStatus) -> HandoffStep | None:
    """Step into this state, unless the handoff was rejected since."""
    return None if handoff.find_step("rejected") else handoff.find_step(to)


def _is_rejected(command: RejectHandoff, handoff: Handoff, read: Read) -> bool:
    rejection = handoff.rejection
    return rejection is not None and (
        rejection.by,
        rejection.reason,
        rejection.detail,
        rejection.suggested_fix,
    ) == (
        read.actor.name,
        command.reason,
        command.detail,
        command.suggested_fix,
    )


def _is_withdrawn(command: WithdrawHandoff, handoff: Handoff, read: Read) -> bool:
    rejection, name = handoff.rejection, read.actor.name
    if rejection is None or name != handoff.sender:
        return False
    return (rejection.by, rejection.detail) == (name, withdrawal_detail(command.note))


def _is_activated(command: ActivateHandoff, handoff: Handoff, read: Read) -> bool:
    step = _step_unless_rejected(handoff, "activated")
    if step is None or read.actor.name != handoff.recipient:
        return False
    task = read.task(handoff.task) if handoff.status == "activated" else None
    # An activation after a lost lease may come with other words.
    since = task.moved_at if isinstance(task, Task) else step.at
    note = handoff.find_note("work_state_update", since)
    return (note.data if note else {}) == command.work_state_update


def _is_completed(command: CompleteHandoff, handoff: Handoff, read: Read) -> bool:
    step = handoff.find_step("completed")
    note = handoff.find_note("completion_notes", since=step.at) if step else None
    if note is None:
        return False
    artifacts = note.data.get("final_artifacts", [])
    return (note.by, note.text, artifacts) == (
        read.actor.name,
        command.notes,
        list(command.final_artifacts),
    )


def _is_closed(command: CloseHandoff, handoff: Handoff, read: Read) -> bool:
    if handoff.status != "closed":
        return False
    last = handoff.steps[-1]
    return (last.by, last.note) == (read.actor.name, command.notes)


def _is_approval_given(command: ApproveHandoff, handoff: Handoff, read: Read) -> bool:
    approval = handoff.approval
    if approval is None or command.package_hash not in ("", handoff.package_hash):
        return False
    return (approval.by, approval.approved, approval.note) == (
        read.actor.name,
        command.approved,
        command.note,
    )


def _is_extended(command: ExtendHandoff, handoff: Handoff, read: Read) -> bool:
    """Return whether the same extension is still in effect; after it ends, it is a new one."""
    stated = (read.actor.name, command.by_ms)
    if command.stage not in ("", handoff.status, STAGE_LABELS.get(handoff.status)):
        return stated in _past_extensions(command.stage, read.history(handoff_stream(handoff.id)))
    extension = handoff.extension
    return (
        extension is not None
        and not handoff.is_escalated
        and (extension.by, extension.by_ms) == stated
    )


def _past_extensions(stage: str, history: "Iterable[TimedEvent]") -> Iterator[tuple[str, int]]:
    """Extensions of a stage that has ended since: actor and duration; read from the history,
    because no state keeps them.
    """
    status: HandoffStatus = "proposed"
    for event, _ in history:
        if isinstance(event, HandoffTransitioned):
            status = event.to
        elif isinstance(event, HandoffExtended) and stage in (status, STAGE_LABELS[status]):
            yield event.by, event.by_ms


def _is_reassigned(command: ReassignHandoff, handoff: Handoff, read: Read) -> bool:
    rejection = handoff.rejection
    new = read.handoff(handoff.superseded_by) if handoff.superseded_by else None
    if rejection is None or new is None:
        return False
    recorded = (rejection.by, rejection.detail, new.recipient)
    return recorded == (read.actor.name, reassignment_detail(command.notes), command.recipient)


APPLIED_CHECKS: Final[dict[type[HandoffCommand], Callable[[Any, Handoff, Read], bool]]] = {
    AcceptHandoff: _is_accepted,
    RejectHandoff: _is_rejected,
    WithdrawHandoff: _is_withdrawn,
    ActivateHandoff: _is_activated,
    CompleteHandoff: _is_completed,
    CloseHandoff: _is_closed,
    ApproveHandoff: _is_approval_given,
    ExtendHandoff: _is_extended,
    ReassignHandoff: _is_reassigned,
}
"""Command -> predicate: has this caller applied exactly that to the handoff before?"""

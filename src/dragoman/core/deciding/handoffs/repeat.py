"""Repeats: an action asked for again, by the same caller in the same words, adds nothing (S-IDEM).

What was done is read off the handoff itself, so that nothing has to be remembered beside it. It
stays done when the handoff has gone on since; only what was undone by a rejection is no repeat.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from dragoman.core.actors import HUB
from dragoman.core.commands import (
    AcceptHandoff,
    ActivateHandoff,
    ApproveHandoff,
    CloseHandoff,
    CompleteHandoff,
    ExtendHandoff,
    HandoffCommand,
    ProposeHandoff,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.deciding.handoffs.ways_out import reassignment, withdrawal
from dragoman.core.deciding.handoffs.work import is_adrift
from dragoman.core.events import HandoffExtended, HandoffMoved, HandoffStatus
from dragoman.core.ids import handoff_stream
from dragoman.core.reading import Read
from dragoman.core.states.handoff import NEXT_STAGE, Handoff, Step, section
from dragoman.core.states.handoff_package import filled, hash_of, thread_of
from dragoman.core.states.task import Task

if TYPE_CHECKING:
    from dragoman.core.states.wave import Happened


def offered_before(command: ProposeHandoff, task: Task, read: Read) -> Handoff | None:
    """Find the handoff that an equal proposal has created: the one it names, or the active one."""
    under_way = task.handoff.id if task.handoff else ""
    known = read.handoff(command.id or under_way) if command.id or under_way else None
    if known is None or known.status == "draft" or known.sender != read.actor.name:
        return None
    session = section(known.package, "provenance").get("origin_session", "")
    is_there = command.thread in ("", known.thread)  # which may have had another name then
    thread = known.thread if is_there else thread_of(command.thread, task)
    sender = read.actor.label
    same = filled(command, known.id, thread, sender, session=session, chain=known.chain)
    said = (command.recipient, command.reason or "requested", command.teamspace)
    done = (known.recipient, known.reason, known.teamspace)
    if said != done or command.supersedes != known.supersedes:
        return None
    if (command.sla_ms, command.due_at) != (known.sla_ms, known.due_at):
        return None
    return known if hash_of(same) == known.package_hash else None


def done_before(command: HandoffCommand, read: Read, now: int) -> Handoff | None:
    """Find the handoff to which the caller has applied this command before; of a reassignment, the
    new one.
    """
    is_done = DONE_BEFORE.get(type(command))
    handoff = read.handoff(command.handoff) if is_done else None
    if is_done is None or handoff is None or not is_done(command, handoff, read):
        return None
    if isinstance(command, ActivateHandoff) and is_adrift(handoff, read, now):
        return None
    if isinstance(command, ReassignHandoff):
        return read.handoff(handoff.superseded_by)
    return handoff


def _accepted(command: AcceptHandoff, handoff: Handoff, read: Read) -> bool:
    """Includes an acceptance that the gate rejected: it is refused again, for the same reason."""
    if read.actor.name != handoff.recipient or handoff.left_out != command.left_out:
        return False
    step = _still(handoff, "accepted")
    if step is not None:
        return step.note == command.notes
    said = handoff.rejection
    return said is not None and said.by == HUB and bool(handoff.failed)


def _still(handoff: Handoff, to: HandoffStatus) -> Step | None:
    """Step into this state, unless the handoff was rejected since."""
    return None if handoff.step("rejected") else handoff.step(to)


def _rejected(command: RejectHandoff, handoff: Handoff, read: Read) -> bool:
    said = handoff.rejection
    return said is not None and (said.by, said.reason, said.detail, said.suggested_fix) == (
        read.actor.name,
        command.reason,
        command.detail,
        command.suggested_fix,
    )


def _withdrawn(command: WithdrawHandoff, handoff: Handoff, read: Read) -> bool:
    said, name = handoff.rejection, read.actor.name
    if said is None or name != handoff.sender:
        return False
    return (said.by, said.detail) == (name, withdrawal(command.note))


def _activated(command: ActivateHandoff, handoff: Handoff, read: Read) -> bool:
    step = _still(handoff, "activated")
    if step is None or read.actor.name != handoff.recipient:
        return False
    task = read.task(handoff.task) if handoff.status == "activated" else None
    # An activation after a lost lease may come with other words.
    since = task.moved_at if isinstance(task, Task) else step.at
    said = handoff.note("work_state_update", since)
    return (said.data if said else {}) == command.work_state_update


def _completed(command: CompleteHandoff, handoff: Handoff, read: Read) -> bool:
    step = handoff.step("completed")
    said = handoff.note("completion_notes", since=step.at) if step else None
    if said is None:
        return False
    artifacts = said.data.get("final_artifacts", [])
    return (said.by, said.text, artifacts) == (
        read.actor.name,
        command.notes,
        list(command.final_artifacts),
    )


def _closed(command: CloseHandoff, handoff: Handoff, read: Read) -> bool:
    if handoff.status != "closed":
        return False
    last = handoff.steps[-1]
    return (last.by, last.note) == (read.actor.name, command.notes)


def _said_by_person(command: ApproveHandoff, handoff: Handoff, read: Read) -> bool:
    said = handoff.approval
    if said is None or command.package_hash not in ("", handoff.package_hash):
        return False
    return (said.by, said.is_yes, said.note) == (read.actor.name, command.is_yes, command.note)


def _extended(command: ExtendHandoff, handoff: Handoff, read: Read) -> bool:
    """Return whether the same extension is still in effect; after it ends, it is a new one."""
    said = (read.actor.name, command.by_ms)
    if command.stage not in ("", handoff.status, NEXT_STAGE.get(handoff.status)):
        return said in _extensions(command.stage, read.history(handoff_stream(handoff.id)))
    longer = handoff.extension
    return longer is not None and not handoff.is_escalated and (longer.by, longer.by_ms) == said


def _extensions(stage: str, history: "Iterable[Happened]") -> Iterator[tuple[str, int]]:
    """Extensions of a stage that has ended since: actor and duration; read from the history,
    because no state keeps them.
    """
    status: HandoffStatus = "proposed"
    for event, _ in history:
        if isinstance(event, HandoffMoved):
            status = event.to
        elif isinstance(event, HandoffExtended) and stage in (status, NEXT_STAGE[status]):
            yield event.by, event.by_ms


def _reassigned(command: ReassignHandoff, handoff: Handoff, read: Read) -> bool:
    said = handoff.rejection
    new = read.handoff(handoff.superseded_by) if handoff.superseded_by else None
    if said is None or new is None:
        return False
    done = (said.by, said.detail, new.recipient)
    return done == (read.actor.name, reassignment(command.notes), command.recipient)


DONE_BEFORE: Final[dict[type[HandoffCommand], Callable[[Any, Handoff, Read], bool]]] = {
    AcceptHandoff: _accepted,
    RejectHandoff: _rejected,
    WithdrawHandoff: _withdrawn,
    ActivateHandoff: _activated,
    CompleteHandoff: _completed,
    CloseHandoff: _closed,
    ApproveHandoff: _said_by_person,
    ExtendHandoff: _extended,
    ReassignHandoff: _reassigned,
}
"""Command -> predicate: has this caller applied exactly that to the handoff before?"""

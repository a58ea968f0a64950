"""Deciders of what lasts too long, what a coordinator does about it, and what is said beside."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from dragoman.core.authority import MAY_DISPATCH
from dragoman.core.commands import EscalateHandoff, ExtendHandoff, NoteHandoff
from dragoman.core.deciding.handoffs.common import (
    COORDINATES,
    COORDINATOR,
    check_sla,
    decided,
    found,
    known,
    letter,
    not_yours,
    offered_until,
)
from dragoman.core.deciding.handoffs.lateness import lateness
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    HandoffExtended,
    HandoffNoted,
    HandoffStatus,
    MailPosted,
)
from dragoman.core.ids import handoff_stream
from dragoman.core.limits import TEXT, check_json, check_text
from dragoman.core.moments import within_span
from dragoman.core.reading import Decision, Read
from dragoman.core.states.handoff import NEXT_STAGE, Handoff

RECOMMENDED: Final[Mapping[HandoffStatus, str]] = {
    "proposed": "reassign",
    "validating": "reassign",
    "accepted": "reassign",
    "activated": "extend_sla",
}
"""State -> action recommended to the coordinator when it exceeds its SLA."""


def escalate(command: EscalateHandoff, read: Read, now: int) -> Decision | Refusal:
    """Escalate a stage that exceeds its SLA, once; the handoff stays in its state (S-ACP-10)."""
    handoff = known(command.handoff, read)
    if isinstance(handoff, Refusal):
        return handoff
    if read.actor.role not in MAY_DISPATCH:
        return not_yours(handoff, read.actor, "escalate", "the hub")
    if not handoff.is_late(now):
        return decided(handoff.id, handoff.status)
    late = lateness(handoff, now, COORDINATOR, RECOMMENDED[handoff.status])
    told = blocked_letter(read, command.told, handoff, "timeout", late.recommended)
    decision = decided(handoff.id, handoff.status, late)
    return Decision(decision.receipt, (*decision.events, told))


def blocked_letter(
    read: Read, told: tuple[str, ...], handoff: Handoff, issue: str, recommended: str
) -> tuple[str, MailPosted]:
    """Letter to the coordinators about a handoff that does not proceed."""
    said = {
        "task_id": handoff.task,
        "blocking_issue": issue,
        "escalation_level": COORDINATOR,
        "recommended_action": recommended,
    }
    return letter(read, "status.blocked", told or (COORDINATOR,), handoff, said)


def extend(command: ExtendHandoff, read: Read, now: int) -> Decision | Refusal:
    """Extend the deadline of the present stage, by a coordinator."""
    states = ("proposed", "validating", "accepted", "activated")
    at = found(command.handoff, read, states, "extend_sla")
    if isinstance(at, Refusal):
        return at
    handoff, task = at
    if read.actor.role not in COORDINATES:
        return not_yours(handoff, read.actor, "extend_sla", "a coordinator")
    refusal = check_sla(command.by_ms) or _check_stage(command.stage, handoff)
    if refusal:
        return refusal
    begin = max(now, handoff.deadline or now)
    until = within_span(begin + command.by_ms)
    longer = HandoffExtended(until, read.actor.name, command.by_ms)
    told = replace(offered_until(handoff, task), expires_at=until)
    return Decision(told, ((handoff_stream(handoff.id), longer),))


def _check_stage(stage: str, handoff: Handoff) -> Refusal | None:
    """Check that the named stage, if any, is the present one."""
    if stage in ("", handoff.status, NEXT_STAGE[handoff.status]):
        return None
    if stage not in {*NEXT_STAGE, *NEXT_STAGE.values()}:
        known = ", ".join(NEXT_STAGE)
        return Refusal("invalid_field", f"{stage[:40]!a} is no stage; use {known}", path="stage")
    return Refusal(
        "invalid_transition",
        f"{handoff.id} is {handoff.status}, not {stage}: only its present stage can be extended",
    )


def note(command: NoteHandoff, read: Read, now: int) -> Decision | Refusal:
    """Add a note to the handoff, by one of its parties, a coordinator or the hub."""
    del now
    handoff = known(command.handoff, read)
    if isinstance(handoff, Refusal):
        return handoff
    actor = read.actor
    if actor.name not in (handoff.sender, handoff.recipient) and actor.role not in COORDINATES:
        sides = f"{handoff.sender}, {handoff.recipient} or a coordinator"
        return not_yours(handoff, actor, "add to", sides)
    refusal = (
        check_text("kind", command.kind, _KIND, least=1)
        or check_text("text", command.text, TEXT)
        or check_json("data", command.data)
        or _check_kind(command)
    )
    if refusal:
        return refusal
    said = HandoffNoted(actor.name, command.kind, command.text, command.data)
    return decided(handoff.id, handoff.status, said)


_KIND: Final = 64
_SAID_BY_DECIDERS: Final = frozenset({"waiting", "superseded_by", "completion_notes"})


def _check_kind(command: NoteHandoff) -> Refusal | None:
    if command.kind not in _SAID_BY_DECIDERS:
        return None
    return Refusal("invalid_field", f"a note cannot be of the kind {command.kind}")

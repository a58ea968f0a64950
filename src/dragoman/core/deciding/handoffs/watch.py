"""Deciders of what lasts too long, what a coordinator does about it, and what is said beside."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from dragoman.core.authority import MAY_DISPATCH
from dragoman.core.commands import EscalateHandoff, ExtendHandoff, NoteHandoff
from dragoman.core.deciding.handoffs.common import (
    COORDINATOR,
    COORDINATOR_ROLES,
    check_stage_duration,
    find_in_state,
    find_visible_handoff,
    handoff_decision,
    letter_event,
    not_authorized_refusal,
    offer_receipt,
)
from dragoman.core.deciding.handoffs.lateness import sla_breach
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    HandoffExtended,
    HandoffNoted,
    HandoffStatus,
    MailPosted,
)
from dragoman.core.ids import handoff_stream
from dragoman.core.limits import MAX_TEXT, check_json, check_text
from dragoman.core.moments import clamp_timestamp
from dragoman.core.reading import Decision, Read
from dragoman.core.states.handoff import STAGE_LABELS, Handoff

RECOMMENDED_ACTIONS: Final[Mapping[HandoffStatus, str]] = {
    "proposed": "reassign",
    "validating": "reassign",
    "accepted": "reassign",
    "activated": "extend_sla",
}
"""State -> action recommended to the coordinator when it exceeds its SLA."""


def decide_escalate(command: EscalateHandoff, read: Read, now: int) -> Decision | Refusal:
    """Escalate a stage that exceeds its SLA, once; the handoff stays in its state (S-ACP-10)."""
    handoff = find_visible_handoff(command.handoff, read)
    if isinstance(handoff, Refusal):
        return handoff
    if read.actor.role not in MAY_DISPATCH:
        return not_authorized_refusal(handoff, read.actor, "escalate", "the hub")
    if not handoff.is_overdue(now):
        return handoff_decision(handoff.id, handoff.status)
    breach = sla_breach(handoff, now, COORDINATOR, RECOMMENDED_ACTIONS[handoff.status])
    letter = blocked_letter_event(read, command.told, handoff, "timeout", breach.recommended)
    decision = handoff_decision(handoff.id, handoff.status, breach)
    return Decision(decision.receipt, (*decision.events, letter))


def blocked_letter_event(
    read: Read, recipients: tuple[str, ...], handoff: Handoff, issue: str, recommended: str
) -> tuple[str, MailPosted]:
    """Letter to the coordinators about a handoff that does not proceed."""
    fields = {
        "task_id": handoff.task,
        "blocking_issue": issue,
        "escalation_level": COORDINATOR,
        "recommended_action": recommended,
    }
    return letter_event(read, "status.blocked", recipients or (COORDINATOR,), handoff, fields)


def decide_extend(command: ExtendHandoff, read: Read, now: int) -> Decision | Refusal:
    """Extend the deadline of the present stage, by a coordinator."""
    states = ("proposed", "validating", "accepted", "activated")
    at = find_in_state(command.handoff, read, states, "extend_sla")
    if isinstance(at, Refusal):
        return at
    handoff, task = at
    if read.actor.role not in COORDINATOR_ROLES:
        return not_authorized_refusal(handoff, read.actor, "extend_sla", "a coordinator")
    refusal = check_stage_duration(command.by_ms) or _check_stage(command.stage, handoff)
    if refusal:
        return refusal
    begin = max(now, handoff.escalation_due_at or now)
    until = clamp_timestamp(begin + command.by_ms)
    extension = HandoffExtended(until, read.actor.name, command.by_ms)
    receipt = replace(offer_receipt(handoff, task), expires_at=until)
    return Decision(receipt, ((handoff_stream(handoff.id), extension),))


def _check_stage(stage: str, handoff: Handoff) -> Refusal | None:
    """Check that the named stage, if any, is the present one."""
    if stage in ("", handoff.status, STAGE_LABELS[handoff.status]):
        return None
    if stage not in {*STAGE_LABELS, *STAGE_LABELS.values()}:
        states = ", ".join(STAGE_LABELS)
        return Refusal("invalid_field", f"{stage[:40]!a} is no stage; use {states}", path="stage")
    return Refusal(
        "invalid_transition",
        f"{handoff.id} is {handoff.status}, not {stage}: only its present stage can be extended",
    )


def decide_note(command: NoteHandoff, read: Read, now: int) -> Decision | Refusal:
    """Add a note to the handoff, by one of its parties, a coordinator or the hub."""
    del now
    handoff = find_visible_handoff(command.handoff, read)
    if isinstance(handoff, Refusal):
        return handoff
    actor = read.actor
    if (
        actor.name not in (handoff.sender, handoff.recipient)
        and actor.role not in COORDINATOR_ROLES
    ):
        allowed = f"{handoff.sender}, {handoff.recipient} or a coordinator"
        return not_authorized_refusal(handoff, actor, "add to", allowed)
    refusal = (
        check_text("kind", command.kind, _MAX_KIND_CHARS, minimum=1)
        or check_text("text", command.text, MAX_TEXT)
        or check_json("data", command.data)
        or _check_note_kind(command)
    )
    if refusal:
        return refusal
    event = HandoffNoted(actor.name, command.kind, command.text, command.data)
    return handoff_decision(handoff.id, handoff.status, event)


_MAX_KIND_CHARS: Final = 64
_RESERVED_NOTE_KINDS: Final = frozenset({"waiting", "superseded_by", "completion_notes"})


def _check_note_kind(command: NoteHandoff) -> Refusal | None:
    if command.kind not in _RESERVED_NOTE_KINDS:
        return None
    return Refusal("invalid_field", f"a note cannot be of the kind {command.kind}")

"""Handoff SLA: escalate a state that lasts too long, and extend its deadline (S-ACP-10)."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from dragoman.core.authority import MAY_DISPATCH
from dragoman.core.errors import Refusal
from dragoman.core.handoff.common import (
    COORDINATOR,
    COORDINATOR_ROLES,
    check_stage_duration,
    find_in_state,
    find_visible_handoff,
    handoff_decision,
    letter_event,
    not_authorized_refusal,
    offer_receipt,
    repeat_decision,
)
from dragoman.core.handoff.state import (
    STAGE_LABELS,
    EscalateHandoff,
    ExtendHandoff,
    Handoff,
    HandoffEscalated,
    HandoffExtended,
    HandoffStatus,
)
from dragoman.core.ids import handoff_stream
from dragoman.core.mail import MailPosted
from dragoman.core.read import Decision, Read
from dragoman.core.timestamps import clamp_timestamp

# --- SLA breaches on record -------------------------------------------------------------------


def sla_breach(handoff: Handoff, now: int, to: str, recommended: str = "") -> HandoffEscalated:
    """Escalation of a stage that exceeds its SLA; `to` is who is notified, empty: nobody."""
    return HandoffEscalated(
        trigger="timeout",
        stage=STAGE_LABELS[handoff.status],
        to=to,
        sla_ms=handoff.extended_sla_ms,
        elapsed_ms=max(0, now - handoff.entered_at),
        recommended=recommended,
        task=handoff.task,
    )


# --- escalate and extend ----------------------------------------------------------------------

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
    letter = blocked_letter_event(read, command.notify, handoff, "timeout", breach.recommended)
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
    present = handoff.extension
    is_same = present is not None and (present.by, present.by_ms) == (
        read.actor.name,
        command.by_ms,
    )
    if is_same and not handoff.is_escalated:
        return repeat_decision(handoff)
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
        f"{handoff.id} is {handoff.status}, not {stage}: extend_sla is for its present stage",
    )

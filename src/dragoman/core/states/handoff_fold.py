"""How each event changes a handoff."""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from dragoman.core.events import (
    HandoffApproved,
    HandoffDiscarded,
    HandoffDrafted,
    HandoffEscalated,
    HandoffEvent,
    HandoffExtended,
    HandoffNoted,
    HandoffProposed,
    HandoffRejected,
    HandoffTransitioned,
    HandoffVerified,
)
from dragoman.core.states.handoff import (
    ACTIVE_STATES,
    WORKQ_NOTE_KIND,
    Handoff,
    HandoffApproval,
    HandoffEscalation,
    HandoffNote,
    HandoffRejection,
    HandoffStep,
    SlaExtension,
)

MAX_NOTES: Final = 64
"""Number of notes, and of escalations, that the state keeps; the ledger has all of them."""


def _fold_drafted(old: Handoff | None, event: HandoffDrafted, at: int) -> Handoff:
    """A draft may be overwritten any number of times."""
    created_at = at if old is None or old.is_discarded else old.created_at
    return Handoff(
        id=event.id,
        sender=event.sender,
        recipient=event.recipient,
        status="draft",
        created_at=created_at,
        entered_at=created_at,
        package=event.package,
        teamspace=event.teamspace,
    )


def _fold_discarded(handoff: Handoff, event: HandoffDiscarded, at: int) -> Handoff:
    """The sender keeps the id."""
    del event
    return Handoff(handoff.id, handoff.sender, "", "draft", at, at, {}, is_discarded=True)


def fold_proposed(old: Handoff | None, event: HandoffProposed, at: int) -> Handoff:
    """The handoff as it is proposed."""
    return Handoff(
        id=event.id,
        sender=event.sender,
        recipient=event.recipient,
        status="proposed",
        created_at=at if old is None or old.is_discarded else old.created_at,
        entered_at=at,
        package=event.package,
        task=event.task,
        teamspace=event.teamspace,
        thread=event.thread,
        title=event.title,
        reason=event.reason,
        package_hash=event.package_hash,
        chain=event.chain,
        supersedes=event.supersedes,
        sla_ms=event.sla_ms,
        due_at=event.due_at,
        steps=(HandoffStep("proposed", at, event.sender),),
    )


def _fold_transitioned(handoff: Handoff, event: HandoffTransitioned, at: int) -> Handoff:
    return replace(
        handoff,
        status=event.to,
        entered_at=at,
        extension=None,
        is_escalated=False,
        steps=(*handoff.steps, HandoffStep(event.to, at, event.by, event.note)),
        superseded_by=event.superseded_by or handoff.superseded_by,
        went_to=handoff.went_to if event.owner is None else event.owner,
        resolved_at=handoff.resolved_at if event.to in ACTIVE_STATES else handoff.resolved_at or at,
    )


def _fold_verified(handoff: Handoff, event: HandoffVerified, at: int) -> Handoff:
    del at
    return replace(
        handoff,
        passed=event.passed,
        failed=event.failed,
        artifacts=event.artifacts,
        left_out=event.left_out,
    )


def _fold_rejected(handoff: Handoff, event: HandoffRejected, at: int) -> Handoff:
    rejection = HandoffRejection(event.by, at, event.reason, event.detail, event.suggested_fix)
    return replace(handoff, rejection=rejection)


def _fold_approved(handoff: Handoff, event: HandoffApproved, at: int) -> Handoff:
    approval = HandoffApproval(event.by, at, event.package_hash, event.is_yes, event.note)
    return replace(handoff, approval=approval)


def _fold_escalated(handoff: Handoff, event: HandoffEscalated, at: int) -> Handoff:
    escalation = HandoffEscalation(
        event.trigger, event.stage, event.sla_ms, event.elapsed_ms, event.to, at
    )
    is_late = handoff.is_escalated or event.trigger == "timeout"
    escalations = (*handoff.escalations, escalation)[-MAX_NOTES:]
    return replace(handoff, escalations=escalations, is_escalated=is_late)


def _fold_extended(handoff: Handoff, event: HandoffExtended, at: int) -> Handoff:
    del at
    extension = SlaExtension(event.until, event.by, event.by_ms)
    return replace(handoff, extension=extension, is_escalated=False)


def _fold_noted(handoff: Handoff, event: HandoffNoted, at: int) -> Handoff:
    note = HandoffNote(event.by, at, event.kind, event.text, event.data)
    notes = (*handoff.notes, note)[-MAX_NOTES:]
    workq = event.text if event.kind == WORKQ_NOTE_KIND else handoff.workq
    superseded_by = event.text if event.kind == "superseded_by" else handoff.superseded_by
    return replace(handoff, notes=notes, workq=workq, superseded_by=superseded_by)


HANDOFF_FOLDS: dict[type[HandoffEvent], Callable[[Any, Any, int], Handoff]] = {
    HandoffDrafted: _fold_drafted,
    HandoffDiscarded: _fold_discarded,
    HandoffProposed: fold_proposed,
    HandoffTransitioned: _fold_transitioned,
    HandoffVerified: _fold_verified,
    HandoffRejected: _fold_rejected,
    HandoffApproved: _fold_approved,
    HandoffEscalated: _fold_escalated,
    HandoffExtended: _fold_extended,
    HandoffNoted: _fold_noted,
}
"""Event -> fold from the handoff before it (None at first), the event and its time to the handoff
after it.
"""

"""Resource schemas of handoffs, in the words of the protocol."""

from typing import Any, TypeVar

from msgspec import Struct

from dragoman.core.handoff.state import (
    Handoff,
    HandoffEscalation,
    HandoffStatus,
    RejectReason,
)
from dragoman.core.timestamps import format_hours, to_rfc3339
from dragoman.engine.schemas.resource_fields import project


class ApprovalResource(Struct, frozen=True):
    """A person's decision about the package."""

    approved: bool
    by: str
    at: str
    package_hash: str
    note: str


class RejectionResource(Struct, frozen=True):
    """The reason why the work was not taken over, or was given back."""

    reason: RejectReason
    detail: str
    suggested_fix: str | None
    by: str
    at: str


class EscalationResource(Struct, frozen=True):
    """An SLA that was exceeded."""

    trigger: str
    stage: str
    sla_configured: str
    sla_elapsed: str
    escalated_to: str
    """The agent that was notified; empty: none, because it was over."""
    escalated_at: str


class TransitionResource(Struct, frozen=True):
    """A state that was entered."""

    to_status: HandoffStatus
    by: str
    at: str
    note: str
    """The note given with it, as by `notes` of accept or `closure_notes` of close."""


class NoteResource(Struct, frozen=True):
    """A note beside the package."""

    kind: str
    by: str
    at: str
    text: str
    data: dict[str, Any]


class HandoffSummary(Struct, frozen=True):
    """A handoff in a list."""

    handoff_id: str
    status: HandoffStatus
    task_id: str
    from_agent: str
    to_agent: str
    title: str
    reason: str
    thread_id: str
    teamspace_id: str
    package_hash: str | None
    handoff_chain: tuple[str, ...]
    """The owners, the first one first: its recipient too, once it has begun."""
    supersedes: str | None
    superseded_by: str | None
    initiated_at: str
    """Time of the proposal."""
    status_since: str
    due_by: str | None
    """The SLA deadline of its present state; null: there is none, or it has passed."""
    escalated: bool
    """True if its present state has lasted too long."""
    resolved_at: str | None
    workq_integration: str | None


class HandoffDetail(HandoffSummary, frozen=True):
    """All fields of a handoff."""

    package: dict[str, Any]
    verification_passed: tuple[str, ...]
    verification_failed: tuple[str, ...]
    artifacts: dict[str, str]
    """Artifact -> the SHA-256 under which its verified copy is stored."""
    artifacts_left_out: tuple[str, ...]
    requires_human_approval: bool
    approval: ApprovalResource | None
    rejection: RejectionResource | None
    escalations: tuple[EscalationResource, ...]
    transitions: tuple[TransitionResource, ...]
    """The states since it was proposed."""
    notes: tuple[NoteResource, ...]


T = TypeVar("T", bound=HandoffSummary)


def handoff_summary(handoff: Handoff) -> HandoffSummary:
    """The resource of a handoff in a list."""
    return _handoff_resource(HandoffSummary, handoff)


def handoff_detail(handoff: Handoff) -> HandoffDetail:
    """The resource of a single handoff."""
    approval, rejection = handoff.approval, handoff.rejection
    return _handoff_resource(
        HandoffDetail,
        handoff,
        verification_passed=handoff.passed,
        verification_failed=handoff.failed,
        artifacts_left_out=handoff.left_out,
        requires_human_approval=handoff.needs_approval,
        approval=approval and project(ApprovalResource, approval),
        rejection=rejection and project(RejectionResource, rejection),
        escalations=tuple(map(_escalation_resource, handoff.escalations)),
        transitions=tuple(
            project(TransitionResource, step, to_status=step.to) for step in handoff.steps
        ),
        notes=tuple(project(NoteResource, note) for note in handoff.notes),
    )


def _handoff_resource(shape: type[T], handoff: Handoff, **others: Any) -> T:
    due_by = handoff.escalation_due_at
    return project(
        shape,
        handoff,
        handoff_id=handoff.id,
        task_id=handoff.task,
        from_agent=handoff.sender,
        to_agent=handoff.recipient,
        thread_id=handoff.thread,
        teamspace_id=handoff.teamspace,
        handoff_chain=handoff.owners,
        initiated_at=to_rfc3339(handoff.created_at),
        status_since=to_rfc3339(handoff.entered_at),
        due_by=None if due_by is None else to_rfc3339(due_by),
        escalated=handoff.is_escalated,
        workq_integration=handoff.workq or None,
        **others,
    )


def _escalation_resource(escalation: HandoffEscalation) -> EscalationResource:
    return project(
        EscalationResource,
        escalation,
        sla_configured=format_hours(escalation.sla_ms),
        sla_elapsed=format_hours(escalation.elapsed_ms),
        escalated_to=escalation.to,
        escalated_at=to_rfc3339(escalation.at),
    )

"""A handoff as the table `handoffs` keeps it, with the columns of the protocol's own schema."""

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from dragoman.core.moments import in_hours, to_rfc3339
from dragoman.core.states.handoff import ACTIVE, Escalation, Handoff, section
from dragoman.ledger.views import State


class HandoffRecord(Struct, frozen=True, gc=False):
    """A row of the table `handoffs`, with the columns of the protocol's own schema; times are RFC
    3339 with Z (S-ACP-12)."""

    id: str
    thread_id: str
    task_id: str
    from_agent: str
    to_agent: str
    title: str
    reason: str
    package_json: str
    status: str
    provenance_json: str
    verification_json: str
    initiated_at: str
    resolved_at: str | None = None
    resolution_notes: str | None = None

    @property
    def is_active(self) -> bool:
        """True if the task may have no other active handoff."""
        return self.status in ACTIVE


class HandoffCourse(Struct, frozen=True, gc=False):
    """The columns of a row that change after it was written."""

    status: str
    verification_json: str
    resolved_at: str | None
    resolution_notes: str | None
    id: str


def course_of(handoff: Handoff) -> HandoffCourse:
    """The update of a handoff's row."""
    verification = {
        **section(handoff.package, "verification"),
        "passed": handoff.passed,
        "failed": handoff.failed,
    }
    resolved_at = handoff.resolved_at
    return HandoffCourse(
        handoff.status,
        _json(verification),
        None if resolved_at is None else to_rfc3339(resolved_at),
        _notes(handoff),
        handoff.id,
    )


def record_of(state: State | None) -> HandoffRecord | None:
    """The row of a handoff; None for any other state, and for a draft."""
    if not isinstance(state, Handoff) or state.status == "draft":
        return None
    course = course_of(state)
    return HandoffRecord(
        id=state.id,
        thread_id=state.thread,
        task_id=state.task,
        from_agent=state.sender,
        to_agent=state.recipient,
        title=_storable(state.title),
        reason=_storable(state.reason),
        package_json=_json(state.package),
        status=course.status,
        provenance_json=_json(section(state.package, "provenance")),
        verification_json=course.verification_json,
        initiated_at=to_rfc3339(state.initiated_at),
        resolved_at=course.resolved_at,
        resolution_notes=course.resolution_notes,
    )


def in_order(states: Iterable[State | None]) -> list[HandoffRecord]:
    """The rows of those that are handoffs; finished ones first, so that they make room."""
    records = [record for record in map(record_of, states) if record is not None]
    return sorted(records, key=_place)


def _place(record: HandoffRecord) -> tuple[bool, str]:
    return record.is_active, record.id


def _notes(handoff: Handoff) -> str | None:
    """The resolution, and the latest escalation to a coordinator."""
    notes: dict[str, object] = {}
    said = handoff.rejection
    if said is not None:
        notes = {"reason": said.reason, "detail": said.detail, "by": said.by}
        if said.suggested_fix:
            notes["suggested_fix"] = said.suggested_fix
    for to in ("completed", "closed"):
        step = handoff.step(to)
        if step is not None and step.note:
            notes[to] = step.note
    if handoff.escalations:
        notes["escalation"] = _told(handoff.escalations[-1])
    return _json(notes) if notes else None


def _told(escalation: Escalation) -> dict[str, str]:
    return {
        "trigger": escalation.trigger,
        "stage": escalation.stage,
        "sla_configured": in_hours(escalation.sla_ms),
        "sla_elapsed": in_hours(escalation.elapsed_ms),
        "escalated_to": escalation.to,
        "escalated_at": to_rfc3339(escalation.at),
    }


def _storable(text: str) -> str:
    """A text without characters that a database refuses; the package keeps the original."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()

"""A handoff as the table `handoffs` keeps it, with the columns of the protocol's own schema."""

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from dragoman.core.moments import format_hours, to_rfc3339
from dragoman.core.states.handoff import ACTIVE_STATES, Handoff, HandoffEscalation, package_section
from dragoman.ledger.views import State


class HandoffRow(Struct, frozen=True, gc=False):
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
        return self.status in ACTIVE_STATES


class HandoffUpdate(Struct, frozen=True, gc=False):
    """The columns of a row that change after it was written."""

    status: str
    verification_json: str
    resolved_at: str | None
    resolution_notes: str | None
    id: str


def handoff_update(handoff: Handoff) -> HandoffUpdate:
    """The update of a handoff's row."""
    verification = {
        **package_section(handoff.package, "verification"),
        "passed": handoff.passed,
        "failed": handoff.failed,
    }
    resolved_at = handoff.resolved_at
    return HandoffUpdate(
        handoff.status,
        _json(verification),
        None if resolved_at is None else to_rfc3339(resolved_at),
        _resolution_notes(handoff),
        handoff.id,
    )


def handoff_row(state: State | None) -> HandoffRow | None:
    """The row of a handoff; None for any other state, and for a draft."""
    if not isinstance(state, Handoff) or state.status == "draft":
        return None
    update = handoff_update(state)
    return HandoffRow(
        id=state.id,
        thread_id=state.thread,
        task_id=state.task,
        from_agent=state.sender,
        to_agent=state.recipient,
        title=_without_nul(state.title),
        reason=_without_nul(state.reason),
        package_json=_json(state.package),
        status=update.status,
        provenance_json=_json(package_section(state.package, "provenance")),
        verification_json=update.verification_json,
        initiated_at=to_rfc3339(state.initiated_at),
        resolved_at=update.resolved_at,
        resolution_notes=update.resolution_notes,
    )


def order_handoff_rows(states: Iterable[State | None]) -> list[HandoffRow]:
    """The rows of those that are handoffs; finished ones first, so that they make room."""
    rows = [record for record in map(handoff_row, states) if record is not None]
    return sorted(rows, key=_write_order)


def _write_order(row: HandoffRow) -> tuple[bool, str]:
    return row.is_active, row.id


def _resolution_notes(handoff: Handoff) -> str | None:
    """The resolution, and the latest escalation to a coordinator."""
    notes: dict[str, object] = {}
    rejection = handoff.rejection
    if rejection is not None:
        notes = {"reason": rejection.reason, "detail": rejection.detail, "by": rejection.by}
        if rejection.suggested_fix:
            notes["suggested_fix"] = rejection.suggested_fix
    for to in ("completed", "closed"):
        step = handoff.find_step(to)
        if step is not None and step.note:
            notes[to] = step.note
    if handoff.escalations:
        notes["escalation"] = _escalation_note(handoff.escalations[-1])
    return _json(notes) if notes else None


def _escalation_note(escalation: HandoffEscalation) -> dict[str, str]:
    return {
        "trigger": escalation.trigger,
        "stage": escalation.stage,
        "sla_configured": format_hours(escalation.sla_ms),
        "sla_elapsed": format_hours(escalation.elapsed_ms),
        "escalated_to": escalation.to,
        "escalated_at": to_rfc3339(escalation.at),
    }


def _without_nul(text: str) -> str:
    """A text without characters that a database refuses; the package keeps the original."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()

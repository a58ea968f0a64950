"""What happened to handoffs, in words, for `words.WORDS`."""

from collections.abc import Callable
from typing import Any

from dragoman.core.events import (
    Event,
    HandoffApproved,
    HandoffDiscarded,
    HandoffDrafted,
    HandoffEscalated,
    HandoffExtended,
    HandoffNoted,
    HandoffProposed,
    HandoffRejected,
    HandoffTransitioned,
    HandoffVerified,
    TaskHandedOver,
)
from dragoman.core.moments import format_hours, to_rfc3339
from dragoman.surfaces.cli.words.phrases import format_pairs, in_parentheses


def _handoff_drafted(event: HandoffDrafted) -> str:
    return f"drafts a handoff to {event.recipient or 'nobody yet'}"


def _handoff_discarded(event: HandoffDiscarded) -> str:
    return f"draft discarded by {event.by}"


def _handoff_proposed(event: HandoffProposed) -> str:
    instead = f", in the place of {event.supersedes}" if event.supersedes else ""
    return (
        f'offers {event.task} to {event.recipient}: "{event.title}"{in_parentheses(event.reason)}'
        f"{instead}; package {event.package_hash[:12]}"
    )


def _handoff_moved(event: HandoffTransitioned) -> str:
    instead = f"; {event.superseded_by} takes its place" if event.superseded_by else ""
    return f"{event.from_} → {event.to}{in_parentheses(event.note)}{instead}"


def _handoff_verified(event: HandoffVerified) -> str:
    failed = f"; failed: {'; '.join(event.failed)}" if event.failed else ""
    skipped = f"; left out: {', '.join(event.left_out)}" if event.left_out else ""
    return f"checked: {', '.join(event.passed) or 'nothing'} passed{failed}{skipped}"


def _handoff_rejected(event: HandoffRejected) -> str:
    fix = f"; suggested fix: {event.suggested_fix}" if event.suggested_fix else ""
    return f"rejected by {event.by}: {event.reason}, {event.detail}{fix}"


def _handoff_approved(event: HandoffApproved) -> str:
    word = "approved" if event.is_yes else "denied"
    return f"{word} by {event.by}, package {event.package_hash[:12]}{in_parentheses(event.note)}"


def _handoff_escalated(event: HandoffEscalated) -> str:
    after = f" after {format_hours(event.elapsed_ms)}" if event.elapsed_ms else ""
    advice = f"; recommended: {event.recommended}" if event.recommended else ""
    recipient = f"escalated to {event.to}" if event.to else "escalated to nobody, as it was over"
    return f"{recipient}: {event.trigger} in {event.stage}{after}{advice}"


def _handoff_extended(event: HandoffExtended) -> str:
    return f"has more time, until {to_rfc3339(event.until)}"


def _handoff_noted(event: HandoffNoted) -> str:
    if not event.text and not event.data:
        return f"no {event.kind}"
    return f"{event.kind}: {', '.join(filter(None, (event.text, format_pairs(event.data))))}"


def _task_handed_over(event: TaskHandedOver) -> str:
    owners = f"; owners: {' → '.join(event.chain)}" if event.chain else ""
    if not event.recipient:
        return f"no longer on its way by {event.handoff}{owners}"
    relation = "taken over by" if event.is_taken else "on its way to"
    return f"{relation} {event.recipient} by {event.handoff}{owners}"


HANDOFF_EVENT_TEXT: dict[type[Event], Callable[[Any], str]] = {
    HandoffDrafted: _handoff_drafted,
    HandoffDiscarded: _handoff_discarded,
    HandoffProposed: _handoff_proposed,
    HandoffTransitioned: _handoff_moved,
    HandoffVerified: _handoff_verified,
    HandoffRejected: _handoff_rejected,
    HandoffApproved: _handoff_approved,
    HandoffEscalated: _handoff_escalated,
    HandoffExtended: _handoff_extended,
    HandoffNoted: _handoff_noted,
    TaskHandedOver: _task_handed_over,
}
"""Event -> its text."""

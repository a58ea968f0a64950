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
    HandoffMoved,
    HandoffNoted,
    HandoffProposed,
    HandoffRejected,
    HandoffVerified,
    TaskHandedOver,
)
from dragoman.core.moments import in_hours, to_rfc3339
from dragoman.surfaces.cli.words.phrases import because, pairs


def _drafted(event: HandoffDrafted) -> str:
    return f"drafts a handoff to {event.recipient or 'nobody yet'}"


def _discarded(event: HandoffDiscarded) -> str:
    return f"draft discarded by {event.by}"


def _proposed(event: HandoffProposed) -> str:
    instead = f", in the place of {event.supersedes}" if event.supersedes else ""
    return (
        f'offers {event.task} to {event.recipient}: "{event.title}"{because(event.reason)}'
        f"{instead}; package {event.package_hash[:12]}"
    )


def _moved(event: HandoffMoved) -> str:
    instead = f"; {event.superseded_by} takes its place" if event.superseded_by else ""
    return f"{event.from_} → {event.to}{because(event.note)}{instead}"


def _verified(event: HandoffVerified) -> str:
    failed = f"; failed: {'; '.join(event.failed)}" if event.failed else ""
    left = f"; left out: {', '.join(event.left_out)}" if event.left_out else ""
    return f"checked: {', '.join(event.passed) or 'nothing'} passed{failed}{left}"


def _rejected(event: HandoffRejected) -> str:
    fix = f"; suggested fix: {event.suggested_fix}" if event.suggested_fix else ""
    return f"rejected by {event.by}: {event.reason}, {event.detail}{fix}"


def _approved(event: HandoffApproved) -> str:
    word = "approved" if event.is_yes else "denied"
    return f"{word} by {event.by}, package {event.package_hash[:12]}{because(event.note)}"


def _escalated(event: HandoffEscalated) -> str:
    after = f" after {in_hours(event.elapsed_ms)}" if event.elapsed_ms else ""
    advice = f"; recommended: {event.recommended}" if event.recommended else ""
    told = f"escalated to {event.to}" if event.to else "escalated to nobody, as it was over"
    return f"{told}: {event.trigger} in {event.stage}{after}{advice}"


def _extended(event: HandoffExtended) -> str:
    return f"has more time, until {to_rfc3339(event.until)}"


def _noted(event: HandoffNoted) -> str:
    if not event.text and not event.data:
        return f"no {event.kind}"
    return f"{event.kind}: {', '.join(filter(None, (event.text, pairs(event.data))))}"


def _handed_over(event: TaskHandedOver) -> str:
    owners = f"; owners: {' → '.join(event.chain)}" if event.chain else ""
    if not event.recipient:
        return f"no longer on its way by {event.handoff}{owners}"
    how = "taken over by" if event.is_taken else "on its way to"
    return f"{how} {event.recipient} by {event.handoff}{owners}"


HANDOFF_WORDS: dict[type[Event], Callable[[Any], str]] = {
    HandoffDrafted: _drafted,
    HandoffDiscarded: _discarded,
    HandoffProposed: _proposed,
    HandoffMoved: _moved,
    HandoffVerified: _verified,
    HandoffRejected: _rejected,
    HandoffApproved: _approved,
    HandoffEscalated: _escalated,
    HandoffExtended: _extended,
    HandoffNoted: _noted,
    TaskHandedOver: _handed_over,
}
"""Event -> its text."""

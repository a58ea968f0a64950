"""What happened to intents and in the registry, in words: a part of `words`, for its own table."""

from collections.abc import Callable
from typing import Any

from dragoman.core.deciding.ending import NO_FEEDBACK_REASONS
from dragoman.core.events import (
    AgentAssigned,
    AgentDescribed,
    AgentRated,
    AgentRelieved,
    Event,
    IntentAnomaly,
    IntentApproved,
    IntentCompleted,
    IntentCreated,
    IntentDispatched,
    IntentFeedbackApplied,
    IntentFollowedUp,
    IntentNeedsFollowUp,
    IntentProposed,
    IntentRejected,
    IntentSatisfied,
    IntentSuperseded,
    IntentUpdated,
)
from dragoman.core.moments import format_duration, to_rfc3339
from dragoman.surfaces.cli.words.phrases import pluralize


def _agent_described(event: AgentDescribed) -> str:
    cost = f", costs {event.cost:g}" if event.cost else ""
    return f"can {', '.join(event.skills)}; trust {event.trust}{cost}"


def _agent_assigned(event: AgentAssigned) -> str:
    return f"assigned {event.request_id}"


def _agent_relieved(event: AgentRelieved) -> str:
    return f"relieved of {event.request_id}"


def _agent_rated(event: AgentRated) -> str:
    outcome = "succeeded" if event.success else "failed"
    return f"{outcome} with {event.request_id} after {format_duration(event.duration_ms)}"


def _intent_created(event: IntentCreated) -> str:
    follows = f"; follows {event.follows}" if event.follows else ""
    plan = f"; part of plan {event.plan}" if event.plan else ""
    return f'requested by {event.by}: "{event.goal}"{plan}{follows}'


def _intent_proposed(event: IntentProposed) -> str:
    among = f", of {len(event.candidates)}" if event.candidates else ""
    if not (event.score or event.threshold):
        return f"{event.agent} proposed, not by a score{among}"
    return f"{event.agent} proposed with {event.score:g} (needs {event.threshold:g}){among}"


def _intent_approved(event: IntentApproved) -> str:
    return f"{event.agent} approved"


def _intent_rejected(event: IntentRejected) -> str:
    return f"{event.agent or 'rejected'}: {'; '.join(event.reasons)}"


def _intent_dispatched(event: IntentDispatched) -> str:
    until = "" if event.deadline is None else f", due by {to_rfc3339(event.deadline)}"
    return f"{event.request_id} sent to {event.agent}{until}"


def _intent_updated(event: IntentUpdated) -> str:
    share = "" if event.progress is None else f"{event.progress:g} %"
    piece = f"piece {event.sequence}" if event.sequence else ""
    details = "; ".join(filter(None, (share, event.message, piece)))
    return f"{event.agent}: {details or 'a piece of the output'}"


def _intent_completed(event: IntentCompleted) -> str:
    if event.synthetic in NO_FEEDBACK_REASONS:
        return f"{event.request_id} taken back from {event.agent}: {event.error}"
    outcome = "succeeded" if event.success else "failed"
    by_hub = f" ({event.synthetic})" if event.synthetic else ""
    error = f": {event.error}" if event.error else ""
    return f"{event.agent} {outcome}{by_hub} after {format_duration(event.duration_ms)}{error}"


def _intent_fed_back(event: IntentFeedbackApplied) -> str:
    successes = pluralize(event.successes, "success", "successes")
    return f"counted for {event.agent}: {successes}, {pluralize(event.failures, 'failure')}"


def _intent_satisfied(_: IntentSatisfied) -> str:
    return "satisfied"


def _intent_needs_follow_up(event: IntentNeedsFollowUp) -> str:
    return event.reason if event.cancelled else f"needs a follow-up: {event.reason}"


def _intent_superseded(event: IntentSuperseded) -> str:
    then = f": the task is {event.owner}'s now" if event.owner else ""
    if event.owner == event.agent:
        then = ": it is asked anew"
    return f"{event.request_id} of {event.agent} is void{then}"


def _intent_followed(event: IntentFollowedUp) -> str:
    return f"followed up by {event.by}"


def _intent_anomaly(event: IntentAnomaly) -> str:
    return f"anomaly: {event.reason}"


INTENT_EVENT_TEXT: dict[type[Event], Callable[[Any], str]] = {
    AgentDescribed: _agent_described,
    AgentAssigned: _agent_assigned,
    AgentRelieved: _agent_relieved,
    AgentRated: _agent_rated,
    IntentCreated: _intent_created,
    IntentProposed: _intent_proposed,
    IntentApproved: _intent_approved,
    IntentRejected: _intent_rejected,
    IntentDispatched: _intent_dispatched,
    IntentUpdated: _intent_updated,
    IntentCompleted: _intent_completed,
    IntentFeedbackApplied: _intent_fed_back,
    IntentSatisfied: _intent_satisfied,
    IntentNeedsFollowUp: _intent_needs_follow_up,
    IntentSuperseded: _intent_superseded,
    IntentFollowedUp: _intent_followed,
    IntentAnomaly: _intent_anomaly,
}
"""Event -> its text."""

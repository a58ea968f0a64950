"""What happened to intents and in the registry, in words: a part of `words`, for its own table."""

from collections.abc import Callable
from typing import Any

from dragoman.core.deciding.ending import TAKEN_BACK
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
    IntentFedBack,
    IntentFollowed,
    IntentNeedsFollowUp,
    IntentProposed,
    IntentRejected,
    IntentSatisfied,
    IntentSuperseded,
    IntentUpdated,
)
from dragoman.core.moments import duration, to_rfc3339
from dragoman.surfaces.cli.words.phrases import counted


def _described(event: AgentDescribed) -> str:
    cost = f", costs {event.cost:g}" if event.cost else ""
    return f"can {', '.join(event.skills)}; trust {event.trust}{cost}"


def _assigned(event: AgentAssigned) -> str:
    return f"assigned {event.request_id}"


def _relieved(event: AgentRelieved) -> str:
    return f"relieved of {event.request_id}"


def _rated(event: AgentRated) -> str:
    how = "succeeded" if event.success else "failed"
    return f"{how} with {event.request_id} after {duration(event.duration_ms)}"


def _created(event: IntentCreated) -> str:
    follows = f"; follows {event.follows}" if event.follows else ""
    plan = f"; part of plan {event.plan}" if event.plan else ""
    return f'requested by {event.by}: "{event.goal}"{plan}{follows}'


def _proposed(event: IntentProposed) -> str:
    among = f", of {len(event.candidates)}" if event.candidates else ""
    if not (event.score or event.threshold):
        return f"{event.agent} proposed, not by a score{among}"
    return f"{event.agent} proposed with {event.score:g} (needs {event.threshold:g}){among}"


def _approved(event: IntentApproved) -> str:
    return f"{event.agent} approved"


def _rejected(event: IntentRejected) -> str:
    return f"{event.agent or 'rejected'}: {'; '.join(event.reasons)}"


def _dispatched(event: IntentDispatched) -> str:
    until = "" if event.deadline is None else f", due by {to_rfc3339(event.deadline)}"
    return f"{event.request_id} sent to {event.agent}{until}"


def _updated(event: IntentUpdated) -> str:
    share = "" if event.progress is None else f"{event.progress:g} %"
    piece = f"piece {event.sequence}" if event.sequence else ""
    said = "; ".join(filter(None, (share, event.message, piece)))
    return f"{event.agent}: {said or 'a piece of the output'}"


def _completed(event: IntentCompleted) -> str:
    if event.synthetic in TAKEN_BACK:
        return f"{event.request_id} taken back from {event.agent}: {event.error}"
    how = "succeeded" if event.success else "failed"
    by_hub = f" ({event.synthetic})" if event.synthetic else ""
    why = f": {event.error}" if event.error else ""
    return f"{event.agent} {how}{by_hub} after {duration(event.duration_ms)}{why}"


def _fed_back(event: IntentFedBack) -> str:
    went_well = counted(event.successes, "success", "successes")
    return f"counted for {event.agent}: {went_well}, {counted(event.failures, 'failure')}"


def _satisfied(_: IntentSatisfied) -> str:
    return "satisfied"


def _needs_follow_up(event: IntentNeedsFollowUp) -> str:
    return event.reason if event.cancelled else f"needs a follow-up: {event.reason}"


def _superseded(event: IntentSuperseded) -> str:
    then = f": the task is {event.owner}'s now" if event.owner else ""
    if event.owner == event.agent:
        then = ": it is asked anew"
    return f"{event.request_id} of {event.agent} is void{then}"


def _followed(event: IntentFollowed) -> str:
    return f"followed up by {event.by}"


def _odd(event: IntentAnomaly) -> str:
    return f"anomaly: {event.reason}"


INTENT_WORDS: dict[type[Event], Callable[[Any], str]] = {
    AgentDescribed: _described,
    AgentAssigned: _assigned,
    AgentRelieved: _relieved,
    AgentRated: _rated,
    IntentCreated: _created,
    IntentProposed: _proposed,
    IntentApproved: _approved,
    IntentRejected: _rejected,
    IntentDispatched: _dispatched,
    IntentUpdated: _updated,
    IntentCompleted: _completed,
    IntentFedBack: _fed_back,
    IntentSatisfied: _satisfied,
    IntentNeedsFollowUp: _needs_follow_up,
    IntentSuperseded: _superseded,
    IntentFollowed: _followed,
    IntentAnomaly: _odd,
}
"""Event -> its text."""

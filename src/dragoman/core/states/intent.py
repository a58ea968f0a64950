"""An intent: a goal on its way to an agent and back, and how each event changes it (S-CCOS-4)."""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.events import (
    IntentAnomaly,
    IntentApproved,
    IntentCompleted,
    IntentCreated,
    IntentDispatched,
    IntentEvent,
    IntentFeedbackApplied,
    IntentFollowedUp,
    IntentNeedsFollowUp,
    IntentProposed,
    IntentRejected,
    IntentSatisfied,
    IntentSuperseded,
    IntentUpdated,
)
from dragoman.core.offers import DEFAULT_KEPT_BYTES, Candidate, Policy, Requirements
from dragoman.core.states.task import Task

INTENT_ALIAS_KIND: Final = "intent"
"""Kind of alias by which the task of an intent is found."""

IntentState = Literal[
    "New",
    "DelegationProposed",
    "DelegationApproved",
    "DelegationRejected",
    "TaskDispatched",
    "TaskCompleted",
    "FeedbackApplied",
    "Satisfied",
    "NeedsFollowUp",
]

SETTLED_STATES: Final[frozenset[IntentState]] = frozenset(
    {"DelegationRejected", "Satisfied", "NeedsFollowUp"}
)
"""States in which nothing happens without a new command."""
RENEWABLE_STATES: Final[frozenset[IntentState]] = frozenset({"DelegationRejected", "NeedsFollowUp"})
"""States from which it may be delegated again."""

MAX_CLOSED_REQUESTS: Final = 32
MAX_RECENT_ANOMALIES: Final = 8
"""An anomaly that equals one of the last few is a repeat and adds no entry."""
MAX_UPDATE_RANGES: Final = 64
"""Number of ranges of update numbers that are kept for a request; beyond it the lowest gap is
closed, as if the missing updates had come.
"""
ANOMALIES_PER_MINUTE: Final = 60
_MINUTE_MS: Final = 60_000


class OpenRequest(Struct, frozen=True, omit_defaults=True, gc=False):
    """Request that an agent has not answered yet."""

    id: str
    agent: str
    number: int
    sent_at: int
    after: int
    deadline: int | None = None
    pieces: tuple[tuple[int, int], ...] = ()
    """Numbers of the updates so far, as sorted ranges (first, last)."""

    def has_update(self, sequence: int) -> bool:
        """Return whether an update with this number was recorded; 0: unnumbered."""
        return any(first <= sequence <= last for first, last in self.pieces)


class ClosedRequest(Struct, frozen=True, omit_defaults=True, gc=False):
    """Request that has ended."""

    id: str
    agent: str
    at: int
    success: bool = False
    synthetic: str = ""
    digest: str = ""
    is_superseded: bool = False


class Intent(Struct, frozen=True, omit_defaults=True):
    """State of an intent, folded from the stream `intent:ID`."""

    id: str
    task: str
    goal: str
    by: str
    created_at: int
    state: IntentState = "New"
    params: dict[str, object] = {}
    constraints: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    patience_ms: int = 0
    plan: str = ""
    follows: str = ""
    followed_by: tuple[str, ...] = ()
    tries: int = 3
    policy: Policy = Policy()
    due_by: int = 0
    kept_bytes: int = DEFAULT_KEPT_BYTES
    passed_on: dict[str, object] = {}
    candidates: tuple[Candidate, ...] = ()
    """Candidates of the last ranking that were not requested yet, the best first."""
    turned_down: tuple[str, ...] = ()
    """Candidates that governance vetoed; they are tried again once the veto is gone."""
    tried: int = 0
    """Number of failures since the ranking; a request that a person ended, or whose task went to
    another agent, is no try.
    """
    request: OpenRequest | None = None
    requests: int = 0
    """Number of requests so far."""
    closed: tuple[ClosedRequest, ...] = ()
    agents: tuple[str, ...] = ()
    """All agents that ever had a request."""
    failed: tuple[str, ...] = ()
    """Agents that failed since the ranking; they are not tried again."""
    reasons: tuple[str, ...] = ()
    """Reasons why it was rejected or needs follow-up."""
    updates: int = 0
    anomalies: int = 0
    recent: tuple[str, ...] = ()
    """Digests of the last anomalies."""
    minute: int = 0
    in_minute: int = 0
    """Number of anomalies in that minute."""

    def requirements(self, now: int) -> Requirements:
        """Requirements by which an agent is chosen."""
        return Requirements(self.goal, self.constraints, self.skills, self.time_limit(now))

    def time_limit(self, now: int) -> int:
        """Time limit of a request that is made now; 0: none.

        The stated deadline counts for requests made before it. After it, each further agent gets
        the same amount of time again (S-CCOS-4).
        """
        return self.due_by - now if self.due_by > now else self.patience_ms

    @property
    def deadline(self) -> int | None:
        """Deadline of the open request."""
        return None if self.request is None else self.request.deadline

    def was_superseded(self, agent: str) -> bool:
        """Return whether the agent's last request ended because the task went to another agent."""
        last = next((one for one in reversed(self.closed) if one.agent == agent), None)
        return last is not None and last.is_superseded

    def is_repeated_anomaly(self, event: IntentAnomaly) -> bool:
        """Return whether an anomaly equals one of the last few."""
        return _anomaly_digest(event) in self.recent

    def is_anomaly_flood(self, now: int) -> bool:
        """Return whether the limit of anomalies for this minute is reached."""
        return self.minute == now // _MINUTE_MS and self.in_minute >= ANOMALIES_PER_MINUTE


def intent_of_task(task: Task, find: Callable[[str], "Intent | None"]) -> "Intent | None":
    """The intent that a task belongs to: each of the two must name the other."""
    if not task.aliases:
        return None
    prefix = f"{INTENT_ALIAS_KIND}:"
    named = (find(a.removeprefix(prefix)) for a in task.aliases if a.startswith(prefix))
    return next((one for one in named if one is not None and one.task == task.id), None)


def intent_list_keys(intent: Intent) -> tuple[str, ...]:
    """Lists that the intent is on: all, its plan, its agents, the followed intent, open ones,
    requests.
    """
    lists = ["intents", *(f"delegated:{name}" for name in intent.agents)]
    if intent.plan:
        lists.append(f"plan:{intent.plan}")
    if intent.follows:
        lists.append(f"follows:{intent.follows}")
    if intent.state not in SETTLED_STATES:
        lists.append("intents:open")
    if intent.request is not None:
        lists += ["requests", f"requests:{intent.request.agent}"]
    return tuple(lists)


def _fold_created(_: None, event: IntentCreated, at: int) -> Intent:
    return Intent(
        event.id,
        event.task,
        event.goal,
        event.by,
        at,
        params=event.params,
        constraints=event.constraints,
        skills=event.skills,
        patience_ms=event.patience_ms,
        plan=event.plan,
        follows=event.follows,
        tries=event.tries,
        policy=event.policy,
        kept_bytes=event.kept_bytes,
        passed_on=event.passed_on,
    )


def _fold_proposed(intent: Intent, event: IntentProposed, at: int) -> Intent:
    del at
    return replace(
        intent,
        state="DelegationProposed",
        candidates=event.candidates or intent.candidates,
        turned_down=() if event.candidates else intent.turned_down,
        tried=0 if event.candidates else intent.tried,
        failed=() if event.candidates else intent.failed,
        policy=event.policy or intent.policy,
        patience_ms=intent.patience_ms if event.patience_ms is None else event.patience_ms,
        tries=event.tries or intent.tries,
        due_by=event.due_by if event.candidates else intent.due_by,
        kept_bytes=intent.kept_bytes if event.kept_bytes is None else event.kept_bytes,
        passed_on=intent.passed_on if event.passed_on is None else event.passed_on,
        reasons=(),
    )


def _fold_approved(intent: Intent, event: IntentApproved, at: int) -> Intent:
    del event, at
    return replace(intent, state="DelegationApproved")


def _fold_rejected(intent: Intent, event: IntentRejected, at: int) -> Intent:
    del at
    named = (event.agent,) if event.agent else ()
    turned_down = tuple(dict.fromkeys((*intent.turned_down, *named)))
    return replace(
        intent,
        state="DelegationRejected",
        turned_down=turned_down,
        reasons=event.reasons,
        due_by=event.due_by or intent.due_by,
    )


def _fold_dispatched(intent: Intent, event: IntentDispatched, at: int) -> Intent:
    request = OpenRequest(
        event.request_id, event.agent, event.number, at, event.after, event.deadline
    )
    agents = tuple(dict.fromkeys((*intent.agents, event.agent)))
    return replace(
        intent,
        state="TaskDispatched",
        candidates=tuple(one for one in intent.candidates if one.agent != event.agent),
        request=request,
        requests=event.number,
        agents=agents,
        reasons=(),
    )


def _fold_updated(intent: Intent, event: IntentUpdated, at: int) -> Intent:
    del at
    request = intent.request
    if request is not None and event.sequence:
        request = replace(request, pieces=_add_sequence(request.pieces, event.sequence))
    return replace(intent, updates=intent.updates + 1, request=request)


def _add_sequence(
    ranges: tuple[tuple[int, int], ...], sequence: int
) -> tuple[tuple[int, int], ...]:
    joined: list[tuple[int, int]] = []
    for first, last in sorted((*ranges, (sequence, sequence))):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    if len(joined) > MAX_UPDATE_RANGES:
        joined[:2] = [(joined[0][0], joined[1][1])]
    return tuple(joined)


def _fold_completed(intent: Intent, event: IntentCompleted, at: int) -> Intent:
    ended = ClosedRequest(
        event.request_id, event.agent, at, event.success, event.synthetic, event.digest
    )
    return replace(
        intent, state="TaskCompleted", request=None, closed=_append_closed(intent, ended)
    )


def _fold_feedback(intent: Intent, event: IntentFeedbackApplied, at: int) -> Intent:
    del at
    # What ended without feedback does not count against the agent, and was no try.
    if event.success:
        return replace(intent, state="FeedbackApplied")
    failed = tuple(dict.fromkeys((*intent.failed, event.agent)))
    return replace(intent, state="FeedbackApplied", failed=failed, tried=intent.tried + 1)


def _fold_satisfied(intent: Intent, event: IntentSatisfied, at: int) -> Intent:
    del event, at
    return replace(intent, state="Satisfied", candidates=(), turned_down=())


def _fold_needs_follow_up(intent: Intent, event: IntentNeedsFollowUp, at: int) -> Intent:
    del at
    # If whoever takes the task up again fails, the remaining candidates are tried.
    remaining = () if event.cancelled else intent.candidates
    return replace(intent, state="NeedsFollowUp", candidates=remaining, reasons=(event.reason,))


def _fold_superseded(intent: Intent, event: IntentSuperseded, at: int) -> Intent:
    ended = ClosedRequest(event.request_id, event.agent, at, is_superseded=True)
    return replace(intent, request=None, closed=_append_closed(intent, ended))


def _fold_followed_up(intent: Intent, event: IntentFollowedUp, at: int) -> Intent:
    del at
    return replace(intent, followed_by=(*intent.followed_by, event.by))


def _fold_anomaly(intent: Intent, event: IntentAnomaly, at: int) -> Intent:
    minute = at // _MINUTE_MS
    count = intent.in_minute if intent.minute == minute else 0
    return replace(
        intent,
        anomalies=intent.anomalies + 1,
        recent=(*intent.recent, _anomaly_digest(event))[-MAX_RECENT_ANOMALIES:],
        minute=minute,
        in_minute=count + 1,
    )


def _append_closed(intent: Intent, ended: ClosedRequest) -> tuple[ClosedRequest, ...]:
    return (*intent.closed, ended)[-MAX_CLOSED_REQUESTS:]


def _anomaly_digest(event: IntentAnomaly) -> str:
    text = f"{event.agent} {event.request_id} {event.reason}".encode()
    return blake2b(text, digest_size=8).hexdigest()


INTENT_FOLDS: dict[type[IntentEvent], Callable[[Any, Any, int], Intent]] = {
    IntentCreated: _fold_created,
    IntentProposed: _fold_proposed,
    IntentApproved: _fold_approved,
    IntentRejected: _fold_rejected,
    IntentDispatched: _fold_dispatched,
    IntentUpdated: _fold_updated,
    IntentCompleted: _fold_completed,
    IntentFeedbackApplied: _fold_feedback,
    IntentSatisfied: _fold_satisfied,
    IntentNeedsFollowUp: _fold_needs_follow_up,
    IntentSuperseded: _fold_superseded,
    IntentFollowedUp: _fold_followed_up,
    IntentAnomaly: _fold_anomaly,
}
"""Event -> fold from the intent before it (None at first), the event and its time to the intent
after it.
"""

"""Intents (CCOS): commands, events, states and the fold from events to an intent (S-CCOS-4).

An intent is a goal that is delegated to an agent as a request and comes back as a result. The
deciders are in `core/intent/`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from dragoman.core.base import Command, Event, TaskCommand
from dragoman.core.intent.candidate import (
    DEFAULT_MAX_OUTPUT_BYTES,
    Candidate,
    Policy,
    Requirements,
    ScoreParts,
)
from dragoman.core.task_state import INTENT_ALIAS_KIND, Task

# --- commands ---------------------------------------------------------------------------------


class DelegateIntent(Command, frozen=True, tag="intent.delegate"):
    """Delegate a goal to the first candidate that governance permits.

    The same again is a no-op; for an intent that was rejected or needs follow-up it is a new start.
    """

    free_text = ("goal", "params", "extra_fields")

    goal: str
    id: str = ""
    """Empty: the hub makes one. An existing task with this name becomes the intent's task."""
    params: dict[str, object] = {}
    constraints: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    patience_ms: int = 0
    """Time limit of each request; with a deadline, the time until it."""
    plan: str = ""
    follows: str = ""
    max_agents: int = 3
    review_required: bool = False
    candidates: tuple[Candidate, ...] = ()
    """As just ranked; what may have changed since is checked again."""
    policy: Policy = Policy()
    agent: str = ""
    """Agent that it must go to, if no other will do."""
    request_id: str = ""
    """The caller's id of the request; empty: the hub makes one. The same again is a repeat."""
    due_by: int = 0
    """Deadline of the intent; 0: none."""
    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
    """Largest output that is stored in the ledger, also of reports in other dialects."""
    extra_fields: dict[str, object] = {}
    """Further content for its agents: `meta`, and fields that the hub does not know. It decides
    nothing.
    """


class IntentCommand(Command, frozen=True):
    """A command about one existing intent."""

    intent: str

    @property
    def target_task(self) -> str:
        """The intent's task."""
        return f"intent:{self.intent}"

    @property
    def heartbeat_task(self) -> str:
        """The agent that works on it shows by this that it is alive."""
        return self.target_task


class ReceiveResult(IntentCommand, frozen=True, tag="intent.result"):
    """Record the result of a request; one that does not fit is an anomaly and changes nothing."""

    free_text = ("output", "error", "extra_fields")

    agent: str
    success: bool
    output: object = None
    error: str = ""
    request_id: str = ""
    left_out: int = 0
    """Size in bytes of an output that is not stored and not included here."""
    digest: str = ""
    """Digest of such a result, by `result_digest`."""
    fault: str = ""
    """Fault in the shape of the message, which makes it an anomaly."""
    attempt: int = 0
    """Number of the request that it answers, from 1; 0: not stated."""
    extra_fields: dict[str, object] = {}
    """Further content of the result, if policy stores it."""


class UpdateIntent(IntentCommand, frozen=True, tag="intent.update"):
    """Record an update from the agent of a request: its progress in percent."""

    free_text = ("message", "partial")

    agent: str
    progress: float | None = None
    message: str = ""
    request_id: str = ""
    sequence: int = 0
    """Number of the chunk, each sent once; 0: none."""
    partial: object = None
    """The chunk, if policy stores it."""
    attempt: int = 0
    """Number of the request that it is about, from 1; 0: not stated."""


class CancelIntent(TaskCommand, frozen=True, tag="intent.cancel"):
    """Cancel an intent; `task` is `intent:ID`."""

    free_text = ("reason",)

    reason: str = ""

    @property
    def heartbeat_task(self) -> str:
        """Empty: it is no sign of life."""
        return ""


class ExpireRequest(IntentCommand, frozen=True, tag="intent.expire"):
    """End a request whose deadline has passed; a no-op before that."""

    is_called: bool = False
    """True if the hub dispatches requests to this agent itself: one that it did not dispatch counts
    for nobody.
    """

    @property
    def heartbeat_task(self) -> str:
        """Empty: it is no sign of life."""
        return ""


# --- events -----------------------------------------------------------------------------------


class IntentCreated(Event, frozen=True):
    """A goal is to be delegated, under terms that stay with it."""

    id: str
    task: str
    goal: str
    by: str
    params: dict[str, object] = {}
    constraints: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    patience_ms: int = 0
    """Time limit of each request; 0: none."""
    plan: str = ""
    follows: str = ""
    """Intent that it follows up."""
    max_agents: int = 3
    """Number of failed requests after which it is given up."""
    policy: Policy = Policy()
    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
    """Largest output that is stored in the ledger."""
    extra_fields: dict[str, object] = {}
    """Further content for its agents: `meta`, and fields that the hub does not know."""


class DelegationTerms(Struct, frozen=True, omit_defaults=True):
    """Terms on which an intent is delegated from now on."""

    policy: Policy
    patience_ms: int
    max_agents: int
    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
    extra_fields: dict[str, object] = {}
    due_by: int = 0
    """Deadline of all requests made before it; 0: none."""


class IntentProposed(Event, frozen=True):
    """An agent is the next candidate."""

    intent: str
    agent: str
    score: float
    parts: ScoreParts
    threshold: float
    candidates: tuple[Candidate, ...] = ()
    """All candidates, the best first; only on the first proposal after a ranking."""
    terms: DelegationTerms | None = None
    """New terms, if they changed."""


class IntentApproved(Event, frozen=True):
    """Governance permits this agent."""

    intent: str
    agent: str
    checks: tuple[str, ...]
    """Rules that it passed."""


class IntentRejected(Event, frozen=True):
    """Governance vetoed an agent, or the goal for all agents."""

    intent: str
    reasons: tuple[str, ...]
    agent: str = ""
    """Empty: no eligible agent is left."""
    due_by: int = 0
    """Stated deadline, if no agent was proposed; a proposal carries its own."""


class IntentDispatched(Event, frozen=True):
    """A request was opened for an agent, which owns the task from now on."""

    intent: str
    request_id: str
    agent: str
    number: int
    after: int
    """Number of attempts on the task before: only the report of a later one answers the request."""
    deadline: int | None = None


class IntentUpdated(Event, frozen=True):
    """Update from the agent of a request."""

    intent: str
    request_id: str
    agent: str
    progress: float | None = None
    message: str = ""
    sequence: int = 0
    """Number of the chunk, if a result is sent in chunks."""
    partial: object = None


class IntentCompleted(Event, frozen=True):
    """A request ended."""

    intent: str
    request_id: str
    agent: str
    success: bool
    duration_ms: int
    error: str = ""
    """Cut off if it is long."""
    synthetic: str = ""
    """Reason for which the hub itself ended it; empty: a result came."""
    digest: str = ""
    """Digest of the result, to recognize a repeat."""
    output: object = None
    """Output, if policy stores it."""
    left_out: int = 0
    """Size in bytes of an output that was not stored."""
    extra_fields: dict[str, object] = {}
    """Further content of the result, if policy stores it."""


class IntentFeedbackApplied(Event, frozen=True):
    """The result of a request was counted for its agent, in the same transaction."""

    intent: str
    request_id: str
    agent: str
    success: bool
    successes: int
    failures: int


class IntentSatisfied(Event, frozen=True):
    """The task is done."""

    intent: str


class IntentNeedsFollowUp(Event, frozen=True):
    """The intent failed or was cancelled: a person may have to follow up."""

    intent: str
    reason: str
    cancelled: bool = False
    """True if it was cancelled: then nothing is left to do."""


class IntentSuperseded(Event, frozen=True):
    """A request became void: its task has another owner, none, or a forbidden text."""

    intent: str
    request_id: str
    agent: str
    owner: str = ""


class IntentAnomaly(Event, frozen=True):
    """A message did not fit the intent; it changed nothing."""

    intent: str
    reason: str
    agent: str = ""
    request_id: str = ""


# --- table and bounds -------------------------------------------------------------------------

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

INTENT_TRANSITIONS: Final[Mapping[IntentState, tuple[IntentState, ...]]] = {
    "New": ("DelegationProposed", "DelegationRejected"),
    "DelegationProposed": ("DelegationApproved", "DelegationRejected"),
    "DelegationApproved": ("TaskDispatched",),
    "DelegationRejected": ("DelegationProposed", "Satisfied", "NeedsFollowUp"),
    "TaskDispatched": (
        "TaskCompleted",
        "DelegationProposed",
        "DelegationRejected",
        "Satisfied",
        "NeedsFollowUp",
    ),
    "TaskCompleted": (
        "FeedbackApplied",
        "DelegationProposed",
        "DelegationRejected",
        "TaskDispatched",
        "Satisfied",
        "NeedsFollowUp",
    ),
    "FeedbackApplied": (
        "DelegationProposed",
        "DelegationRejected",
        "TaskDispatched",
        "Satisfied",
        "NeedsFollowUp",
    ),
    "Satisfied": ("DelegationProposed", "NeedsFollowUp"),
    "NeedsFollowUp": ("DelegationProposed", "DelegationRejected", "Satisfied"),
}
"""State -> states that an intent may go to (S-CCOS-4): the way from `New` to its end, a request
that ends without a result, the next candidate, and a new start.
"""

SETTLED_STATES: Final[frozenset[IntentState]] = frozenset(
    {"DelegationRejected", "Satisfied", "NeedsFollowUp"}
)
"""States in which nothing happens without a new command."""

RENEWABLE_STATES: Final[frozenset[IntentState]] = frozenset({"DelegationRejected", "NeedsFollowUp"})
"""States from which it may be delegated again."""


def can_become(state: IntentState, to: IntentState) -> bool:
    """Return whether an intent in this state may go to the other one."""
    return to in INTENT_TRANSITIONS[state]


MAX_CLOSED_REQUESTS: Final = 32

MAX_RECENT_UPDATES: Final = 64
"""An update with the number of one of these is a repeat."""

# --- state ------------------------------------------------------------------------------------


class OpenRequest(Struct, frozen=True, omit_defaults=True, gc=False):
    """Request that an agent has not answered yet."""

    id: str
    agent: str
    number: int
    sent_at: int
    after: int
    deadline: int | None = None
    sequences: tuple[int, ...] = ()
    """Numbers of its latest updates."""


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
    max_agents: int = 3
    policy: Policy = Policy()
    due_by: int = 0
    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
    extra_fields: dict[str, object] = {}
    candidates: tuple[Candidate, ...] = ()
    """Candidates of the last ranking that were not requested yet, the best first."""
    vetoed: tuple[str, ...] = ()
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

    @property
    def terms(self) -> DelegationTerms:
        """Terms on which it is delegated."""
        return DelegationTerms(
            self.policy,
            self.patience_ms,
            self.max_agents,
            self.max_output_bytes,
            self.extra_fields,
            self.due_by,
        )

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


# --- fold -------------------------------------------------------------------------------------


def _fold_created(_: None, event: IntentCreated, at: int) -> Intent:
    return Intent(created_at=at, **asdict(event))


def _fold_proposed(intent: Intent, event: IntentProposed, _: int) -> Intent:
    terms = {} if event.terms is None else asdict(event.terms)
    is_ranked = bool(event.candidates)
    return replace(
        intent,
        state="DelegationProposed",
        candidates=event.candidates or intent.candidates,
        vetoed=() if is_ranked else intent.vetoed,
        tried=0 if is_ranked else intent.tried,
        failed=() if is_ranked else intent.failed,
        reasons=(),
        **terms,
    )


def _fold_approved(intent: Intent, _: IntentApproved, __: int) -> Intent:
    return replace(intent, state="DelegationApproved")


def _fold_rejected(intent: Intent, event: IntentRejected, _: int) -> Intent:
    named = (event.agent,) if event.agent else ()
    vetoed = tuple(dict.fromkeys((*intent.vetoed, *named)))
    return replace(
        intent,
        state="DelegationRejected",
        vetoed=vetoed,
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


def _fold_updated(intent: Intent, event: IntentUpdated, _: int) -> Intent:
    request = intent.request
    if request is not None and event.sequence:
        sequences = (*request.sequences, event.sequence)[-MAX_RECENT_UPDATES:]
        request = replace(request, sequences=sequences)
    return replace(intent, updates=intent.updates + 1, request=request)


def _fold_completed(intent: Intent, event: IntentCompleted, at: int) -> Intent:
    ended = ClosedRequest(
        event.request_id, event.agent, at, event.success, event.synthetic, event.digest
    )
    return replace(
        intent, state="TaskCompleted", request=None, closed=_append_closed(intent, ended)
    )


def _fold_feedback(intent: Intent, event: IntentFeedbackApplied, _: int) -> Intent:
    # What ended without feedback does not count against the agent, and was no try.
    if event.success:
        return replace(intent, state="FeedbackApplied")
    failed = tuple(dict.fromkeys((*intent.failed, event.agent)))
    return replace(intent, state="FeedbackApplied", failed=failed, tried=intent.tried + 1)


def _fold_satisfied(intent: Intent, _: IntentSatisfied, __: int) -> Intent:
    return replace(intent, state="Satisfied", candidates=(), vetoed=())


def _fold_needs_follow_up(intent: Intent, event: IntentNeedsFollowUp, _: int) -> Intent:
    # If whoever takes the task up again fails, the remaining candidates are tried.
    remaining = () if event.cancelled else intent.candidates
    return replace(intent, state="NeedsFollowUp", candidates=remaining, reasons=(event.reason,))


def _fold_superseded(intent: Intent, event: IntentSuperseded, at: int) -> Intent:
    ended = ClosedRequest(event.request_id, event.agent, at, is_superseded=True)
    return replace(intent, request=None, closed=_append_closed(intent, ended))


def _fold_anomaly(intent: Intent, _: IntentAnomaly, __: int) -> Intent:
    return replace(intent, anomalies=intent.anomalies + 1)


def _append_closed(intent: Intent, ended: ClosedRequest) -> tuple[ClosedRequest, ...]:
    return (*intent.closed, ended)[-MAX_CLOSED_REQUESTS:]


INTENT_FOLDS: dict[type[Event], Callable[[Any, Any, int], Intent]] = {
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
    IntentAnomaly: _fold_anomaly,
}
"""Event -> fold from the intent before it (None at first), the event and its time to the intent
after it.
"""

"""What happened to intents, and how agents stand in the registry."""

from dragoman.core.events.base import Event
from dragoman.core.offers import DEFAULT_KEPT_BYTES, Candidate, Policy, ScoreParts, Trust


class AgentDescribed(Event, frozen=True):
    """Capabilities and terms of an agent; replaces the last description."""

    name: str
    skills: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    locality: tuple[str, ...] = ()
    """Places where it works on data."""
    trust: Trust = "T0"
    cost: float = 0.0
    latency_ms: int = 0
    capacity: int = 0
    reach: str = ""
    """Endpoint of the agent: the queue, a program, a URL."""


class AgentAssigned(Event, frozen=True):
    """An agent was given a request."""

    name: str
    intent: str
    request_id: str


class AgentRelieved(Event, frozen=True):
    """A request was taken from an agent through no fault of its own: its reputation stays."""

    name: str
    intent: str
    request_id: str


class AgentRated(Event, frozen=True):
    """The result of an agent's request counted towards its reputation."""

    name: str
    intent: str
    request_id: str
    success: bool
    duration_ms: int


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
    tries: int = 3
    """Number of failed requests after which it is given up."""
    policy: Policy = Policy()
    kept_bytes: int = DEFAULT_KEPT_BYTES
    """Largest output that is stored in the ledger."""
    passed_on: dict[str, object] = {}
    """Further content for its agents: `meta`, and fields that the hub does not know."""


class IntentProposed(Event, frozen=True):
    """An agent is the next candidate."""

    intent: str
    agent: str
    score: float
    parts: ScoreParts
    threshold: float
    candidates: tuple[Candidate, ...] = ()
    """All candidates, the best first; only on the first proposal after a ranking."""
    policy: Policy | None = None
    """New policy, if it changed."""
    patience_ms: int | None = None
    """New time limit of a request, if it changed."""
    tries: int = 0
    """New number of tries, if it changed; else 0."""
    due_by: int = 0
    """With candidates: deadline of all requests made before it, if one was stated; else 0."""
    kept_bytes: int | None = None
    """New limit of stored outputs, if it changed."""
    passed_on: dict[str, object] | None = None
    """New further content for agents, if it changed."""


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
    passed_on: dict[str, object] = {}
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


class IntentFollowedUp(Event, frozen=True):
    """Another intent follows this one up."""

    intent: str
    by: str


class IntentAnomaly(Event, frozen=True):
    """A message did not fit the intent; it changed nothing."""

    intent: str
    reason: str
    agent: str = ""
    request_id: str = ""

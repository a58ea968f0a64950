"""What happened to intents, and how agents stand in the registry."""

from dragoman.core.events.base import Event
from dragoman.core.offers import KEPT_BYTES, Candidate, Parts, Policy, Trust


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
    """A goal is to be delegated, under rules that stay with it."""

    id: str
    task: str
    goal: str
    by: str
    params: dict[str, object] = {}
    constraints: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    patience_ms: int = 0
    """How long each request of it may take; 0: as long as it likes."""
    plan: str = ""
    follows: str = ""
    """The intent that it follows up."""
    tries: int = 3
    """How many requests may be made of it before it is given up."""
    policy: Policy = Policy()
    kept_bytes: int = KEPT_BYTES
    """Up to which size its outputs stand in the ledger."""
    passed_on: dict[str, object] = {}
    """What else was said with it, for its agents: `meta`, and fields that we do not know."""


class IntentProposed(Event, frozen=True):
    """An agent is the next candidate."""

    intent: str
    agent: str
    score: float
    parts: Parts
    threshold: float
    candidates: tuple[Candidate, ...] = ()
    """All who come into question, the best first; on the first proposal after they were ranked."""
    policy: Policy | None = None
    """The rules from now on, where they are others than before."""
    patience_ms: int | None = None
    """How long a request may take from now on, where that is another time than before."""
    tries: int = 0
    """How many may be asked from now on, where that are other numbers than before; else 0."""
    due_by: int = 0
    """With the candidates: the moment at which each request ends that is made before it, if one was
    said; else 0."""
    kept_bytes: int | None = None
    """Up to which size outputs are kept from now on, where that is another than before."""
    passed_on: dict[str, object] | None = None
    """What else agents are told from now on, where that is something else than before."""


class IntentApproved(Event, frozen=True):
    """Governance has nothing against this agent."""

    intent: str
    agent: str
    checks: tuple[str, ...]
    """The rules that it has passed."""


class IntentRejected(Event, frozen=True):
    """Governance says no: to an agent, or to all of them."""

    intent: str
    reasons: tuple[str, ...]
    agent: str = ""
    """Empty: nobody is left who may be given it."""
    due_by: int = 0
    """The moment that was said, where nobody was proposed for it: a proposal has its own."""


class IntentDispatched(Event, frozen=True):
    """A request is open with an agent, which owns the task from now on."""

    intent: str
    request_id: str
    agent: str
    number: int
    after: int
    """How many attempts the task had seen before: only a later one's report answers it."""
    deadline: int | None = None


class IntentUpdated(Event, frozen=True):
    """Word from whoever works on a request."""

    intent: str
    request_id: str
    agent: str
    progress: float | None = None
    message: str = ""
    sequence: int = 0
    """Which piece of a result that comes in pieces."""
    partial: object = None


class IntentCompleted(Event, frozen=True):
    """A request has come to its end."""

    intent: str
    request_id: str
    agent: str
    success: bool
    duration_ms: int
    error: str = ""
    """Its beginning, if it is long."""
    synthetic: str = ""
    """Why the hub itself ended it: no result has come."""
    digest: str = ""
    """Of the result: tells a repeat from another one."""
    output: object = None
    """Where policy says that it is kept."""
    left_out: int = 0
    """So many bytes of output were not kept."""
    passed_on: dict[str, object] = {}
    """What else the result says, where policy says that it is kept."""


class IntentFedBack(Event, frozen=True):
    """What came of a request was counted for its agent, in the same breath."""

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
    """It has come to nothing by itself: somebody has to see to it."""

    intent: str
    reason: str
    cancelled: bool = False
    """Whether somebody did not want it any more: then there is nothing to see to."""


class IntentSuperseded(Event, frozen=True):
    """A request is void by what became of its task: another owner or none, or other words."""

    intent: str
    request_id: str
    agent: str
    owner: str = ""


class IntentFollowed(Event, frozen=True):
    """Another intent follows this one up."""

    intent: str
    by: str


class IntentAnomaly(Event, frozen=True):
    """Somebody said something about the intent that does not fit: it changed nothing."""

    intent: str
    reason: str
    agent: str = ""
    request_id: str = ""

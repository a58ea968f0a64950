"""What is asked for about intents and the registry."""

from dragoman.core.commands.base import Command, TaskCommand
from dragoman.core.offers import DEFAULT_KEPT_BYTES, Candidate, Policy, Trust


class DescribeAgent(Command, frozen=True, tag="agent.describe"):
    """Describe what a known agent can do, and on which terms; replaces the last description."""

    name: str
    skills: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    locality: tuple[str, ...] = ()
    trust: Trust | None = None
    """None: the tier it has, or else what the caller may give: T1, and T0 from the agent itself."""
    cost: float = 0.0
    latency_ms: int = 0
    capacity: int = 0
    reach: str = ""


class DelegateIntent(Command, frozen=True, tag="intent.delegate"):
    """Delegate a goal to the first candidate that governance permits.

    The same again is a no-op; for an intent that was rejected or needs follow-up it is a new start.
    """

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
    tries: int = 3
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
    kept_bytes: int = DEFAULT_KEPT_BYTES
    """Largest output that is stored in the ledger, also of reports in other dialects."""
    passed_on: dict[str, object] = {}
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
    passed_on: dict[str, object] = {}
    """Further content of the result, if policy stores it."""


class UpdateIntent(IntentCommand, frozen=True, tag="intent.update"):
    """Record an update from the agent of a request: its progress in percent."""

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

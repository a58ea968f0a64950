"""What is asked for about intents and the registry."""

from dragoman.core.commands.base import Command, TaskCommand
from dragoman.core.offers import KEPT_BYTES, Candidate, Policy, Trust


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
    """Give a goal to the first of its candidates that governance has nothing against.

    The same again is a no-op; of an intent that has come to nothing it is a new beginning.
    """

    goal: str
    id: str = ""
    """Without one it gets one; if a task has this name already, it is the one to be done."""
    params: dict[str, object] = {}
    constraints: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    patience_ms: int = 0
    """How long each request may take; where there is a moment, the time until that."""
    plan: str = ""
    follows: str = ""
    tries: int = 3
    review_required: bool = False
    candidates: tuple[Candidate, ...] = ()
    """As they were ranked just before; what may have changed is looked at again."""
    policy: Policy = Policy()
    agent: str = ""
    """Whom it is meant for, if nobody else will do."""
    request_id: str = ""
    """What whoever asks calls the request; empty: it gets a name. Said again, it is a repeat."""
    due_by: int = 0
    """The moment by which it is to be done; 0: none is said."""
    kept_bytes: int = KEPT_BYTES
    """Up to which size its outputs stand in the ledger, also those that other dialects report."""
    passed_on: dict[str, object] = {}
    """What else its agents are told: `meta`, and fields that we do not know. It decides nothing."""


class IntentCommand(Command, frozen=True):
    """A command about one existing intent."""

    intent: str

    @property
    def about(self) -> str:
        """Its task."""
        return f"intent:{self.intent}"

    @property
    def held(self) -> str:
        """Whoever works on it shows by this that it is alive."""
        return self.about


class ReceiveResult(IntentCommand, frozen=True, tag="intent.result"):
    """The result of a request; one that does not fit is an anomaly and changes nothing."""

    agent: str
    success: bool
    output: object = None
    error: str = ""
    request_id: str = ""
    left_out: int = 0
    """How many bytes of output there are that are not kept, and not said here."""
    digest: str = ""
    """Of such a result, by `result_digest`."""
    fault: str = ""
    """What is wrong with the shape of the message, which is an anomaly for that."""
    attempt: int = 0
    """Which request of the intent it answers, from 1; 0: it does not say."""
    passed_on: dict[str, object] = {}
    """What else it says, where policy says that it is kept."""


class UpdateIntent(IntentCommand, frozen=True, tag="intent.update"):
    """Word from whoever works on a request: how far it is, in percent."""

    agent: str
    progress: float | None = None
    message: str = ""
    request_id: str = ""
    sequence: int = 0
    """Which piece of a result that comes in pieces, once for each; 0: it has none."""
    partial: object = None
    """That piece, where policy says that it is kept."""
    attempt: int = 0
    """Which request of the intent it is about, from 1; 0: it does not say."""


class CancelIntent(TaskCommand, frozen=True, tag="intent.cancel"):
    """Nobody is to reach this goal any more; `task` is `intent:ID`."""

    reason: str = ""

    @property
    def held(self) -> str:
        """It is no sign of life."""
        return ""


class ExpireRequest(IntentCommand, frozen=True, tag="intent.expire"):
    """End a request whose deadline has passed; nothing happens while it has not."""

    is_called: bool = False
    """Whether the hub hands its agent the requests itself: what it has not, counts for nobody."""

    @property
    def held(self) -> str:
        """It is no sign of life."""
        return ""

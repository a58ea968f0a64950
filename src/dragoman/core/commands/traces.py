"""What is told of turns and traces, and asked for because of them."""

from dragoman.core.commands.base import DEFAULT_LEASE_MS, DEFAULT_MAX_ATTEMPTS, Command, TaskCommand
from dragoman.core.events import Status


class RecordTurn(Command, frozen=True, tag="turn.record"):
    """Record what an agent thought, did and saw in one turn; a repeat changes nothing."""

    task: str
    turn_index: int
    agent: str
    """SAOP role that it states."""
    confidence: float
    envelope: dict[str, object]
    digest: str
    masked: bool = False
    adopt: bool = True
    """Create a task that is unknown, with the sender as its holder."""
    review_required: bool = True
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    ttl_ms: int = DEFAULT_LEASE_MS

    @property
    def heartbeat_task(self) -> str:
        """The task of the turn: sending turns shows that its holder is alive."""
        return self.task


class RecordTrace(Command, frozen=True, tag="trace.record"):
    """Record an event of a session; a repeat changes nothing."""

    event_id: str
    session: str
    kind: str
    """Type of the event in its dialect."""
    envelope: dict[str, object]
    digest: str
    masked: bool = False
    task: str = ""
    """Task that it names; empty: the one that its session works on."""
    agent: str = ""
    """SAOP role of the agent it is about, if stated."""
    call: str = ""
    ends_call: bool = False
    turn: int | None = None
    is_final: bool = False
    commit: str = ""
    """Commit checked out in the repository, for an event that moves a task without stating it."""


class RequestTransition(TaskCommand, frozen=True, tag="task.transition"):
    """Move a task because an event of a trace says that it moved."""

    to: Status
    asked_by: str
    """Id of that event."""
    commit: str = ""
    session: str = ""
    adopt: bool = True
    review_required: bool = True
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    ttl_ms: int = DEFAULT_LEASE_MS
    fence: int | None = None


class EscalateEntropy(TaskCommand, frozen=True, tag="entropy.escalate"):
    """Report once, until it settles, that the turns of a task look like an agent getting lost."""

    kind: str
    detail: str
    turns: tuple[int, ...]
    measured: float
    threshold: float

    @property
    def heartbeat_task(self) -> str:
        """Empty: no sign of life of the holder."""
        return ""


class SettleEntropy(TaskCommand, frozen=True, tag="entropy.settle"):
    """Report that a sign of entropy has settled."""

    kind: str
    measured: float

    @property
    def heartbeat_task(self) -> str:
        """Empty: no sign of life of the holder."""
        return ""

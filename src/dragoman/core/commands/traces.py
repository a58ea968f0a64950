"""What is told of turns and traces, and asked for because of them."""

from dragoman.core.commands.base import DEFAULT_ATTEMPTS, DEFAULT_TTL_MS, Command, TaskCommand
from dragoman.core.events import Status


class RecordTurn(Command, frozen=True, tag="turn.record"):
    """Keep what an agent thought, did and saw in one turn; a repeat changes nothing."""

    task: str
    turn_index: int
    agent: str
    """The part that it plays, by its own words."""
    confidence: float
    envelope: dict[str, object]
    digest: str
    masked: bool = False
    adopt: bool = True
    """Whether a task that is unknown becomes one, in the hands of the sender."""
    review_required: bool = True
    max_attempts: int = DEFAULT_ATTEMPTS
    ttl_ms: int = DEFAULT_TTL_MS

    @property
    def held(self) -> str:
        """Whoever shows its turns is alive."""
        return self.task


class RecordTrace(Command, frozen=True, tag="trace.record"):
    """Keep something that happened while an agent worked; a repeat changes nothing."""

    event_id: str
    session: str
    kind: str
    """The type that its dialect knows it by."""
    envelope: dict[str, object]
    digest: str
    masked: bool = False
    task: str = ""
    """The task that it names; empty: the one that its session works on."""
    agent: str = ""
    """The part of whoever it is about, if it says so."""
    call: str = ""
    ends_call: bool = False
    turn: int | None = None
    is_final: bool = False
    commit: str = ""
    """What the repository has checked out, if it tells that a task moves and does not say so."""


class RequestTransition(TaskCommand, frozen=True, tag="task.transition"):
    """Move a task because an event of a trace says that it moved."""

    to: Status
    asked_by: str
    """The id of that event."""
    commit: str = ""
    session: str = ""
    adopt: bool = True
    review_required: bool = True
    max_attempts: int = DEFAULT_ATTEMPTS
    ttl_ms: int = DEFAULT_TTL_MS
    fence: int | None = None


class EscalateEntropy(TaskCommand, frozen=True, tag="entropy.escalate"):
    """Tell that the turns of a task look as if its agent is getting lost; once until it settles."""

    kind: str
    detail: str
    turns: tuple[int, ...]
    measured: float
    threshold: float

    @property
    def held(self) -> str:
        """Nobody shows by it that it is alive."""
        return ""


class SettleEntropy(TaskCommand, frozen=True, tag="entropy.settle"):
    """Tell that it is no longer so."""

    kind: str
    measured: float

    @property
    def held(self) -> str:
        """Nobody shows by it that it is alive."""
        return ""

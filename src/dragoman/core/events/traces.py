"""What was seen of turns, traces and their entropy."""

from dragoman.core.events.base import Event


class TurnRecorded(Event, frozen=True):
    """An agent has recorded what it thought, did and saw in one turn of its work."""

    task: str
    attempt: int
    """Number of the attempt; below 0: the turn is of an agent that never held the task."""
    turn_index: int
    agent: str
    """Its SAOP role."""
    confidence: float
    envelope: dict[str, object]
    """The whole turn, in the form of its dialect, without secrets."""
    digest: str
    """Keyed digest of the original text: tells a repeat from another turn."""
    masked: bool = False
    by: str = ""
    """Author of a turn outside the attempts: each author's are counted apart."""
    beside: int = 0
    """Attempt that the task was in then."""


class TraceRecorded(Event, frozen=True):
    """An event of a session: a thought, a call of a tool, a terminal line."""

    event_id: str
    session: str
    type: str
    envelope: dict[str, object]
    digest: str
    task: str = ""
    """Empty: the session works on no known task."""
    attempt: int = 0
    agent: str = ""
    masked: bool = False
    call: str = ""
    """Id of the tool call that begins or ends with it."""
    ends_call: bool = False
    turn: int | None = None
    """Turn whose thought it is a part of."""
    is_final: bool = False
    commit: str = ""
    """Commit checked out in the repository, of a task that is to move; takes precedence over the
    text."""
    by: str = ""
    """Sender: calls and thoughts are matched per sender."""


class TraceAnomaly(Event, frozen=True):
    """A recorded event does not fit those before it."""

    kind: str
    event_id: str
    session: str
    detail: str
    task: str = ""


class EntropyEscalated(Event, frozen=True):
    """The turns of a task look as if its agent is getting lost; somebody should look."""

    task: str
    kind: str
    detail: str
    attempt: int
    turns: tuple[int, ...]
    """Indexes of the turns that are the evidence."""
    measured: float
    threshold: float


class EntropySettled(Event, frozen=True):
    """A sign of entropy of a task has settled."""

    task: str
    kind: str
    measured: float

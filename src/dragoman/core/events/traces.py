"""What was seen of turns, traces and their entropy."""

from dragoman.core.events.base import Event


class TurnRecorded(Event, frozen=True):
    """An agent has shown what it thought, did and saw in one turn of its work."""

    task: str
    attempt: int
    """Below 0: it is of nobody who had one, and stands beside them."""
    turn_index: int
    agent: str
    """The part that it plays."""
    confidence: float
    envelope: dict[str, object]
    """All of it, in the form of its dialect, less secrets."""
    digest: str
    """Keyed, of the words as they came: by it a repeat is told from another turn."""
    masked: bool = False
    by: str = ""
    """Who has shown it, of a turn beside the attempts: those of each are counted by themselves."""
    beside: int = 0
    """The attempt that the task was in then."""


class TraceRecorded(Event, frozen=True):
    """Something happened while an agent worked: a thought, a call of a tool, a terminal line."""

    event_id: str
    session: str
    type: str
    envelope: dict[str, object]
    digest: str
    task: str = ""
    """Empty: the session works on none that is known."""
    attempt: int = 0
    agent: str = ""
    masked: bool = False
    call: str = ""
    """The call of a tool that begins or ends with it."""
    ends_call: bool = False
    turn: int | None = None
    """The turn whose thought it is a part of."""
    is_final: bool = False
    commit: str = ""
    """What the repository had checked out, of a task that is to move; it goes before its words."""
    by: str = ""
    """Who sent it: calls and thoughts are told apart by that."""


class TraceAnomaly(Event, frozen=True):
    """What was recorded does not fit what came before it."""

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
    """The evidence: turns by their index."""
    measured: float
    threshold: float


class EntropySettled(Event, frozen=True):
    """What was told about the turns of a task is no longer so."""

    task: str
    kind: str
    measured: float

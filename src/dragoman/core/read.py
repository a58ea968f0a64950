"""Facts that a decider may read, on behalf of one actor, and the decision that it returns."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from dragoman.core.actor import Actor
from dragoman.core.base import Event, Status
from dragoman.core.errors import Refusal

if TYPE_CHECKING:
    from dragoman.core.agent import AgentRecord, Reputation
    from dragoman.core.attempt_state import Lease
    from dragoman.core.handoff.state import Handoff
    from dragoman.core.intent.state import Intent
    from dragoman.core.mail import Mail
    from dragoman.core.reservation import Reservations
    from dragoman.core.task_state import Task
    from dragoman.core.trace import RecordedEntry, Trace, TurnLog
    from dragoman.core.wave import Wave
    from dragoman.core.work_queue import WorkItem

TimedEvent = tuple[Event, int]
"""An event and its time."""


# --- facts ------------------------------------------------------------------------------------


class Read(Protocol):
    """Facts, handed in. The same facts give the same decision."""

    @property
    def actor(self) -> Actor:
        """The caller."""
        ...

    def task(self, name: str) -> "Task | Refusal":
        """The task with this id, alias (KIND:NAME) or bare alias name."""
        ...

    def task_at(self, task: "Task", version: int) -> "Task | None":
        """The task as it was after this entry of its stream; None: it has no such entry."""
        ...

    def before_end(self, task: "Task") -> int:
        """Version of the last entry of its stream before a final task ended, or was reviewed if it
        is done."""
        ...

    def is_taken(self, name: str) -> bool:
        """True if any task has this id, alias or bare alias name."""
        ...

    def lease(self, task: "Task") -> "Lease | None":
        """The task's lease, valid or expired."""
        ...

    def agent(self, name: str) -> "AgentRecord | None":
        """Record of the agent or person with this name."""
        ...

    def is_known(self, name: str) -> bool:
        """True if somebody is registered under this name, or has spoken under it as an agent."""
        ...

    def next_ready(
        self, queues: tuple[str, ...], now: int, may_begin: "Callable[[Task], bool]"
    ) -> "Task | None":
        """First task of these queues that the caller may start on; a queue is named by the agent
        that its tasks are reserved for.
        """
        ...

    def handoff(self, id: str) -> "Handoff | None":
        """Handoff with this id."""
        ...

    def work_item(self, id: str) -> "WorkItem | None":
        """Item of the work queue with this id."""
        ...

    def mail(self, id: str) -> "Mail | None":
        """Letter with this id."""
        ...

    def wave(self, id: str) -> "Wave | None":
        """Wave with this id."""
        ...

    def coordinators(self) -> tuple[str, ...]:
        """Names of those who are registered as coordinators."""
        ...

    def open_waves(self) -> "tuple[Wave, ...]":
        """Open waves, oldest first."""
        ...

    def history(self, stream: str) -> "Iterable[TimedEvent]":
        """All events of a stream with their times, in order."""
        ...

    def reservations(self) -> "Reservations":
        """All reservations of files."""
        ...

    def intent(self, id: str) -> "Intent | None":
        """Intent with this id."""
        ...

    def requested(self, request_id: str) -> str:
        """Id of the intent that has had a request with this id; empty: none has."""
        ...

    def reputation(self, name: str) -> "Reputation | None":
        """Capabilities and reputation of an agent."""
        ...

    def trace(self, session: str) -> "Trace | None":
        """State of the trace of this session."""
        ...

    def turns(self, task: str) -> "TurnLog | None":
        """State of the turns of the task with this id."""
        ...

    def logged(self, key: str) -> "RecordedEntry | None":
        """Position and digest of the recorded turn or trace event with this key."""
        ...

    def held(self, session: str, holder: str) -> tuple[str, ...]:
        """Ids of the tasks that are held in this session; if none is, by this holder."""
        ...

    @property
    def cause(self) -> str:
        """Id of the request: names what is made without a name of its own."""
        ...

    def last_number(self, day: str) -> int:
        """Last AOF number given out on this day; 0 at its beginning."""
        ...


# --- decision ---------------------------------------------------------------------------------


class Receipt(Struct, frozen=True, omit_defaults=True, gc=False, tag="task"):
    """Result of a command: the task, and its state after the command."""

    task: str
    status: Status | None
    """None when the command was about no task."""
    attempt: int = 0
    fence: int = 0
    expires_at: int = 0
    stream: str = ""
    """Stream that it was about, where that is no task: `mail:ID`."""
    thread: str = ""
    """Thread of that letter."""
    state: str = ""
    """State of that handoff or work item."""
    package_hash: str = ""
    """Hash of the offered package; `expires_at` is then the end of the offer."""
    record_key: str = ""
    """Key of the turn or trace event that it recorded."""
    position: int = 0
    """Ledger position of that; below 0 before the commit: its place in the batch."""
    warning: str = ""
    """Remark for the caller on something odd."""
    masked: bool = False
    """Secrets were taken out of it."""
    is_repeat: bool = False
    """Repeat: it had been recorded before."""
    is_no_op: bool = False
    """No-op report: the task is where it leads already, and nothing is recorded."""
    ended_reservations: tuple[str, ...] = ()
    """Ids of the reservations that it ended."""
    question: str = ""
    """Id of the question that it asked or answered, among those of the task."""
    version: int = 0
    """Version of the task's stream after it, if it came under a key of the caller's: a repeat is
    shown the task as it was then."""
    stream_version: int = 0
    """Version of `stream`, in the same way."""


class LeaseChange(Struct, frozen=True):
    """A lease to write, or (None) to end."""

    task: str
    lease: "Lease | None"


StreamEvents = tuple[tuple[str, Event], ...]
"""Events to record, each with its stream."""


class Decision(Struct, frozen=True):
    """Accepted command: events by stream, change of the lease, and the receipt."""

    receipt: Receipt
    events: StreamEvents = ()
    lease: LeaseChange | None = None
    aof_number: tuple[str, int] | None = None
    """Day and AOF number that were given out."""
    refusal: Refusal | None = None
    """Refusal that is on record with its target: the events stand, and the caller is refused."""


def task_receipt(task: "Task", status: Status, lease: "Lease | None" = None) -> Receipt:
    """Receipt of a command about an existing task."""
    expires_at = lease.expires_at if lease else 0
    return Receipt(task.id, status, task.attempts, task.fence, expires_at)


def stream_decision(stream: str, state: str, *events: Event) -> Decision:
    """Decision about one stream that is no task: its state, and the events."""
    receipt = Receipt("", None, stream=stream, state=state)
    return Decision(receipt, tuple((stream, event) for event in events))

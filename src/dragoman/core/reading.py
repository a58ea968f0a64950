"""What a decider may ask: a view of the present on behalf of one actor, and the answer it gives."""

from collections.abc import Callable, Iterable
from typing import Protocol

from msgspec import Struct

from dragoman.core.actors import Actor
from dragoman.core.errors import Refusal
from dragoman.core.events import AnyEvent, Status
from dragoman.core.states.agent import AgentRecord
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.intent import Intent
from dragoman.core.states.lease import Lease
from dragoman.core.states.letter import Mail
from dragoman.core.states.reservations import Reservations
from dragoman.core.states.standing import Standing
from dragoman.core.states.task import Task
from dragoman.core.states.trace import Logged, Trace, TurnLog
from dragoman.core.states.wave import Happened, Wave
from dragoman.core.states.work_item import WorkItem


class Read(Protocol):
    """Facts, handed in. The same facts give the same decision."""

    @property
    def actor(self) -> Actor:
        """Who asks."""
        ...

    def task(self, name: str) -> Task | Refusal:
        """The task with this id, alias (KIND:NAME) or bare alias name."""
        ...

    def task_at(self, task: Task, version: int) -> Task | None:
        """The task as it was after this entry of its stream; None: it has no such entry."""
        ...

    def is_taken(self, name: str) -> bool:
        """Whether any task has this id, alias or bare alias name."""
        ...

    def lease(self, task: Task) -> Lease | None:
        """The task's lease, living or dead."""
        ...

    def agent(self, name: str) -> AgentRecord | None:
        """What is known of the agent or person with this name."""
        ...

    def next_ready(
        self, queues: tuple[str, ...], now: int, may_begin: Callable[[Task], bool]
    ) -> Task | None:
        """The first task of these queues with which somebody may begin; each queue is named by
        whom its tasks are reserved for.
        """
        ...

    def handoff(self, id: str) -> Handoff | None:
        """The handoff with this id."""
        ...

    def work_item(self, id: str) -> WorkItem | None:
        """The item of the work queue with this id."""
        ...

    def mail(self, id: str) -> Mail | None:
        """The letter with this id."""
        ...

    def wave(self, id: str) -> Wave | None:
        """The wave with this id."""
        ...

    def open_waves(self) -> tuple[Wave, ...]:
        """Every wave that runs, oldest first."""
        ...

    def history(self, stream: str) -> Iterable[Happened]:
        """All that has happened in a stream, in order."""
        ...

    def reservations(self) -> Reservations:
        """All files that are reserved."""
        ...

    def intent(self, id: str) -> Intent | None:
        """The intent with this id."""
        ...

    def requested(self, request_id: str) -> str:
        """The intent that has had a request with this id; empty: none has."""
        ...

    def standing(self, name: str) -> Standing | None:
        """How an agent stands in the registry."""
        ...

    def trace(self, session: str) -> Trace | None:
        """What is remembered of the trace of this session."""
        ...

    def turns(self, task: str) -> TurnLog | None:
        """What is remembered of the turns of the task with this id."""
        ...

    def logged(self, key: str) -> Logged | None:
        """Where the turn or the event with this key was recorded, if it was."""
        ...

    def held(self, session: str, holder: str) -> tuple[str, ...]:
        """The ids of the tasks that are held in this session; if none is, by this holder."""
        ...

    @property
    def cause(self) -> str:
        """The id of the request: what is made without a name of its own is called by it."""
        ...

    def last_number(self, day: str) -> int:
        """The last AOF number given out on this day; 0 at its beginning."""
        ...


class Receipt(Struct, frozen=True, omit_defaults=True, gc=False, tag="task"):
    """What a command came to: the task and where it stands now."""

    task: str
    status: Status | None
    """None when the command was about no task."""
    attempt: int = 0
    fence: int = 0
    expires_at: int = 0
    stream: str = ""
    """What it was about, where that is no task: `mail:ID`."""
    thread: str = ""
    """The thread of that letter."""
    state: str = ""
    """Where that handoff, or item of the work queue, stands."""
    seal: str = ""
    """The hash of the package that is offered; `expires_at` is then until when it may stay so."""
    log: str = ""
    """The turn or the event of a trace that it recorded, by its key."""
    position: int = 0
    """Where that stands in the ledger; below 0 before the commit: its place in the batch."""
    remark: str = ""
    """What is odd about it."""
    masked: bool = False
    """Whether secrets were taken out of it."""
    before: bool = False
    """Whether it had been recorded before."""
    idle: bool = False
    """Whether a report is not recorded, because the task is where it leads already."""
    ended: tuple[str, ...] = ()
    """The reservations that it ended."""
    version: int = 0
    """How far the task's history had come with it, if it was asked for under a key of the caller's:
    whoever repeats it is shown the task as it was then."""
    reached: int = 0
    """The same of `stream`."""


class LeaseChange(Struct, frozen=True):
    """A lease to write, or (None) to end."""

    task: str
    lease: Lease | None


StreamEvents = tuple[tuple[str, AnyEvent], ...]
"""What is recorded, each with the stream that it is recorded in."""


class Decision(Struct, frozen=True):
    """A yes: the events by stream, what becomes of the lease, and what the caller is told."""

    receipt: Receipt
    events: StreamEvents = ()
    lease: LeaseChange | None = None
    number: tuple[str, int] | None = None
    """The day and AOF number that were given out."""
    refusal: Refusal | None = None
    """A no that is on record with what it is about: the events stand, and the caller is told."""


def receipt(task: Task, status: Status, lease: Lease | None = None) -> Receipt:
    """The receipt of a command about an existing task."""
    expires_at = lease.expires_at if lease else 0
    return Receipt(task.id, status, task.attempts, task.fence, expires_at)


def noted(stream: str, state: str, *events: AnyEvent) -> Decision:
    """A yes that concerns one stream, and no task: where it stands now, and what came of it."""
    told = Receipt("", None, stream=stream, state=state)
    return Decision(told, tuple((stream, event) for event in events))

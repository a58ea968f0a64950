"""What happened, in the past tense: the bodies of ledger entries.

Names and fields are promises: a stored entry is never rewritten, so a change of shape means a new
version and an upcaster in `ledger.codec`. Times inside are milliseconds since the epoch.
"""

from typing import Literal

from msgspec import Struct

Status = Literal[
    "backlog", "ready", "in-progress", "blocked", "review", "done", "deadletter", "cancelled"
]
Priority = Literal["critical", "high", "normal", "low"]
LinkKind = Literal["blocked-by", "parent", "discovered-from"]
Outcome = Literal["done", "blocked", "needs_review", "partial", "failed"]


class Event(Struct, frozen=True, omit_defaults=True, rename={"from_": "from"}):
    """One fact about one stream."""


class TaskCreated(Event, frozen=True):
    """A task began its life, in the status it was born with."""

    id: str
    aof_id: str
    title: str
    status: Status
    body: str = ""
    priority: Priority = "normal"
    review_required: bool = True
    max_attempts: int = 5
    reserved_for: str = ""
    origin: str = ""
    aliases: tuple[str, ...] = ()
    parent: str = ""
    blocked_by: tuple[str, ...] = ()
    open_blockers: tuple[str, ...] = ()
    discovered_from: str = ""


class TaskAliased(Event, frozen=True):
    """The task got one more name, KIND:NAME."""

    alias: str


class TaskLinked(Event, frozen=True):
    """The task points at another one; an open blocker keeps it out of the ready queue."""

    kind: LinkKind
    target: str
    open: bool = False


class TaskBacklinked(Event, frozen=True):
    """Another task points at this one."""

    kind: LinkKind
    source: str


class TaskUnblocked(Event, frozen=True):
    """A blocker of this task ended."""

    blocker: str
    status: Status


class TaskClaimed(Event, frozen=True):
    """An attempt began: the task went in-progress with an agent, under a fencing token."""

    from_: Status
    attempt: int
    fence: int
    agent: str
    ttl_ms: int
    session: str = ""


class TaskTransitioned(Event, frozen=True):
    """The status changed, other than by a claim."""

    from_: Status
    to: Status
    reason: str = ""


class TaskRequeued(Event, frozen=True):
    """An attempt failed or vanished; the task is ready again, not before its backoff."""

    attempt: int
    reason: str
    failures: int
    not_before: int


class TaskReported(Event, frozen=True):
    """An attempt's agent said how it ended; `details` are the dialect's own fields."""

    attempt: int
    agent: str
    outcome: Outcome
    notes: str = ""
    blockers: tuple[str, ...] = ()
    details: dict[str, object] = {}


class TaskNoted(Event, frozen=True):
    """A line of the task's work log."""

    text: str


class CommandRefused(Event, frozen=True):
    """A command was refused; recorded with the actor, never with the target."""

    command: str
    target: str
    code: str
    detail: str


TaskEvent = (
    TaskCreated
    | TaskAliased
    | TaskLinked
    | TaskBacklinked
    | TaskUnblocked
    | TaskClaimed
    | TaskTransitioned
    | TaskRequeued
    | TaskReported
    | TaskNoted
)
AnyEvent = TaskEvent | CommandRefused

EVENT_NAMES: dict[type[Event], str] = {
    TaskCreated: "task.created",
    TaskAliased: "task.aliased",
    TaskLinked: "task.linked",
    TaskBacklinked: "task.backlinked",
    TaskUnblocked: "task.unblocked",
    TaskClaimed: "task.claimed",
    TaskTransitioned: "task.transitioned",
    TaskRequeued: "task.requeued",
    TaskReported: "task.reported",
    TaskNoted: "task.noted",
    CommandRefused: "command.refused",
}
"""The name under which each event is stored. We own these names; class names may change."""

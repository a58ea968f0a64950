"""What happened to a task."""

from msgspec import Struct

from dragoman.core.events.base import Event, LinkKind, Outcome, Priority, Status


class TaskCreated(Event, frozen=True):
    """A task was created, with its first status."""

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
    commit: str = ""
    """Commit checked out in the repository then, where one is configured."""


class TaskAliased(Event, frozen=True):
    """The task got one more name, KIND:NAME."""

    alias: str


class TaskLinked(Event, frozen=True):
    """The task links to another one; an open blocker keeps it out of the ready queue."""

    kind: LinkKind
    target: str
    open: bool = False


class TaskBacklinked(Event, frozen=True):
    """Another task links to this one."""

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
    dispatched_by: str = ""
    """Orchestrator that claimed it for the agent; empty: another role, or the agent itself."""
    commit: str = ""
    """Commit checked out in the repository then, where one is configured."""
    asked_by: str = ""
    """Trace event that caused it, if one did."""


class TaskTransitioned(Event, frozen=True):
    """The status changed, other than by a claim."""

    from_: Status
    to: Status
    reason: str = ""
    commit: str = ""
    """Commit checked out in the repository then, where one is configured."""
    asked_by: str = ""
    """Trace event that caused it, if one did."""
    beside: str = ""
    """Text that came with it besides the reason."""
    unstarted: bool = False
    """It ends an attempt whose agent could not be started or reached."""


class TaskRequeued(Event, frozen=True):
    """An attempt failed or vanished; the task is ready again, not before its backoff."""

    attempt: int
    reason: str
    failures: int
    not_before: int
    commit: str = ""
    """Commit checked out in the repository then, where one is configured."""
    asked_by: str = ""
    """Trace event that caused it, if one did."""


class TaskReported(Event, frozen=True):
    """The outcome of an attempt, in its agent's words; `details` are the dialect's own fields."""

    attempt: int
    agent: str
    outcome: Outcome
    notes: str = ""
    blockers: tuple[str, ...] = ()
    details: dict[str, object] = {}
    by: str = ""
    """Author, if its agent reported nothing: the hub, which observed its end."""


class TaskNoted(Event, frozen=True):
    """A line was added to the task's work log."""

    text: str
    by: str = ""
    """Author of the line, if neither the task's holder nor its owner."""


class TaskProgressed(Event, frozen=True):
    """The worker sent a status update: a line of the task's work log."""

    progress: str = ""
    notes: str = ""
    blockers: tuple[str, ...] = ()
    sent_at: int | None = None
    """When it was written, as its sender states; None: not stated."""


class TaskEdited(Event, frozen=True):
    """Fields of the task got new values; None: unchanged."""

    title: str | None = None
    body: str | None = None
    priority: Priority | None = None
    review_required: bool | None = None
    reserved_for: str | None = None
    """Agent that it is reserved for from now on; empty: anyone."""


class TaskWarned(Event, frozen=True):
    """A message was odd in some way, which was no reason to refuse it."""

    reason: str
    detail: str = ""


class DelegationRequested(Event, frozen=True):
    """The holder of a parent task asked an agent to take this one; replaces an earlier request."""

    parent: str
    from_agent: str
    to_agent: str
    due_by: int
    depth: int
    """Number of delegations the work has passed through, this one included."""
    acceptance_criteria: tuple[str, ...] = ()
    expected_outputs: tuple[str, ...] = ()
    context_refs: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()


class DelegationAccepted(Event, frozen=True):
    """The agent that was asked has accepted."""

    agent: str


class DelegationRejected(Event, frozen=True):
    """The agent that was asked has rejected."""

    agent: str
    reason: str = ""


class DelegationEscalated(Event, frozen=True):
    """The deadline of a delegation passed before its task had ended."""

    due_by: int


class TaskCheckpointed(Event, frozen=True):
    """The worker of the task left what its successor needs."""

    reason: str
    commit: str = ""
    description: str = ""
    next_steps: str = ""
    by: str = ""
    """Author, while nobody worked on the task; empty: its worker."""


class RestoredState(Struct, frozen=True, omit_defaults=True):
    """State of a task at one of its status changes, as far as a rewind brings it back."""

    status: Status
    title: str
    body: str = ""
    priority: Priority = "normal"
    review_required: bool = True
    reserved_for: str = ""
    assignee: str = ""
    failures: int = 0
    obstacle: str = ""
    report: TaskReported | None = None
    reported_at: int = 0
    checkpoint: TaskCheckpointed | None = None
    checkpointed_at: int = 0


class TaskRewound(Event, frozen=True):
    """The task is again as it was at an earlier entry; what came since stays on record.

    Work that was in progress then is ready, because nobody works on it any more.
    """

    from_: Status
    to: Status
    version: int
    """Version of that entry in the stream of the task."""
    restored: RestoredState
    commit: str = ""
    """Commit that goes with it: the one of then, if that is known."""
    branch: str = ""
    """Branch that holds the files of then, if one was made."""
    reason: str = ""

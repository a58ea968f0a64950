"""What happened to a task."""

from msgspec import Struct

from dragoman.core.events.base import Event, LinkKind, Outcome, Priority, Status


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
    commit: str = ""
    """What the repository had checked out then, where one is configured."""


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
    dispatched_by: str = ""
    """The orchestrator that claimed it for the agent; empty: another did, or the agent itself."""
    commit: str = ""
    """What the repository had checked out then, where one is configured."""
    asked_by: str = ""
    """The event of a trace that asked for it, if one did: it is told by that one."""


class TaskTransitioned(Event, frozen=True):
    """The status changed, other than by a claim."""

    from_: Status
    to: Status
    reason: str = ""
    commit: str = ""
    """What the repository had checked out then, where one is configured."""
    asked_by: str = ""
    """The event of a trace that asked for it, if one did: it is told by that one."""
    beside: str = ""
    """What was said with it that is not the reason."""
    unstarted: bool = False
    """Whether it ends an attempt whose agent could not be started or reached."""


class TaskRequeued(Event, frozen=True):
    """An attempt failed or vanished; the task is ready again, not before its backoff."""

    attempt: int
    reason: str
    failures: int
    not_before: int
    commit: str = ""
    """What the repository had checked out then, where one is configured."""
    asked_by: str = ""
    """The event of a trace that asked for it, if one did: it is told by that one."""


class TaskReported(Event, frozen=True):
    """How an attempt ended, in its agent's words; `details` are the dialect's own fields."""

    attempt: int
    agent: str
    outcome: Outcome
    notes: str = ""
    blockers: tuple[str, ...] = ()
    details: dict[str, object] = {}
    by: str = ""
    """Who says so, if its agent has said nothing: the hub, which has seen it end."""


class TaskNoted(Event, frozen=True):
    """A line of the task's work log."""

    text: str
    by: str = ""
    """Whose words these are, if neither its holder's nor its owner's."""


class TaskProgressed(Event, frozen=True):
    """Word from whoever works on the task: a line of its work log, as a status update says it."""

    progress: str = ""
    notes: str = ""
    blockers: tuple[str, ...] = ()
    sent_at: int | None = None
    """When the sender says that it wrote this; None: it did not say."""


class TaskEdited(Event, frozen=True):
    """Fields of the task got new values; None: unchanged."""

    title: str | None = None
    body: str | None = None
    priority: Priority | None = None
    review_required: bool | None = None
    reserved_for: str | None = None
    """Whose it is to take from now on; empty: anyone's."""


class TaskWarned(Event, frozen=True):
    """Something about a message was odd, and was no reason to refuse it."""

    reason: str
    detail: str = ""


class DelegationRequested(Event, frozen=True):
    """The holder of a parent task asked an agent to take this one; it replaces an earlier ask."""

    parent: str
    from_agent: str
    to_agent: str
    due_by: int
    depth: int
    """How many hands the work has been passed on through, this one included."""
    acceptance_criteria: tuple[str, ...] = ()
    expected_outputs: tuple[str, ...] = ()
    context_refs: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()


class DelegationAccepted(Event, frozen=True):
    """The agent that was asked has said yes."""

    agent: str


class DelegationRejected(Event, frozen=True):
    """The agent that was asked has said no."""

    agent: str
    reason: str = ""


class DelegationEscalated(Event, frozen=True):
    """The deadline of a delegation passed before its task had ended."""

    due_by: int


class TaskCheckpointed(Event, frozen=True):
    """Whoever worked on the task left what its successor needs."""

    reason: str
    commit: str = ""
    description: str = ""
    next_steps: str = ""
    by: str = ""
    """Who said so while nobody worked on the task; empty: whoever worked on it."""


class Restored(Struct, frozen=True, omit_defaults=True):
    """How a task stood at one of its transitions: all of it that a rewind brings back."""

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
    """The task is again as it was at an earlier entry of its own; what came since stays on record.

    Work that was under way then is ready, because whoever did it does so no longer.
    """

    from_: Status
    to: Status
    version: int
    """Of that entry, in the stream of the task."""
    restored: Restored
    commit: str = ""
    """The commit that goes with it: the one of then, if that is known."""
    branch: str = ""
    """The branch on which the files of then are, if one was made."""
    reason: str = ""

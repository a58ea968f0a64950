"""What is asked for about tasks."""

from dragoman.core.commands.base import DEFAULT_ATTEMPTS, DEFAULT_TTL_MS, Command, TaskCommand
from dragoman.core.deadlines import Backoff
from dragoman.core.events import LinkKind, Outcome, Priority, Status


class CreateTask(Command, frozen=True, tag="task.create"):
    """Begin a task. Without an id the hub gives it the day's next AOF id."""

    title: str
    id: str = ""
    body: str = ""
    ready: bool = False
    assignee: str = ""
    parent: str = ""
    review_required: bool = True
    priority: Priority = "normal"
    blocked_by: tuple[str, ...] = ()
    discovered_from: str = ""
    aliases: tuple[str, ...] = ()
    origin: str = ""
    max_attempts: int = DEFAULT_ATTEMPTS


class AdoptTask(Command, frozen=True, tag="task.adopt"):
    """Make sure that a task born elsewhere exists: create it unless its name is known."""

    kind: str
    name: str
    title: str = ""
    origin: str = ""
    review_required: bool = True
    max_attempts: int = DEFAULT_ATTEMPTS
    ready: bool = True
    """Whether it may be claimed at once, if it is new here; else it waits in the backlog."""
    claim_for: str = ""
    """Who works on it already, if it is new here: its first attempt begins with it."""
    owner: str = ""
    """Whose it is, if it is new here and nobody works on it yet."""
    ttl_ms: int = DEFAULT_TTL_MS
    session: str = ""


class MoveTask(TaskCommand, frozen=True, tag="task.move"):
    """Change the status, other than into in-progress."""

    to: Status
    reason: str = ""
    fence: int | None = None
    if_at_rest: bool = False
    """Whether a task that somebody works on is left to that one."""


class ClaimTask(TaskCommand, frozen=True, tag="task.claim"):
    """Begin an attempt for an agent; an empty task means the next one that is ready for it."""

    agent: str
    session: str = ""
    ttl_ms: int = DEFAULT_TTL_MS
    queues: tuple[str, ...] = ()
    """Whose tasks it may be, said by whoever may claim for others: names that tasks are reserved
    for, and "" for those of anyone; none: anyone's, and the agent's own."""
    or_renew: bool = False
    """Whether an agent that holds the task already goes on with it, instead of being told no."""


class RenewLease(TaskCommand, frozen=True, tag="task.heartbeat"):
    """A heartbeat: the holder is alive."""

    fence: int | None = None


class ReleaseTask(TaskCommand, frozen=True, tag="task.release"):
    """The holder gives the task back without a failure."""

    reason: str = "released"
    fence: int | None = None
    unstarted: bool = False
    """Whether whoever was to work on it could not be started or reached."""


class CheckpointTask(TaskCommand, frozen=True, tag="task.checkpoint"):
    """The holder gives the task back with what its successor needs to go on."""

    reason: str
    commit: str = ""
    description: str = ""
    next_steps: str = ""
    fence: int | None = None
    backoff: Backoff = Backoff()
    """How the task rests if nothing was reached."""
    anew: bool = False
    """Whether nothing counts that was left before: said of a task on which nobody works."""


class ReportOutcome(TaskCommand, frozen=True, tag="task.report"):
    """The holder says how its attempt ended; applied at once, or when the attempt ends.

    From the hub itself it is what it has seen of a holder that has ended and said nothing.
    """

    outcome: Outcome
    notes: str = ""
    blockers: tuple[str, ...] = ()
    details: dict[str, object] = {}
    fence: int | None = None
    apply: bool = False
    backoff: Backoff = Backoff()
    apply_unnamed: bool = False
    """Applied at once if the stay of the claim has no name by which it could be ended."""
    once: bool = False
    """It is its agent's one word on the attempt: the same again is a repeat, another an anomaly."""
    attempt: int = 0
    """The attempt that such a word is about, where that is said."""


class EndAttempt(TaskCommand, frozen=True, tag="attempt.end"):
    """The holder's session is over: apply what it reported, if it did."""

    session: str = ""
    backoff: Backoff = Backoff()
    fence: int | None = None


class KeepLease(TaskCommand, frozen=True, tag="lease.keep"):
    """The hub says how long the lease of an attempt lasts: long while it is away itself."""

    fence: int
    lasts_ms: int


class ExpireLease(TaskCommand, frozen=True, tag="lease.expire"):
    """Recover a task whose holder has gone silent; nothing happens while its lease lives."""

    backoff: Backoff = Backoff()
    told: tuple[str, ...] = ()
    """Who is to hear of it where the silent one has taken the task over by a handoff."""


class LinkTask(TaskCommand, frozen=True, tag="task.link"):
    """Point a task at another one."""

    kind: LinkKind
    target: str
    fence: int | None = None


class AliasTask(TaskCommand, frozen=True, tag="task.alias"):
    """Give a task one more name, KIND:NAME."""

    alias: str
    fence: int | None = None


class NoteTask(TaskCommand, frozen=True, tag="task.note"):
    """Add a line to a task's work log."""

    text: str
    fence: int | None = None


class UpdateTask(TaskCommand, frozen=True, tag="task.update"):
    """Word from whoever works on a task: another status where the table has the way, else a log."""

    to: Status | None = None
    progress: str = ""
    notes: str = ""
    blockers: tuple[str, ...] = ()
    sent_at: int | None = None
    fence: int | None = None


class EditTask(TaskCommand, frozen=True, tag="task.edit"):
    """Give fields of a task new values; None leaves a field as it is."""

    title: str | None = None
    body: str | None = None
    priority: Priority | None = None
    review_required: bool | None = None
    assignee: str | None = None
    """The agent that it is reserved for; empty: anyone."""
    fence: int | None = None


class WarnTask(TaskCommand, frozen=True, tag="task.warn"):
    """Record that something about a message was odd, though no reason to refuse it."""

    reason: str
    detail: str = ""


class RequestDelegation(TaskCommand, frozen=True, tag="delegation.request"):
    """Ask an agent to take a task as a part of a parent task."""

    parent: str
    to_agent: str
    due_by: int
    acceptance_criteria: tuple[str, ...] = ()
    expected_outputs: tuple[str, ...] = ()
    context_refs: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    from_agent: str = ""
    """On whose behalf; empty: the caller's own."""

    @property
    def held(self) -> str:
        """Whoever delegates works on the parent."""
        return self.parent


class AcceptDelegation(TaskCommand, frozen=True, tag="delegation.accept"):
    """The agent that was asked takes the task."""


class RejectDelegation(TaskCommand, frozen=True, tag="delegation.reject"):
    """The agent that was asked does not take the task."""

    reason: str = ""


class EscalateDelegation(TaskCommand, frozen=True, tag="delegation.escalate"):
    """Record that a delegation is late; nothing happens while it is not."""


class RewindTask(TaskCommand, frozen=True, tag="task.rewind"):
    """Make a task what it was at an earlier entry of its own, by a new one."""

    version: int
    """Of that entry, in the stream of the task."""
    commit: str = ""
    branch: str = ""
    reason: str = ""

"""What is asked for about tasks."""

from dragoman.core.commands.base import DEFAULT_LEASE_MS, DEFAULT_MAX_ATTEMPTS, Command, TaskCommand
from dragoman.core.deadlines import Backoff
from dragoman.core.events import LinkKind, Outcome, Priority, Status


class CreateTask(Command, frozen=True, tag="task.create"):
    """Create a task. Without an id the hub gives it the day's next AOF id."""

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
    max_attempts: int = DEFAULT_MAX_ATTEMPTS


class AdoptTask(Command, frozen=True, tag="task.adopt"):
    """Ensure that a task born elsewhere exists: create it unless its name is known."""

    kind: str
    name: str
    title: str = ""
    origin: str = ""
    review_required: bool = True
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    ready: bool = True
    """If it is new here: claimable at once, else it waits in the backlog."""
    claim_for: str = ""
    """If it is new here: the agent that works on it already; its first attempt begins with it."""
    owner: str = ""
    """If it is new here and nobody works on it yet: the agent it is reserved for."""
    ttl_ms: int = DEFAULT_LEASE_MS
    session: str = ""


class MoveTask(TaskCommand, frozen=True, tag="task.move"):
    """Change the status, other than into in-progress."""

    to: Status
    reason: str = ""
    fence: int | None = None
    if_at_rest: bool = False
    """Refuse while somebody works on the task."""


class ClaimTask(TaskCommand, frozen=True, tag="task.claim"):
    """Start an attempt for an agent, on this task or, if empty, on the next ready one."""

    agent: str
    session: str = ""
    ttl_ms: int = DEFAULT_LEASE_MS
    queues: tuple[str, ...] = ()
    """Queues to take the next task from, for callers that may claim for others: names that tasks
    are reserved for, and "" for those of anyone; none: anyone's, and the agent's own."""
    or_renew: bool = False
    """Renew the lease of an agent that holds the task already, instead of refusing."""


class RenewLease(TaskCommand, frozen=True, tag="task.heartbeat"):
    """A heartbeat: the holder is alive."""

    fence: int | None = None


class ReleaseTask(TaskCommand, frozen=True, tag="task.release"):
    """Return the task to its queue without counting a failure."""

    reason: str = "released"
    fence: int | None = None
    unstarted: bool = False
    """Its worker could not be started or reached."""


class CheckpointTask(TaskCommand, frozen=True, tag="task.checkpoint"):
    """Return the task to its queue with what a successor needs to go on."""

    reason: str
    commit: str = ""
    description: str = ""
    next_steps: str = ""
    fence: int | None = None
    backoff: Backoff = Backoff()
    """Backoff that applies if nothing was achieved."""
    anew: bool = False
    """Replace an earlier checkpoint instead of completing it; for a task without attempt."""


class ReportOutcome(TaskCommand, frozen=True, tag="task.report"):
    """Report the outcome of an attempt; applied at once, or when the attempt ends.

    From the hub itself: the outcome it observed of a holder that ended without a report.
    """

    outcome: Outcome
    notes: str = ""
    blockers: tuple[str, ...] = ()
    details: dict[str, object] = {}
    fence: int | None = None
    apply: bool = False
    backoff: Backoff = Backoff()
    apply_unnamed: bool = False
    """Apply at once if the claim has no session whose end would apply it."""
    once: bool = False
    """Final result of the attempt: the same again is a repeat, another one an anomaly."""
    attempt: int = 0
    """Number of the attempt that a final result is about, where it is stated."""


class EndAttempt(TaskCommand, frozen=True, tag="attempt.end"):
    """End the holder's session: apply what it reported, if it did."""

    session: str = ""
    backoff: Backoff = Backoff()
    fence: int | None = None


class SetLeaseDuration(TaskCommand, frozen=True, tag="lease.keep"):
    """Set how long the lease of an attempt lasts: long while the hub itself is away."""

    fence: int
    lasts_ms: int


class ExpireLease(TaskCommand, frozen=True, tag="lease.expire"):
    """Recover a task whose holder has gone silent; no-op while its lease is valid."""

    backoff: Backoff = Backoff()
    told: tuple[str, ...] = ()
    """Recipients of a notice where the silent holder had accepted the task by a handoff."""


class LinkTask(TaskCommand, frozen=True, tag="task.link"):
    """Link a task to another one."""

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
    """Update from the task's worker: a transition where the table allows it, else a log line."""

    to: Status | None = None
    progress: str = ""
    notes: str = ""
    blockers: tuple[str, ...] = ()
    sent_at: int | None = None
    fence: int | None = None


class EditTask(TaskCommand, frozen=True, tag="task.edit"):
    """Edit fields of a task; None leaves a field as it is."""

    title: str | None = None
    body: str | None = None
    priority: Priority | None = None
    review_required: bool | None = None
    assignee: str | None = None
    """Agent that it is reserved for; empty: anyone."""
    fence: int | None = None


class WarnTask(TaskCommand, frozen=True, tag="task.warn"):
    """Record an oddity of a message that was no reason to refuse it."""

    reason: str
    detail: str = ""


class RequestDelegation(TaskCommand, frozen=True, tag="delegation.request"):
    """Request that an agent takes a task as a part of a parent task."""

    parent: str
    to_agent: str
    due_by: int
    acceptance_criteria: tuple[str, ...] = ()
    expected_outputs: tuple[str, ...] = ()
    context_refs: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    from_agent: str = ""
    """Agent that delegates; empty: the caller."""

    @property
    def heartbeat_task(self) -> str:
        """The parent: its holder delegates."""
        return self.parent


class AcceptDelegation(TaskCommand, frozen=True, tag="delegation.accept"):
    """Accept a delegation, as the agent that was asked."""


class RejectDelegation(TaskCommand, frozen=True, tag="delegation.reject"):
    """Reject a delegation, as the agent that was asked."""

    reason: str = ""


class EscalateDelegation(TaskCommand, frozen=True, tag="delegation.escalate"):
    """Record that a delegation is late; no-op while it is not."""


class RewindTask(TaskCommand, frozen=True, tag="task.rewind"):
    """Restore a task as it was at an earlier entry of its stream, by a new entry."""

    version: int
    """Version of that entry in the stream of the task."""
    commit: str = ""
    branch: str = ""
    reason: str = ""

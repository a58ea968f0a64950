"""Attempts at a task: events, reports, checkpoints, and the worker's lease (S-RUN).

A lease is a row beside the ledger, because a heartbeat is not history; the claim that granted
it is. The commands are in `task_state`, with those of tasks.
"""

from typing import Final

from msgspec import Struct

from dragoman.core.base import Event, Outcome, Status
from dragoman.core.timestamps import clamp_timestamp

# --- events -----------------------------------------------------------------------------------


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
    caused_by: str = ""
    """Trace event that caused it, if one did."""
    checks: tuple[str, ...] = ()
    """Commands of the agent's settings that the hub runs before a completion counts."""


class TaskRequeued(Event, frozen=True):
    """An attempt failed or vanished; the task is ready again, not before its backoff."""

    attempt: int
    reason: str
    failures: int
    not_before: int
    commit: str = ""
    """Commit checked out in the repository then, where one is configured."""
    caused_by: str = ""
    """Trace event that caused it, if one did."""
    by_report: bool = False
    """It applies the report of the attempt, which it else drops."""


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


class TaskCheckpointed(Event, frozen=True):
    """The worker of the task left what its successor needs."""

    reason: str
    commit: str = ""
    description: str = ""
    next_steps: str = ""
    by: str = ""
    """Author, while nobody worked on the task; empty: its worker."""


class AttemptQuiet(Event, frozen=True):
    """The holder of the task has shown no progress for long; it keeps the task."""

    attempt: int
    agent: str
    since: int
    """Time of its last progress."""


class AttemptEscalated(Event, frozen=True):
    """The holder was found quiet, and has shown no progress since; it still keeps the task."""

    attempt: int
    agent: str
    since: int
    """Time of its last progress."""


# --- state ------------------------------------------------------------------------------------

OUTCOME_STATUSES: dict[Outcome, tuple[Status, ...]] = {
    "done": ("review", "done"),
    "blocked": ("blocked",),
    "needs_review": ("review",),
    "partial": ("review",),
    "failed": ("ready",),
}
"""Outcome -> the statuses it leads through; `done` stops at review when one is required."""


class Report(TaskReported, frozen=True, gc=False):
    """Report of an attempt, in its agent's words."""

    at: int = 0


FORCED_CHECKPOINT_REASONS: Final = frozenset({"CONTEXT_HIGH", "TIMEOUT"})
"""Reasons for a checkpoint that the worker did not choose."""


class Checkpoint(TaskCheckpointed, frozen=True, gc=False):
    """Point at which an attempt stopped, in the words of its agent, for its successor."""

    at: int = 0

    @property
    def is_forced(self) -> bool:
        """True if its agent had to stop there."""
        return self.reason in FORCED_CHECKPOINT_REASONS


class FailedStarts(Struct, frozen=True, omit_defaults=True, gc=False):
    """Consecutive attempts whose agent could not be started or reached."""

    first: int
    last: int
    why: str


NOT_QUIET: Final = 0

FLAGGED_QUIET: Final = 1

ESCALATED_QUIET: Final = 2


class Lease(Struct, frozen=True, gc=False):
    """An agent's hold on a task: valid before `expires_at`, expired from then on.

    A heartbeat says that the holder is alive; whatever it writes that is on record is progress.
    """

    holder: str
    fence: int
    ttl_ms: int
    last_heartbeat: int
    expires_at: int
    session: str = ""
    heartbeats: int = 1
    started_at: int = 0
    progress_at: int = 0
    """Time of the last progress; at first, of the claim."""
    quiet_level: int = NOT_QUIET
    """Record of a lack of progress: none, a flag, or an escalation."""

    @property
    def is_quiet(self) -> bool:
        """True if its lack of progress is on record, and has not ended since."""
        return self.quiet_level != NOT_QUIET

    def is_valid(self, now: int) -> bool:
        """True while the holder may write."""
        return now < self.expires_at


def grant_lease(holder: str, fence: int, session: str, ttl_ms: int, now: int) -> Lease:
    """Grant a lease; the claim is its first heartbeat, so that a crash before one is seen."""
    expires_at = clamp_timestamp(now + ttl_ms)
    return Lease(holder, fence, ttl_ms, now, expires_at, session, started_at=now, progress_at=now)


def renew_lease(lease: Lease, now: int, *, has_progress: bool = False) -> Lease:
    """Renew the lease by a sign of life. A clock that went back never shortens it.

    Its end is at most the last representable timestamp: no sign of life is refused for its time.
    """
    return Lease(
        lease.holder,
        lease.fence,
        lease.ttl_ms,
        max(now, lease.last_heartbeat),
        max(clamp_timestamp(now + lease.ttl_ms), lease.expires_at),
        lease.session,
        lease.heartbeats + 1,
        lease.started_at,
        max(now, lease.progress_at) if has_progress else lease.progress_at,
        NOT_QUIET if has_progress else lease.quiet_level,
    )

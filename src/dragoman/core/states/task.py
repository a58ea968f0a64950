"""A task: its states, and the table of its transitions (S-TASK)."""

from typing import Final, Literal

from msgspec import Struct

from dragoman.core.events import Outcome, Priority, Status
from dragoman.core.ids import bare_name

DelegationState = Literal["requested", "accepted", "rejected"]

TASK_TRANSITIONS: dict[Status, tuple[Status, ...]] = {
    "backlog": ("ready", "blocked", "cancelled"),
    "ready": ("in-progress", "blocked", "backlog", "deadletter", "cancelled"),
    "in-progress": ("review", "ready", "blocked", "deadletter", "cancelled"),
    "blocked": ("ready", "review", "deadletter", "cancelled"),
    "review": ("done", "in-progress", "ready", "blocked", "cancelled"),
    "deadletter": ("ready",),
    "done": (),
    "cancelled": (),
}
"""Status -> the statuses that a task may go to."""

BEAD_KIND = "bead"
"""Kind of alias that a task has in letters."""

FINAL_STATUSES: frozenset[Status] = frozenset({"done", "cancelled"})
"""Nothing leaves these statuses, and they unblock the tasks that waited."""

CLAIMABLE_STATUSES: frozenset[Status] = frozenset({"ready", "review"})
"""A claim takes a task from these to in-progress; from review it is rework by its owner."""

PRIORITY_RANK: dict[Priority, int] = {"critical": 0, "high": 1, "normal": 2, "low": 3}

OUTCOME_STATUSES: dict[Outcome, tuple[Status, ...]] = {
    "done": ("review", "done"),
    "blocked": ("blocked",),
    "needs_review": ("review",),
    "partial": ("review",),
    "failed": ("ready",),
}
"""Outcome -> the statuses it leads through; `done` stops at review when one is required."""


class Report(Struct, frozen=True, omit_defaults=True, gc=False):
    """Report of an attempt, in its agent's words."""

    attempt: int
    agent: str
    outcome: Outcome
    at: int
    notes: str = ""
    blockers: tuple[str, ...] = ()
    details: dict[str, object] = {}
    by: str = ""
    """Author, if its agent reported nothing."""


class Delegation(Struct, frozen=True, omit_defaults=True, gc=False):
    """Request to an agent to take a task, and its answer."""

    parent: str
    from_agent: str
    to_agent: str
    due_by: int
    state: DelegationState = "requested"
    acceptance_criteria: tuple[str, ...] = ()
    expected_outputs: tuple[str, ...] = ()
    context_refs: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    escalated: bool = False
    """It is on record that its deadline has passed."""


FORCED_CHECKPOINT_REASONS: Final = frozenset({"CONTEXT_HIGH", "TIMEOUT"})
"""Reasons for a checkpoint that the worker did not choose."""


class Checkpoint(Struct, frozen=True, omit_defaults=True, gc=False):
    """Where an attempt stopped, in the words of its agent, for its successor."""

    by: str
    at: int
    reason: str
    commit: str = ""
    description: str = ""
    next_steps: str = ""

    @property
    def is_forced(self) -> bool:
        """True if its agent had to stop there."""
        return self.reason in FORCED_CHECKPOINT_REASONS


class FailedStarts(Struct, frozen=True, omit_defaults=True, gc=False):
    """Consecutive attempts whose agent could not be started or reached."""

    first: int
    last: int
    why: str


class ActiveHandoff(Struct, frozen=True, omit_defaults=True, gc=False):
    """Handoff that the task is offered or was accepted by."""

    id: str
    owner: str
    recipient: str
    is_taken: bool = False
    lifts_block: bool = False
    """Offered by its owner while it was held back, and not moved since: the handoff unblocks it."""
    was_free: bool = False
    """Unowned before, and not started since: then it has no owner again afterwards."""

    @property
    def claimant(self) -> str:
        """The only agent that may claim the task meanwhile (S-OWN)."""
        return self.recipient if self.is_taken else self.owner


class Task(Struct, frozen=True, omit_defaults=True, gc=False):
    """State of one task, folded from its entries."""

    id: str
    aof_id: str
    title: str
    status: Status
    created_at: int
    updated_at: int
    moved_at: int
    body: str = ""
    priority: Priority = "normal"
    review_required: bool = True
    max_attempts: int = 5
    reserved_for: str = ""
    """The only agent that may take it from the queue; empty: anyone."""
    assignee: str = ""
    """The owner: its holder, or the last holder while it is in review or blocked."""
    origin: str = ""
    aliases: tuple[str, ...] = ()
    parent: str = ""
    children: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()
    open_blockers: tuple[str, ...] = ()
    obstacle: str = ""
    """Reason why it is blocked, in the words of whoever blocked it."""
    blocks: tuple[str, ...] = ()
    discovered_from: str = ""
    discovered: tuple[str, ...] = ()
    attempts: int = 0
    fence: int = 0
    session: str = ""
    dispatched_by: str = ""
    """The orchestrator that claimed it for its assignee, and may hence not approve it."""
    agents: tuple[str, ...] = ()
    """All former holders, so that a returning one is told that its lease is lost."""
    failures: int = 0
    not_before: int = 0
    reported: Report | None = None
    notes: int = 0
    """Number of lines in its work log."""
    warnings: int = 0
    depth: int = 0
    """Number of delegations it passed through."""
    chain: tuple[str, ...] = ()
    """Owners so far by handoffs, the first one first (S-ACP-5)."""
    handoff: ActiveHandoff | None = None
    """Active handoff: offered, or accepted and not closed."""
    checkpoint: Checkpoint | None = None
    """Checkpoint of the last worker that returned it half done, for its successor."""
    delegation: Delegation | None = None
    unstarted: FailedStarts | None = None
    """The last of its attempts that failed to start."""
    head_hash: str = ""
    """Commit checked out in its repository at its last status change, as far as known."""

    @property
    def names(self) -> frozenset[str]:
        """All of its names, without the kinds of its aliases."""
        return frozenset({self.id, self.aof_id, *map(bare_name, self.aliases)})

    @property
    def mail_name(self) -> str:
        """Name in letters, and of their thread: its first bead alias, or its id (S-MAIL-8)."""
        beads = (alias for alias in self.aliases if alias.startswith(f"{BEAD_KIND}:"))
        return bare_name(next(beads, self.id))

    @property
    def is_final(self) -> bool:
        """True if the task has ended for good."""
        return self.status in FINAL_STATUSES

    def start_failure_after(self, after: int) -> str:
        """Reason why each attempt after this number failed to start; empty: one started."""
        failed_starts = self.unstarted
        is_all = (
            failed_starts is not None
            and failed_starts.first <= after + 1
            and failed_starts.last == self.attempts
        )
        return failed_starts.why if failed_starts is not None and is_all else ""

    @property
    def is_delegated(self) -> bool:
        """True if it is delegated, and not ended or rejected."""
        delegation = self.delegation
        return delegation is not None and delegation.state != "rejected" and not self.is_final

    @property
    def delegation_deadline(self) -> int | None:
        """When its delegation has to be reported as late; None: never, or it was."""
        delegation = self.delegation
        if delegation is None or delegation.escalated or not self.is_delegated:
            return None
        return delegation.due_by


def task_list_keys(task: Task) -> tuple[str, ...]:
    """Keys of the lists it stands on: delegations that wait for an agent's answer."""
    delegation = task.delegation
    if delegation is None or delegation.state != "requested" or task.is_final:
        return ()
    return (f"offered:{delegation.to_agent}",)


def can_transition(from_: Status, to: Status) -> bool:
    """True if the table has this transition."""
    return to in TASK_TRANSITIONS[from_]

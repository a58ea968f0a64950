"""A task: its states, and the table of its transitions (S-TASK)."""

from typing import Final, Literal

from msgspec import Struct

from dragoman.core.events import Outcome, Priority, Status
from dragoman.core.ids import bare

DelegationState = Literal["requested", "accepted", "rejected"]

TRANSITIONS: dict[Status, tuple[Status, ...]] = {
    "backlog": ("ready", "blocked", "cancelled"),
    "ready": ("in-progress", "blocked", "backlog", "deadletter", "cancelled"),
    "in-progress": ("review", "ready", "blocked", "deadletter", "cancelled"),
    "blocked": ("ready", "review", "deadletter", "cancelled"),
    "review": ("done", "in-progress", "ready", "blocked", "cancelled"),
    "deadletter": ("ready",),
    "done": (),
    "cancelled": (),
}
"""From each status, the statuses that a task may go to."""

BEAD = "bead"
"""The kind of name that a task has in letters."""

FINAL: frozenset[Status] = frozenset({"done", "cancelled"})
"""Nothing leaves these, and whoever waited for the task need not wait any longer."""

CLAIMABLE: frozenset[Status] = frozenset({"ready", "review"})
"""A claim takes a task from here to in-progress; from review it is rework by its owner."""

PRIORITY_RANK: dict[Priority, int] = {"critical": 0, "high": 1, "normal": 2, "low": 3}

STATUS_AFTER: dict[Outcome, tuple[Status, ...]] = {
    "done": ("review", "done"),
    "blocked": ("blocked",),
    "needs_review": ("review",),
    "partial": ("review",),
    "failed": ("ready",),
}
"""Where a reported outcome takes the task; `done` stops at review when a review is required."""


class Reported(Struct, frozen=True, omit_defaults=True, gc=False):
    """How an attempt ended, in its agent's words."""

    attempt: int
    agent: str
    outcome: Outcome
    at: int
    notes: str = ""
    blockers: tuple[str, ...] = ()
    details: dict[str, object] = {}
    by: str = ""
    """Who says so, if its agent has said nothing."""


class Delegation(Struct, frozen=True, omit_defaults=True, gc=False):
    """What an agent was asked to do with a task, and what it said to that."""

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
    """Whether it was recorded that its deadline has passed."""


FORCED: Final = frozenset({"CONTEXT_HIGH", "TIMEOUT"})
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
        """Whether its agent had to stop there."""
        return self.reason in FORCED


class Unstarted(Struct, frozen=True, omit_defaults=True, gc=False):
    """Attempts one after the other whose agent could not be started or reached."""

    first: int
    last: int
    why: str


class ActiveHandoff(Struct, frozen=True, omit_defaults=True, gc=False):
    """Between whom a task is on its way."""

    id: str
    owner: str
    recipient: str
    is_taken: bool = False
    lifts_block: bool = False
    """Whether it was offered by its owner where it is held back; not where it was put since."""
    was_free: bool = False
    """Whether nobody had it before, nor has begun since: then it is nobody's again afterwards."""

    @property
    def only(self) -> str:
        """Who alone may claim the task meanwhile (S-OWN)."""
        return self.recipient if self.is_taken else self.owner


class Task(Struct, frozen=True, omit_defaults=True, gc=False):
    """The state of one task, folded from its entries."""

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
    """The owner: who holds it, or the last holder while it is in review or blocked."""
    origin: str = ""
    aliases: tuple[str, ...] = ()
    parent: str = ""
    children: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()
    open_blockers: tuple[str, ...] = ()
    obstacle: str = ""
    """What is in its way while it is blocked, in the words of whoever has stopped it."""
    blocks: tuple[str, ...] = ()
    discovered_from: str = ""
    discovered: tuple[str, ...] = ()
    attempts: int = 0
    fence: int = 0
    session: str = ""
    dispatched_by: str = ""
    """The orchestrator that claimed it for its assignee, and may hence not approve it."""
    agents: tuple[str, ...] = ()
    """Everyone who ever held it, so that a returning one is told that its lease is lost."""
    failures: int = 0
    not_before: int = 0
    reported: Reported | None = None
    notes: int = 0
    """How many lines its work log has."""
    warnings: int = 0
    depth: int = 0
    """How many hands it was passed on through: 0 unless it was delegated."""
    chain: tuple[str, ...] = ()
    """Its owners so far as handoffs have made them, the first one first (S-ACP-5)."""
    handoff: ActiveHandoff | None = None
    """The handoff that it is on its way by, or was taken over by."""
    checkpoint: Checkpoint | None = None
    """What the last one who gave it back half done left for whoever goes on."""
    delegation: Delegation | None = None
    unstarted: Unstarted | None = None
    """The last of its attempts that came to nothing before they began."""
    head_hash: str = ""
    """What its repository had checked out when it last moved, as far as that is known."""

    @property
    def names(self) -> frozenset[str]:
        """Everything that it is called, without the kinds of its aliases."""
        return frozenset({self.id, self.aof_id, *map(bare, self.aliases)})

    @property
    def in_letters(self) -> str:
        """What it is called in letters, and their thread: its first bead, or its id (S-MAIL-8)."""
        beads = (alias for alias in self.aliases if alias.startswith(f"{BEAD}:"))
        return bare(next(beads, self.id))

    @property
    def is_final(self) -> bool:
        """Whether the task has ended for good."""
        return self.status in FINAL

    def why_not_begun(self, after: int) -> str:
        """Why each attempt after the one with this number could not begin; empty: one did."""
        row = self.unstarted
        is_all = row is not None and row.first <= after + 1 and row.last == self.attempts
        return row.why if row is not None and is_all else ""

    @property
    def is_delegated(self) -> bool:
        """Whether somebody waits for an agent to do this."""
        asked = self.delegation
        return asked is not None and asked.state != "rejected" and not self.is_final

    @property
    def deadline(self) -> int | None:
        """When somebody has to be told that its delegation is late; None: never, or it was."""
        asked = self.delegation
        if asked is None or asked.escalated or not self.is_delegated:
            return None
        return asked.due_by


def lists_of_task(task: Task) -> tuple[str, ...]:
    """The list of those tasks that were handed to one agent and wait for its yes or no."""
    asked = task.delegation
    if asked is None or asked.state != "requested" or task.is_final:
        return ()
    return (f"offered:{asked.to_agent}",)


def can_move(from_: Status, to: Status) -> bool:
    """Whether the table has this transition."""
    return to in TRANSITIONS[from_]

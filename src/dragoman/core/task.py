"""A task: its states, the table of its transitions, and how each event changes it (S-TASK)."""

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from dragoman.core.events import (
    DelegationAccepted,
    DelegationEscalated,
    DelegationRejected,
    DelegationRequested,
    LinkKind,
    Outcome,
    Priority,
    Status,
    TaskAliased,
    TaskBacklinked,
    TaskCheckpointed,
    TaskClaimed,
    TaskCreated,
    TaskEdited,
    TaskEvent,
    TaskHandedOver,
    TaskLinked,
    TaskNoted,
    TaskProgressed,
    TaskReported,
    TaskRequeued,
    TaskRewound,
    TaskTransitioned,
    TaskUnblocked,
    TaskWarned,
)

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


class Checkpoint(Struct, frozen=True, omit_defaults=True, gc=False):
    """Where an attempt stopped, in the words of its agent, for its successor."""

    by: str
    at: int
    reason: str
    commit: str = ""
    description: str = ""
    next_steps: str = ""


class ActiveHandoff(Struct, frozen=True, omit_defaults=True, gc=False):
    """Between whom a task is on its way."""

    id: str
    owner: str
    recipient: str
    is_taken: bool = False

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
    head_hash: str = ""
    """What its repository had checked out when it last moved, as far as that is known."""

    @property
    def is_final(self) -> bool:
        """Whether the task has ended for good."""
        return self.status in FINAL

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


def _created(_: Task | None, event: TaskCreated, at: int) -> Task:
    return Task(
        id=event.id,
        aof_id=event.aof_id,
        title=event.title,
        status=event.status,
        created_at=at,
        updated_at=at,
        moved_at=at,
        body=event.body,
        priority=event.priority,
        review_required=event.review_required,
        max_attempts=event.max_attempts,
        reserved_for=event.reserved_for,
        assignee=event.reserved_for,
        origin=event.origin,
        aliases=event.aliases,
        parent=event.parent,
        blocked_by=event.blocked_by,
        open_blockers=event.open_blockers,
        discovered_from=event.discovered_from,
        head_hash=event.commit,
    )


def _aliased(task: Task, event: TaskAliased, at: int) -> Task:
    return replace(task, aliases=(*task.aliases, event.alias), updated_at=at)


def _linked(task: Task, event: TaskLinked, at: int) -> Task:
    if event.kind == "parent":
        return replace(task, parent=event.target, updated_at=at)
    if event.kind == "discovered-from":
        return replace(task, discovered_from=event.target, updated_at=at)
    still_open = (*task.open_blockers, event.target) if event.open else task.open_blockers
    return replace(
        task,
        blocked_by=(*task.blocked_by, event.target),
        open_blockers=still_open,
        updated_at=at,
    )


_BACKLINKS: dict[LinkKind, str] = {
    "blocked-by": "blocks",
    "parent": "children",
    "discovered-from": "discovered",
}


def _backlinked(task: Task, event: TaskBacklinked, at: int) -> Task:
    field = _BACKLINKS[event.kind]
    return replace(task, updated_at=at, **{field: (*getattr(task, field), event.source)})


def _unblocked(task: Task, event: TaskUnblocked, at: int) -> Task:
    still_open = tuple(name for name in task.open_blockers if name != event.blocker)
    return replace(task, open_blockers=still_open, updated_at=at)


def _claimed(task: Task, event: TaskClaimed, at: int) -> Task:
    agents = task.agents if event.agent in task.agents else (*task.agents, event.agent)
    return replace(
        task,
        status="in-progress",
        assignee=event.agent,
        attempts=event.attempt,
        fence=event.fence,
        session=event.session,
        dispatched_by=event.dispatched_by,
        agents=agents,
        not_before=0,
        reported=None,
        head_hash=event.commit or task.head_hash,
        updated_at=at,
        moved_at=at,
    )


def _transitioned(task: Task, event: TaskTransitioned, at: int) -> Task:
    # A task that becomes ready goes back to its queue, and a person who takes one out of the
    # deadletter gives it a fresh set of attempts.
    revived = event.from_ == "deadletter" or event.to in ("review", "done")
    return replace(
        task,
        status=event.to,
        head_hash=event.commit or task.head_hash,
        assignee=task.reserved_for if event.to == "ready" else task.assignee,
        failures=0 if revived else task.failures,
        not_before=0,
        checkpoint=None if event.to in ("review", "done") else task.checkpoint,
        updated_at=at,
        moved_at=at,
    )


def _requeued(task: Task, event: TaskRequeued, at: int) -> Task:
    return replace(
        task,
        status="ready",
        head_hash=event.commit or task.head_hash,
        assignee=task.reserved_for,
        failures=event.failures,
        not_before=event.not_before,
        updated_at=at,
        moved_at=at,
    )


def _reported(task: Task, event: TaskReported, at: int) -> Task:
    reported = Reported(
        attempt=event.attempt,
        agent=event.agent,
        outcome=event.outcome,
        at=at,
        notes=event.notes,
        blockers=event.blockers,
        details=event.details,
    )
    return replace(task, reported=reported, updated_at=at)


def _noted(task: Task, _: TaskNoted | TaskProgressed, at: int) -> Task:
    return replace(task, notes=task.notes + 1, updated_at=at)


def _edited(task: Task, event: TaskEdited, at: int) -> Task:
    changes = {field: value for field, value in asdict(event).items() if value is not None}
    assignee = task.assignee if event.reserved_for is None else event.reserved_for
    return replace(task, assignee=assignee, updated_at=at, **changes)


def _warned(task: Task, _: TaskWarned, at: int) -> Task:
    return replace(task, warnings=task.warnings + 1, updated_at=at)


def _handed_over(task: Task, event: TaskHandedOver, at: int) -> Task:
    under_way = ActiveHandoff(event.handoff, event.owner, event.recipient, event.is_taken)
    return replace(
        task,
        chain=event.chain,
        handoff=under_way if event.recipient else None,
        updated_at=at,
    )


def _checkpointed(task: Task, event: TaskCheckpointed, at: int) -> Task:
    left = Checkpoint(
        event.by or task.assignee,
        at,
        event.reason,
        event.commit,
        event.description,
        event.next_steps,
    )
    return replace(task, checkpoint=left, updated_at=at)


def _requested(task: Task, event: DelegationRequested, at: int) -> Task:
    asked = Delegation(
        parent=event.parent,
        from_agent=event.from_agent,
        to_agent=event.to_agent,
        due_by=event.due_by,
        acceptance_criteria=event.acceptance_criteria,
        expected_outputs=event.expected_outputs,
        context_refs=event.context_refs,
        constraints=event.constraints,
    )
    return replace(task, delegation=asked, depth=event.depth, updated_at=at)


def _accepted(task: Task, _: DelegationAccepted, at: int) -> Task:
    return _with_delegation(task, at, state="accepted")


def _rejected(task: Task, _: DelegationRejected, at: int) -> Task:
    return _with_delegation(task, at, state="rejected")


def _escalated(task: Task, _: DelegationEscalated, at: int) -> Task:
    return _with_delegation(task, at, escalated=True)


def _with_delegation(task: Task, at: int, **changes: object) -> Task:
    asked = task.delegation
    return replace(task, delegation=asked and replace(asked, **changes), updated_at=at)


def _rewound(task: Task, event: TaskRewound, at: int) -> Task:
    was = event.restored
    report, left = was.report, was.checkpoint
    return replace(
        task,
        status=event.to,
        head_hash=event.commit or task.head_hash,
        title=was.title,
        body=was.body,
        priority=was.priority,
        review_required=was.review_required,
        reserved_for=was.reserved_for,
        assignee=was.assignee,
        failures=was.failures,
        not_before=0,
        reported=report and Reported(at=was.reported_at, **asdict(report)),
        checkpoint=left and Checkpoint(at=was.checkpointed_at, **asdict(left)),
        updated_at=at,
        moved_at=at,
    )


EVOLVE_TASK: dict[type[TaskEvent], Callable[[Any, Any, int], Task]] = {
    TaskCreated: _created,
    TaskAliased: _aliased,
    TaskLinked: _linked,
    TaskBacklinked: _backlinked,
    TaskUnblocked: _unblocked,
    TaskClaimed: _claimed,
    TaskTransitioned: _transitioned,
    TaskRequeued: _requeued,
    TaskReported: _reported,
    TaskNoted: _noted,
    TaskProgressed: _noted,
    TaskEdited: _edited,
    TaskWarned: _warned,
    DelegationRequested: _requested,
    DelegationAccepted: _accepted,
    DelegationRejected: _rejected,
    DelegationEscalated: _escalated,
    TaskCheckpointed: _checkpointed,
    TaskHandedOver: _handed_over,
    TaskRewound: _rewound,
}
"""Event -> the task after it, from the task before it (None at its creation) and its time."""

"""Tasks: commands, events, the table of statuses, the state and its fold (S-TASK).

`Task` is folded from the stream `task:ID`, which holds the events of its attempts, delegations
and handoffs, too. The commands of attempts and delegations stand here, with those of tasks.
"""

from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from dragoman.core.attempt_state import (
    Checkpoint,
    FailedStarts,
    Report,
    TaskCheckpointed,
    TaskClaimed,
    TaskReported,
    TaskRequeued,
)
from dragoman.core.base import (
    DEFAULT_LEASE_MS,
    DEFAULT_MAX_ATTEMPTS,
    Command,
    Event,
    LinkKind,
    Priority,
    Status,
    TaskCommand,
)
from dragoman.core.ids import bare_name

INTENT_ALIAS_KIND: Final = "intent"
"""Kind of alias by which the task of an intent is found."""


# --- commands ---------------------------------------------------------------------------------


class CreateTask(Command, frozen=True, tag="task.create"):
    """Create a task. Without an id the hub gives it the day's next AOF id.

    With `due_by` it is delegated to its assignee, as a part of its parent, from the beginning:
    nobody can claim it before the request is there.
    """

    free_text = (
        "title",
        "body",
        "acceptance_criteria",
        "expected_outputs",
        "context_refs",
        "constraints",
    )

    title: str
    id: str = ""
    body: str = ""
    ready: bool = False
    assignee: str = ""
    parent: str = ""
    review_required: bool = True
    may_skip_review: bool = False
    """The settings let an agent create it without review."""
    priority: Priority = "normal"
    blocked_by: tuple[str, ...] = ()
    discovered_from: str = ""
    aliases: tuple[str, ...] = ()
    origin: str = ""
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    due_by: int | None = None
    acceptance_criteria: tuple[str, ...] = ()
    expected_outputs: tuple[str, ...] = ()
    context_refs: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()

    @property
    def heartbeat_task(self) -> str:
        """The parent, if its holder delegates."""
        return "" if self.due_by is None else self.parent


class AdoptTask(Command, frozen=True, tag="task.adopt"):
    """Ensure that a task born elsewhere exists: create it unless its name is known."""

    free_text = ("title",)

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

    free_text = ("reason",)

    to: Status
    reason: str = ""
    fence: int | None = None
    unless_in_progress: bool = False
    """Refuse while somebody works on the task."""


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

    free_text = ("text",)

    text: str
    fence: int | None = None


class UpdateTask(TaskCommand, frozen=True, tag="task.update"):
    """Update from the task's worker: a transition where the table allows it, else a log line."""

    free_text = ("progress", "notes", "blockers")

    to: Status | None = None
    progress: str = ""
    notes: str = ""
    blockers: tuple[str, ...] = ()
    sent_at: int | None = None
    fence: int | None = None


class EditTask(TaskCommand, frozen=True, tag="task.edit"):
    """Edit fields of a task; None leaves a field as it is."""

    free_text = ("title", "body")

    title: str | None = None
    body: str | None = None
    priority: Priority | None = None
    review_required: bool | None = None
    assignee: str | None = None
    """Agent that it is reserved for; empty: anyone."""
    fence: int | None = None


class WarnTask(TaskCommand, frozen=True, tag="task.warn"):
    """Record an oddity of a message that was no reason to refuse it."""

    free_text = ("detail",)

    reason: str
    detail: str = ""


class RewindTask(TaskCommand, frozen=True, tag="task.rewind"):
    """Restore a task as it was at an earlier entry of its stream, by a new entry."""

    free_text = ("reason",)

    version: int
    """Version of that entry in the stream of the task."""
    commit: str = ""
    branch: str = ""
    reason: str = ""


# --- events -----------------------------------------------------------------------------------


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


class TaskTransitioned(Event, frozen=True):
    """The status changed, other than by a claim."""

    from_: Status
    to: Status
    reason: str = ""
    commit: str = ""
    """Commit checked out in the repository then, where one is configured."""
    caused_by: str = ""
    """Trace event that caused it, if one did."""
    other_text: str = ""
    """Text that came with it besides the reason."""
    failed_to_start: bool = False
    """It ends an attempt whose agent could not be started or reached."""
    by_report: bool = False
    """It applies the report of the attempt; another end of the attempt drops a pending report."""
    is_taken: bool = False
    """It takes the work away from its holder, who may not know."""


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
    """Time of writing, as its sender states; None: not stated."""


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


RESTORED_FIELDS: Final = (
    "title",
    "body",
    "priority",
    "review_required",
    "reserved_for",
    "assignee",
    "failures",
    "obstacle",
)
"""Fields that a rewind brings back as they are."""


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


class TaskHandedOver(Event, frozen=True):
    """The active handoff or the chain of owners of a task changed."""

    handoff: str
    chain: tuple[str, ...]
    owner: str = ""
    """Owner until the handoff is activated, and again after a rejection."""
    recipient: str = ""
    """Empty, like the owner: no handoff is active any more."""
    is_taken: bool = False
    """True if the recipient has activated it."""
    unblocks_task: bool = False
    """True if the owner offered it while it was blocked or in the backlog: that lifts the block."""
    was_unowned: bool = False
    """True if the task had no owner before the proposal."""


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
    | TaskProgressed
    | TaskEdited
    | TaskWarned
    | DelegationRequested
    | DelegationAccepted
    | DelegationRejected
    | DelegationEscalated
    | TaskCheckpointed
    | TaskHandedOver
    | TaskRewound
)


# --- reasons of status changes ----------------------------------------------------------------

REPORTED_PREFIX: Final = "reported_"

STALE_HEARTBEAT_PREFIX: Final = "stale_heartbeat_"

UNREPORTED_PREFIX: Final = "unreported_"
"""Prefixes of the reason of a status change; the outcome follows. REPORTED_PREFIX: by the report of
the agent; STALE_HEARTBEAT_PREFIX: by recovery of a silent attempt that had reported;
UNREPORTED_PREFIX: by the hub, where an agent ended without a report."""

RESULT_PREFIX: Final = "result: "
"""Prefix of the reason where the result of an intent asks for it; success or failure follows."""


# --- table and state --------------------------------------------------------------------------

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


class ActiveHandoff(Struct, frozen=True, omit_defaults=True, gc=False):
    """Handoff that the task is offered or was accepted by."""

    id: str
    owner: str
    recipient: str
    is_taken: bool = False
    unblocks_task: bool = False
    """Offered by its owner while it was held back, and not moved since: the handoff unblocks it."""
    was_unowned: bool = False
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
    ended_by: str = ""
    """Agent that has ended the last attempt itself, by its report or otherwise; empty: the lease
    was lost."""
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
    failed_starts: FailedStarts | None = None
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
    def names_intent(self) -> bool:
        """True if one of its names is that of an intent."""
        return any(alias.startswith(f"{INTENT_ALIAS_KIND}:") for alias in self.aliases)

    @property
    def is_final(self) -> bool:
        """True if the task has ended for good."""
        return self.status in FINAL_STATUSES

    def start_failure_after(self, after: int) -> str:
        """Reason why each attempt after this number failed to start; empty: one started."""
        failed_starts = self.failed_starts
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
        """Time at which its delegation is reported as late; None: never, or it was."""
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


# --- fold -------------------------------------------------------------------------------------


def _fold_created(_: Task | None, event: TaskCreated, at: int) -> Task:
    fields = asdict(event)
    commit = fields.pop("commit")
    return Task(
        **fields,
        assignee=event.reserved_for,
        head_hash=commit,
        created_at=at,
        updated_at=at,
        moved_at=at,
    )


def _fold_aliased(task: Task, event: TaskAliased, at: int) -> Task:
    return replace(task, aliases=(*task.aliases, event.alias), updated_at=at)


def _fold_linked(task: Task, event: TaskLinked, at: int) -> Task:
    if event.kind == "parent":
        return replace(task, parent=event.target, updated_at=at)
    if event.kind == "discovered-from":
        return replace(task, discovered_from=event.target, updated_at=at)
    still_open = _with_name(event.target, task.open_blockers) if event.open else task.open_blockers
    return replace(
        task,
        blocked_by=_with_name(event.target, task.blocked_by),
        open_blockers=still_open,
        updated_at=at,
    )


def _with_name(name: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Add a name unless it is there: a blocker that has not ended after all is linked again."""
    return names if name in names else (*names, name)


_BACKLINKS: dict[LinkKind, str] = {
    "blocked-by": "blocks",
    "parent": "children",
    "discovered-from": "discovered",
}


def _fold_backlinked(task: Task, event: TaskBacklinked, at: int) -> Task:
    field = _BACKLINKS[event.kind]
    return replace(task, updated_at=at, **{field: (*getattr(task, field), event.source)})


def _fold_unblocked(task: Task, event: TaskUnblocked, at: int) -> Task:
    still_open = tuple(name for name in task.open_blockers if name != event.blocker)
    return replace(task, open_blockers=still_open, updated_at=at)


def _fold_claimed(task: Task, event: TaskClaimed, at: int) -> Task:
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
        ended_by="",
        handoff=task.handoff and replace(task.handoff, was_unowned=False),
        not_before=0,
        reported=None,
        head_hash=event.commit or task.head_hash,
        updated_at=at,
        moved_at=at,
    )


def drops_report(task: Task, event: Event) -> bool:
    """True if this event takes the work away from an attempt whose report is still pending."""
    if task.status != "in-progress" or task.reported is None:
        return False
    change = status_change_of(event)
    return change is not None and change.from_ == "in-progress" and not change.by_report


def _fold_transitioned(task: Task, event: TaskTransitioned, at: int) -> Task:
    # A task that becomes ready goes back to its queue, and one that a person takes out of the
    # deadletter gets a fresh set of attempts. A report still pending is void: its work was taken
    # away.
    has_fresh_attempts = event.from_ == "deadletter" or event.to in ("review", "done")
    return replace(
        task,
        status=event.to,
        head_hash=event.commit or task.head_hash,
        assignee=task.reserved_for if event.to == "ready" else task.assignee,
        handoff=_without_lifted_block(task.handoff),
        failures=0 if has_fresh_attempts else task.failures,
        not_before=0,
        obstacle=_obstacle_after(task, event) if event.to == "blocked" else "",
        reported=None if drops_report(task, event) else task.reported,
        ended_by=_ended_by(task, is_lost=event.is_taken),
        checkpoint=None if event.to in ("review", "done") else task.checkpoint,
        failed_starts=_count_failed_start(task, event.reason)
        if event.failed_to_start
        else task.failed_starts,
        updated_at=at,
        moved_at=at,
    )


def _ended_by(task: Task, *, is_lost: bool) -> str:
    if task.status != "in-progress":
        return task.ended_by
    return "" if is_lost else task.assignee


def _obstacle_after(task: Task, event: TaskTransitioned) -> str:
    if task.reported is None or not event.by_report:
        return event.reason
    return "; ".join(filter(str.strip, task.reported.blockers))


def _count_failed_start(task: Task, reason: str) -> FailedStarts:
    before, attempt = task.failed_starts, task.attempts
    is_next = before is not None and before.last == attempt - 1
    return FailedStarts(
        before.first if before is not None and is_next else attempt, attempt, reason
    )


def _without_lifted_block(handoff: ActiveHandoff | None) -> ActiveHandoff | None:
    """Follows the order of the ledger: two events may have the same millisecond."""
    return handoff and replace(handoff, unblocks_task=False)


def _fold_requeued(task: Task, event: TaskRequeued, at: int) -> Task:
    return replace(
        task,
        status="ready",
        head_hash=event.commit or task.head_hash,
        assignee=task.reserved_for,
        failures=event.failures,
        not_before=event.not_before,
        reported=None if drops_report(task, event) else task.reported,
        ended_by=_ended_by(task, is_lost=not event.by_report),
        updated_at=at,
        moved_at=at,
    )


def _fold_reported(task: Task, event: TaskReported, at: int) -> Task:
    return replace(task, reported=Report(at=at, **asdict(event)), updated_at=at)


def _fold_noted(task: Task, _: TaskNoted | TaskProgressed, at: int) -> Task:
    return replace(task, notes=task.notes + 1, updated_at=at)


def _fold_edited(task: Task, event: TaskEdited, at: int) -> Task:
    changes = {field: value for field, value in asdict(event).items() if value is not None}
    assignee = task.assignee if event.reserved_for is None else event.reserved_for
    return replace(task, assignee=assignee, updated_at=at, **changes)


def _fold_warned(task: Task, _: TaskWarned, at: int) -> Task:
    return replace(task, warnings=task.warnings + 1, updated_at=at)


def _fold_handed_over(task: Task, event: TaskHandedOver, at: int) -> Task:
    fields = asdict(event)
    chain, id = fields.pop("chain"), fields.pop("handoff")
    handoff = ActiveHandoff(id, **fields) if event.recipient else None
    return replace(task, chain=chain, handoff=handoff, updated_at=at)


def _fold_checkpointed(task: Task, event: TaskCheckpointed, at: int) -> Task:
    # Without contents it withdraws the checkpoint, unless it is the worker's own.
    if event.by and not (event.commit or event.description or event.next_steps):
        return replace(task, checkpoint=None, updated_at=at)
    checkpoint = Checkpoint(
        event.by or task.assignee,
        at,
        event.reason,
        event.commit,
        event.description,
        event.next_steps,
    )
    return replace(task, checkpoint=checkpoint, updated_at=at)


def _fold_delegation_requested(task: Task, event: DelegationRequested, at: int) -> Task:
    fields = asdict(event)
    depth = fields.pop("depth")
    return replace(task, delegation=Delegation(**fields), depth=depth, updated_at=at)


def _fold_delegation_accepted(task: Task, _: DelegationAccepted, at: int) -> Task:
    return _change_delegation(task, at, state="accepted")


def _fold_delegation_rejected(task: Task, _: DelegationRejected, at: int) -> Task:
    return _change_delegation(task, at, state="rejected")


def _fold_delegation_escalated(task: Task, _: DelegationEscalated, at: int) -> Task:
    return _change_delegation(task, at, escalated=True)


def _change_delegation(task: Task, at: int, **changes: object) -> Task:
    delegation = task.delegation
    return replace(task, delegation=delegation and replace(delegation, **changes), updated_at=at)


def _fold_rewound(task: Task, event: TaskRewound, at: int) -> Task:
    restored = event.restored
    report, checkpoint = restored.report, restored.checkpoint
    return replace(
        task,
        **{field: getattr(restored, field) for field in RESTORED_FIELDS},
        status=event.to,
        head_hash=event.commit or task.head_hash,
        handoff=_without_lifted_block(task.handoff),
        not_before=0,
        reported=report and Report(at=restored.reported_at, **asdict(report)),
        checkpoint=checkpoint and Checkpoint(at=restored.checkpointed_at, **asdict(checkpoint)),
        updated_at=at,
        moved_at=at,
    )


TASK_FOLDS: dict[type[TaskEvent], Callable[[Any, Any, int], Task]] = {
    TaskCreated: _fold_created,
    TaskAliased: _fold_aliased,
    TaskLinked: _fold_linked,
    TaskBacklinked: _fold_backlinked,
    TaskUnblocked: _fold_unblocked,
    TaskClaimed: _fold_claimed,
    TaskTransitioned: _fold_transitioned,
    TaskRequeued: _fold_requeued,
    TaskReported: _fold_reported,
    TaskNoted: _fold_noted,
    TaskProgressed: _fold_noted,
    TaskEdited: _fold_edited,
    TaskWarned: _fold_warned,
    DelegationRequested: _fold_delegation_requested,
    DelegationAccepted: _fold_delegation_accepted,
    DelegationRejected: _fold_delegation_rejected,
    DelegationEscalated: _fold_delegation_escalated,
    TaskCheckpointed: _fold_checkpointed,
    TaskHandedOver: _fold_handed_over,
    TaskRewound: _fold_rewound,
}
"""Event -> fold: the task after it, from the task before it (None at first) and its time."""


class StatusChange(Struct, frozen=True):
    """A change of status, and its reason."""

    from_: Status
    to: Status
    reason: str = ""
    by_report: bool = False
    """It applies the report of an attempt."""


STATUS_CHANGES: Final[dict[type[Event], Callable[[Any], StatusChange]]] = {
    TaskClaimed: lambda event: StatusChange(event.from_, "in-progress"),
    TaskTransitioned: lambda event: StatusChange(
        event.from_, event.to, event.reason, event.by_report
    ),
    TaskRequeued: lambda event: StatusChange("in-progress", "ready", event.reason, event.by_report),
    TaskRewound: lambda event: StatusChange(event.from_, event.to, event.reason),
}
"""Event -> its status change. The creation of a task is none: it comes from no status."""


def status_change_of(event: Event) -> StatusChange | None:
    """Status change that an event makes, if it makes one."""
    to_change = STATUS_CHANGES.get(type(event))
    return None if to_change is None else to_change(event)

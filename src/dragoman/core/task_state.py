"""Tasks: commands, events, the table of statuses, the state and its fold (S-TASK).

`Task` is folded from the stream `task:ID`, which holds the events of its attempts, delegations
and handoffs, too. The commands of attempts and delegations stand here, with those of tasks.
"""

from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from dragoman.core.attempt_state import (
    AttemptEscalated,
    AttemptQuiet,
    Checkpoint,
    FailedStarts,
    Report,
    TaskCheckpointed,
    TaskClaimed,
    TaskReported,
    TaskRequeued,
)
from dragoman.core.base import (
    ATTENTION_LIST,
    CHECKS_LIST,
    DEFAULT_LEASE_MS,
    DEFAULT_MAX_ATTEMPTS,
    Command,
    Event,
    LinkKind,
    Priority,
    Status,
    TaskCommand,
)
from dragoman.core.check_state import Evidence, TaskChecked
from dragoman.core.ids import bare_name
from dragoman.core.question_state import (
    KEPT_ANSWERS,
    KEPT_FEEDBACK,
    Feedback,
    Question,
    QuestionAnswered,
    QuestionAsked,
    QuestionWithdrawn,
    answered_question,
    asked_question,
    question_id,
)

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
    deadline: int = 0
    """Time by which it should have ended; 0: none."""
    checks: tuple[str, ...] = ()
    """Commands that the hub runs before a completion counts."""

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
    priority: Priority = "normal"
    """If it is new here."""


class MoveTask(TaskCommand, frozen=True, tag="task.move"):
    """Change the status, other than into in-progress."""

    free_text = ("reason",)

    to: Status
    reason: str = ""
    fence: int | None = None
    unless_in_progress: bool = False
    """Refuse while somebody works on the task."""
    only_from: tuple[Status, ...] = ()
    """Refuse from any other status; none: from any."""


class SendBackTask(TaskCommand, frozen=True, tag="task.send-back"):
    """Send the work on a task in review back to its assignee, with what is wrong with it."""

    free_text = ("reason",)

    reason: str
    fence: int | None = None


class LinkTask(TaskCommand, frozen=True, tag="task.link"):
    """Link a task to another one."""

    kind: LinkKind
    target: str
    fence: int | None = None


class UnlinkTask(TaskCommand, frozen=True, tag="task.unlink"):
    """Remove a dependency: the task waits for that other one no more."""

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
    must_move: bool = False
    """Another status that no transition leads to is refused, rather than written into the log."""


class EditTask(TaskCommand, frozen=True, tag="task.edit"):
    """Edit fields of a task; None leaves a field as it is."""

    free_text = ("title", "body", "reason")

    title: str | None = None
    body: str | None = None
    priority: Priority | None = None
    review_required: bool | None = None
    assignee: str | None = None
    """Agent that it is reserved for; empty: anyone."""
    fence: int | None = None
    deadline: int | None = None
    """0: none."""
    take: bool = False
    """Take the work away from its holder, if it gets another assignee; else that is refused."""
    reason: str = ""
    """Reason why the work is taken away."""
    checks: tuple[str, ...] | None = None
    """Commands that the hub runs before a completion counts; empty: none any more, those of its
    agent neither."""


class WarnTask(TaskCommand, frozen=True, tag="task.warn"):
    """Record an oddity of a message that was no reason to refuse it."""

    free_text = ("detail",)

    reason: str
    detail: str = ""


class RewindTask(TaskCommand, frozen=True, tag="task.rewind"):
    """Restore a task as it was at an earlier entry of its stream, by a new entry."""

    free_text = ("reason",)

    version: int
    """Version of that entry in the stream of the task; 0: the last one before the task ended, or
    was reviewed if it is done."""
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
    deadline: int = 0
    """Time by which it should have ended; 0: none."""
    checks: tuple[str, ...] = ()
    """Commands that the hub runs before a completion counts."""


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


class TaskUnlinked(Event, frozen=True):
    """The task waits for another one no more: the dependency was removed."""

    target: str


class TaskUnbacklinked(Event, frozen=True):
    """Another task waits for this one no more: the dependency was removed."""

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
    not_before: int = 0
    """Time before which nobody is given it, where checks have sent it back; 0: at once."""


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
    deadline: int | None = None
    """0: none any more."""
    checks: tuple[str, ...] | None = None
    """Commands that the hub runs before a completion counts; empty: none any more."""


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


# --- reasons of status changes ----------------------------------------------------------------

REPORTED_PREFIX: Final = "reported_"

STALE_HEARTBEAT_PREFIX: Final = "stale_heartbeat_"

UNREPORTED_PREFIX: Final = "unreported_"
"""Prefixes of the reason of a status change; the outcome follows. REPORTED_PREFIX: by the report of
the agent; STALE_HEARTBEAT_PREFIX: by recovery of a silent attempt that had reported;
UNREPORTED_PREFIX: by the hub, where an agent ended without a report."""

STALE_HEARTBEAT_REASON: Final = f"{STALE_HEARTBEAT_PREFIX}reclaim"
"""Reason of the status change that ends a silent attempt without a report."""

TOO_LONG_REASON: Final = "attempt_too_long"
"""Reason of the status change that ends an attempt which took longer than one may."""

CHECKS_PASSED_REASON: Final = "checks_passed"
"""Reason of the status change of a task without review whose checks have passed."""

LAST_FAILURE: Final = " attempts failed, the last: "
"""Words between the number of failures and the last reason, in the reason of a deadletter."""

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
    deadline: int = 0
    """Time by which it should have ended; 0: none."""
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
    quiet_attempt: int = 0
    """The last attempt that was flagged as quiet; its lease knows whether it still is."""
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
    questions: tuple[Question, ...] = ()
    """Open questions about it, of all kinds; a blocked task has one of the kind `blocked`."""
    answers: tuple[Question, ...] = ()
    """Answered questions, the last ones."""
    asked: int = 0
    """Number of questions so far, which numbers the next one."""
    feedback: tuple[Feedback, ...] = ()
    """Reasons for which reviews sent the work back, the last ones."""
    head_hash: str = ""
    """Commit checked out in its repository at its last status change, as far as known."""
    checks: tuple[str, ...] = ()
    """Commands that the hub runs before a completion counts."""
    agent_checks: tuple[str, ...] = ()
    """Those that the settings name for the agent of the last attempt."""
    evidence: Evidence | None = None
    """Results of its last checks."""
    failed_checks: int = 0
    """Number of times in a row that its checks failed."""

    @property
    def required_checks(self) -> tuple[str, ...]:
        """All commands that the hub runs before a completion counts."""
        return tuple(dict.fromkeys((*self.checks, *self.agent_checks)))

    @property
    def awaits_checks(self) -> bool:
        """True if its work is finished, as far as is known, and the hub has not run its checks
        since."""
        is_finished = self.reported is None or self.reported.outcome != "partial"
        is_checked = self.evidence is not None and self.evidence.attempt == self.attempts
        return (
            self.status == "review"
            and self.attempts > 0
            and is_finished
            and not is_checked
            and bool(self.required_checks)
        )

    @property
    def is_proven(self) -> bool:
        """True if the checks of its last attempt have passed."""
        evidence = self.evidence
        return evidence is not None and evidence.attempt == self.attempts and evidence.passed

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
        return any(alias.startswith(f"{INTENT_ALIAS_KIND}:") for alias in self.aliases)

    @property
    def is_final(self) -> bool:
        """True if the task has ended for good."""
        return self.status in FINAL_STATUSES

    def is_overdue(self, now: int) -> bool:
        """True if the task has not ended by its deadline."""
        return bool(self.deadline) and not self.is_final and now > self.deadline

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
    def is_flagged_quiet(self) -> bool:
        """True if the present attempt was flagged as quiet, whatever has come since."""
        return self.status == "in-progress" and self.quiet_attempt == self.attempts

    @property
    def is_delegated(self) -> bool:
        """True if it is delegated, and not ended or rejected."""
        delegation = self.delegation
        return delegation is not None and delegation.state != "rejected" and not self.is_final

    @property
    def is_delegation_late(self) -> bool:
        """True if it is on record that its delegation is late."""
        return self.is_delegated and self.delegation is not None and self.delegation.escalated

    @property
    def delegation_deadline(self) -> int | None:
        """Time at which its delegation is reported as late; None: never, or it was."""
        delegation = self.delegation
        if delegation is None or delegation.escalated or not self.is_delegated:
            return None
        return delegation.due_by


def task_list_keys(task: Task) -> tuple[str, ...]:
    """Keys of the lists it stands on: offered delegations, and what may need a person."""
    delegation = task.delegation
    has_asked = any(one.kind == "ask" for one in task.questions)
    needs_attention = has_asked or task.is_delegation_late or task.is_flagged_quiet
    attention = (
        *((ATTENTION_LIST,) if needs_attention else ()),
        *((CHECKS_LIST,) if task.awaits_checks else ()),
    )
    if delegation is None or delegation.state != "requested" or task.is_final:
        return attention
    return (f"offered:{delegation.to_agent}", *attention)


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


def _fold_unlinked(task: Task, event: TaskUnlinked, at: int) -> Task:
    return replace(
        task,
        blocked_by=_without_name(event.target, task.blocked_by),
        open_blockers=_without_name(event.target, task.open_blockers),
        updated_at=at,
    )


def _fold_unbacklinked(task: Task, event: TaskUnbacklinked, at: int) -> Task:
    return replace(task, blocks=_without_name(event.source, task.blocks), updated_at=at)


def _without_name(name: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one for one in names if one != name)


def _fold_unblocked(task: Task, event: TaskUnblocked, at: int) -> Task:
    still_open = _without_name(event.blocker, task.open_blockers)
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
        agent_checks=event.checks,
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
    moved = replace(
        task,
        status=event.to,
        head_hash=event.commit or task.head_hash,
        assignee=task.reserved_for if event.to == "ready" else task.assignee,
        handoff=_without_lifted_block(task.handoff),
        failures=0 if has_fresh_attempts else task.failures,
        not_before=event.not_before,
        obstacle=_obstacle_after(task, event) if event.to == "blocked" else "",
        reported=None if drops_report(task, event) else task.reported,
        ended_by=_ended_by(task, is_lost=event.is_taken),
        checkpoint=None if event.to in ("review", "done") else task.checkpoint,
        failed_starts=_count_failed_start(task, event.reason)
        if event.failed_to_start
        else task.failed_starts,
        feedback=_feedback_after(task, event, at),
        updated_at=at,
        moved_at=at,
    )
    is_by_holder = task.status == "in-progress" and not event.is_taken
    return _follow_status(moved, at, asked_by=task.assignee if is_by_holder else "")


def _feedback_after(task: Task, event: TaskTransitioned, at: int) -> tuple[Feedback, ...]:
    if (event.from_, event.to) != ("review", "ready") or not event.reason:
        return task.feedback
    return (*task.feedback, Feedback(event.reason, at))[-KEPT_FEEDBACK:]


def _follow_status(task: Task, at: int, asked_by: str = "") -> Task:
    """Close the questions that its status has settled, and open that of a task that is blocked.

    A blocked task whose obstacle is an open question already waits for that one.
    """
    if task.status != "blocked" and not task.questions:
        return task
    is_open = [] if task.is_final else [one for one in task.questions if one.kind != "blocked"]
    if task.status != "blocked" or any(one.text == task.obstacle for one in is_open):
        return replace(task, questions=tuple(is_open))
    number = task.asked + 1
    attempt = task.attempts if asked_by else 0
    asked = Question(question_id(number), task.obstacle, at, asked_by, "blocked", attempt)
    return replace(task, questions=(*is_open, asked), asked=number)


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


def _fold_quiet(task: Task, event: AttemptQuiet | AttemptEscalated, at: int) -> Task:
    return replace(task, quiet_attempt=event.attempt, updated_at=at)


def _fold_checked(task: Task, event: TaskChecked, at: int) -> Task:
    evidence = Evidence(event.attempt, event.passed, at, event.results)
    failed = 0 if event.passed else task.failed_checks + 1
    return replace(task, evidence=evidence, failed_checks=failed, updated_at=at)


def _fold_noted(task: Task, _: TaskNoted | TaskProgressed, at: int) -> Task:
    return replace(task, notes=task.notes + 1, updated_at=at)


def _fold_edited(task: Task, event: TaskEdited, at: int) -> Task:
    changes = {field: value for field, value in asdict(event).items() if value is not None}
    assignee = task.assignee if event.reserved_for is None else event.reserved_for
    if event.checks == ():
        changes["agent_checks"] = ()
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
    by = event.by or task.assignee
    checkpoint = Checkpoint(at=at, **asdict(event) | {"by": by})
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
    rewound = replace(
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
    return _follow_status(rewound, at)


def _fold_asked(task: Task, event: QuestionAsked, at: int) -> Task:
    questions = (*task.questions, asked_question(event, at))
    return replace(
        task, questions=questions, asked=task.asked + 1, notes=task.notes + 1, updated_at=at
    )


def _fold_answered(task: Task, event: QuestionAnswered, at: int) -> Task:
    answered = (answered_question(one, event, at) for one in task.questions if one.id == event.id)
    return replace(
        task,
        questions=_without_question(task, event.id),
        answers=(*task.answers, *answered)[-KEPT_ANSWERS:],
        notes=task.notes + 1,
        updated_at=at,
    )


def _fold_withdrawn(task: Task, event: QuestionWithdrawn, at: int) -> Task:
    return replace(task, questions=_without_question(task, event.id), updated_at=at)


def _without_question(task: Task, id: str) -> tuple[Question, ...]:
    return tuple(one for one in task.questions if one.id != id)


TASK_FOLDS: dict[type[Event], Callable[[Any, Any, int], Task]] = {
    TaskCreated: _fold_created,
    TaskAliased: _fold_aliased,
    TaskLinked: _fold_linked,
    TaskBacklinked: _fold_backlinked,
    TaskUnlinked: _fold_unlinked,
    TaskUnbacklinked: _fold_unbacklinked,
    TaskUnblocked: _fold_unblocked,
    TaskClaimed: _fold_claimed,
    TaskTransitioned: _fold_transitioned,
    TaskRequeued: _fold_requeued,
    TaskReported: _fold_reported,
    AttemptQuiet: _fold_quiet,
    AttemptEscalated: _fold_quiet,
    TaskChecked: _fold_checked,
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
    QuestionAsked: _fold_asked,
    QuestionAnswered: _fold_answered,
    QuestionWithdrawn: _fold_withdrawn,
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

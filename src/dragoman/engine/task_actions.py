"""Task actions: the table of what a caller without a dialect can do to a task.

A row is the shape of an action's arguments, which makes the commands. HTTP serves it at
`/v1/tasks/{name}/ACTION`, MCP as the tool `task_ACTION`, `dragoman call` as the operation
`task.ACTION`; the SDK and the command line call it by its name.
"""

from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, defstruct, field

from dragoman.core.actor import Actor
from dragoman.core.attempt import LimitAttempt, ReleaseTask, ReportOutcome
from dragoman.core.backoff import Backoff
from dragoman.core.base import Command, LinkKind, Outcome, Priority, Status
from dragoman.core.check_state import MAX_CHECK_LENGTH, MAX_CHECKS
from dragoman.core.errors import Refusal, Refused
from dragoman.core.limits import (
    MAX_BODY,
    MAX_LINKS,
    MAX_REASON,
    MAX_SAFE_INTEGER,
    MAX_TEXT,
    MAX_TITLE,
)
from dragoman.core.question_state import AnswerQuestion, AskQuestion, WithdrawQuestion
from dragoman.core.task_state import (
    AliasTask,
    EditTask,
    LinkTask,
    MoveTask,
    NoteTask,
    RewindTask,
    SendBackTask,
    UnlinkTask,
    UpdateTask,
)
from dragoman.core.timestamps import parse_rfc3339
from dragoman.engine.operation import (
    ALL_ROLES,
    Dialect,
    Facts,
    Fault,
    MessageLimits,
    Operation,
    Plan,
    fault_from_refusal,
)
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.request import Committed
from dragoman.engine.schemas.name_formats import AgentName, Alias, OptionalTaskName, TaskName
from dragoman.engine.schemas.tasks import questioned_task, task_detail

# --- fields -----------------------------------------------------------------------------------

Fence = Annotated[
    int,
    Meta(ge=0, le=MAX_SAFE_INTEGER, description="`fence` of your claim."),
]

ReasonText = Annotated[str, Meta(max_length=MAX_REASON)]

LongText = Annotated[str, Meta(max_length=MAX_TEXT)]

Texts = Annotated[tuple[ReasonText, ...], Meta(max_length=MAX_LINKS)]

TaskNames = Annotated[tuple[TaskName, ...], Meta(max_length=MAX_LINKS)]

Aliases = Annotated[tuple[Alias, ...], Meta(max_length=MAX_LINKS)]

Deadline = Annotated[
    str,
    Meta(
        max_length=64,
        description="RFC 3339: by when it should have ended.",
        extra_json_schema={"format": "date-time"},
    ),
]

LimitEnd = Annotated[
    str,
    Meta(
        max_length=64,
        description="RFC 3339: end of your usage limit.",
        extra_json_schema={"format": "date-time"},
    ),
]

ReportedOutcome = Literal[Outcome, "limited"]
"""Outcome that a caller reports; `limited`: the usage limit of its vendor is reached."""

Details = Annotated[
    dict[str, Any],
    Meta(description="Details for programs; a number `cost` counts for the agent's budget."),
]

Notes = Annotated[
    str,
    Meta(max_length=MAX_TEXT, description="What you did, how you checked it, what is left."),
]


Checks = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=MAX_CHECK_LENGTH)], ...],
    Meta(
        max_length=MAX_CHECKS,
        description="Commands that the hub runs before a completion counts; people name them.",
    ),
]


# --- shapes -----------------------------------------------------------------------------------


class ActionSettings(Struct, frozen=True):
    """Settings that actions depend on."""

    backoff: Backoff = Backoff()
    """Backoff after a failure."""
    pauses_limited: bool = True
    """Pause an agent whose usage limit is reached."""


class TaskAction(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of an action on a task; an unknown field is an error."""

    fence: Fence | None = None

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        """Return the commands to run, all or none; arguments that say nothing are Refused."""
        raise NotImplementedError


def _missing(fields: str) -> Refused:
    return Refused(Refusal("invalid_field", f"at least one of {fields} is needed"))


# --- attempts ---------------------------------------------------------------------------------


class Report(TaskAction, frozen=True, kw_only=True):
    """Report the outcome of an attempt; applied at once, or when its session or its lease ends."""

    outcome: ReportedOutcome
    notes: LongText = ""
    blockers: Texts = ()
    details: Details = field(default_factory=dict[str, Any])
    apply: bool = True
    until: LimitEnd = ""

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        del actor
        return (_report(self, task, settings, apply=self.apply),)


class Complete(TaskAction, frozen=True):
    """End your work on a task: it is done, or in review where one is required."""

    outcome: Annotated[ReportedOutcome, Meta(description="How it ended.")] = "done"
    notes: Notes = ""
    blockers: Annotated[
        Texts, Meta(description="What it waits for; needed if the outcome is blocked.")
    ] = ()
    details: Details = field(default_factory=dict[str, Any])
    until: LimitEnd = ""

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        del actor
        return (_report(self, task, settings),)


def _report(
    said: Report | Complete, task: str, settings: ActionSettings, *, apply: bool = True
) -> ReportOutcome | LimitAttempt:
    if said.outcome == "limited":
        if said.blockers or said.details or not apply:
            detail = "the outcome limited takes notes and until alone, and ends the attempt at once"
            raise Refused(Refusal("invalid_field", detail, path="outcome"))
        return _limit(task, said.until, said.notes, said.fence, settings)
    if said.until:
        detail = "until: only the outcome limited has an end of the limit"
        raise Refused(Refusal("invalid_field", detail, path="until"))
    return ReportOutcome(
        task,
        said.outcome,
        said.notes,
        said.blockers,
        said.details,
        said.fence,
        apply,
        settings.backoff,
        is_own=True,
    )


class Fail(TaskAction, frozen=True):
    """End your attempt as failed: the task is tried again after a pause, up to its limit; then it
    is in the deadletter."""

    notes: Annotated[str, Meta(max_length=MAX_TEXT, description="What went wrong.")] = ""
    details: Details = field(default_factory=dict[str, Any])

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        del actor
        failed = Complete(self.fence, "failed", self.notes, (), self.details)
        return (_report(failed, task, settings),)


class Block(TaskAction, frozen=True, kw_only=True):
    """Block a task until what it waits for is out of the way; an agent blocks the work it holds,
    and its attempt ends."""

    blockers: Annotated[Texts, Meta(min_length=1, description="What it waits for.")]
    notes: LongText = ""
    details: Details = field(default_factory=dict[str, Any])

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        if actor.role == "agent":
            blocked = Complete(self.fence, "blocked", self.notes, self.blockers, self.details)
            return (_report(blocked, task, settings),)
        # Others block what they do not work on.
        return (
            UpdateTask(
                task,
                "blocked",
                notes=self.notes,
                blockers=self.blockers,
                fence=self.fence,
                must_move=True,
            ),
        )


class Release(TaskAction, frozen=True):
    """Release a task, without counting a failure."""

    reason: Annotated[str, Meta(max_length=MAX_REASON, description="Why you give it back.")] = (
        "released"
    )

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        del actor, settings
        return (ReleaseTask(task, self.reason, self.fence),)


class Limit(TaskAction, frozen=True):
    """End your attempt because your usage limit is reached: no failure; the task is ready for
    others, and you are started again when the limit has ended."""

    until: LimitEnd = ""
    reason: ReasonText = ""

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        del actor
        return (_limit(task, self.until, self.reason, self.fence, settings),)


def _limit(
    task: str, until: str, reason: str, fence: int | None, settings: ActionSettings
) -> LimitAttempt:
    end = parse_deadline(until or None, "until")
    return LimitAttempt(task, end, reason, fence, pauses=settings.pauses_limited)


class Update(TaskAction, frozen=True):
    """Report progress: another status where the transition table allows it, else a line in the
    log."""

    to: Status | None = None
    progress: LongText = ""
    notes: LongText = ""
    blockers: Texts = ()

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        del actor, settings
        if self.to is None and not (self.progress or self.notes or self.blockers):
            raise _missing("to, progress, notes and blockers")
        return (
            UpdateTask(task, self.to, self.progress, self.notes, self.blockers, fence=self.fence),
        )


# --- statuses ---------------------------------------------------------------------------------


class Move(TaskAction, frozen=True, kw_only=True):
    """Move a task to another status; only a claim leads to in-progress."""

    to: Status
    reason: ReasonText = ""

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        del actor, settings
        return (MoveTask(task, self.to, self.reason, self.fence),)


class Approve(TaskAction, frozen=True):
    """Approve reviewed work: review becomes done; never by the agent whose work it is."""

    reason: ReasonText = ""

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        del actor, settings
        return (MoveTask(task, "done", self.reason, self.fence),)


class Retry(TaskAction, frozen=True):
    """Make a task ready again: a blocked one, or one of the deadletter with a fresh set of
    attempts."""

    reason: ReasonText = ""

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        del actor, settings
        return (
            MoveTask(task, "ready", self.reason, self.fence, only_from=("deadletter", "blocked")),
        )


class SendBack(TaskAction, frozen=True, kw_only=True):
    """Send reviewed work back to its agent: the task is ready for it again, with the reason."""

    reason: Annotated[
        str, Meta(min_length=1, max_length=MAX_REASON, description="What is wrong with the work.")
    ]

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        del actor, settings
        return (SendBackTask(task, self.reason, self.fence),)


class Reopen(TaskAction, frozen=True):
    """Reopen a task that is done or cancelled: it is as it was before that, and before its review
    if it is done; work that was in progress then is ready."""

    reason: ReasonText = ""

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        del actor, settings
        return (RewindTask(task, 0, reason=self.reason),)


class Assign(TaskAction, frozen=True, kw_only=True):
    """Assign a task to an agent, who alone may take it; held work only if it is taken away."""

    to: Annotated[AgentName, Meta(description="The agent; empty: anyone.")]
    take: Annotated[bool, Meta(description="End the attempt of its holder.")] = False
    reason: ReasonText = ""

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        del actor, settings
        return (
            EditTask(task, assignee=self.to, take=self.take, reason=self.reason, fence=self.fence),
        )


# --- questions --------------------------------------------------------------------------------

QuestionId = Annotated[
    str, Meta(max_length=32, description="Id of the question, such as q2; see `questions`.")
]


class Ask(TaskAction, frozen=True, kw_only=True):
    """Ask a question about a task; the work goes on meanwhile, and the answer is kept with it."""

    text: Annotated[
        str,
        Meta(min_length=1, max_length=MAX_REASON, description="With the choices that you see."),
    ]

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        del actor, settings
        return (AskQuestion(task, self.text, self.fence),)


class Answer(TaskAction, frozen=True, kw_only=True):
    """Answer an open question of a task; a blocked task becomes ready by the last answer."""

    text: Annotated[str, Meta(min_length=1, max_length=MAX_REASON)]
    question: QuestionId = ""

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        del actor, settings
        return (AnswerQuestion(task, self.text, self.question),)


class Withdraw(TaskAction, frozen=True, kw_only=True):
    """Withdraw a question that needs no answer any more."""

    question: QuestionId

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        del actor, settings
        return (WithdrawQuestion(task, self.question, self.fence),)


# --- contents ---------------------------------------------------------------------------------


class Note(TaskAction, frozen=True, kw_only=True):
    """Add a line to a task's work log."""

    text: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        del actor, settings
        return (NoteTask(task, self.text, self.fence),)


class Link(TaskAction, frozen=True):
    """Link a task to others, or add names to it; all or none."""

    blocked_by: TaskNames = ()
    parent: OptionalTaskName = ""
    discovered_from: OptionalTaskName = ""
    aliases: Aliases = ()

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        del actor, settings
        links: tuple[tuple[LinkKind, tuple[str, ...]], ...] = (
            ("blocked-by", self.blocked_by),
            ("parent", (self.parent,)),
            ("discovered-from", (self.discovered_from,)),
        )
        found: list[Command] = [
            LinkTask(task, kind, other, self.fence)
            for kind, others in links
            for other in others
            if other
        ]
        found += [AliasTask(task, name, self.fence) for name in self.aliases]
        if not found:
            raise _missing("blocked_by, parent, discovered_from and aliases")
        return tuple(found)


class Edit(TaskAction, frozen=True):
    """Edit a task: title, text, priority, deadline, checks, and what it waits for; all or none."""

    title: Annotated[str, Meta(min_length=1, max_length=MAX_TITLE)] | None = None
    body: Annotated[str, Meta(max_length=MAX_BODY)] | None = None
    priority: Priority | None = None
    deadline: Annotated[
        Deadline | UnsetType | None, Meta(description="RFC 3339; null: none any more.")
    ] = UNSET
    blocked_by: Annotated[
        tuple[TaskName, ...], Meta(max_length=MAX_LINKS, description="It waits for these, too.")
    ] = ()
    not_blocked_by: Annotated[
        tuple[TaskName, ...],
        Meta(max_length=MAX_LINKS, description="It waits for these no more."),
    ] = ()
    checks: Checks | None = None

    def commands(self, task: str, actor: Actor, settings: ActionSettings) -> tuple[Command, ...]:
        del actor, settings
        edited = EditTask(
            task,
            self.title,
            self.body,
            self.priority,
            fence=self.fence,
            deadline=None if self.deadline is UNSET else parse_deadline(self.deadline),
            checks=self.checks,
        )
        found: list[Command] = [] if edited == EditTask(task, fence=self.fence) else [edited]
        found += [UnlinkTask(task, other, self.fence) for other in self.not_blocked_by]
        found += [LinkTask(task, "blocked-by", other, self.fence) for other in self.blocked_by]
        if not found:
            raise _missing("title, body, priority, deadline, checks, blocked_by and not_blocked_by")
        return tuple(found)


def parse_deadline(text: str | None, field: str = "deadline") -> int:
    """Parse a deadline; 0 if there is none; a malformed one is Refused."""
    try:
        return 0 if text is None else parse_rfc3339(text)
    except ValueError as error:
        raise Refused(Refusal("invalid_field", f"{field}: {error}", path=field)) from None


# --- table ------------------------------------------------------------------------------------

TASK_ACTIONS: dict[str, type[TaskAction]] = {
    "complete": Complete,
    "fail": Fail,
    "block": Block,
    "release": Release,
    "limit": Limit,
    "report": Report,
    "update": Update,
    "move": Move,
    "approve": Approve,
    "retry": Retry,
    "send-back": SendBack,
    "ask": Ask,
    "answer": Answer,
    "withdraw": Withdraw,
    "reopen": Reopen,
    "assign": Assign,
    "edit": Edit,
    "note": Note,
    "link": Link,
}
"""Name of the action -> the shape of its arguments."""

QUESTION_ACTIONS: frozenset[str] = frozenset({"ask", "answer", "withdraw"})
"""Actions about one question, whose id is told with the task."""


def summarize(shape: type[TaskAction]) -> str:
    """Summary of an action: its docstring up to the first semicolon or colon, on one line."""
    text = " ".join((shape.__doc__ or "").split())
    return text.partition(";")[0].partition(":")[0].removesuffix(".")


@cache
def arguments_shape(action: str) -> type[Any]:
    """Shape of an action's arguments where the task is one of them."""
    shape = TASK_ACTIONS[action]
    task = Annotated[str, Meta(max_length=300, description="Any name of the task")]
    return defstruct(
        f"Task{shape.__name__}",
        [("task", task)],
        bases=(shape,),
        namespace={"__doc__": shape.__doc__},
        frozen=True,
        kw_only=True,
    )


# --- operations -------------------------------------------------------------------------------

_LIMITS = MessageLimits(stores_arguments=False)


def action_dialect(settings: ActionSettings) -> Dialect:
    """Actions as operations that are called by name; no message is recognised as one."""
    return Dialect(
        "task", tuple(_operation(name, settings) for name in TASK_ACTIONS), lambda _: None
    )


def _operation(name: str, settings: ActionSettings) -> Operation:
    def plan(arguments: Any, actor: Actor, facts: Facts) -> Plan | Fault:
        def show_task(committed: Committed) -> Any:
            receipt = committed.receipts[-1]
            view = find_task(facts.store, receipt.task, receipt.version)
            assert not isinstance(view, Refusal), "the task was found a moment ago"
            task = task_detail(view.task, view.lease, facts.now())
            shown = questioned_task(task, receipt.question) if receipt.question else task
            return msgspec.to_builtins(shown)

        try:
            commands = arguments.commands(arguments.task, actor, settings)
        except Refused as refused:
            return fault_from_refusal(refused.refusal)
        return Plan(commands, follow_up=show_task)

    return Operation(
        name=f"task.{name}",
        input=arguments_shape(name),
        roles=ALL_ROLES,
        plan=plan,
        target=lambda arguments: arguments.task,
        limits=_LIMITS,
        summary=summarize(TASK_ACTIONS[name]),
    )

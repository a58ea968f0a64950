"""What people and programs without a dialect do with tasks: make, claim, beat, move, report, …"""

from collections.abc import Callable
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from dragoman.core.authority import MAY_VOUCH, vouches_for
from dragoman.core.commands import (
    AliasTask,
    AnyCommand,
    ClaimTask,
    CreateTask,
    LinkTask,
    MoveTask,
    NoteTask,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
    UpdateTask,
)
from dragoman.core.errors import Refused
from dragoman.core.events import LinkKind, Outcome, Priority, Status
from dragoman.core.ids import check_task_id
from dragoman.core.limits import ATTEMPTS, BODY, LINKS, REASON, TEXT, TITLE, TTL_MS, WHOLE
from dragoman.core.moments import to_rfc3339
from dragoman.core.reading import Receipt
from dragoman.engine.reads.ask import find_agent
from dragoman.engine.shown.tasks import WholeTask
from dragoman.surfaces.http.endpoint import Body, Endpoint, respond
from dragoman.surfaces.http.names import AgentName, Alias, NewId, NoTaskName, Session, TaskName
from dragoman.surfaces.http.office import Call
from dragoman.surfaces.http.problems import stop
from dragoman.surfaces.http.tasks import show_left

Fence = Annotated[
    int, Meta(ge=0, le=WHOLE, description="The fencing token of the claim, to be safe.")
]
Ttl = Annotated[
    int,
    Meta(ge=TTL_MS[0], le=TTL_MS[1], description="How long the agent may be silent, in ms."),
]
Line = Annotated[str, Meta(max_length=REASON)]
Words = Annotated[str, Meta(max_length=TEXT)]
Lines = Annotated[tuple[Line, ...], Meta(max_length=LINKS)]
Names = Annotated[tuple[TaskName, ...], Meta(max_length=LINKS)]
Aliases = Annotated[tuple[Alias, ...], Meta(max_length=LINKS)]


class NewTask(Body, frozen=True):
    """A task to create; without an id the hub assigns one."""

    title: Annotated[str, Meta(min_length=1, max_length=TITLE)]
    id: NewId | None = None
    body: Annotated[str, Meta(max_length=BODY)] = ""
    ready: bool = False
    assignee: AgentName = ""
    parent: NoTaskName = ""
    review_required: bool | None = None
    priority: Priority = "normal"
    blocked_by: Names = ()
    discovered_from: NoTaskName = ""
    aliases: Aliases = ()
    max_attempts: Annotated[int, Meta(ge=1, le=ATTEMPTS)] | None = None


async def create(call: Call) -> Any:
    new: NewTask = call.body
    if new.id == "" and (misnamed := check_task_id(new.id, "id")) is not None:
        raise Refused(misnamed)
    defaults = call.office.door.settings.tasks
    review, attempts = new.review_required, new.max_attempts
    command = CreateTask(
        title=new.title,
        id=new.id or "",
        body=new.body,
        ready=new.ready,
        assignee=new.assignee,
        parent=new.parent,
        review_required=defaults.review_required if review is None else review,
        priority=new.priority,
        blocked_by=new.blocked_by,
        discovered_from=new.discovered_from,
        aliases=new.aliases,
        max_attempts=defaults.max_attempts if attempts is None else attempts,
    )
    accepted = await call.do(command)
    made = accepted.receipts[0]
    response = respond(call.request.scope, await show_left(call, made), 201)
    response.headers["location"] = f"/v1/tasks/{made.task}"
    return response


class Claim(Body, frozen=True):
    """A claim of a task; without a name, by the caller itself."""

    agent: AgentName = ""
    session: Session = ""
    ttl_ms: Ttl | None = None


class Claimed(Struct, frozen=True, rename="camel"):
    """A claimed task: send a heartbeat before the lease ends, and name the fence."""

    agent: str
    session: str | None
    attempt: int
    fence: int
    expires_at: str | None
    """None if the claim was repeated and its attempt is over."""
    task: WholeTask
    token: str | None = None
    """Token of this attempt while it lasts, for callers that claim in another's name. Such a caller
    could not go on without it, and may pass it to the agent as its credentials."""


async def claim(call: Call) -> Claimed:
    """Claim a task."""
    command = claim_command(call, call.path["name"], call.body)
    accepted = await call.do(command)
    return await claimed(call, command, accepted.receipts[0])


def claim_command(call: Call, task: str, asked: Claim) -> ClaimTask:
    """Build the command that claims a task, or the next ready one, for the requested agent."""
    ttl_ms = call.office.door.settings.leases.ttl_ms if asked.ttl_ms is None else asked.ttl_ms
    return ClaimTask(task, asked.agent or call.principal.actor.name, asked.session, ttl_ms)


async def claimed(call: Call, command: ClaimTask, receipt: Receipt) -> Claimed:
    """Build the response to a claim; with the lease as it is now (S-IDEM)."""
    task = await show_left(call, receipt)
    lease = task.lease if task.lease and task.lease.fence == receipt.fence else None
    return Claimed(
        agent=command.agent,
        session=command.session or None,
        attempt=receipt.attempt,
        fence=receipt.fence,
        expires_at=lease and lease.expires_at,
        task=task,
        token=await _token(call, command.agent, receipt) if lease and lease.live else None,
    )


async def _token(call: Call, agent: str, receipt: Receipt) -> str | None:
    actor = call.principal.actor
    if actor.name == agent or not MAY_VOUCH[actor.role]:
        return None
    if not vouches_for(actor, await call.office.read(find_agent, agent)):
        return None
    # The token dies with its attempt, however long that takes.
    return call.office.door.identity.attempt_token(agent, receipt.task, receipt.fence, TTL_MS[1])


class Heartbeat(Body, frozen=True):
    """A heartbeat of the holder."""

    fence: Fence | None = None


class Held(Struct, frozen=True, rename="camel"):
    """The lease after a heartbeat."""

    task: str
    status: Status | None
    attempt: int
    fence: int
    expires_at: str


async def heartbeat(call: Call) -> Held:
    """Renew the lease of the holder."""
    beat: Heartbeat = call.body
    command = RenewLease(call.path["name"], beat.fence)
    accepted = await call.do(command)
    held = accepted.receipts[0]
    return Held(held.task, held.status, held.attempt, held.fence, to_rfc3339(held.expires_at))


class Release(Body, frozen=True):
    """Release a task without counting a failure."""

    reason: Line = "released"
    fence: Fence | None = None


class Move(Body, frozen=True):
    """A transition to another status; only a claim leads to in-progress."""

    to: Status
    reason: Line = ""
    fence: Fence | None = None


class Note(Body, frozen=True):
    """A line for the work log."""

    text: Annotated[str, Meta(min_length=1, max_length=TEXT)]
    fence: Fence | None = None


class Link(Body, frozen=True):
    """Links to other tasks, or more names of this one; all or none."""

    blocked_by: Names = ()
    parent: NoTaskName = ""
    discovered_from: NoTaskName = ""
    aliases: Aliases = ()
    fence: Fence | None = None


class Update(Body, frozen=True):
    """Progress: another status where the transition table allows it, else a line in the log."""

    to: Status | None = None
    progress: Words = ""
    notes: Words = ""
    blockers: Lines = ()
    fence: Fence | None = None


class Report(Body, frozen=True):
    """The outcome of an attempt; applied at once, or when its session or its lease ends."""

    outcome: Outcome
    notes: Words = ""
    blockers: Lines = ()
    details: Annotated[
        dict[str, Any],
        Meta(description="Details for programs; a number `cost` counts for the agent's budget."),
    ] = field(default_factory=dict[str, Any])
    apply: bool = True
    fence: Fence | None = None


def _update(task: str, asked: Update) -> list[AnyCommand]:
    if asked.to is None and not (asked.progress or asked.notes or asked.blockers):
        raise stop("invalid_field", "at least one of to, progress, notes and blockers is needed")
    return [
        UpdateTask(task, asked.to, asked.progress, asked.notes, asked.blockers, fence=asked.fence)
    ]


def _link(task: str, asked: Link) -> list[AnyCommand]:
    links: tuple[tuple[LinkKind, tuple[str, ...]], ...] = (
        ("blocked-by", asked.blocked_by),
        ("parent", (asked.parent,)),
        ("discovered-from", (asked.discovered_from,)),
    )
    commands: list[AnyCommand] = [
        LinkTask(task, kind, other, asked.fence)
        for kind, others in links
        for other in others
        if other
    ]
    commands += [AliasTask(task, name, asked.fence) for name in asked.aliases]
    if not commands:
        raise stop(
            "invalid_field",
            "at least one of blocked_by, parent, discovered_from and aliases is needed",
        )
    return commands


Commands = Callable[[Call, str, Any], list[AnyCommand]]
"""Takes the call, the name of the task and the body of the request."""

_ACTIONS: dict[str, tuple[str, type[Body], Commands]] = {
    "release": (
        "Release a task",
        Release,
        lambda _, task, asked: [ReleaseTask(task, asked.reason, asked.fence)],
    ),
    "move": (
        "Move a task to another status",
        Move,
        lambda _, task, asked: [MoveTask(task, asked.to, asked.reason, asked.fence)],
    ),
    "note": (
        "Add a line to a task's work log",
        Note,
        lambda _, task, asked: [NoteTask(task, asked.text, asked.fence)],
    ),
    "link": (
        "Link a task to others, or add an alias",
        Link,
        lambda _, task, asked: _link(task, asked),
    ),
    "update": (
        "Report progress",
        Update,
        lambda _, task, asked: _update(task, asked),
    ),
    "report": (
        "Report the outcome of an attempt",
        Report,
        lambda call, task, asked: [
            ReportOutcome(
                task,
                asked.outcome,
                asked.notes,
                asked.blockers,
                asked.details,
                asked.fence,
                asked.apply,
                call.office.door.settings.retry,
            )
        ],
    ),
}
"""Action on a task -> its summary, the shape of its body, and its commands."""


def _action(name: str, summary: str, shape: type[Body], commands: Commands) -> Endpoint:
    async def act(call: Call) -> WholeTask:
        wanted = commands(call, call.path["name"], call.body)
        accepted = await call.do(*wanted)
        return await show_left(call, accepted.receipts[-1])

    return Endpoint("POST", f"/v1/tasks/{{name}}/{name}", summary, act, WholeTask, body=shape)


ENDPOINTS = (
    Endpoint("POST", "/v1/tasks", "Create a task", create, WholeTask, body=NewTask, status=201),
    Endpoint("POST", "/v1/tasks/{name}/claim", "Claim a task", claim, Claimed, body=Claim),
    Endpoint(
        "POST",
        "/v1/tasks/{name}/heartbeat",
        "Renew the lease of an attempt",
        heartbeat,
        Held,
        body=Heartbeat,
    ),
    *(_action(name, *action) for name, action in _ACTIONS.items()),
)

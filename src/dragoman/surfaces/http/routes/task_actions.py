"""Actions on tasks for callers without a dialect: create, claim, heartbeat, move, report, …"""

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from dragoman.core.attempt import ClaimTask, ReleaseTask, RenewLease, ReportOutcome
from dragoman.core.authority import MAY_MANAGE_CREDENTIALS, may_manage_credentials_of
from dragoman.core.base import Command, LinkKind, Outcome, Priority, Status
from dragoman.core.errors import Refused
from dragoman.core.ids import check_task_id
from dragoman.core.limits import (
    LEASE_RANGE_MS,
    MAX_ATTEMPTS,
    MAX_BODY,
    MAX_LINKS,
    MAX_REASON,
    MAX_SAFE_INTEGER,
    MAX_TEXT,
    MAX_TITLE,
)
from dragoman.core.read import Receipt
from dragoman.core.task_state import AliasTask, CreateTask, LinkTask, MoveTask, NoteTask, UpdateTask
from dragoman.core.timestamps import parse_rfc3339, to_rfc3339
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.schemas.tasks import TaskDetail
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Body, Endpoint, respond
from dragoman.surfaces.http.errors import problem_error
from dragoman.surfaces.http.parameters import (
    AgentName,
    Alias,
    NewAssignee,
    NewId,
    OptionalTaskName,
    Session,
    TaskName,
)
from dragoman.surfaces.http.routes.tasks import task_after

Fence = Annotated[
    int, Meta(ge=0, le=MAX_SAFE_INTEGER, description="The fencing token of the claim, to be safe.")
]
LeaseTtl = Annotated[
    int,
    Meta(
        ge=LEASE_RANGE_MS[0],
        le=LEASE_RANGE_MS[1],
        description="How long the agent may be silent, in ms.",
    ),
]
ReasonText = Annotated[str, Meta(max_length=MAX_REASON)]
ProgressText = Annotated[str, Meta(max_length=MAX_TEXT)]
Reasons = Annotated[tuple[ReasonText, ...], Meta(max_length=MAX_LINKS)]
Deadline = Annotated[
    str,
    Meta(
        max_length=64,
        description="RFC 3339; past that, the delegation is escalated.",
        extra_json_schema={"format": "date-time"},
    ),
]
TaskNames = Annotated[tuple[TaskName, ...], Meta(max_length=MAX_LINKS)]
Aliases = Annotated[tuple[Alias, ...], Meta(max_length=MAX_LINKS)]


class CreateTaskBody(Body, frozen=True):
    """A task to create; without an id the hub assigns one."""

    title: Annotated[str, Meta(min_length=1, max_length=MAX_TITLE)]
    id: NewId | None = None
    body: Annotated[str, Meta(max_length=MAX_BODY)] = ""
    ready: bool = False
    assignee: AgentName = ""
    parent: OptionalTaskName = ""
    review_required: bool | None = None
    priority: Priority = "normal"
    blocked_by: TaskNames = ()
    discovered_from: OptionalTaskName = ""
    aliases: Aliases = ()
    max_attempts: Annotated[int, Meta(ge=1, le=MAX_ATTEMPTS)] | None = None


async def create_task(call: Call) -> Any:
    """Create a task."""
    body: CreateTaskBody = call.body
    if body.id == "" and (misnamed := check_task_id(body.id, "id")) is not None:
        raise Refused(misnamed)
    defaults = call.context.deps.settings.tasks
    review, attempts = body.review_required, body.max_attempts
    command = CreateTask(
        title=body.title,
        id=body.id or "",
        body=body.body,
        ready=body.ready,
        assignee=body.assignee,
        parent=body.parent,
        review_required=defaults.review_required if review is None else review,
        may_skip_review=defaults.may_skip_review,
        priority=body.priority,
        blocked_by=body.blocked_by,
        discovered_from=body.discovered_from,
        aliases=body.aliases,
        max_attempts=defaults.max_attempts if attempts is None else attempts,
    )
    return await _create(call, command)


async def _create(call: Call, command: CreateTask) -> Any:
    accepted = await call.submit(command)
    receipt = accepted.receipts[0]
    response = respond(await task_after(call, receipt), 201)
    response.headers["location"] = f"/v1/tasks/{receipt.task}"
    return response


class DelegateBody(Body, frozen=True, kw_only=True):
    """A part of a task to create and to delegate to an agent, which finds these terms with it."""

    title: Annotated[str, Meta(min_length=1, max_length=MAX_TITLE)]
    assignee: NewAssignee
    due_by: Deadline
    body: Annotated[str, Meta(max_length=MAX_BODY)] = ""
    priority: Priority = "normal"
    acceptance_criteria: Reasons = ()
    expected_outputs: Reasons = ()
    context_refs: Reasons = ()
    constraints: Reasons = ()


async def delegate_part(call: Call) -> Any:
    """Create a part of a task and delegate it to an agent, in one transaction."""
    body: DelegateBody = call.body
    defaults = call.context.deps.settings.tasks
    command = CreateTask(
        title=body.title,
        body=body.body,
        ready=True,
        assignee=body.assignee,
        parent=call.path_params["name"],
        review_required=defaults.review_required,
        may_skip_review=defaults.may_skip_review,
        priority=body.priority,
        max_attempts=defaults.max_attempts,
        due_by=_parse_deadline(body.due_by),
        acceptance_criteria=body.acceptance_criteria,
        expected_outputs=body.expected_outputs,
        context_refs=body.context_refs,
        constraints=body.constraints,
    )
    return await _create(call, command)


def _parse_deadline(text: str) -> int:
    try:
        return parse_rfc3339(text)
    except ValueError as error:
        raise problem_error("invalid_field", f"due_by: {error}", path="due_by") from None


class ClaimBody(Body, frozen=True):
    """A claim of a task; without a name, by the caller itself."""

    agent: AgentName = ""
    session: Session = ""
    ttl_ms: LeaseTtl | None = None


class ClaimedTask(Struct, frozen=True, rename="camel"):
    """A claimed task: send a heartbeat before the lease ends, and name the fence."""

    agent: str
    session: str | None
    attempt: int
    fence: int
    expires_at: str | None
    """None if the claim was repeated and its attempt is over."""
    task: TaskDetail
    token: str | None = None
    """Token of this attempt while it lasts, for callers that claim in another's name. Such a caller
    could not go on without it, and may pass it to the agent as its credentials."""


async def claim_task(call: Call) -> ClaimedTask:
    """Claim a task."""
    command = claim_command(call, call.path_params["name"], call.body)
    accepted = await call.submit(command)
    return await claim_response(call, command, accepted.receipts[0])


def claim_command(call: Call, task: str, body: ClaimBody) -> ClaimTask:
    """Build the command that claims a task, or the next ready one, for the requested agent."""
    ttl_ms = call.context.deps.settings.leases.ttl_ms if body.ttl_ms is None else body.ttl_ms
    return ClaimTask(task, body.agent or call.principal.actor.name, body.session, ttl_ms)


async def claim_response(call: Call, command: ClaimTask, receipt: Receipt) -> ClaimedTask:
    """Build the response to a claim; with the lease as it is now (S-IDEM)."""
    task = await task_after(call, receipt)
    lease = task.lease if task.lease and task.lease.fence == receipt.fence else None
    return ClaimedTask(
        agent=command.agent,
        session=command.session or None,
        attempt=receipt.attempt,
        fence=receipt.fence,
        expires_at=lease and lease.expires_at,
        task=task,
        token=await _attempt_token(call, command.agent, receipt) if lease and lease.valid else None,
    )


async def _attempt_token(call: Call, agent: str, receipt: Receipt) -> str | None:
    actor = call.principal.actor
    if actor.name == agent or not MAY_MANAGE_CREDENTIALS[actor.role]:
        return None
    if not may_manage_credentials_of(actor, await call.context.read(find_agent, agent)):
        return None
    # The token dies with its attempt, however long that takes.
    return call.context.deps.identity.issue_attempt_token(
        agent, receipt.task, receipt.fence, LEASE_RANGE_MS[1]
    )


class HeartbeatBody(Body, frozen=True):
    """A heartbeat of the holder."""

    fence: Fence | None = None


class LeaseStatus(Struct, frozen=True, rename="camel"):
    """The lease after a heartbeat."""

    task: str
    status: Status | None
    attempt: int
    fence: int
    expires_at: str


async def renew_lease(call: Call) -> LeaseStatus:
    """Renew the lease of the holder."""
    body: HeartbeatBody = call.body
    command = RenewLease(call.path_params["name"], body.fence)
    accepted = await call.submit(command)
    receipt = accepted.receipts[0]
    return LeaseStatus(
        receipt.task, receipt.status, receipt.attempt, receipt.fence, to_rfc3339(receipt.expires_at)
    )


class TaskAction(Body, frozen=True):
    """The body of an action on a task, which runs commands and shows the task after them."""

    fence: Fence | None = None

    def commands(self, call: Call, task: str) -> list[Command]:
        """Return the commands to run."""
        raise NotImplementedError


class ReleaseBody(TaskAction, frozen=True):
    """Release a task, without counting a failure."""

    reason: ReasonText = "released"

    def commands(self, call: Call, task: str) -> list[Command]:
        del call
        return [ReleaseTask(task, self.reason, self.fence)]


class MoveBody(TaskAction, frozen=True, kw_only=True):
    """Move a task to another status; only a claim leads to in-progress."""

    to: Status
    reason: ReasonText = ""

    def commands(self, call: Call, task: str) -> list[Command]:
        del call
        return [MoveTask(task, self.to, self.reason, self.fence)]


class NoteBody(TaskAction, frozen=True, kw_only=True):
    """Add a line to a task's work log."""

    text: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]

    def commands(self, call: Call, task: str) -> list[Command]:
        del call
        return [NoteTask(task, self.text, self.fence)]


class LinkBody(TaskAction, frozen=True):
    """Link a task to others, or add names to it; all or none."""

    blocked_by: TaskNames = ()
    parent: OptionalTaskName = ""
    discovered_from: OptionalTaskName = ""
    aliases: Aliases = ()

    def commands(self, call: Call, task: str) -> list[Command]:
        del call
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
            raise problem_error(
                "invalid_field",
                "at least one of blocked_by, parent, discovered_from and aliases is needed",
            )
        return found


class UpdateBody(TaskAction, frozen=True):
    """Report progress: another status where the transition table allows it, else a line in the
    log."""

    to: Status | None = None
    progress: ProgressText = ""
    notes: ProgressText = ""
    blockers: Reasons = ()

    def commands(self, call: Call, task: str) -> list[Command]:
        del call
        if self.to is None and not (self.progress or self.notes or self.blockers):
            raise problem_error(
                "invalid_field", "at least one of to, progress, notes and blockers is needed"
            )
        return [
            UpdateTask(task, self.to, self.progress, self.notes, self.blockers, fence=self.fence)
        ]


class ReportBody(TaskAction, frozen=True, kw_only=True):
    """Report the outcome of an attempt; applied at once, or when its session or its lease ends."""

    outcome: Outcome
    notes: ProgressText = ""
    blockers: Reasons = ()
    details: Annotated[
        dict[str, Any],
        Meta(description="Details for programs; a number `cost` counts for the agent's budget."),
    ] = field(default_factory=dict[str, Any])
    apply: bool = True

    def commands(self, call: Call, task: str) -> list[Command]:
        backoff = call.context.deps.settings.retry
        return [
            ReportOutcome(
                task,
                self.outcome,
                self.notes,
                self.blockers,
                self.details,
                self.fence,
                self.apply,
                backoff,
            )
        ]


_TASK_ACTIONS: dict[str, type[TaskAction]] = {
    "release": ReleaseBody,
    "move": MoveBody,
    "note": NoteBody,
    "link": LinkBody,
    "update": UpdateBody,
    "report": ReportBody,
}


async def _run_action(call: Call) -> TaskDetail:
    action: TaskAction = call.body
    accepted = await call.submit(*action.commands(call, call.path_params["name"]))
    return await task_after(call, accepted.receipts[-1])


ENDPOINTS = (
    Endpoint("POST", "/v1/tasks", create_task, TaskDetail, body=CreateTaskBody, status=201),
    Endpoint(
        "POST",
        "/v1/tasks/{name}/delegate",
        delegate_part,
        TaskDetail,
        body=DelegateBody,
        status=201,
    ),
    Endpoint("POST", "/v1/tasks/{name}/claim", claim_task, ClaimedTask, body=ClaimBody),
    Endpoint("POST", "/v1/tasks/{name}/heartbeat", renew_lease, LeaseStatus, body=HeartbeatBody),
    *(
        Endpoint(
            "POST",
            f"/v1/tasks/{{name}}/{name}",
            _run_action,
            TaskDetail,
            body=shape,
            title=(shape.__doc__ or "").partition(";")[0].partition(":")[0].removesuffix("."),
        )
        for name, shape in _TASK_ACTIONS.items()
    ),
)

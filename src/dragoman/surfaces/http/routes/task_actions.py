"""Actions on tasks for callers without a dialect: create, delegate, claim, heartbeat, and those of
the table of task actions."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import asdict

from dragoman.core.attempt import ClaimTask, RenewLease
from dragoman.core.authority import MAY_MANAGE_CREDENTIALS, may_manage_credentials_of
from dragoman.core.base import Priority, Status
from dragoman.core.errors import Refusal, Refused
from dragoman.core.ids import check_task_id
from dragoman.core.limits import LEASE_RANGE_MS, MAX_ATTEMPTS, MAX_BODY, MAX_TITLE
from dragoman.core.read import Receipt
from dragoman.core.timestamps import parse_rfc3339, to_rfc3339
from dragoman.engine.ports import Store
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.briefing import Briefing, find_briefing
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.engine.schemas.briefing import ClaimedTask, briefing_resource
from dragoman.engine.schemas.name_formats import (
    AgentName,
    NewAssignee,
    NewId,
    OptionalTaskName,
    Session,
)
from dragoman.engine.schemas.tasks import (
    QuestionedTask,
    TaskDetail,
    questioned_task,
    task_detail,
)
from dragoman.engine.task_actions import (
    QUESTION_ACTIONS,
    TASK_ACTIONS,
    ActionSettings,
    Aliases,
    Checks,
    Fence,
    TaskNames,
    Texts,
    summarize,
)
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Body, Endpoint, respond
from dragoman.surfaces.http.errors import problem_error
from dragoman.surfaces.http.routes.tasks import task_after

LeaseTtl = Annotated[
    int,
    Meta(
        ge=LEASE_RANGE_MS[0],
        le=LEASE_RANGE_MS[1],
        description="How long the agent may be silent, in ms.",
    ),
]
Deadline = Annotated[
    str,
    Meta(
        max_length=64,
        description="RFC 3339; past that, the delegation is escalated.",
        extra_json_schema={"format": "date-time"},
    ),
]


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
    checks: Checks = ()


async def create_task(call: Call) -> Any:
    """Create a task."""
    body: CreateTaskBody = call.body
    if body.id == "" and (misnamed := check_task_id(body.id, "id")) is not None:
        raise Refused(misnamed)
    return await _create(call, asdict(body))


async def _create(call: Call, fields: Mapping[str, Any]) -> Any:
    accepted = await call.submit(call.context.deps.settings.tasks.creation(fields))
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
    acceptance_criteria: Texts = ()
    expected_outputs: Texts = ()
    context_refs: Texts = ()
    constraints: Texts = ()


async def delegate_part(call: Call) -> Any:
    """Create a part of a task and delegate it to an agent, in one transaction."""
    body: DelegateBody = call.body
    given = {"ready": True, "parent": call.path_params["name"]}
    return await _create(call, asdict(body) | given | {"due_by": _parse_deadline(body.due_by)})


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
    view, briefing = await call.context.find_or_raise(_read_claimed, receipt)
    task = task_detail(view.task, view.lease, call.now)
    lease = task.lease if task.lease and task.lease.fence == receipt.fence else None
    return ClaimedTask(
        agent=command.agent,
        session=command.session or None,
        attempt=receipt.attempt,
        fence=receipt.fence,
        expires_at=lease and lease.expires_at,
        task=task,
        briefing=briefing_resource(briefing),
        token=await _attempt_token(call, command.agent, receipt) if lease and lease.valid else None,
    )


def _read_claimed(store: Store, receipt: Receipt) -> tuple[TaskView, Briefing | None] | Refusal:
    view = find_task(store, receipt.task, receipt.version)
    if isinstance(view, Refusal):
        return view
    return view, find_briefing(store, view.task, receipt.version)


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


async def _run_action(call: Call) -> TaskDetail:
    known = call.context.deps.settings
    settings = ActionSettings(known.retry, known.attempts.pauses_limited)
    commands = call.body.commands(call.path_params["name"], call.principal.actor, settings)
    accepted = await call.submit(*commands)
    receipt = accepted.receipts[-1]
    task = await task_after(call, receipt)
    return questioned_task(task, receipt.question) if receipt.question else task


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
            QuestionedTask if name in QUESTION_ACTIONS else TaskDetail,
            body=shape,
            title=summarize(shape),
        )
        for name, shape in TASK_ACTIONS.items()
    ),
)

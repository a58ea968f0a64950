"""Tools of an agent that works on a task: claim, update, complete, heartbeat, ask."""

from typing import Annotated, Any

from msgspec import Meta, field

from dragoman.core.commands import ClaimTask, RenewLease, ReportOutcome, UpdateTask
from dragoman.core.events import Outcome, Status
from dragoman.core.moments import to_rfc3339
from dragoman.core.reading import Receipt
from dragoman.surfaces.mcp.desk import HubContext
from dragoman.surfaces.mcp.look import task_brief
from dragoman.surfaces.mcp.tool import Arguments, make_tool

_MINUTE_MS = 60_000
_NO_NOTIFICATIONS = (
    "nobody is told of the question, because this hub has no notifications of blocked tasks "
    "([notify]): it waits until somebody looks"
)

TaskName = Annotated[str, Meta(description="Any name of the task")]
Fence = Annotated[int | None, Meta(description="`fence` of your claim: guards against old work")]
Texts = tuple[str, ...]


class ClaimArguments(Arguments, frozen=True):
    """The task to claim, and for how long."""

    task: Annotated[str, Meta(description="Its name; else the next that is ready for you")] = ""
    minutes: Annotated[
        int, Meta(ge=0, le=10_080, description="Lease: how long you may be silent; 0: default")
    ] = 0
    session: Annotated[str, Meta(description="Name of your session")] = ""


def claim_task(context: HubContext, arguments: ClaimArguments) -> dict[str, Any]:
    """Claim a task."""
    ttl_ms = arguments.minutes * _MINUTE_MS or context.settings.leases.ttl_ms
    receipt = context.submit(
        ClaimTask(arguments.task, context.actor.name, arguments.session, ttl_ms)
    )
    view = context.find_task(receipt.task)
    return _lease_status(receipt) | {
        "agent": context.actor.name,
        "about": task_brief(view, context.now, body=True),
    }


class UpdateArguments(Arguments, frozen=True):
    """Progress of a task, or another status."""

    task: TaskName
    status: Annotated[
        Status | None, Meta(description="`ready` gives it back, `blocked` stops it")
    ] = None
    progress: str = ""
    notes: str = ""
    blockers: Texts = ()
    fence: Fence = None


def update_task(context: HubContext, arguments: UpdateArguments) -> dict[str, Any]:
    """Report progress, which renews the lease, or change the status."""
    receipt = context.submit(
        UpdateTask(
            arguments.task,
            arguments.status,
            arguments.progress,
            arguments.notes,
            arguments.blockers,
            fence=arguments.fence,
        )
    )
    lease = context.find_task(receipt.task).lease
    return _lease_status(receipt) | ({"expiresAt": to_rfc3339(lease.expires_at)} if lease else {})


class CompleteArguments(Arguments, frozen=True):
    """The outcome of an attempt."""

    task: TaskName
    outcome: Outcome = "done"
    notes: Annotated[str, Meta(description="What you did, how you checked it, what is left")] = ""
    blockers: Annotated[Texts, Meta(description="What it waits for; required if blocked")] = ()
    details: Annotated[
        dict[str, Any], Meta(description="For programs; a number `cost` counts for your budget")
    ] = field(default_factory=dict[str, Any])
    fence: Fence = None


def complete_task(context: HubContext, arguments: CompleteArguments) -> dict[str, Any]:
    """Report an outcome, which takes effect at once."""
    report = ReportOutcome(
        arguments.task,
        arguments.outcome,
        arguments.notes,
        arguments.blockers,
        arguments.details,
        arguments.fence,
        apply=True,
        backoff=context.settings.retry,
    )
    return _lease_status(context.submit(report))


class HeartbeatArguments(Arguments, frozen=True):
    """A heartbeat of the holder."""

    task: TaskName
    fence: Fence = None


def renew_lease(context: HubContext, arguments: HeartbeatArguments) -> dict[str, Any]:
    """Renew the lease."""
    return _lease_status(context.submit(RenewLease(arguments.task, arguments.fence)))


class AskArguments(Arguments, frozen=True):
    """A question, and the task that it is about."""

    task: TaskName
    question: Annotated[
        str, Meta(min_length=1, max_length=4_000, description="With the choices that you see")
    ]
    fence: Fence = None


def ask_people(context: HubContext, arguments: AskArguments) -> dict[str, Any]:
    """Block the task until somebody has answered."""
    command = UpdateTask(
        arguments.task, "blocked", blockers=(arguments.question,), fence=arguments.fence
    )
    status = _lease_status(context.submit(command))
    if not context.settings.notify.notifies_on("blocked"):
        context.warnings.append(_NO_NOTIFICATIONS)
    return status


def _lease_status(receipt: Receipt) -> dict[str, Any]:
    """Show the status of the task, and its lease."""
    status: dict[str, Any] = {"task": receipt.task, "status": receipt.status}
    if receipt.expires_at:
        status |= {
            "attempt": receipt.attempt,
            "fence": receipt.fence,
            "expiresAt": to_rfc3339(receipt.expires_at),
        }
    return status


WORK_TOOLS = (
    make_tool(
        "claim",
        "Take a task to work on; returns its text, its `fence` and when your lease ends. "
        "`nothing_ready` means: no work now, try later. Begin here.",
        ClaimArguments,
        claim_task,
    ),
    make_tool(
        "update",
        "Log progress on a task that you hold (this renews the lease), or change its status.",
        UpdateArguments,
        update_task,
    ),
    make_tool(
        "complete",
        "End your work on a task. `partial` and `needs_review` hand it to a reviewer, `failed` "
        "lets it be tried again. Do not go on with it afterwards.",
        CompleteArguments,
        complete_task,
    ),
    make_tool(
        "heartbeat",
        "Renew your lease before `expiresAt`, e.g. before a long command. "
        "`lease_lost` means: stop, somebody else has the task.",
        HeartbeatArguments,
        renew_lease,
    ),
    make_tool(
        "ask",
        "Ask people a question that you cannot answer yourself: the task is blocked until somebody "
        "answers, and a warning tells you if nobody is told of it. Stop working on it. The answer "
        "is in its history when it is ready again. To go on working meanwhile, `send` a "
        "HELP_REQUEST letter instead.",
        AskArguments,
        ask_people,
    ),
)

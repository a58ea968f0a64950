"""Tools of an agent that works on a task: claim, update, complete, heartbeat, ask."""

from typing import Annotated, Any

from msgspec import Meta, field

from dragoman.core.commands import ClaimTask, RenewLease, ReportOutcome, UpdateTask
from dragoman.core.events import Outcome, Status
from dragoman.core.moments import to_rfc3339
from dragoman.core.reading import Receipt
from dragoman.surfaces.mcp.desk import Desk
from dragoman.surfaces.mcp.look import brief
from dragoman.surfaces.mcp.tool import Arguments, tool

_MINUTE_MS = 60_000
_NOBODY_TOLD = (
    "nobody is told of the question, because this hub has no notifications of blocked tasks "
    "([notify]): it waits until somebody looks"
)

TaskName = Annotated[str, Meta(description="Any name of the task")]
Fence = Annotated[int | None, Meta(description="`fence` of your claim: guards against old work")]
Words = tuple[str, ...]


class Claim(Arguments, frozen=True):
    """The task to claim, and for how long."""

    task: Annotated[str, Meta(description="Its name; else the next that is ready for you")] = ""
    minutes: Annotated[
        int, Meta(ge=0, le=10_080, description="Lease: how long you may be silent; 0: default")
    ] = 0
    session: Annotated[str, Meta(description="Name of your session")] = ""


def claim(desk: Desk, asked: Claim) -> dict[str, Any]:
    """Claim a task."""
    ttl_ms = asked.minutes * _MINUTE_MS or desk.settings.leases.ttl_ms
    got = desk.do(ClaimTask(asked.task, desk.actor.name, asked.session, ttl_ms))
    view = desk.task(got.task)
    return _held(got) | {"agent": desk.actor.name, "about": brief(view, desk.now, body=True)}


class Update(Arguments, frozen=True):
    """Progress of a task, or another status."""

    task: TaskName
    status: Annotated[
        Status | None, Meta(description="`ready` gives it back, `blocked` stops it")
    ] = None
    progress: str = ""
    notes: str = ""
    blockers: Words = ()
    fence: Fence = None


def update(desk: Desk, asked: Update) -> dict[str, Any]:
    """Report progress, which renews the lease, or change the status."""
    said = desk.do(
        UpdateTask(
            asked.task,
            asked.status,
            asked.progress,
            asked.notes,
            asked.blockers,
            fence=asked.fence,
        )
    )
    lease = desk.task(said.task).lease
    return _held(said) | ({"expiresAt": to_rfc3339(lease.expires_at)} if lease else {})


class Complete(Arguments, frozen=True):
    """The outcome of an attempt."""

    task: TaskName
    outcome: Outcome = "done"
    notes: Annotated[str, Meta(description="What you did, how you checked it, what is left")] = ""
    blockers: Annotated[Words, Meta(description="What it waits for; required if blocked")] = ()
    details: Annotated[
        dict[str, Any], Meta(description="For programs; a number `cost` counts for your budget")
    ] = field(default_factory=dict[str, Any])
    fence: Fence = None


def complete(desk: Desk, asked: Complete) -> dict[str, Any]:
    """Report an outcome, which takes effect at once."""
    report = ReportOutcome(
        asked.task,
        asked.outcome,
        asked.notes,
        asked.blockers,
        asked.details,
        asked.fence,
        apply=True,
        backoff=desk.settings.retry,
    )
    return _held(desk.do(report))


class Heartbeat(Arguments, frozen=True):
    """A heartbeat of the holder."""

    task: TaskName
    fence: Fence = None


def heartbeat(desk: Desk, asked: Heartbeat) -> dict[str, Any]:
    """Renew the lease."""
    return _held(desk.do(RenewLease(asked.task, asked.fence)))


class Ask(Arguments, frozen=True):
    """A question, and the task that it is about."""

    task: TaskName
    question: Annotated[
        str, Meta(min_length=1, max_length=4_000, description="With the choices that you see")
    ]
    fence: Fence = None


def ask(desk: Desk, asked: Ask) -> dict[str, Any]:
    """Block the task until somebody has answered."""
    question = UpdateTask(asked.task, "blocked", blockers=(asked.question,), fence=asked.fence)
    told = _held(desk.do(question))
    if not desk.settings.notify.tells("blocked"):
        desk.remarks.append(_NOBODY_TOLD)
    return told


def _held(receipt: Receipt) -> dict[str, Any]:
    """Show the status of the task, and its lease."""
    shown: dict[str, Any] = {"task": receipt.task, "status": receipt.status}
    if receipt.expires_at:
        shown |= {
            "attempt": receipt.attempt,
            "fence": receipt.fence,
            "expiresAt": to_rfc3339(receipt.expires_at),
        }
    return shown


TOOLS = (
    tool(
        "claim",
        "Take a task to work on; returns its text, its `fence` and when your lease ends. "
        "`nothing_ready` means: no work now, try later. Begin here.",
        Claim,
        claim,
    ),
    tool(
        "update",
        "Log progress on a task that you hold (this renews the lease), or change its status.",
        Update,
        update,
    ),
    tool(
        "complete",
        "End your work on a task. `partial` and `needs_review` hand it to a reviewer, `failed` "
        "lets it be tried again. Do not go on with it afterwards.",
        Complete,
        complete,
    ),
    tool(
        "heartbeat",
        "Renew your lease before `expiresAt`, e.g. before a long command. "
        "`lease_lost` means: stop, somebody else has the task.",
        Heartbeat,
        heartbeat,
    ),
    tool(
        "ask",
        "Ask people a question that you cannot answer yourself: the task is blocked until somebody "
        "answers, and a warning tells you if nobody is told of it. Stop working on it. The answer "
        "is in its history when it is ready again. To go on working meanwhile, `send` a "
        "HELP_REQUEST letter instead.",
        Ask,
        ask,
    ),
)

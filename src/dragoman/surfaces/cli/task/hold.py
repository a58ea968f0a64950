"""Commands of an agent that works on a task: claim, heartbeat, release."""

from typing import Annotated

import typer

from dragoman.core.commands import ClaimTask, ReleaseTask, RenewLease
from dragoman.core.moments import to_rfc3339
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.options import (
    AgentOption,
    FenceOption,
    ReasonOption,
    TaskArgument,
    TtlOption,
)
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.task.looking import look_at
from dragoman.surfaces.cli.task.view import as_object
from dragoman.surfaces.cli.verb import Verb


def claim(
    call: Call,
    task: Annotated[
        str,
        typer.Argument(
            metavar="ID", show_default=False, help="The task; else the next that is ready."
        ),
    ] = "",
    agent: AgentOption = "",
    session: Annotated[
        str,
        typer.Option(
            "--session",
            metavar="NAME",
            show_default=False,
            help="The agent's session, by name.",
        ),
    ] = "",
    ttl: TtlOption = None,
) -> Answer:
    """Take a task for an agent, under a lease.

    Each claim is a new attempt with a higher fencing token. Send a heartbeat before the lease
    ends, and name the fence in what you write: after a newer claim the old token is refused as
    lease_lost.

    \b
    Examples:
      dragoman task claim --agent ada --json
      dragoman task claim TASK-2026-02-09-001 --agent ada --ttl 10m
    """
    speaker = call.worker(agent)
    with call.writing() as place:
        actor = call.actor(place, speaker)
        ttl_ms = place.settings.leases.ttl_ms if ttl is None else ttl
        claimed = place.hub.do(actor, ClaimTask(task, actor.name, session, ttl_ms)).receipts[0]
        shown = look_at(place.hub, claimed.task).task
    expires = to_rfc3339(claimed.expires_at)
    data = {
        "id": shown.id,
        "task": shown.id,
        "aofId": shown.aof_id,
        "title": shown.title,
        "status": claimed.status,
        "agent": actor.name,
        "session": session or None,
        "attempt": claimed.attempt,
        "fence": claimed.fence,
        "expiresAt": expires,
        "priority": shown.priority,
        "body": shown.body,
    }

    def show(screen: Screen) -> None:
        screen.line((shown.id, "bold"), "  ", shown.title)
        screen.line(
            f"  {actor.name} has it until {expires}: attempt {claimed.attempt}, "
            f"fence {claimed.fence}"
        )
        if shown.body:
            screen.block(shown.body, "  | ")

    return Answer(data, show)


def heartbeat(
    call: Call, task: TaskArgument, agent: AgentOption = "", fence: FenceOption = None
) -> Answer:
    """Renew an agent's lease.

    \b
    Example:
      dragoman task heartbeat TASK-2026-02-09-001 --agent ada --fence 1
    """
    speaker = call.worker(agent)
    with call.writing() as place:
        actor = call.actor(place, speaker)
        held = place.hub.do(actor, RenewLease(task, fence)).receipts[0]
    expires = to_rfc3339(held.expires_at)
    data = {
        "id": held.task,
        "task": held.task,
        "status": held.status,
        "agent": actor.name,
        "attempt": held.attempt,
        "fence": held.fence,
        "expiresAt": expires,
    }
    return Answer(data, lambda screen: screen.line(f"{actor.name} has {held.task} until {expires}"))


def release(
    call: Call,
    task: TaskArgument,
    agent: AgentOption = "",
    reason: ReasonOption = "released",
    fence: FenceOption = None,
) -> Answer:
    """Give a task back, without a failure.

    It is ready again at once.

    \b
    Example:
      dragoman task release TASK-2026-02-09-001 --agent ada --reason "needs a compiler"
    """
    speaker = call.worker(agent)
    with call.writing() as place:
        actor = call.actor(place, speaker)
        given_back = place.hub.do(actor, ReleaseTask(task, reason, fence)).receipts[0]
        shown = look_at(place.hub, given_back.task)
    return Answer(
        as_object(shown), lambda screen: screen.line(f"{shown.task.id} is {shown.task.status}")
    )


VERBS = (Verb("claim", claim), Verb("heartbeat", heartbeat), Verb("release", release))

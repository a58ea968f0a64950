"""Commands of an agent that works on a task: claim, heartbeat, release."""

from typing import Annotated

import typer

from dragoman.core.commands import ClaimTask, ReleaseTask, RenewLease
from dragoman.core.moments import to_rfc3339
from dragoman.surfaces.cli.call import CommandContext, CommandResult
from dragoman.surfaces.cli.options import (
    AgentOption,
    FenceOption,
    ReasonOption,
    TaskArgument,
    TtlOption,
)
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.task.looking import load_task
from dragoman.surfaces.cli.task.view import task_to_dict
from dragoman.surfaces.cli.verb import CliCommand


def claim(
    context: CommandContext,
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
) -> CommandResult:
    """Take a task for an agent, under a lease.

    Each claim is a new attempt with a higher fencing token. Send a heartbeat before the lease
    ends, and name the fence in what you write: after a newer claim the old token is refused as
    lease_lost.

    \b
    Examples:
      dragoman task claim --agent ada --json
      dragoman task claim TASK-2026-02-09-001 --agent ada --ttl 10m
    """
    speaker = context.required_agent(agent)
    with context.open_for_writing() as directory:
        actor = context.actor(directory, speaker)
        ttl_ms = directory.settings.leases.ttl_ms if ttl is None else ttl
        claimed = directory.hub.submit(
            actor, ClaimTask(task, actor.name, session, ttl_ms)
        ).receipts[0]
        shown = load_task(directory.hub, claimed.task).task
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

    return CommandResult(data, show)


def heartbeat(
    context: CommandContext, task: TaskArgument, agent: AgentOption = "", fence: FenceOption = None
) -> CommandResult:
    """Renew an agent's lease.

    \b
    Example:
      dragoman task heartbeat TASK-2026-02-09-001 --agent ada --fence 1
    """
    speaker = context.required_agent(agent)
    with context.open_for_writing() as directory:
        actor = context.actor(directory, speaker)
        held = directory.hub.submit(actor, RenewLease(task, fence)).receipts[0]
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
    return CommandResult(
        data, lambda screen: screen.line(f"{actor.name} has {held.task} until {expires}")
    )


def release(
    context: CommandContext,
    task: TaskArgument,
    agent: AgentOption = "",
    reason: ReasonOption = "released",
    fence: FenceOption = None,
) -> CommandResult:
    """Give a task back, without a failure.

    It is ready again at once.

    \b
    Example:
      dragoman task release TASK-2026-02-09-001 --agent ada --reason "needs a compiler"
    """
    speaker = context.required_agent(agent)
    with context.open_for_writing() as directory:
        actor = context.actor(directory, speaker)
        released = directory.hub.submit(actor, ReleaseTask(task, reason, fence)).receipts[0]
        shown = load_task(directory.hub, released.task)
    return CommandResult(
        task_to_dict(shown), lambda screen: screen.line(f"{shown.task.id} is {shown.task.status}")
    )


ATTEMPT_COMMANDS = (
    CliCommand("claim", claim),
    CliCommand("heartbeat", heartbeat),
    CliCommand("release", release),
)

"""`dragoman agent pause` and `resume`: whether the hub starts anything more for an agent."""

from typing import Annotated

import typer

from dragoman.core.commands import DEFAULT_PAUSE_REASON, PauseAgent, ResumeAgent
from dragoman.surfaces.cli.agent.make import AgentArgument
from dragoman.surfaces.cli.call import CommandContext, CommandResult
from dragoman.surfaces.cli.verb import CliCommand


def pause(
    context: CommandContext,
    name: AgentArgument,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="The reason, shown to others.")
    ] = DEFAULT_PAUSE_REASON,
) -> CommandResult:
    """Stop the hub from starting work of an agent.

    What it works on goes on. An agent that asks for its work itself is not held back by it:
    `dragoman agent revoke` does that.

    \b
    Example:
      dragoman agent pause swe-backend --reason "the build is broken"
    """
    with context.open_for_writing() as directory:
        directory.hub.submit(
            context.actor(directory, context.acting_agent()), PauseAgent(name, reason)
        )
    return _pause_result(name, "paused", f": {reason}")


def resume(context: CommandContext, name: AgentArgument) -> CommandResult:
    """Let a paused agent go on.

    \b
    Example:
      dragoman agent resume swe-backend
    """
    from dragoman.engine.reads.ask import find_agent

    with context.open_for_writing() as directory:
        record = find_agent(directory.hub.store, name)
        was_paused = (
            record is not None and record.active_pause(directory.hub.clock.now()) is not None
        )
        directory.hub.submit(context.actor(directory, context.acting_agent()), ResumeAgent(name))
    return _pause_result(name, "not paused", " any more" if was_paused else ", and was not")


def _pause_result(name: str, state: str, detail: str) -> CommandResult:
    data = {"agent": name, "state": state}
    return CommandResult(data, lambda screen: screen.line((name, "bold"), f" is {state}{detail}"))


PAUSE_COMMANDS = (CliCommand("pause", pause), CliCommand("resume", resume))

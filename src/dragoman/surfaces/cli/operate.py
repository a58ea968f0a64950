"""`dragoman call` and `session-end`: operations by their names, as tools call them."""

from typing import Annotated

import typer

from dragoman.core.authority import MAY_DISPATCH
from dragoman.surfaces.cli.call import CommandContext, CommandResult
from dragoman.surfaces.cli.effects import describe_effects
from dragoman.surfaces.cli.reading import STANDARD_INPUT, read_source
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import CliCommand


def call(
    context: CommandContext,
    operation: Annotated[
        str, typer.Argument(metavar="OPERATION", show_default=False, help="Its name.")
    ],
    arguments: Annotated[
        str,
        typer.Argument(
            metavar="JSON|-", show_default=False, help="Its arguments; `-`: standard input."
        ),
    ] = "{}",
) -> None:
    """Call an operation or tool of any dialect.

    Its reply is printed as JSON. There are, for example, aof_task_complete, aof_task_update,
    session_end, acp_handoff. A refusal is printed as an object with its code, in the form of its
    dialect if that has one for it, and ends the command with 1. Warnings (a secret was masked, no
    task was changed) stand on standard error.

    \b
    Examples:
      dragoman call aof_task_update --as ada '{"taskId":"TASK-2026-02-09-001","progress":"half"}'
      dragoman call session_end '{"sessionId":"s-1"}'
    """
    from dragoman.engine.operation import max_message_bytes
    from dragoman.engine.plan import Rejected

    max_bytes = max_message_bytes(context.wiring.dialects())
    json_text = read_source(arguments, max_bytes) if arguments == STANDARD_INPUT else arguments
    with context.open_for_writing() as directory:
        actor = context.actor(directory, context.acting_agent())
        answer = directory.router.call(operation, json_text, actor)
    if isinstance(answer, Rejected):
        reply: dict[str, object] = answer.reply or {}
        context.out.json(
            {**reply, "ok": False, **context.rejection_result(answer, in_dialect=True).data}
        )
        raise typer.Exit(1)
    # The reply has the dialect's own form, so warnings go to standard error.
    for warning in answer.warnings:
        context.err.line(("warning: ", "yellow"), warning)
    context.out.json(answer.reply)


def session_end(
    context: CommandContext,
    session: Annotated[
        str,
        typer.Option(
            "--session",
            metavar="NAME",
            show_default=False,
            help="Whose attempts end; else all that have reported.",
        ),
    ] = "",
) -> CommandResult:
    """End a session: what its agent has reported moves its tasks.

    An attempt that has reported nothing is left as it is: its lease decides.

    \b
    Example:
      dragoman session-end --session s-1
    """
    from dragoman.engine.plan import Rejected

    arguments = {"sessionId": session} if session else {}
    with context.open_for_writing() as directory:
        actor = context.actor(directory, context.acting_agent())
        answer = directory.router.call("session_end", arguments, actor)
        if isinstance(answer, Rejected):
            return context.rejection_result(answer, in_dialect=True)
        effect_lines = tuple(describe_effects(directory.hub.store, answer))

    def show(screen: Screen) -> None:
        for effect in effect_lines:
            screen.line(effect)
        if not effect_lines:
            by = "" if actor.role in MAY_DISPATCH else f" by {actor.name}"
            held = f"no task is held{by} in a session {session!a}"
            screen.line(f"{held if session else 'no attempt has reported'}: nothing was changed")

    return CommandResult(answer.reply, show)


OPERATION_COMMANDS = (CliCommand("call", call), CliCommand("session-end", session_end))

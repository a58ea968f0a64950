"""`dragoman call` and `session-end`: operations by their names, as tools call them."""

from typing import Annotated

import typer

from dragoman.core.authority import MAY_DISPATCH
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.effects import effects
from dragoman.surfaces.cli.reading import STANDARD_INPUT, read_source
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb


def operate(
    call: Call,
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
    from dragoman.engine.operation import longest_message
    from dragoman.engine.plan import Turned

    most = longest_message(call.house.dialects())
    given = read_source(arguments, most) if arguments == STANDARD_INPUT else arguments
    with call.writing() as place:
        actor = call.actor(place, call.speaker())
        answer = place.interpreter.call(operation, given, actor)
    if isinstance(answer, Turned):
        own: dict[str, object] = answer.reply or {}
        call.out.json({**own, "ok": False, **call.turned(answer, in_dialect=True).data})
        raise typer.Exit(1)
    # The reply has the dialect's own form, so warnings go to standard error.
    for warning in answer.warnings:
        call.err.line(("warning: ", "yellow"), warning)
    call.out.json(answer.reply)


def session_end(
    call: Call,
    session: Annotated[
        str,
        typer.Option(
            "--session",
            metavar="NAME",
            show_default=False,
            help="Whose attempts end; else all that have reported.",
        ),
    ] = "",
) -> Answer:
    """End a session: what its agent has reported moves its tasks.

    An attempt that has reported nothing is left as it is: its lease decides.

    \b
    Example:
      dragoman session-end --session s-1
    """
    from dragoman.engine.plan import Turned

    named = {"sessionId": session} if session else {}
    with call.writing() as place:
        actor = call.actor(place, call.speaker())
        answer = place.interpreter.call("session_end", named, actor)
        if isinstance(answer, Turned):
            return call.turned(answer, in_dialect=True)
        happened = tuple(effects(place.hub.store, answer))

    def show(screen: Screen) -> None:
        for effect in happened:
            screen.line(effect)
        if not happened:
            by = "" if actor.role in MAY_DISPATCH else f" by {actor.name}"
            held = f"no task is held{by} in a session {session!a}"
            screen.line(f"{held if session else 'no attempt has reported'}: nothing was changed")

    return Answer(answer.reply, show)


VERBS = (Verb("call", operate), Verb("session-end", session_end))

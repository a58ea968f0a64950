"""`dragoman mail ack` and `read`: letters that somebody took notice of."""

from typing import Annotated, Any

import typer

from dragoman.core.errors import Refused
from dragoman.surfaces.cli.call import CommandContext, CommandResult
from dragoman.surfaces.cli.mail.asking import call_operation
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import CliCommand

LettersArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="ID", show_default=False, help="Their ids, or enough of the beginnings."
    ),
]


def ack(context: CommandContext, ids: LettersArgument) -> CommandResult:
    """Acknowledge letters that were sent to you.

    A second time changes nothing.

    \b
    Example:
      dragoman mail ack 019c4b3e-7a10 --as boss
    """
    return _mark_letters(context, "mail.ack", ids, "acknowledged")


def read(context: CommandContext, ids: LettersArgument) -> CommandResult:
    """Mark letters in your box as read.

    \b
    Example:
      dragoman mail read 019c4b3e-7a10 --as boss
    """
    return _mark_letters(context, "mail.read", ids, "read")


def _mark_letters(
    context: CommandContext, operation: str, ids: list[str], done: str
) -> CommandResult:
    """Mark each letter separately: a refusal of one does not stop the others."""
    marked: list[dict[str, Any]] = []
    with context.open_for_writing(create_missing=False) as directory:
        actor = context.actor(directory, context.acting_agent())
        for id in ids:
            try:
                reply = call_operation(directory, operation, {"id": id}, actor).reply
                marked.append({"id": reply["id"], done: True})
            except Refused as refusal:
                marked.append({"id": id, "code": refusal.code, "detail": refusal.detail})
    refused_letters = [one for one in marked if "code" in one]
    data: dict[str, Any] = {"letters": marked}
    if refused_letters:
        # The first refusal becomes the refusal of the command.
        data |= {"code": refused_letters[0]["code"], "detail": refused_letters[0]["detail"]}

    def show(screen: Screen) -> None:
        for one in marked:
            if "code" not in one:
                screen.line((one["id"], "bold"), f" {done}")
        for one in refused_letters:
            context.err.line((f"{one['code']}: ", "bold red"), one["detail"])

    return CommandResult(data, show, is_ok=not refused_letters)


MARK_COMMANDS = (CliCommand("ack", ack), CliCommand("read", read))

"""`dragoman mail ack` and `read`: letters that somebody took notice of."""

from typing import Annotated, Any

import typer

from dragoman.core.errors import Refused
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.mail.asking import asked
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb

LettersArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="ID", show_default=False, help="Their ids, or enough of the beginnings."
    ),
]


def ack(call: Call, ids: LettersArgument) -> Answer:
    """Acknowledge letters that were sent to you.

    A second time changes nothing.

    \b
    Example:
      dragoman mail ack 019c4b3e-7a10 --as boss
    """
    return _mark(call, "mail.ack", ids, "acknowledged")


def read(call: Call, ids: LettersArgument) -> Answer:
    """Mark letters in your box as read.

    \b
    Example:
      dragoman mail read 019c4b3e-7a10 --as boss
    """
    return _mark(call, "mail.read", ids, "read")


def _mark(call: Call, operation: str, ids: list[str], done: str) -> Answer:
    """Mark each letter separately: a refusal of one does not stop the others."""
    marked: list[dict[str, Any]] = []
    with call.writing(makes=False) as place:
        actor = call.actor(place, call.speaker())
        for id in ids:
            try:
                reply = asked(place, operation, {"id": id}, actor).reply
                marked.append({"id": reply["id"], done: True})
            except Refused as refused:
                marked.append({"id": id, "code": refused.code, "detail": refused.detail})
    wrong = [one for one in marked if "code" in one]
    data: dict[str, Any] = {"letters": marked}
    if wrong:
        # The first refusal becomes the refusal of the command.
        data |= {"code": wrong[0]["code"], "detail": wrong[0]["detail"]}

    def show(screen: Screen) -> None:
        for one in marked:
            if "code" not in one:
                screen.line((one["id"], "bold"), f" {done}")
        for one in wrong:
            call.err.line((f"{one['code']}: ", "bold red"), one["detail"])

    return Answer(data, show, is_ok=not wrong)


VERBS = (Verb("ack", ack), Verb("read", read))

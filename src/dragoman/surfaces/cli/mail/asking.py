"""How the commands about letters and waves ask: by operations of Agent Mail, as every door does."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.core.errors import Refused
from dragoman.surfaces.cli.call import Call
from dragoman.surfaces.cli.place import Place

if TYPE_CHECKING:
    from dragoman.core.actors import Actor
    from dragoman.engine.plan import Taken

Row = Mapping[str, Any]
"""A letter as operations return it."""

LetterArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        show_default=False,
        help="The letter's id, or enough of its beginning: at least 4 characters; 13, such as "
        "019c4b3e-7a10, where several came within a minute.",
    ),
]
ThreadArgument = Annotated[
    str,
    typer.Argument(metavar="THREAD", show_default=False, help="The thread: a bead's id, usually."),
]


def asked(
    place: Place, operation: str, arguments: bytes | Mapping[str, Any], actor: "Actor"
) -> "Taken":
    """Call an operation; a rejection is raised as Refused."""
    from dragoman.engine.plan import Turned

    answer = place.interpreter.call(operation, arguments, actor)
    if isinstance(answer, Turned):
        raise Refused(answer.refusal)
    return answer


def replied(
    place: Place, operation: str, arguments: bytes | Mapping[str, Any], actor: "Actor"
) -> Any:
    """Call an operation; its warnings are printed unless its `remark` contains them."""
    answer = asked(place, operation, arguments, actor)
    remark = answer.reply.get("remark", "")
    place.warnings.extend(warning for warning in answer.warnings if warning not in remark)
    return answer.reply


def looked_up(call: Call, operation: str, **arguments: Any) -> Any:
    """Call an operation that only reads."""
    with call.reading() as place:
        return asked(place, operation, arguments, call.actor(place, call.speaker())).reply

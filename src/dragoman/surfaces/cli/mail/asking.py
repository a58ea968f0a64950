"""How the commands about letters and waves ask: by operations of Agent Mail, as every door does."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.core.errors import Refused
from dragoman.surfaces.cli.call import CommandContext
from dragoman.surfaces.cli.place import DataDirectory

if TYPE_CHECKING:
    from dragoman.core.actors import Actor
    from dragoman.engine.plan import Accepted

Letter = Mapping[str, Any]
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


def call_operation(
    directory: DataDirectory, operation: str, arguments: bytes | Mapping[str, Any], actor: "Actor"
) -> "Accepted":
    """Call an operation; a rejection is raised as Refused."""
    from dragoman.engine.plan import Rejected

    answer = directory.router.call(operation, arguments, actor)
    if isinstance(answer, Rejected):
        raise Refused(answer.refusal)
    return answer


def call_and_collect_warnings(
    directory: DataDirectory, operation: str, arguments: bytes | Mapping[str, Any], actor: "Actor"
) -> Any:
    """Call an operation; its warnings are printed unless its `remark` contains them."""
    answer = call_operation(directory, operation, arguments, actor)
    remark = answer.reply.get("remark", "")
    directory.warnings.extend(warning for warning in answer.warnings if warning not in remark)
    return answer.reply


def query_operation(context: CommandContext, operation: str, **arguments: Any) -> Any:
    """Call an operation that only reads."""
    with context.open_for_reading() as directory:
        return call_operation(
            directory, operation, arguments, context.actor(directory, context.acting_agent())
        ).reply

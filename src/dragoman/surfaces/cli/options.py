"""Arguments and options that several commands take."""

from typing import Annotated, Any

import typer

from dragoman.core.limits import MAX_PAGE
from dragoman.surfaces.cli.values import parse_time_span


def text_option(name: str, metavar: str, help_text: str) -> Any:
    """Option that takes a text, or several."""
    return typer.Option(f"--{name}", metavar=metavar, show_default=False, help=help_text)


TaskArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID", show_default=False, help="Any name of the task: its id, its AOF id, an alias."
    ),
]
AgentOption = Annotated[
    str,
    typer.Option("--agent", metavar="NAME", show_default=False, help="The agent; same as --as."),
]
FenceOption = Annotated[
    int | None,
    typer.Option(
        "--fence",
        metavar="N",
        min=1,
        show_default=False,
        help="The token from the claim: refused as lease_lost if a newer attempt holds the task.",
    ),
]
ReasonOption = Annotated[
    str,
    typer.Option(
        "--reason", metavar="TEXT", show_default=False, help="The reason, recorded in the ledger."
    ),
]
AsOfOption = Annotated[
    int | None,
    typer.Option(
        "--as-of",
        metavar="POSITION",
        min=0,
        show_default=False,
        help="As it was at this position of the ledger.",
    ),
]
TtlOption = Annotated[
    int | None,
    typer.Option(
        "--ttl",
        metavar="TIME",
        parser=parse_time_span,
        show_default=False,
        help="How long the agent may be silent: seconds, or 90s, 5m, 2h.",
    ),
]
LimitOption = Annotated[
    int,
    typer.Option("--limit", metavar="N", min=1, max=MAX_PAGE, help="How many at most."),
]

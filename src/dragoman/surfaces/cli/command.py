"""Command declaration: a function, and the options that many commands share."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import Struct

from dragoman.core.limits import MAX_PAGE
from dragoman.surfaces.cli.arguments import (
    FastCommand,
    parse_clock,
    parse_store_url,
    parse_time_span,
)
from dragoman.surfaces.cli.context import CommandContext, CommandResult, SharedOptions, UsageError

# --- options of every command -----------------------------------------------------------------

AsOption = Annotated[
    str,
    typer.Option(
        "--as", metavar="NAME", show_default=False, help="Act as this agent, not as yourself."
    ),
]

HiddenAsOption = Annotated[str, typer.Option("--as", hidden=True)]

JsonOption = Annotated[bool, typer.Option("--json", help="Answer in JSON, one object a line.")]

NowOption = Annotated[
    int | None,
    typer.Option(
        "--now",
        metavar="RFC3339",
        parser=parse_clock,
        show_default=False,
        help="Take this as the time, e.g. 2026-02-09T14:30:00Z.",
    ),
]

HiddenNowOption = Annotated[
    int | None, typer.Option("--now", metavar="RFC3339", parser=parse_clock, hidden=True)
]

DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        show_default=False,
        help="The data directory: else $DRAGOMAN_DATA, else ./.dragoman.",
    ),
]

StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="URL",
        parser=parse_store_url,
        show_default=False,
        help="sqlite:///FILE or postgresql://…: else what dragoman.toml says.",
    ),
]

_SHARED_OPTIONS: dict[str, tuple[object, object]] = {
    "speaker": (AsOption, ""),
    "json": (JsonOption, False),
    "now": (NowOption, None),
    "data": (DataOption, None),
    "store": (StoreOption, ""),
}
"""Parameter -> its option and its default."""


# --- arguments and options of several commands ------------------------------------------------


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


# --- commands ---------------------------------------------------------------------------------


class CliCommand(Struct, frozen=True):
    """A command: its name, its function, and which shared options it offers."""

    name: str
    run: Callable[..., CommandResult | None]
    """Called with the context and the command's own arguments; its docstring is the help."""
    takes_as: bool = True
    """Offers --as; else --as is accepted, but hidden, as it makes no difference."""
    takes_now: bool = True
    """Offers --now; else --now is hidden and refused."""
    hidden: bool = False
    """A former name of a command, which works but is not listed."""


def register_command(group: typer.Typer, command: CliCommand) -> None:
    """Register a command with a group."""

    def entry(ctx: typer.Context, **arguments: Any) -> None:
        options = SharedOptions(**{name: arguments.pop(name) for name in _SHARED_OPTIONS})
        context: CommandContext = ctx.obj.with_options(options)
        try:
            code = context.run(lambda: command.run(context, **arguments))
        except UsageError as error:
            error.ctx = ctx
            raise
        raise typer.Exit(code)

    entry.__doc__ = command.run.__doc__
    entry.__dict__["__signature__"] = _signature(command, entry)
    group.command(command.name, cls=FastCommand, hidden=command.hidden)(entry)


def print_help_without_subcommand(ctx: typer.Context) -> None:
    """Print the help of a group that was called without a command; exit code 2."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help(), err=True)
        raise typer.Exit(2)


def _signature(command: CliCommand, entry: Callable[..., object]) -> inspect.Signature:
    """Signature for typer: the context, the function's own parameters, and the shared options."""
    _, *parameters = inspect.signature(command.run, eval_str=True).parameters.values()
    context, _ = inspect.signature(entry).parameters.values()
    shared = {
        **_SHARED_OPTIONS,
        **({} if command.takes_as else {"speaker": (HiddenAsOption, "")}),
        **({} if command.takes_now else {"now": (HiddenNowOption, None)}),
    }
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=option)
        for name, (option, default) in shared.items()
    ]
    return inspect.Signature(
        [context, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters), *options]
    )

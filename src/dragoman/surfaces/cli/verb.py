"""A verb of the command line: a function, and the options that every command takes."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import Struct

from dragoman.surfaces.cli.call import Answer, Call, Shared, WrongUsage
from dragoman.surfaces.cli.values import QuickCommand, read_clock, read_store

AsOption = Annotated[
    str,
    typer.Option(
        "--as", metavar="NAME", show_default=False, help="Act as this agent, not as yourself."
    ),
]
SilentAsOption = Annotated[str, typer.Option("--as", hidden=True)]
JsonOption = Annotated[bool, typer.Option("--json", help="Answer in JSON, one object a line.")]
NowOption = Annotated[
    int | None,
    typer.Option(
        "--now",
        metavar="RFC3339",
        parser=read_clock,
        show_default=False,
        help="Take this as the time, e.g. 2026-02-09T14:30:00Z.",
    ),
]
SilentNowOption = Annotated[
    int | None, typer.Option("--now", metavar="RFC3339", parser=read_clock, hidden=True)
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
        parser=read_store,
        show_default=False,
        help="sqlite:///FILE or postgresql://…: else what dragoman.toml says.",
    ),
]

_SHARED: dict[str, tuple[object, object]] = {
    "speaker": (AsOption, ""),
    "json": (JsonOption, False),
    "now": (NowOption, None),
    "data": (DataOption, None),
    "store": (StoreOption, ""),
}
"""Parameter -> its option and its default."""


class Verb(Struct, frozen=True):
    """A command: its name, its function, and which shared options it offers."""

    name: str
    work: Callable[..., Answer | None]
    """Called with the context and the command's own arguments; its docstring is the help."""
    speaks: bool = True
    """Offers --as; else --as is accepted, but hidden, as it makes no difference."""
    sets_clock: bool = True
    """Offers --now; else --now is hidden and refused."""
    hidden: bool = False
    """A former name of a command, which works but is not listed."""


def add_verb(group: typer.Typer, verb: Verb) -> None:
    """Register a command with a group."""

    def entry(ctx: typer.Context, **given: Any) -> None:
        later = Shared(**{name: given.pop(name) for name in _SHARED})
        call: Call = ctx.obj.saying(later)
        try:
            code = call.finish(lambda: verb.work(call, **given))
        except WrongUsage as wrong:
            wrong.ctx = ctx
            raise
        raise typer.Exit(code)

    entry.__doc__ = verb.work.__doc__
    entry.__dict__["__signature__"] = _signature(verb, entry)
    group.command(verb.name, cls=QuickCommand, hidden=verb.hidden)(entry)


def help_when_alone(ctx: typer.Context) -> None:
    """Print the help of a group that was called without a command; exit code 2."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help(), err=True)
        raise typer.Exit(2)


def _signature(verb: Verb, entry: Callable[..., object]) -> inspect.Signature:
    """Signature for typer: the context, the function's own parameters, and the shared options."""
    _, *own = inspect.signature(verb.work, eval_str=True).parameters.values()
    context, _ = inspect.signature(entry).parameters.values()
    shared = {
        **_SHARED,
        **({} if verb.speaks else {"speaker": (SilentAsOption, "")}),
        **({} if verb.sets_clock else {"now": (SilentNowOption, None)}),
    }
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=option)
        for name, (option, default) in shared.items()
    ]
    return inspect.Signature(
        [context, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own), *options]
    )

"""Root of the `dragoman` command: runs one command and turns failures into exit codes."""

import select
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, TextIO

import typer
from typer.core import TyperGroup

import dragoman
from dragoman.surfaces.cli.command import (
    AsOption,
    FastGroup,
    JsonOption,
    NowOption,
    StoreOption,
    TokenFileOption,
    UrlOption,
    print_help_without_subcommand,
)
from dragoman.surfaces.cli.commands import build_root
from dragoman.surfaces.cli.context import (
    CommandContext,
    SharedOptions,
    UsageError,
    raise_usage_error,
)
from dragoman.surfaces.cli.data_directory import CliWiring
from dragoman.surfaces.cli.render import OutputClosed, OutputError, Screen
from dragoman.surfaces.cli.thin_client import make_printable, redirect_to_devnull

# --- waiting for more entries -----------------------------------------------------------------

_PAUSE_MS = 200

PollPause = Callable[[], bool]
"""Pauses; False when polling should stop."""


def pause_while_reader_listens(stream: TextIO) -> PollPause:
    """Make a pause of 200 ms that ends polling when the reader closes the stream."""
    poll = select.poll()
    # No event is registered: poll reports a closed peer all the same.
    poll.register(stream.fileno(), 0)
    return lambda: not poll.poll(_PAUSE_MS)


# --- command ----------------------------------------------------------------------------------

_NAME = "dragoman"


def run(wiring: CliWiring) -> int:
    """Run the command line of this process; its exit code."""
    sys.stdout, sys.stderr = map(make_printable, (sys.stdout, sys.stderr))
    try:
        code = main(
            wiring, sys.argv[1:], sys.stdout, sys.stderr, pause_while_reader_listens(sys.stdout)
        )
        Screen(sys.stdout).flush()
    except OutputClosed:
        redirect_to_devnull(sys.stdout)
        code = 0
    except OutputError as error:
        redirect_to_devnull(sys.stdout)
        Screen(sys.stderr).line(f"{error}")
        code = 1
    return code


def main(wiring: CliWiring, args: Sequence[str], out: TextIO, err: TextIO, wait: PollPause) -> int:
    """Run one command; returns its exit code."""
    context = CommandContext(wiring, wait, Screen(out), Screen(err))
    command = build_cli()
    try:
        _check_no_empty_names(args)
        code = command.main(args=list(args), prog_name=_NAME, standalone_mode=False, obj=context)
    except typer.TyperException as error:
        _print_usage_error(error, context.err)
        return error.exit_code
    return code if isinstance(code, int) else 0


@cache
def build_cli() -> TyperGroup:
    """Build the root command with everything below it."""
    # Plain help, because drawing boxes would take longer than printing it.
    app = typer.Typer(
        name=_NAME, cls=FastGroup, rich_markup_mode=None, pretty_exceptions_enable=False
    )
    app.callback(invoke_without_command=True, epilog=_EPILOG)(_root)
    return build_root(app)


_EPILOG = "Exit codes: 0 done, 1 refused or failed, 2 not understood."


def _print_version(ctx: typer.Context, is_requested: bool) -> None:
    if is_requested:
        ctx.obj.out.line(f"{_NAME} {dragoman.__version__}")
        raise typer.Exit


def _root(
    ctx: typer.Context,
    *,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            envvar="DRAGOMAN_DATA",
            show_default=False,
            help="The data directory; else the nearest .dragoman, in this folder or above it.",
        ),
    ] = None,
    store: StoreOption = "",
    url: UrlOption = "",
    token_file: TokenFileOption = "",
    speaker: AsOption = "",
    json: JsonOption = False,
    now: NowOption = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """A durable hub where software agents hand work to one another.

    These options may also stand after a command and its arguments.

    \b
    Begin here:
      dragoman demo                         see a task's life: a crash, a recovery
      dragoman init                         make a data directory in this folder
      dragoman up                           start the hub, for agents to call
      dragoman task create "First" --ready  make a task
      dragoman task claim --agent ada       let an agent take the next one
      dragoman task list                    see all tasks and their statuses
    """
    del version, url, token_file
    print_help_without_subcommand(ctx)
    ctx.obj = ctx.obj.with_options(SharedOptions(data, store, json, now, speaker))


# --- arguments and streams --------------------------------------------------------------------

_TEXT_OPTIONS = frozenset({"--body", "--notes", "--reason", "--subject", "--text"})

_TEXT_COMMANDS = frozenset({"create", "log"})


def _check_no_empty_names(args: Sequence[str]) -> None:
    """Refuse empty names, which come from unset variables and must not mean everyone."""
    arguments = list(_split_assignments(args))
    for previous, argument in zip(("", *arguments), arguments, strict=False):
        is_text = previous in _TEXT_OPTIONS or (
            not previous.startswith("-") and not _TEXT_COMMANDS.isdisjoint(args)
        )
        if not argument and not is_text:
            raise_usage_error(
                f"an empty argument stands after {previous or _NAME}: is a variable not set?"
            )


def _split_assignments(args: Sequence[str]) -> Iterator[str]:
    """Split `--option=` into option and empty value; arguments behind `--` are no options."""
    options = args[: args.index("--")] if "--" in args else args
    for argument in options:
        yield from (
            (argument[:-1], "")
            if argument.startswith("--") and argument.endswith("=")
            else (argument,)
        )
    yield from args[len(options) :]


def _print_usage_error(error: typer.TyperException, err: Screen) -> None:
    """Print what was wrong with the arguments, and where to read more."""
    context = getattr(error, "ctx", None)
    command_path = context.command_path if context is not None else _NAME
    message = error.format_message()
    if not isinstance(error, UsageError):
        # Typer lists choices on lines of their own; the sentence is to be one line.
        message = " ".join(message.split())
    err.line((f"{command_path}: ", "bold red"), message)
    err.line(f"Try `{command_path} --help`.")

"""The `dragoman` command: its root, its commands, and what becomes of a call that goes wrong."""

import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, TextIO

import typer
from typer.core import TyperGroup

import dragoman
from dragoman.surfaces.cli.call import Call, Shared, WrongUsage, wrong_usage
from dragoman.surfaces.cli.commands import root_of
from dragoman.surfaces.cli.place import House
from dragoman.surfaces.cli.screen import CannotPrint, ReaderGone, Screen
from dragoman.surfaces.cli.values import QuickGroup
from dragoman.surfaces.cli.verb import (
    AsOption,
    JsonOption,
    NowOption,
    StoreOption,
    help_when_alone,
)
from dragoman.surfaces.cli.waiting import Wait, poll_while_read

_NAME = "dragoman"


def run(house: House) -> None:
    """Run the command line of this process, and exit."""
    sys.stdout, sys.stderr = map(_made_usable, (sys.stdout, sys.stderr))
    try:
        code = main(house, sys.argv[1:], sys.stdout, sys.stderr, poll_while_read(sys.stdout))
        Screen(sys.stdout).flush()
    except ReaderGone:
        _silence(sys.stdout)
        code = 0
    except CannotPrint as fault:
        _silence(sys.stdout)
        Screen(sys.stderr).line(f"{fault}")
        code = 1
    sys.exit(code)


def main(house: House, args: Sequence[str], out: TextIO, err: TextIO, wait: Wait) -> int:
    """Run one command; returns its exit code."""
    call = Call(house, wait, Screen(out), Screen(err))
    command = build()
    try:
        _refuse_empty_names(args)
        code = command.main(args=list(args), prog_name=_NAME, standalone_mode=False, obj=call)
    except typer.TyperException as error:
        _explain(error, call.err)
        return error.exit_code
    return code if isinstance(code, int) else 0


_MAY_BE_EMPTY = frozenset({"--body", "--reason", "--subject"})
_TAKE_TEXT = frozenset({"create", "log"})


def _refuse_empty_names(args: Sequence[str]) -> None:
    """Refuse empty names, which come from unset variables and must not mean everyone."""
    words = list(_apart(args))
    for before, word in zip(("", *words), words, strict=False):
        is_text = before in _MAY_BE_EMPTY or (
            not before.startswith("-") and not _TAKE_TEXT.isdisjoint(args)
        )
        if not word and not is_text:
            wrong_usage(f"an empty argument stands after {before or _NAME}: is a variable not set?")


def _apart(args: Sequence[str]) -> Iterator[str]:
    """Split `--option=` into option and empty value; arguments behind `--` are no options."""
    options = args[: args.index("--")] if "--" in args else args
    for word in options:
        yield from (word[:-1], "") if word.startswith("--") and word.endswith("=") else (word,)
    yield from args[len(options) :]


@cache
def build() -> TyperGroup:
    """Build the root command with everything below it."""
    # Plain help, because drawing boxes would take longer than printing it.
    app = typer.Typer(
        name=_NAME, cls=QuickGroup, rich_markup_mode=None, pretty_exceptions_enable=False
    )
    app.callback(invoke_without_command=True, epilog=_EPILOG)(_root)
    return root_of(app)


_EPILOG = "Exit codes: 0 done, 1 refused or failed, 2 not understood."


def _print_version(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
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
            help="The data directory; else ./.dragoman.",
        ),
    ] = None,
    store: StoreOption = "",
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
      dragoman up                           start the hub, for agents to call
      dragoman task create "First" --ready  make a task
      dragoman task claim --agent ada       let an agent take the next one
      dragoman task list                    see all tasks and their statuses
    """
    del version
    help_when_alone(ctx)
    ctx.obj = ctx.obj.saying(Shared(data, store, json, now, speaker))


def _made_usable(stream: TextIO | None) -> TextIO:
    """Make a stream accept any character; /dev/null where the caller has closed it."""
    if stream is None:
        return Path(os.devnull).open("w", encoding="utf-8")
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        # A terminal that cannot show a character shows its code point, rather than nothing.
        reconfigure(errors="backslashreplace")
    return stream


def _silence(stream: TextIO) -> None:
    """Send what is still to be flushed to /dev/null, so that the exit prints no complaint."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _explain(error: typer.TyperException, err: Screen) -> None:
    """Print what was wrong with the arguments, and where to read more."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else _NAME
    message = error.format_message()
    if not isinstance(error, WrongUsage):
        # Typer lists choices on lines of their own; the sentence is to be one line.
        message = " ".join(message.split())
    err.line((f"{path}: ", "bold red"), message)
    err.line(f"Try `{path} --help`.")

"""Root of the `dragoman` command: runs one command and turns failures into exit codes."""

import select
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from dragoman.surfaces.cli.context import CommandContext, UsageError, raise_usage_error
from dragoman.surfaces.cli.data_directory import CliWiring
from dragoman.surfaces.cli.plain_call import parse_plain_call
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
    try:
        _check_no_empty_names(args)
        call = parse_plain_call(args)
        if call is not None:
            return call.run(context)
        from dragoman.surfaces.cli.typer_app import run_typer

        return run_typer(context, args)
    except UsageError as error:
        context.err.line((f"{error.path}: ", "bold red"), f"{error}")
        context.err.line(f"Try `{error.path} --help`.")
        return 2
    except KeyboardInterrupt:
        return 130


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
            where = previous or UsageError.path
            raise_usage_error(f"an empty argument stands after {where}: is a variable not set?")


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

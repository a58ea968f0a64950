"""Plain calls are understood as typer understands them; whatever is not plain is left to it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.surfaces.cli.plain_call import parse_plain_call
from dragoman.surfaces.cli.typer_app import build_cli
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console
from tests.surfaces.cli.test_all_commands import ARGUMENTS, COMMANDS

pytestmark = proves("CLI-START", "CLI-PROMISES")

SHARED = ("--json", "--now", NOON, "--data", "d", "--store", "sqlite:////s.db")


def by_typer(words: tuple[str, ...], arguments: tuple[str, ...]) -> dict[str, Any]:
    """Values that typer parses."""
    command: Any = build_cli()
    for word in words:
        command = command.commands[word]
    return command.make_context(words[-1], list(arguments)).params


def by_us(args: tuple[str, ...]) -> dict[str, Any]:
    """Values that a plain call has."""
    call = parse_plain_call(args)
    assert call is not None, args
    return dict(call.typed)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_arguments_of_every_command_are_those_of_typer(words: tuple[str, ...]) -> None:
    needs_task = words in (("task", "diff"), ("task", "merge"))
    own = ARGUMENTS.get(" ".join(words)) or ARGUMENTS.get(words[-1], ("T-1",) * needs_task)
    has_clock = words not in (("up",), ("open",), ("reload",))
    shared = SHARED if has_clock else (SHARED[0], *SHARED[3:])

    assert by_us((*words, *own, *shared)) == by_typer(words, (*own, *shared))


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (("task", "list"), ("--limit=3", "--status", "review", "--before", "0")),
        (("task", "assign"), ("a", "b", "ada", "--take")),
        (("task", "assign"), ("ada",)),
        (("task", "assign"), ()),
        (("task", "ask"), ("T-1", "--agent", "ada", "Now?", "--wait")),
        (("task", "ask"), ("T-1", "Now?", "--wait", "5m")),
        (("task", "log"), ("--as", "ada", "--", "T-1", "--as=")),
        (("mail", "send"), ("--to", "a", "--to=b", "--no-ack", "--ack-within", "10m")),
        (("mail", "send"), ("--ack", "--subject", "", "--body", "-")),
        (("mail", "inbox"), ("-w",)),
        (("task", "create"), ("One", "--as", "ada", "--as", "ben")),
    ],
    ids=str,
)
def test_spellings_are_those_of_typer(words: tuple[str, ...], arguments: tuple[str, ...]) -> None:
    assert by_us((*words, *arguments)) == by_typer(words, arguments)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--version",
        "--help",
        "task",
        "tsak list",
        "task list --help",
        "task list --bogus",
        "task list --limit",
        "task list --limit --json",
        "task list --limit 0",
        "task list --json=yes",
        "task list extra",
        "task show",
        "task show T-1 T-2",
        "--now yesterday task list",
        "handoff reject h9",
    ],
)
def test_what_is_not_plain_is_left_to_typer(line: str) -> None:
    assert parse_plain_call(line.split()) is None


def test_options_before_the_command_and_the_variable_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DRAGOMAN_DATA", "found")
    call = parse_plain_call(("--as", "ada", "--json", "task", "list", "--data", "named"))

    assert call is not None
    assert (call.path, call.before.data, call.before.speaker) == (
        "dragoman task list",
        Path("found"),
        "ada",
    )
    assert call.typed["data"] == Path("named")


def test_plain_call_loads_no_typer(dragoman: Console) -> None:
    dragoman("init")
    program = (
        "import sys\n"
        "from dragoman.bootstrap.cli_wiring import CLI_WIRING\n"
        "from dragoman.surfaces.cli.app import run\n"
        "run(CLI_WIRING)\n"
        "print('typer' in sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--data", str(dragoman.data), "task", "list"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )

    assert done.stderr == "False\n"

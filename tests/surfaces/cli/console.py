"""The command line within the test's own process: real parts on a temporary directory."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dragoman.bootstrap.cli_wiring import CLI_WIRING
from dragoman.surfaces.cli.app import main
from dragoman.surfaces.cli.data_directory import OpenDirectory

NOON = "2026-02-09T12:00:00Z"


class CommandResult(Struct, frozen=True):
    """Output and exit code of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The only object on standard output."""
        (line,) = self.out.splitlines()
        return json.loads(line)

    @property
    def objects(self) -> list[Any]:
        """The objects on standard output, one per line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Terminal(StringIO):
    """Stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


class Console:
    """Command line with one data directory."""

    def __init__(self, data: Path, open_: OpenDirectory = CLI_WIRING.open_directory) -> None:
        self.data = data
        self._wiring = replace(CLI_WIRING, open_directory=open_)

    def __call__(self, *args: str, wait: Callable[[], bool] = lambda: False) -> CommandResult:
        """Run a command."""
        return self._run(args, StringIO(), StringIO(), wait)

    def on_terminal(self, *args: str) -> CommandResult:
        """Run a command with a terminal on both streams."""
        return self._run(args, Terminal(), Terminal(), lambda: False)

    def ask(self, *args: str, code: int = 0) -> Any:
        """Run a command with --json, check its exit code and return the object that it prints."""
        result = self(*args, "--json")
        assert result.code == code, result
        return result.json

    def make(self, *args: str) -> str:
        """Create a task and return its id."""
        return str(self.ask("task", "create", *args)["id"])

    def _run(
        self, args: tuple[str, ...], out: StringIO, err: StringIO, wait: Callable[[], bool]
    ) -> CommandResult:
        code = main(self._wiring, ["--data", str(self.data), *args], out, err, wait)
        return CommandResult(code, out.getvalue(), err.getvalue())

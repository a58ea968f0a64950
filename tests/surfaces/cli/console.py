"""The command line within the test's own process: real parts on a temporary directory."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dragoman.bootstrap.house import HOUSE
from dragoman.surfaces.cli.app import main
from dragoman.surfaces.cli.place import OpenPlace

NOON = "2026-02-09T12:00:00Z"


class Said(Struct, frozen=True):
    """What a command said, and the code it ended with."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The object on standard output; there is exactly one."""
        (line,) = self.out.splitlines()
        return json.loads(line)

    @property
    def objects(self) -> list[Any]:
        """The objects on standard output, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Console:
    """Somebody who types commands about one data directory."""

    def __init__(self, data: Path, open_: OpenPlace = HOUSE.open_place) -> None:
        self.data = data
        self._house = replace(HOUSE, open_place=open_)

    def __call__(self, *words: str, wait: Callable[[], bool] = lambda: False) -> Said:
        """Type a command."""
        return self._type(words, StringIO(), StringIO(), wait)

    def on_terminal(self, *words: str) -> Said:
        """Type a command where both streams are a terminal."""
        return self._type(words, Terminal(), Terminal(), lambda: False)

    def ask(self, *words: str, code: int = 0) -> Any:
        """The object that a command answers with --json, and that it ends as it should."""
        said = self(*words, "--json")
        assert said.code == code, said
        return said.json

    def make(self, *words: str) -> str:
        """Create a task; its id."""
        return str(self.ask("task", "create", *words)["id"])

    def _type(
        self, words: tuple[str, ...], out: StringIO, err: StringIO, wait: Callable[[], bool]
    ) -> Said:
        code = main(self._house, ["--data", str(self.data), *words], out, err, wait)
        return Said(code, out.getvalue(), err.getvalue())

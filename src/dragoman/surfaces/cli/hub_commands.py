"""Commands that the hub runs for thin clients, each in a thread, with the caller's context.

A command is the same here and in the caller's process. It works on a data directory opened on the
hub's own store and engine, which no other command uses meanwhile.
"""

import asyncio
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from io import StringIO
from pathlib import Path

from msgspec import Struct

from dragoman.engine.forwarding import ForwardedCall, ForwardedOutput, WantedInput
from dragoman.surfaces.cli.app import main
from dragoman.surfaces.cli.caller import Caller, InputWanted, RunLocally, set_caller
from dragoman.surfaces.cli.data_directory import CliWiring, DataDirectory

_THREADS = 8
"""Commands that run at once; more of them wait."""
_USAGE_ERROR = 2


class HubDirectory(Struct, frozen=True):
    """A data directory opened inside the hub, for one command at a time."""

    directory: DataDirectory
    writes: Callable[[], int]
    """Number of requests that it has handed to the hub."""
    wire: Callable[[Path], CliWiring]
    """Wiring for a command that finds the data directory at this path."""


class HubCommands:
    """Runs commands for thin clients."""

    def __init__(self, open_directory: Callable[[], HubDirectory]) -> None:
        self._open_directory = open_directory
        self._idle: list[HubDirectory] = []
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="dragoman-command")

    async def handle(self, call: ForwardedCall) -> ForwardedOutput:
        """Run the command of a call in a thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self.run, call)

    def run(self, call: ForwardedCall) -> ForwardedOutput:
        """Run the command of a call, unless it needs its own process."""
        try:
            opened = self._idle.pop()
        except IndexError:
            opened = self._open_directory()
        try:
            return _run_command(opened, call)
        finally:
            opened.directory.warnings.clear()
            self._idle.append(opened)


def _run_command(opened: HubDirectory, call: ForwardedCall) -> ForwardedOutput:
    output = list[tuple[int, str]]()
    out, err = (
        _CallerStream(partial(_add_text, output, number), is_terminal, call.encoding)
        for number, is_terminal in enumerate(call.terminals, start=1)
    )
    set_caller(Caller(call.user, Path(call.folder), call.environ, partial(_read, call.inputs)))
    writes = opened.writes()
    try:
        code = main(
            opened.wire(Path(call.data)), ["--data", call.data, *call.args], out, err, _never_wait
        )
        if code == _USAGE_ERROR and opened.writes() == writes:
            # The program of the caller may be newer, and know more.
            return ForwardedOutput(runs_here=False)
    except RunLocally:
        assert opened.writes() == writes, "a command that has written cannot be run again"
        return ForwardedOutput(runs_here=False)
    except InputWanted as wanted:
        assert opened.writes() == writes, "a command reads its input before it writes"
        return ForwardedOutput(wanted=WantedInput(wanted.source, wanted.max_bytes))
    except (Exception, SystemExit):  # noqa: BLE001  one faulty command must not end the hub
        _add_text(output, 2, traceback.format_exc())
        code = 1
    finally:
        set_caller(None)
    return ForwardedOutput(code, tuple(output))


def _read(inputs: dict[str, str], source: str, max_bytes: int) -> bytes:
    if source not in inputs:
        raise InputWanted(source, max_bytes)
    return inputs[source].encode("latin-1")


def _never_wait() -> bool:
    raise RunLocally


def _add_text(output: list[tuple[int, str]], number: int, text: str) -> None:
    if output and output[-1][0] == number:
        output[-1] = (number, output[-1][1] + text)
    else:
        output.append((number, text))


class _CallerStream(StringIO):
    """Standard output or error output of a caller; its text is kept in order with the other's."""

    def __init__(self, add: Callable[[str], None], is_terminal: bool, encoding: str) -> None:
        super().__init__()
        self._add = add
        self._is_terminal = is_terminal
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._encoding

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str, /) -> int:
        self._add(text)
        return len(text)

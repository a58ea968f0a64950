"""Commands that the hub runs for thin clients, each in a thread, with the caller's context.

A command is the same here and in the caller's process. It works on a data directory opened on the
hub's own store and engine, which no other command uses meanwhile. For the owner's process beside
the data directory it runs as the person at the keyboard. For any other caller it runs as the bearer
of the token, and then its output is sent as it comes, so that a command may wait for more entries.
"""

import asyncio
import logging
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from io import StringIO
from pathlib import Path
from threading import Event, Lock, Semaphore

from msgspec import Struct

from dragoman.core.errors import Refusal, Refused
from dragoman.engine.auth import Principal
from dragoman.engine.forwarding import ForwardedCall, ForwardedOutput, WantedInput
from dragoman.surfaces.cli.app import main
from dragoman.surfaces.cli.caller import Caller, InputWanted, RunLocally, set_caller
from dragoman.surfaces.cli.data_directory import CliWiring, DataDirectory

_RUNNING = 8
"""Commands that run at once; more of them wait for their turn."""
_MAX_WAITING = 128
"""Commands that wait for more entries, or for a slow reader of their output."""
_MAX_WAITING_OF_CALLER = 16
_PAUSE_SECONDS = 0.5
"""Between two looks of a waiting command for more entries."""
_PART_CHARACTERS = 65_536
"""Output of this length is sent before the command ends."""
_PARTS_AHEAD = 4
"""Parts of the output that may wait for a slow reader."""
_USAGE_ERROR = 2

_log = logging.getLogger("dragoman.commands")


class HubDirectory(Struct, frozen=True):
    """A data directory opened inside the hub, for one command at a time."""

    directory: DataDirectory
    writes: Callable[[], int]
    """Number of requests that it has handed to the hub."""
    wire: Callable[[Path], CliWiring]
    """Wiring for a command that finds the data directory at this path."""


class HubCommands:
    """Runs commands for thin clients."""

    def __init__(
        self, open_directory: Callable[[], HubDirectory], serves_local_callers: Callable[[], bool]
    ) -> None:
        self._open_directory = open_directory
        self._serves_local_callers = serves_local_callers
        self._idle: list[HubDirectory] = []
        self._slots = _Slots()
        self._threads = ThreadPoolExecutor(
            _RUNNING + _MAX_WAITING, thread_name_prefix="dragoman-command"
        )

    def start(self, call: ForwardedCall, principal: Principal) -> "RunningCommand":
        """Run the command of a call in a thread; only the owner has a process beside the hub."""
        is_local = call.local is not None and principal.is_owner
        run = RunningCommand(call, None if is_local else principal, self._slots)
        if is_local and not self._serves_local_callers():
            run.end(ForwardedOutput(runs_here=False))
        else:
            self._threads.submit(self._run, run)
        return run

    def _run(self, run: "RunningCommand") -> None:
        last = ForwardedOutput(1, ((2, _FAULT),))
        try:
            with self._slots.running:
                last = self._run_in_turn(run)
        except Exception:  # noqa: BLE001  its caller waits for an end
            _log.exception("a command failed")
        finally:
            run.end(last)

    def _run_in_turn(self, run: "RunningCommand") -> ForwardedOutput:
        try:
            opened = self._idle.pop()
        except IndexError:
            opened = self._open_directory()
        try:
            return _run_command(opened, run)
        finally:
            opened.directory.warnings.clear()
            if len(self._idle) < _RUNNING:
                self._idle.append(opened)


# --- one command ------------------------------------------------------------------------------


class CommandEnded(Exception):
    """The output has lost its reader, the token has ended, or the hub stops."""


class _Slots:
    """Limits of the commands that run and wait at once."""

    def __init__(self) -> None:
        self.running = Semaphore(_RUNNING)
        self._lock = Lock()
        self._waiting = Counter[str]()
        """Caller -> its commands that wait."""

    def enter_wait(self, caller: str) -> None:
        """Let another command run meanwhile; Refused if too many wait already."""
        with self._lock:
            is_full = self._waiting.total() >= _MAX_WAITING
            if is_full or self._waiting[caller] >= _MAX_WAITING_OF_CALLER:
                limit = (
                    f"{_MAX_WAITING} commands wait at this hub"
                    if is_full
                    else f"{_MAX_WAITING_OF_CALLER} commands of {caller} wait"
                )
                raise Refused(
                    Refusal("overloaded", f"{limit} for more, which is the most: end some of them")
                )
            self._waiting[caller] += 1
        self.running.release()

    def leave_wait(self, caller: str) -> None:
        """Wait for a turn to run again."""
        with self._lock:
            self._waiting[caller] -= 1
            if not self._waiting[caller]:
                del self._waiting[caller]
        self.running.acquire()


class RunningCommand:
    """A command and its output, which its thread writes and the event loop reads."""

    def __init__(self, call: ForwardedCall, bearer: Principal | None, slots: _Slots) -> None:
        self.call = call
        self.bearer = bearer
        self._slots = slots
        self._loop = asyncio.get_running_loop()
        self._parts = asyncio.Queue[ForwardedOutput]()
        self._room = Semaphore(_PARTS_AHEAD)
        self._closed = Event()
        self._output = list[tuple[int, str]]()
        self._characters = 0

    async def next_part(self) -> ForwardedOutput:
        """Wait for the next part of the output."""
        part = await self._parts.get()
        self._room.release()
        return part

    def close(self) -> None:
        """End its wait for more entries."""
        self._closed.set()

    def end(self, last: ForwardedOutput) -> None:
        """Hand over the last part."""
        with suppress(RuntimeError):  # the loop of a hub that was stopped at once is closed
            self._loop.call_soon_threadsafe(self._parts.put_nowait, last)

    def add_text(self, number: int, text: str) -> None:
        """Add to the output; what is long is sent at once."""
        if self._output and self._output[-1][0] == number:
            self._output[-1] = (number, self._output[-1][1] + text)
        else:
            self._output.append((number, text))
        self._characters += len(text)
        if self.bearer is not None and self._characters > _PART_CHARACTERS:
            self._send_part(self.bearer)

    def take_output(self) -> tuple[tuple[int, str], ...]:
        """Take the output that was not sent yet."""
        output, self._output, self._characters = tuple(self._output), [], 0
        return output

    def wait_for_more(self) -> bool:
        """Pause until there may be more entries; a caller beside the hub follows them itself."""
        if self.bearer is None:
            raise RunLocally
        if self._output:
            self._send_part(self.bearer)
        label = self.bearer.actor.label
        self._slots.enter_wait(label)
        try:
            self._closed.wait(_PAUSE_SECONDS)
        finally:
            self._slots.leave_wait(label)
        self._check_open()
        return True

    def _send_part(self, bearer: Principal) -> None:
        """Send the output so far, once its reader has taken enough of what was sent before."""
        if not self._room.acquire(blocking=False):
            label = bearer.actor.label
            self._slots.enter_wait(label)
            try:
                while not self._room.acquire(timeout=_PAUSE_SECONDS):
                    self._check_open()
            finally:
                self._slots.leave_wait(label)
        self.end(ForwardedOutput(output=self.take_output()))

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise CommandEnded


_ENDED = (
    "store_unavailable: the hub has ended this command: it is stopping, or the token is no longer "
    "valid\n"
)

_FAULT = "store_unavailable: the hub failed at this command; its log says why\n"


def _run_command(opened: HubDirectory, run: RunningCommand) -> ForwardedOutput:
    call, local, bearer = run.call, run.call.local, run.bearer
    out, err = (
        _CallerStream(partial(run.add_text, number), is_terminal, call.encoding)
        for number, is_terminal in enumerate(call.terminals, start=1)
    )
    reader = partial(_read, call.inputs)
    if local is None or bearer is not None:
        data = opened.directory.path
        caller = Caller(0, Path(), False, call.environ, reader, bearer, call.url)
    else:
        data = Path(local.data)
        caller = Caller(local.user, Path(local.folder), local.names_data, call.environ, reader)
    set_caller(caller)
    writes = opened.writes()
    try:
        arguments = ["--data", f"{data}", *call.args]
        code = main(opened.wire(data), arguments, out, err, run.wait_for_more)
        if code == _USAGE_ERROR and bearer is None and opened.writes() == writes:
            # The program of the caller may be newer, and know more.
            return ForwardedOutput(runs_here=False)
    except RunLocally:
        assert opened.writes() == writes, "a command that has written cannot be run again"
        return ForwardedOutput(runs_here=False)
    except InputWanted as wanted:
        assert opened.writes() == writes, "a command reads its input before it writes"
        return ForwardedOutput(wanted=WantedInput(wanted.source, wanted.max_bytes))
    except CommandEnded:
        run.take_output()
        return ForwardedOutput(1, ((2, _ENDED),))
    except (Exception, SystemExit):  # noqa: BLE001  one faulty command must not end the hub
        _log.exception("a command failed")
        # The paths of the hub are none of the business of others.
        fault = traceback.format_exc() if bearer is None else _FAULT
        return ForwardedOutput(1, (*run.take_output(), (2, fault)))
    finally:
        set_caller(None)
    return ForwardedOutput(code, run.take_output())


def _read(inputs: dict[str, str], source: str, max_bytes: int) -> bytes:
    if source not in inputs:
        raise InputWanted(source, max_bytes)
    return inputs[source].encode("latin-1")


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

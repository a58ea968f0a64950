"""Runs an agent as a program: started for each attempt, read line by line, stopped as a whole."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from dragoman.agents.program_output import LineRecorder, MessageFormat, Output, Pulse, Stream
from dragoman.config import AgentSettings
from dragoman.core.errors import SettingsError
from dragoman.engine.ports import SESSION_VARIABLE, Assignment, OnMessage, RunExit
from dragoman.engine.usage_limits import find_usage_limit
from dragoman.text.redact import Redactor, Secret

INHERITED_VARIABLES: Final = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "SHELL",
)
"""Variables of the hub that a program inherits; others may hold secrets, so they are named."""

_LAST_LINES: Final = 20
"""Lines at the end of the output that may say why a program has failed."""

_READ_BYTES: Final = 16_384
_DRAIN_SECONDS: Final = 1.0
"""Time to read on when a program has ended and another process outside of its session holds its
output open."""


class ProcessHandle(Protocol):
    """Port: a started program."""

    @property
    def pid(self) -> int:
        """Process id."""
        ...

    @property
    def started(self) -> str:
        """Start time that distinguishes it from other processes of that id."""
        ...

    @property
    def stdout(self) -> asyncio.StreamReader:
        """Standard output."""
        ...

    @property
    def stderr(self) -> asyncio.StreamReader:
        """Standard error."""
        ...

    async def wait(self) -> int:
        """Wait until nothing of it is left; its exit code."""
        ...

    async def stop(self, grace: float) -> None:
        """Ask all of its processes to end, and kill them after so many seconds."""
        ...

    def close(self) -> None:
        """Stop reading its output."""
        ...


class PidStore(Protocol):
    """Port: records of running programs, for recovery after a crash."""

    def write(self, session: str, pid: int = 0, started: str = "") -> None:
        """Record a program that is about to be started, or was, with this process id."""
        ...

    def remove(self, session: str) -> None:
        """Remove the record: nothing of it is left."""
        ...


class WorkingFolder(Protocol):
    """Port: the working folder of an attempt."""

    @property
    def home(self) -> Path:
        """The task's own folder, with its inputs, work and outputs."""
        ...

    @property
    def folder(self) -> Path: ...

    @property
    def prompt(self) -> Path:
        """File with the prompt."""
        ...

    @property
    def log(self) -> FileIO:
        """Log of the output."""
        ...


class ProgramPorts(Struct, frozen=True):
    """Ports that a program runner needs."""

    start: Callable[[Sequence[str], Mapping[str, str], Path, Path | None], Awaitable[ProcessHandle]]
    """Starts a command, with variables, in a folder, reading a file."""
    open_folder: Callable[[Assignment], WorkingFolder]
    worktree: Callable[[Assignment], Path] | None
    """Opens the folder to work in instead of the task's own."""
    separate: Callable[[Sequence[str], Assignment, Path], Sequence[str]]
    """Prepares a command and its folder, so that the program cannot reach the hub's files; the
    command to start."""
    variables: Mapping[str, str]
    """Variables of the user that it runs as, in place of the hub's."""
    blocking_pool: Executor
    """Threads for slow work."""
    pids: PidStore
    token: Callable[[Assignment], str]
    """Makes the credential of an attempt."""
    url: str
    """URL of the hub; empty: it listens nowhere."""
    certificate: str
    """File of the hub's certificate; empty: none."""
    environ: Mapping[str, str]
    now: Callable[[], int]
    redactor: Redactor
    messages: MessageFormat
    record_lines: Callable[[Assignment, Sequence[Pulse]], Awaitable[object]]
    """Records lines of an attempt's output in its trace."""


def check_command(name: str, command: Sequence[str]) -> None:
    """Raise SettingsError for an invalid command of an agent."""
    if not command or not command[0] or any("\0" in word for word in command):
        raise SettingsError(
            f"agents.{name}.command must be a list that begins with a program's name"
        )


class ProgramRunner:
    """Runs the command of one agent."""

    def __init__(self, name: str, settings: AgentSettings, ports: ProgramPorts) -> None:
        command = settings.command
        check_command(name, command)
        self._command = (_absolute_program(command[0]), *command[1:])
        self._settings = settings
        self._ports = ports
        inherited = (*INHERITED_VARIABLES, *settings.environment)
        self._inherited = {key: ports.environ[key] for key in inherited if key in ports.environ}

    async def start(self, assignment: Assignment, on_message: OnMessage) -> "RunningProgram":
        ports = self._ports
        loop = asyncio.get_running_loop()
        # It waits for a backup that copies the working folders.
        working_folder = await loop.run_in_executor(
            ports.blocking_pool, ports.open_folder, assignment
        )
        process: ProcessHandle | None = None
        try:
            folder = working_folder.folder
            if ports.worktree is not None:
                folder = await loop.run_in_executor(ports.blocking_pool, ports.worktree, assignment)
            command = await loop.run_in_executor(
                ports.blocking_pool, ports.separate, self._command, assignment, folder
            )
            token = ports.token(assignment)
            # Recorded before and after, so that a crash in between is recovered too.
            await asyncio.to_thread(ports.pids.write, assignment.session)
            process = await ports.start(
                command,
                self._environment(assignment, working_folder, token),
                folder,
                working_folder.prompt if self._settings.prompt == "stdin" else None,
            )
            await asyncio.to_thread(
                ports.pids.write, assignment.session, process.pid, process.started
            )
        except BaseException:
            if process is not None:
                await process.stop(0)
                process.close()
            working_folder.log.close()
            ports.pids.remove(assignment.session)
            raise
        recorder = LineRecorder(
            partial(ports.record_lines, assignment), self._settings.max_trace_lines
        )
        output = Output(
            working_folder.log.write,
            self._settings.output_bytes,
            ports.now,
            ports.redactor.knowing(Secret("dragoman_token", token)),
            ports.messages,
        )
        ending = _Ending(self._command[0], self._settings.limit_exit_code, ports.now)

        def add_lines(lines: Sequence[Pulse]) -> None:
            ending.read(lines)
            recorder.add(lines)

        output.on_lines = add_lines
        output.note(f"attempt {assignment.attempt} of {assignment.agent}: {self._command[0]}")

        def forget() -> None:
            working_folder.log.close()
            ports.pids.remove(assignment.session)

        return RunningProgram(ending, process, output, recorder, on_message, forget)

    def _environment(
        self, assignment: Assignment, working_folder: WorkingFolder, token: str
    ) -> dict[str, str]:
        variables = {
            "DRAGOMAN_TASK": assignment.aof_id,
            "DRAGOMAN_AGENT": assignment.agent,
            "DRAGOMAN_FOLDER": str(working_folder.home),
            "DRAGOMAN_PROMPT": str(working_folder.prompt),
            "DRAGOMAN_TOKEN": token,
            SESSION_VARIABLE: assignment.session,
        }
        if self._ports.url:
            variables["DRAGOMAN_URL"] = self._ports.url
        if self._ports.certificate:
            variables["DRAGOMAN_CERT"] = self._ports.certificate
        return {**self._inherited, **self._ports.variables, **variables}


class _Ending:
    """The end of a program, explained.

    Its vendor's usage limit is reached where it has failed and one of its last lines says so, or
    where it has ended with the code for it.
    """

    def __init__(self, name: str, limit_code: int, now: Callable[[], int]) -> None:
        self.name = name
        self._limit_code = limit_code
        self._now = now
        self._last_lines: deque[str] = deque(maxlen=_LAST_LINES)

    def read(self, lines: Sequence[Pulse]) -> None:
        """Remember the last lines of the output."""
        self._last_lines.extend(line.line for line in lines[-_LAST_LINES:])

    def explain(self, code: int) -> RunExit:
        """Explain an exit code."""
        return RunExit(_exit_problem(self.name, code), self._find_limit(code) if code else None)

    def _find_limit(self, code: int) -> int | None:
        now = self._now()
        found = (find_usage_limit(line, now) for line in reversed(self._last_lines))
        limit = next((end for end in found if end is not None), None)
        return 0 if limit is None and code == self._limit_code else limit


class RunningProgram:
    """A running program."""

    renews_lease = True

    def __init__(
        self,
        ending: _Ending,
        process: ProcessHandle,
        output: Output,
        recorder: LineRecorder,
        hear: OnMessage,
        forget: Callable[[], None],
    ) -> None:
        self._ending = ending
        self._process = process
        self._output = output
        self._recorder = recorder
        self._hear = hear
        self._forget = forget
        self._readers = [
            asyncio.create_task(self._read_stream(stream, reader))
            for stream, reader in _streams(process)
        ]
        self._awaiting_reply = set[asyncio.Task[None]]()
        """Readers that wait for the hub's reply to a message: these are not cancelled."""

    @property
    def output_bytes(self) -> int:
        return self._output.byte_count

    async def wait(self) -> RunExit:
        """Wait until it has ended and all of its output was read."""
        code = await self._process.wait()
        is_held_open = False
        while (await asyncio.wait(self._readers, timeout=_DRAIN_SECONDS))[1]:
            for reader in self._readers:
                if reader not in self._awaiting_reply:
                    is_held_open = reader.cancel() or is_held_open
        self._process.close()
        await self._recorder.flush()
        if is_held_open:
            self._output.note(
                "a process has left its session: it still runs, and its output is not read"
            )
        ended = self._ending.explain(code)
        self._output.note(ended.problem or f"{self._ending.name} has ended")
        return ended

    async def stop(self, grace: float, reason: str = "") -> None:
        if reason:
            self._output.note(f"stopping the program: {reason}")
        await self._process.stop(grace)

    def forget(self) -> None:
        """Close its log, and remove its record."""
        self._forget()

    async def _read_stream(self, stream: Stream, reader: asyncio.StreamReader) -> None:
        while True:
            block = await reader.read(_READ_BYTES)
            for message in self._output.feed(stream, block):
                await self._submit_message(message)
            if not block:
                return
            # Available data is read without a pause: let other tasks run.
            await asyncio.sleep(0)

    async def _submit_message(self, message: bytes) -> None:
        reader = asyncio.current_task()
        assert reader is not None
        self._awaiting_reply.add(reader)
        try:
            note = await self._hear(message)
        finally:
            self._awaiting_reply.discard(reader)
        if note:
            self._output.log_reply(note)


def _absolute_program(program: str) -> str:
    """Resolve a path where the hub was started: the program begins in another folder."""
    return str(Path(program).absolute()) if "/" in program else program


def _streams(process: ProcessHandle) -> tuple[tuple[Stream, asyncio.StreamReader], ...]:
    return ("out", process.stdout), ("err", process.stderr)


def _exit_problem(name: str, code: int) -> str:
    if code == 0:
        return ""
    ended = f"exit code {code}" if code > 0 else f"ended by signal {-code}"
    return f"{name}: {ended}"

"""An agent as a program: started for each attempt, heard line by line, ended as a whole."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from dragoman.agents.output import Messages, Output, Pulse, Stream
from dragoman.agents.pulses import Pulses
from dragoman.config import AgentSettings
from dragoman.core.errors import SettingsError
from dragoman.engine.runner import SESSION_VARIABLE, Assignment, Ended, Hear
from dragoman.text.redact import Redactor, Secret

PASSED_ON: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL")
"""Variables of the hub that a program inherits; others may hold secrets, so they are named."""

_BLOCK: Final = 16_384
_DRAIN_SECONDS: Final = 1.0
"""Time to read on when a program has ended and another process outside of its session holds its
output open."""


class Process(Protocol):
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


class Marks(Protocol):
    """Port: records of running programs, for recovery after a crash."""

    def put(self, session: str, pid: int = 0, started: str = "") -> None:
        """Record a program that is about to be started, or was, with this process id."""
        ...

    def remove(self, session: str) -> None:
        """Remove the record: nothing of it is left."""
        ...


class Log(Protocol):
    """Port: a log file."""

    def write(self, data: bytes) -> None:
        """Append bytes."""
        ...

    def close(self) -> None:
        """Close the file; twice does nothing."""
        ...


class Desk(Protocol):
    """Port: the working folder of an attempt."""

    @property
    def home(self) -> Path:
        """The task's own folder, with its inputs, work and outputs."""
        ...

    @property
    def folder(self) -> Path:
        """Folder in it to work in."""
        ...

    @property
    def prompt(self) -> Path:
        """File with the prompt."""
        ...

    @property
    def log(self) -> Log:
        """Log of the output."""
        ...


class Tools(Struct, frozen=True):
    """Ports that a program runner needs."""

    start: Callable[[Sequence[str], Mapping[str, str], Path, Path | None], Awaitable[Process]]
    """Starts a command, with variables, in a folder, reading a file."""
    open_desk: Callable[[Assignment], Desk]
    worktree: Callable[[Assignment], Path] | None
    """Opens the folder to work in instead of the task's own."""
    slow: Executor
    """Threads for slow work."""
    marks: Marks
    token: Callable[[Assignment], str]
    """Makes the credential of an attempt."""
    url: str
    """URL of the hub; empty: it listens nowhere."""
    certificate: str
    """File of the hub's certificate; empty: none."""
    environ: Mapping[str, str]
    now: Callable[[], int]
    redactor: Redactor
    messages: Messages
    tell: Callable[[Assignment, Sequence[Pulse]], Awaitable[object]]
    """Records lines of an attempt's output in its trace."""


def check_command(name: str, words: Sequence[str]) -> None:
    """Raise SettingsError for an invalid command of an agent."""
    if not words or not words[0] or any("\0" in word for word in words):
        raise SettingsError(
            f"agents.{name}.command must be a list that begins with a program's name"
        )


class ProgramRunner:
    """Runs the command of one agent."""

    def __init__(self, name: str, settings: AgentSettings, tools: Tools) -> None:
        words = settings.command
        check_command(name, words)
        self._words = (_found_from_here(words[0]), *words[1:])
        self._settings = settings
        self._tools = tools
        passed_on = (*PASSED_ON, *settings.environment)
        self._variables = {key: tools.environ[key] for key in passed_on if key in tools.environ}

    async def start(self, assignment: Assignment, hear: Hear) -> "RunningProgram":
        """Start the program."""
        tools = self._tools
        loop = asyncio.get_running_loop()
        # It waits for a backup that copies the working folders.
        desk = await loop.run_in_executor(tools.slow, tools.open_desk, assignment)
        process: Process | None = None
        try:
            folder = desk.folder
            if tools.worktree is not None:
                folder = await loop.run_in_executor(tools.slow, tools.worktree, assignment)
            token = tools.token(assignment)
            # Recorded before and after, so that a crash in between is recovered too.
            await asyncio.to_thread(tools.marks.put, assignment.session)
            process = await tools.start(
                self._words,
                self._given(assignment, desk, token),
                folder,
                desk.prompt if self._settings.prompt == "stdin" else None,
            )
            await asyncio.to_thread(
                tools.marks.put, assignment.session, process.pid, process.started
            )
        except BaseException:
            if process is not None:
                await process.stop(0)
                process.close()
            desk.log.close()
            tools.marks.remove(assignment.session)
            raise
        pulses = Pulses(partial(tools.tell, assignment), self._settings.trace_lines)
        output = Output(
            desk.log.write,
            self._settings.output_bytes,
            tools.now,
            tools.redactor.knowing(Secret("dragoman_token", token)),
            tools.messages,
        )
        output.tell = pulses.add
        output.note(f"attempt {assignment.attempt} of {assignment.agent}: {self._words[0]}")

        def forget() -> None:
            desk.log.close()
            tools.marks.remove(assignment.session)

        return RunningProgram(self._words[0], process, output, pulses, hear, forget)

    def _given(self, assignment: Assignment, desk: Desk, token: str) -> dict[str, str]:
        given = {
            "DRAGOMAN_TASK": assignment.aof_id,
            "DRAGOMAN_AGENT": assignment.agent,
            "DRAGOMAN_FOLDER": str(desk.home),
            "DRAGOMAN_PROMPT": str(desk.prompt),
            "DRAGOMAN_TOKEN": token,
            SESSION_VARIABLE: assignment.session,
        }
        if self._tools.url:
            given["DRAGOMAN_URL"] = self._tools.url
        if self._tools.certificate:
            given["DRAGOMAN_CERT"] = self._tools.certificate
        return {**self._variables, **given}


class RunningProgram:
    """A running program."""

    is_beating = True

    def __init__(
        self,
        name: str,
        process: Process,
        output: Output,
        pulses: Pulses,
        hear: Hear,
        forget: Callable[[], None],
    ) -> None:
        self._name = name
        self._process = process
        self._output = output
        self._pulses = pulses
        self._hear = hear
        self._forget = forget
        self._pumps = [
            asyncio.create_task(self._pump(stream, reader)) for stream, reader in _streams(process)
        ]
        self._hearing = set[asyncio.Task[None]]()
        """Readers that wait for the hub's reply to a message: these are not cancelled."""

    @property
    def said(self) -> int:
        """Bytes of output so far."""
        return self._output.said

    async def wait(self) -> Ended:
        """Wait until it has ended and all of its output was read."""
        code = await self._process.wait()
        is_held_open = False
        while (await asyncio.wait(self._pumps, timeout=_DRAIN_SECONDS))[1]:
            for pump in self._pumps:
                if pump not in self._hearing:
                    is_held_open = pump.cancel() or is_held_open
        self._process.close()
        await self._pulses.end()
        if is_held_open:
            self._output.note(
                "a process has left its session: it still runs, and its output is not read"
            )
        problem = _problem(self._name, code)
        self._output.note(problem or f"{self._name} has ended")
        return Ended(problem)

    async def stop(self, grace: float, why: str = "") -> None:
        """Stop it with all that it has started."""
        if why:
            self._output.note(f"stopping the program: {why}")
        await self._process.stop(grace)

    def forget(self) -> None:
        """Close its log, and remove its record."""
        self._forget()

    async def _pump(self, stream: Stream, reader: asyncio.StreamReader) -> None:
        while True:
            block = await reader.read(_BLOCK)
            for message in self._output.take(stream, block):
                await self._speak(message)
            if not block:
                return
            # Available data is read without a pause: let other tasks run.
            await asyncio.sleep(0)

    async def _speak(self, message: bytes) -> None:
        pump = asyncio.current_task()
        assert pump is not None
        self._hearing.add(pump)
        try:
            note = await self._hear(message)
        finally:
            self._hearing.discard(pump)
        if note:
            self._output.answer(note)


def _found_from_here(program: str) -> str:
    """Resolve a path where the hub was started: the program begins in another folder."""
    return str(Path(program).absolute()) if "/" in program else program


def _streams(process: Process) -> tuple[tuple[Stream, asyncio.StreamReader], ...]:
    return ("out", process.stdout), ("err", process.stderr)


def _problem(name: str, code: int) -> str:
    if code == 0:
        return ""
    ended = f"exit code {code}" if code > 0 else f"ended by signal {-code}"
    return f"{name}: {ended}"

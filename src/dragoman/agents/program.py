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
"""The variables of the hub that a program gets; others may hold secrets, so they are named."""

_BLOCK: Final = 16_384
_DRAIN_SECONDS: Final = 1.0
"""How long to listen on when a program has ended and somebody outside of its session holds
its output open."""


class Process(Protocol):
    """A program that was started."""

    @property
    def pid(self) -> int:
        """Its number."""
        ...

    @property
    def started(self) -> str:
        """What tells it from an earlier or later one of that number."""
        ...

    @property
    def stdout(self) -> asyncio.StreamReader:
        """What it says."""
        ...

    @property
    def stderr(self) -> asyncio.StreamReader:
        """What it complains about."""
        ...

    async def wait(self) -> int:
        """Its exit code, when nothing of it is left."""
        ...

    async def stop(self, grace: float) -> None:
        """Ask all of it to end, and end it after so many seconds."""
        ...

    def close(self) -> None:
        """Listen no more."""
        ...


class Marks(Protocol):
    """Where it is kept which programs run."""

    def put(self, session: str, pid: int = 0, started: str = "") -> None:
        """One is about to be started, or was, under this number."""
        ...

    def remove(self, session: str) -> None:
        """Nothing of it is left."""
        ...


class Log(Protocol):
    """A file that grows."""

    def write(self, data: bytes) -> None:
        """Add to it."""
        ...

    def close(self) -> None:
        """Let go of it; twice does nothing."""
        ...


class Desk(Protocol):
    """Where an attempt takes place."""

    @property
    def home(self) -> Path:
        """The task's own folder, with its inputs, work and outputs."""
        ...

    @property
    def folder(self) -> Path:
        """Where in it to work."""
        ...

    @property
    def prompt(self) -> Path:
        """What the agent is told."""
        ...

    @property
    def log(self) -> Log:
        """Where its output is kept."""
        ...


class Tools(Struct, frozen=True):
    """What a program runner needs of the outside."""

    start: Callable[[Sequence[str], Mapping[str, str], Path, Path | None], Awaitable[Process]]
    """Starts words, with variables, in a folder, reading a file."""
    open_desk: Callable[[Assignment], Desk]
    worktree: Callable[[Assignment], Path] | None
    """The folder to work in instead of the desk's."""
    slow: Executor
    """Threads for what may take long."""
    marks: Marks
    token: Callable[[Assignment], str]
    """The credential of an attempt."""
    url: str
    """Where the hub listens; empty: nowhere."""
    certificate: str
    """The file of the certificate that it shows; empty: none."""
    environ: Mapping[str, str]
    now: Callable[[], int]
    redactor: Redactor
    messages: Messages
    tell: Callable[[Assignment, Sequence[Pulse]], Awaitable[object]]
    """Brings lines of an attempt's output into its trace."""


def check_command(name: str, words: Sequence[str]) -> None:
    """Raise SettingsError for what cannot be the command of an agent."""
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
        """Let the program begin."""
        tools = self._tools
        loop = asyncio.get_running_loop()
        # It waits for a backup that copies the desks.
        desk = await loop.run_in_executor(tools.slow, tools.open_desk, assignment)
        process: Process | None = None
        try:
            folder = desk.folder
            if tools.worktree is not None:
                folder = await loop.run_in_executor(tools.slow, tools.worktree, assignment)
            token = tools.token(assignment)
            # Marked before and after, so that a crash in between is seen too.
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
    """A program at work."""

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
        """Those that wait for what the hub says to a message: that is not cut off."""

    @property
    def said(self) -> int:
        """How many bytes it has printed."""
        return self._output.said

    async def wait(self) -> Ended:
        """Until it has ended and all that it said was heard."""
        code = await self._process.wait()
        is_held_open = False
        while (await asyncio.wait(self._pumps, timeout=_DRAIN_SECONDS))[1]:
            for pump in self._pumps:
                if pump not in self._hearing:
                    is_held_open = pump.cancel() or is_held_open
        self._process.close()
        await self._pulses.end()
        if is_held_open:
            self._output.note("what has left its session lives on, and is not heard any more")
        problem = _problem(self._name, code)
        self._output.note(problem or f"{self._name} has ended")
        return Ended(problem)

    async def stop(self, grace: float, why: str = "") -> None:
        """End it and all that it has started."""
        if why:
            self._output.note(f"it has to end: {why}")
        await self._process.stop(grace)

    def forget(self) -> None:
        """Close its log, and let go of its mark."""
        self._forget()

    async def _pump(self, stream: Stream, reader: asyncio.StreamReader) -> None:
        while True:
            block = await reader.read(_BLOCK)
            for message in self._output.take(stream, block):
                await self._speak(message)
            if not block:
                return
            # Data that is there already is read without a pause: let the others have their turn.
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
    """A path stays what it meant where the hub was started: the program begins elsewhere."""
    return str(Path(program).absolute()) if "/" in program else program


def _streams(process: Process) -> tuple[tuple[Stream, asyncio.StreamReader], ...]:
    return ("out", process.stdout), ("err", process.stderr)


def _problem(name: str, code: int) -> str:
    if code == 0:
        return ""
    ended = f"exit code {code}" if code > 0 else f"ended by signal {-code}"
    return f"{name}: {ended}"

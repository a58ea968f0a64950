"""Child processes: run a program to its end, or start one in its own session and stream it.

A process is not reaped before its session was ended, so its pid stays its own until then: no
signal ever reaches a stranger that got the number next.
"""

import asyncio
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock, Thread
from time import sleep
from typing import IO, Final, NamedTuple, Self

import msgspec
from msgspec import Struct

from dragoman.engine.ports import SESSION_VARIABLE
from dragoman.system.agent_user import AgentUser

# --- run to the end ---------------------------------------------------------------------------

_POLL_SECONDS: Final = 0.05
"""Interval of checks for cancellation."""

_MAX_OUTPUT_BYTES: Final = 4_096

ChildProcess = subprocess.Popen[bytes]


class Timeouts(Struct, frozen=True):
    """Time limits of a program."""

    timeout_seconds: float = 5.0
    grace_seconds: float = 1.0
    """Time to clean up between SIGTERM and SIGKILL."""
    is_over: Callable[[], bool] = lambda: False
    """Returns True when the result is not needed any more: then the program is ended early."""


_DEFAULT_TIMEOUTS: Final = Timeouts()


class LimitExceeded(TimeoutError):
    """A program was ended because it took too long, or wrote too much."""

    def __init__(self, problem: str, output: bytes) -> None:
        super().__init__(problem)
        self.output = output
        """The last bytes that it wrote until then."""


def run_program(
    args: Sequence[str],
    stdin: bytes,
    variables: Mapping[str, str],
    folder: Path,
    timeouts: Timeouts = _DEFAULT_TIMEOUTS,
    max_output_bytes: int = 0,
) -> tuple[int, bytes]:
    """Run a program with this input; return its exit code and the end of its output.

    OSError when it cannot be started, InterruptedError when it was cancelled, LimitExceeded when it
    did not end in time or wrote more than `max_output_bytes` (0: it may, and the rest is dropped).
    Whatever it has started in its process group ends with it.
    """
    # Files and no pipes, so that neither side ever waits for the other.
    with TemporaryFile() as data, TemporaryFile() as output:
        data.write(stdin)
        data.seek(0)
        program = subprocess.Popen(
            args,
            stdin=data,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=dict(variables),
            start_new_session=True,
        )
        try:
            problem = _wait_for(program, timeouts, output, max_output_bytes)
        finally:
            _terminate_group(program, timeouts.grace_seconds)
        kept_bytes = max_output_bytes or _MAX_OUTPUT_BYTES
        output.seek(max(0, output.seek(0, os.SEEK_END) - kept_bytes))
        if problem:
            raise LimitExceeded(problem, output.read())
        return program.returncode, output.read()


def _wait_for(
    program: ChildProcess, timeouts: Timeouts, output: IO[bytes], max_output_bytes: int
) -> str:
    """Wait for the end of a program; return why it has to be ended instead."""
    deadline = time.monotonic() + timeouts.timeout_seconds
    while True:
        if max_output_bytes and os.fstat(output.fileno()).st_size > max_output_bytes:
            return f"it wrote more than {max_output_bytes} bytes of output"
        if timeouts.is_over():
            raise InterruptedError("it was stopped early: its caller no longer waits for it")
        remaining = deadline - time.monotonic()
        with suppress(subprocess.TimeoutExpired):
            program.wait(max(0.0, min(remaining, _POLL_SECONDS)))
            return ""
        if remaining <= 0:
            return f"it had not ended after {timeouts.timeout_seconds:g} s"


def _terminate_group(program: ChildProcess, grace: float) -> None:
    """Send SIGTERM to the program's group, then SIGKILL."""
    for signal_number, timeout in ((signal.SIGTERM, grace), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(program.pid, signal_number)
        with suppress(subprocess.TimeoutExpired):
            program.wait(timeout)


# --- long-running processes -------------------------------------------------------------------

_BUFFER: Final = 65_536

_PROC: Final = Path("/proc")

_BOOT_ID_FILE: Final = _PROC / "sys/kernel/random/boot_id"

_START_TIME_FIELD: Final = 19
"""Index in /proc/PID/stat, counted after the program name."""

_ZOMBIE: Final = "Z"
"""State of a process that has ended and is not reaped, the first field in that file."""

_GONE_ERRORS: Final = (FileNotFoundError, ProcessLookupError, PermissionError)

_KILL_WAIT_MS: Final = 2_000

_MAX_ROUNDS: Final = 10

_PAUSE_SECONDS: Final = 0.02


class Process:
    """A running process and its session."""

    def __init__(
        self, program: subprocess.Popen[bytes], stdout: "_OutputPipe", stderr: "_OutputPipe"
    ) -> None:
        self.pid = program.pid
        self.started = start_identity(program.pid)
        """Together with the pid it identifies this process until the machine restarts."""
        self.stdout = stdout.reader
        self.stderr = stderr.reader
        self._pipes = (stdout, stderr)
        self._program = program
        self._exit_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._reap_lock = Lock()
        self._is_reaped = False
        Thread(target=self._wait_and_reap, name=f"wait-{self.pid}", daemon=True).start()

    @classmethod
    async def start(
        cls,
        args: Sequence[str],
        variables: Mapping[str, str],
        folder: Path,
        stdin: Path | None,
        user: AgentUser | None = None,
        *,
        switches_itself: bool = False,
    ) -> Self:
        """Start a program without a shell, as a user; OSError when it cannot be started.

        Standard input is a file and no pipe, so that nothing waits for a program that does not
        read. `switches_itself`: the command is started as this user, and switches to the other.
        """
        with ExitStack() as write_ends, ExitStack() as readers:
            stdout, stderr = (_make_pipe(write_ends, readers, user) for _ in range(2))
            program = _popen(
                args,
                variables,
                folder,
                stdin,
                (stdout[1], stderr[1]),
                None if switches_itself else user,
            )
            readers.pop_all()
        try:
            return cls(program, await _open_pipe(stdout[0]), await _open_pipe(stderr[0]))
        except BaseException:
            _signal_group(program.pid, signal.SIGKILL)
            program.wait()
            raise

    async def wait(self) -> int:
        """Wait for the exit code (negative for a signal); by then nothing of its session is
        left."""
        return await asyncio.shield(self._exit_code)

    async def stop(self, grace: float) -> None:
        """Send SIGTERM to the session, then SIGKILL after `grace` seconds."""
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace):
                await self.wait()
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await self.wait()

    def close(self) -> None:
        """Close the output pipes, even if somebody outside of the session holds them open."""
        for pipe in self._pipes:
            pipe.transport.close()

    def _signal(self, signal_number: signal.Signals) -> None:
        with self._reap_lock:
            if not self._is_reaped:
                _signal_group(self.pid, signal_number)
                _signal_strays(self.pid, signal_number, wait_ms=0)

    def _wait_and_reap(self) -> None:
        """In a thread of its own: wait for the program, then kill what is left of its session."""
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        _signal_group(self.pid, signal.SIGKILL)
        _kill_strays(self.pid)
        with self._reap_lock:
            code = self._program.wait()
            self._is_reaped = True
        # The event loop may be closed already.
        with suppress(RuntimeError):
            self._exit_code.get_loop().call_soon_threadsafe(self._set_exit_code, code)

    def _set_exit_code(self, code: int) -> None:
        if not self._exit_code.done():
            self._exit_code.set_result(code)


def _popen(
    args: Sequence[str],
    variables: Mapping[str, str],
    folder: Path,
    stdin: Path | None,
    output: tuple[int, int],
    user: AgentUser | None,
) -> subprocess.Popen[bytes]:
    descriptor = os.open(stdin or os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return subprocess.Popen(
            args,
            stdin=descriptor,
            stdout=output[0],
            stderr=output[1],
            cwd=folder,
            env=dict(variables),
            start_new_session=True,
            user=user.uid if user else None,
            group=user.gid if user else None,
            extra_groups=user.groups if user else None,
        )
    finally:
        os.close(descriptor)


def _make_pipe(
    write_ends: ExitStack, readers: ExitStack, user: AgentUser | None
) -> tuple[IO[bytes], int]:
    """Make a pipe whose end to write to the user may open again, as /dev/stdout."""
    read_end, write_end = os.pipe()
    write_ends.callback(os.close, write_end)
    reader = readers.enter_context(os.fdopen(read_end, "rb", buffering=0))
    if user is not None:
        os.fchown(write_end, user.uid, user.gid)
    return reader, write_end


class _OutputPipe(NamedTuple):
    """Output pipe of a process."""

    reader: asyncio.StreamReader
    transport: asyncio.ReadTransport


async def _open_pipe(pipe: IO[bytes]) -> _OutputPipe:
    reader = asyncio.StreamReader(_BUFFER)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    return _OutputPipe(reader, transport)


def start_identity(pid: int) -> str:
    """Start time of a process in kernel ticks, with the boot id of the machine."""
    fields = _read_stat(pid)
    return f"{_read_boot_id()} {fields[_START_TIME_FIELD]}" if fields else ""


def kill_leftover(pid: int, started: str, variable: str) -> bool:
    """Kill what is left of a process that another hub started; True if there was anything.

    Only what certainly belongs to it: the process itself, by pid and start time, with its group;
    those of its session that have `NAME=value` in their environment; and all that have it when
    there was no time to record the pid (0).
    """
    if not pid:
        return _kill_by_variable(variable, None)
    boot, _, ticks = started.partition(" ")
    if not boot or boot != _read_boot_id():
        return False
    found = _read_stat(pid)
    if found and found[_START_TIME_FIELD] != ticks:
        return False
    was_there = bool(found) and _kill_group_of(pid)
    return _kill_by_variable(variable, pid) or was_there


def _kill_by_variable(variable: str, session: int | None) -> bool:
    """Kill processes with this variable, in this session, or in any group but our own if None."""
    was_killed = False
    for _ in range(_MAX_ROUNDS):  # one of them may have started another one meanwhile
        environments = {
            pid: _read_environment(pid) for pid in _list_pids() if _is_candidate(pid, session)
        }
        found = [pid for pid, names in environments.items() if variable.encode() in names]
        if not found and all(environments.values()):
            break
        if not found:
            sleep(_PAUSE_SECONDS)
        was_killed = sum(map(_kill_group_of, found)) > 0 or was_killed
    return was_killed


def _is_candidate(pid: int, session: int | None) -> bool:
    if session is None:
        return _group_of(pid) not in (os.getpgrp(), 0)
    return _session_of(pid) == session


def _read_environment(pid: int) -> list[bytes]:
    """Environment of a process; empty while it executes another program."""
    try:
        content = (_PROC / f"{pid}/environ").read_bytes()
    except _GONE_ERRORS:
        return [b""]
    return content.split(b"\0") if content or _is_dead(pid) else []


def _list_pids() -> Iterator[int]:
    """All pids; none where there is no /proc."""
    if _PROC.is_dir():
        yield from (int(folder.name) for folder in _PROC.iterdir() if folder.name.isdecimal())


def _kill_group_of(pid: int) -> bool:
    """Kill a process with its group, and wait for its exit; False when it was gone already."""
    try:
        with _open_pidfd(pid) as pidfd:
            _signal_group(_group_of(pid), signal.SIGKILL)
            _wait_for_exit(pidfd, _KILL_WAIT_MS)
    except _GONE_ERRORS:
        return False
    return True


def _kill_strays(leader: int) -> None:
    for _ in range(_MAX_ROUNDS):  # one of them may have started another one meanwhile
        if not _signal_strays(leader, signal.SIGKILL, _KILL_WAIT_MS):
            return


def _signal_strays(leader: int, signal_number: signal.Signals, wait_ms: int) -> int:
    """Signal processes that have left a program's group but not its session; return their number.

    `timeout` leaves the group, and so do jobs of a shell with job control.
    """
    strays = [pid for pid in _list_pids() if _is_stray(pid, leader)]
    for pid in strays:
        with suppress(*_GONE_ERRORS), _open_pidfd(pid) as pidfd:
            # The pid may have been reused by now; the pidfd is not.
            if _is_stray(pid, leader):
                signal.pidfd_send_signal(pidfd, signal_number)
                _wait_for_exit(pidfd, wait_ms)
    return len(strays)


def _is_stray(pid: int, leader: int) -> bool:
    return _session_of(pid) == leader and _group_of(pid) != leader and not _is_dead(pid)


def _is_dead(pid: int) -> bool:
    return _read_stat(pid)[:1] in ([], [_ZOMBIE])


@contextmanager
def _open_pidfd(pid: int) -> Generator[int]:
    """Open a pidfd, which survives reuse of the pid; one of _GONE_ERRORS when it has ended."""
    pidfd = os.pidfd_open(pid)
    try:
        yield pidfd
    finally:
        os.close(pidfd)


def _wait_for_exit(pidfd: int, wait_ms: int) -> None:
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    poller.poll(wait_ms)


def _group_of(pid: int) -> int:
    """Process group; 0 when the process is gone."""
    try:
        return os.getpgid(pid)
    except _GONE_ERRORS:
        return 0


def _session_of(pid: int) -> int:
    """Session; 0 when the process is gone."""
    try:
        return os.getsid(pid)
    except _GONE_ERRORS:
        return 0


def _signal_group(group: int, signal_number: signal.Signals) -> None:
    if group:
        with suppress(*_GONE_ERRORS):
            os.killpg(group, signal_number)


def _read_stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat after the program name; empty when there is no such process."""
    try:
        # The name stands in parentheses and may hold anything, parentheses too.
        return (_PROC / f"{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except _GONE_ERRORS:
        return []


def _read_boot_id() -> str:
    try:
        return _BOOT_ID_FILE.read_text().strip()
    except OSError:
        return ""


_SUFFIX: Final = ".json"
_TEMPORARY_SUFFIX: Final = ".next"


class PidRecord(Struct, frozen=True):
    """A process that was started, or was about to be."""

    session: str
    pid: int = 0
    started: str = ""


class PidFiles:
    """Pid files `agents/SESSION.json` in the data directory."""

    def __init__(self, data: Path) -> None:
        self._folder = data / "agents"

    def write(self, session: str, pid: int = 0, started: str = "") -> None:
        """Record that a program of this session is about to start, or that it has this pid.

        Not synced: after a power cut there is no process left that it could name.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = self._folder / f"{session}{_SUFFIX}"
        temporary = path.with_suffix(_TEMPORARY_SUFFIX)
        temporary.write_bytes(msgspec.json.encode(PidRecord(session, pid, started)))
        temporary.replace(path)

    def remove(self, session: str) -> None:
        """Remove the file of a session of which no process is left."""
        (self._folder / f"{session}{_SUFFIX}").unlink(missing_ok=True)

    def has(self, session: str) -> bool:
        """True while something of the program of this session may be left."""
        return (self._folder / f"{session}{_SUFFIX}").exists()

    def kill_leftovers(self) -> frozenset[str]:
        """Kill processes that an earlier hub has left running; return their sessions.

        Their files stay until they are removed: this hub may be killed during the cleanup, too.
        """
        ended = frozenset(map(self._kill, sorted(self._folder.glob(f"*{_SUFFIX}"))))
        for unfinished in self._folder.glob(f"*{_TEMPORARY_SUFFIX}"):
            unfinished.unlink()
        return ended

    def _kill(self, path: Path) -> str:
        try:
            record = msgspec.json.decode(path.read_bytes(), type=PidRecord)
        except msgspec.MsgspecError:  # cut off by a power failure, which ended the program too
            record = PidRecord(path.stem)
        kill_leftover(record.pid, record.started, f"{SESSION_VARIABLE}={record.session}")
        return record.session

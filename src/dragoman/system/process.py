"""A program that runs for a while: in a session of its own, heard, and ended as a whole.

Its number stays its own until its session has been ended, because it is not reaped before that: so
no signal ever reaches a stranger who got the number next.
"""

import asyncio
import os
import select
import signal
import subprocess
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, Thread
from time import sleep
from typing import IO, Final, NamedTuple, Self

_BUFFER: Final = 65_536
_PROC: Final = Path("/proc")
_BOOT: Final = _PROC / "sys/kernel/random/boot_id"
_START_TIME: Final = 19
"""Index in /proc/PID/stat, counted after the program name."""
_DEAD: Final = "Z"
"""State of a process that has ended and is not reaped, the first field in that file."""
_GONE: Final = (FileNotFoundError, ProcessLookupError, PermissionError)
_PATIENCE_MS: Final = 2_000
_ROUNDS: Final = 10
_MOMENT_S: Final = 0.02


class Process:
    """A running process and its session."""

    def __init__(self, program: subprocess.Popen[bytes], stdout: "_Way", stderr: "_Way") -> None:
        self.pid = program.pid
        self.started = started_at(program.pid)
        """Together with the pid it identifies this process until the machine restarts."""
        self.stdout = stdout.reader
        self.stderr = stderr.reader
        self._ways = (stdout, stderr)
        self._program = program
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._ending = Lock()
        self._is_reaped = False
        Thread(target=self._await_end, name=f"wait-{self.pid}", daemon=True).start()

    @classmethod
    async def start(
        cls, words: Sequence[str], variables: Mapping[str, str], folder: Path, stdin: Path | None
    ) -> Self:
        """Start a program without a shell; OSError when it cannot be started.

        Standard input is a file and no pipe, so that nothing waits for a program that does not
        read.
        """
        program = _started(words, variables, folder, stdin)
        try:
            return cls(program, await _way(program.stdout), await _way(program.stderr))
        except BaseException:
            _signal_group(program.pid, signal.SIGKILL)
            program.wait()
            raise

    async def wait(self) -> int:
        """Wait for the exit code (negative for a signal); by then nothing of its session is
        left."""
        return await asyncio.shield(self._code)

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
        for way in self._ways:
            way.transport.close()

    def _signal(self, demand: signal.Signals) -> None:
        with self._ending:
            if not self._is_reaped:
                _signal_group(self.pid, demand)
                _signal_strays(self.pid, demand, patience_ms=0)

    def _await_end(self) -> None:
        """In a thread of its own: wait for the program, then kill what is left of its session."""
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        _signal_group(self.pid, signal.SIGKILL)
        _end_strays(self.pid)
        with self._ending:
            code = self._program.wait()
            self._is_reaped = True
        # The event loop may be closed already.
        with suppress(RuntimeError):
            self._code.get_loop().call_soon_threadsafe(self._tell, code)

    def _tell(self, code: int) -> None:
        if not self._code.done():
            self._code.set_result(code)


def _started(
    words: Sequence[str], variables: Mapping[str, str], folder: Path, stdin: Path | None
) -> subprocess.Popen[bytes]:
    descriptor = os.open(stdin or os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return subprocess.Popen(
            words,
            bufsize=0,
            stdin=descriptor,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=dict(variables),
            start_new_session=True,
        )
    finally:
        os.close(descriptor)


class _Way(NamedTuple):
    """Output pipe of a process."""

    reader: asyncio.StreamReader
    transport: asyncio.ReadTransport


async def _way(pipe: IO[bytes] | None) -> _Way:
    assert pipe is not None
    reader = asyncio.StreamReader(_BUFFER)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    return _Way(reader, transport)


def started_at(pid: int) -> str:
    """Start time of a process in kernel ticks, with the boot id of the machine."""
    fields = _stat(pid)
    return f"{_boot()} {fields[_START_TIME]}" if fields else ""


def end_leftover(pid: int, started: str, variable: str) -> bool:
    """Kill what is left of a process that another hub started; True if there was anything.

    Only what certainly belongs to it: the process itself, by pid and start time, with its group;
    those of its session that have `NAME=value` in their environment; and all that have it when
    there was no time to record the pid (0).
    """
    if not pid:
        return _end_carriers(variable, None)
    boot, _, ticks = started.partition(" ")
    if not boot or boot != _boot():
        return False
    found = _stat(pid)
    if found and found[_START_TIME] != ticks:
        return False
    was_there = bool(found) and _end_group_of(pid)
    return _end_carriers(variable, pid) or was_there


def _end_carriers(variable: str, session: int | None) -> bool:
    """Kill processes with this variable, in this session, or in any group but our own if None."""
    ended = False
    for _ in range(_ROUNDS):  # one of them may have started another one meanwhile
        said = {pid: _variables(pid) for pid in _numbers() if _is_meant(pid, session)}
        found = [pid for pid, names in said.items() if variable.encode() in names]
        if not found and all(said.values()):
            break
        if not found:
            sleep(_MOMENT_S)
        ended = sum(map(_end_group_of, found)) > 0 or ended
    return ended


def _is_meant(pid: int, session: int | None) -> bool:
    if session is None:
        return _group(pid) not in (os.getpgrp(), 0)
    return _session(pid) == session


def _variables(pid: int) -> list[bytes]:
    """Environment of a process; empty while it executes another program."""
    try:
        said = (_PROC / f"{pid}/environ").read_bytes()
    except _GONE:
        return [b""]
    return said.split(b"\0") if said or _is_dead(pid) else []


def _numbers() -> Iterator[int]:
    """All pids; none where there is no /proc."""
    if _PROC.is_dir():
        yield from (int(folder.name) for folder in _PROC.iterdir() if folder.name.isdecimal())


def _end_group_of(pid: int) -> bool:
    """Kill a process with its group, and wait for its exit; False when it was gone already."""
    try:
        with _watched(pid) as watched:
            _signal_group(_group(pid), signal.SIGKILL)
            _await_gone(watched, _PATIENCE_MS)
    except _GONE:
        return False
    return True


def _end_strays(leader: int) -> None:
    for _ in range(_ROUNDS):  # one of them may have started another one meanwhile
        if not _signal_strays(leader, signal.SIGKILL, _PATIENCE_MS):
            return


def _signal_strays(leader: int, demand: signal.Signals, patience_ms: int) -> int:
    """Signal processes that have left a program's group but not its session; return their number.

    `timeout` leaves the group, and so do jobs of a shell with job control.
    """
    strays = [pid for pid in _numbers() if _is_stray(pid, leader)]
    for pid in strays:
        with suppress(*_GONE), _watched(pid) as watched:
            # The pid may have been reused by now; the pidfd is not.
            if _is_stray(pid, leader):
                signal.pidfd_send_signal(watched, demand)
                _await_gone(watched, patience_ms)
    return len(strays)


def _is_stray(pid: int, leader: int) -> bool:
    return _session(pid) == leader and _group(pid) != leader and not _is_dead(pid)


def _is_dead(pid: int) -> bool:
    return _stat(pid)[:1] in ([], [_DEAD])


@contextmanager
def _watched(pid: int) -> Generator[int]:
    """Open a pidfd, which survives reuse of the pid; one of _GONE_ERRORS when it has ended."""
    watched = os.pidfd_open(pid)
    try:
        yield watched
    finally:
        os.close(watched)


def _await_gone(watched: int, patience_ms: int) -> None:
    waiting = select.poll()
    waiting.register(watched, select.POLLIN)
    waiting.poll(patience_ms)


def _group(pid: int) -> int:
    """Process group; 0 when the process is gone."""
    try:
        return os.getpgid(pid)
    except _GONE:
        return 0


def _session(pid: int) -> int:
    """Session; 0 when the process is gone."""
    try:
        return os.getsid(pid)
    except _GONE:
        return 0


def _signal_group(group: int, demand: signal.Signals) -> None:
    if group:
        with suppress(*_GONE):
            os.killpg(group, demand)


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat after the program name; empty when there is no such process."""
    try:
        # The name stands in parentheses and may hold anything, parentheses too.
        return (_PROC / f"{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except _GONE:
        return []


def _boot() -> str:
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""

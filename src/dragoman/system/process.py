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
"""Where it stands in /proc/PID/stat, after the name of the program."""
_DEAD: Final = "Z"
"""The state of one who has ended and is not reaped, the first in that file."""
_GONE: Final = (FileNotFoundError, ProcessLookupError, PermissionError)
_PATIENCE_MS: Final = 2_000
_ROUNDS: Final = 10
_MOMENT_S: Final = 0.02


class Process:
    """A running program and all of its session."""

    def __init__(self, program: subprocess.Popen[bytes], stdout: "_Way", stderr: "_Way") -> None:
        self.pid = program.pid
        self.started = started_at(program.pid)
        """With the number it names this program and no other, as long as the machine is up."""
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
        """Start it, without a shell; OSError when it cannot be started.

        What it reads is a file and no pipe, so that nobody waits for one that does not read.
        """
        program = _started(words, variables, folder, stdin)
        try:
            return cls(program, await _way(program.stdout), await _way(program.stderr))
        except BaseException:
            _signal_group(program.pid, signal.SIGKILL)
            program.wait()
            raise

    async def wait(self) -> int:
        """Its exit code; by then nothing of its session is left. A signal's number is negative."""
        return await asyncio.shield(self._code)

    async def stop(self, grace: float) -> None:
        """Ask the session to end, and end it after so many seconds."""
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace):
                await self.wait()
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await self.wait()

    def close(self) -> None:
        """Listen no more, although somebody outside of its session may hold its output open."""
        for way in self._ways:
            way.transport.close()

    def _signal(self, demand: signal.Signals) -> None:
        with self._ending:
            if not self._is_reaped:
                _signal_group(self.pid, demand)
                _signal_strays(self.pid, demand, patience_ms=0)

    def _await_end(self) -> None:
        """In a thread of its own: wait for the program, then end what it has left behind."""
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        _signal_group(self.pid, signal.SIGKILL)
        _end_strays(self.pid)
        with self._ending:
            code = self._program.wait()
            self._is_reaped = True
        # A loop that was closed has nobody left who waits.
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
    """How a program is heard."""

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
    """When a program was started, as its kernel counts, and since which start of the machine."""
    fields = _stat(pid)
    return f"{_boot()} {fields[_START_TIME]}" if fields else ""


def end_leftover(pid: int, started: str, variable: str) -> bool:
    """End what is left of a program that somebody else has started; whether there was anything.

    Only what is certainly of that program: itself, by its number and start, with its group; those
    of its session that carry its `NAME=value` among their variables; and whoever carries that when
    there was no time to write the number down (0).
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
    """End whoever was started with this variable, in this session or in any group but our own."""
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
    """Those that a program was started with; none while it becomes another program."""
    try:
        said = (_PROC / f"{pid}/environ").read_bytes()
    except _GONE:
        return [b""]
    return said.split(b"\0") if said or _is_dead(pid) else []


def _numbers() -> Iterator[int]:
    """Of all that runs; of nothing where there is no /proc."""
    if _PROC.is_dir():
        yield from (int(folder.name) for folder in _PROC.iterdir() if folder.name.isdecimal())


def _end_group_of(pid: int) -> bool:
    """End a program with its group, and wait until it is gone; False when it was already."""
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
    """Signal those who have left a program's group but not its session; how many there were.

    `timeout` leaves the group, and so does what a shell with job control has started.
    """
    strays = [pid for pid in _numbers() if _is_stray(pid, leader)]
    for pid in strays:
        with suppress(*_GONE), _watched(pid) as watched:
            # The number may be another's by now; what is watched is not.
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
    """A program under its own name, which is nobody else's when the number is; _GONE: no more."""
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
    """The group of a program; 0 when it is gone."""
    try:
        return os.getpgid(pid)
    except _GONE:
        return 0


def _session(pid: int) -> int:
    """The session of a program; 0 when it is gone."""
    try:
        return os.getsid(pid)
    except _GONE:
        return 0


def _signal_group(group: int, demand: signal.Signals) -> None:
    if group:
        with suppress(*_GONE):
            os.killpg(group, demand)


def _stat(pid: int) -> list[str]:
    """What the kernel says of a program, after its name; nothing when there is none."""
    try:
        # The name stands in brackets and may hold anything, brackets too.
        return (_PROC / f"{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except _GONE:
        return []


def _boot() -> str:
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""

"""Pid files of agent processes: a new hub finds and ends what a killed one left running."""

from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from dragoman.engine.ports import SESSION_VARIABLE
from dragoman.system.process import kill_leftover

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

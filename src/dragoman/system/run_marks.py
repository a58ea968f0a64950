"""Marks of programs that run: what a hub that was killed has left behind is found by them."""

from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from dragoman.engine.runner import SESSION_VARIABLE
from dragoman.system.process import end_leftover

_KIND: Final = ".json"
_NEXT: Final = ".next"


class Mark(Struct, frozen=True):
    """A process that was started, or was about to be."""

    session: str
    pid: int = 0
    started: str = ""


class RunMarks:
    """Pid files `agents/SESSION.json` in the data directory."""

    def __init__(self, data: Path) -> None:
        self._folder = data / "agents"

    def put(self, session: str, pid: int = 0, started: str = "") -> None:
        """Record that a program of this session is about to start, or that it has this pid.

        Not synced: after a power cut there is no process left that it could name.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = self._folder / f"{session}{_KIND}"
        beside = path.with_suffix(_NEXT)
        beside.write_bytes(msgspec.json.encode(Mark(session, pid, started)))
        beside.replace(path)

    def remove(self, session: str) -> None:
        """Remove the file of a session of which no process is left."""
        (self._folder / f"{session}{_KIND}").unlink(missing_ok=True)

    def sweep(self) -> frozenset[str]:
        """Kill processes that an earlier hub has left running; return their sessions.

        Their files stay until they are removed: this hub may be killed during the cleanup, too.
        """
        ended = frozenset(map(self._end, sorted(self._folder.glob(f"*{_KIND}"))))
        for unfinished in self._folder.glob(f"*{_NEXT}"):
            unfinished.unlink()
        return ended

    def _end(self, path: Path) -> str:
        try:
            mark = msgspec.json.decode(path.read_bytes(), type=Mark)
        except msgspec.MsgspecError:  # cut off by a power failure, which ended the program too
            mark = Mark(path.stem)
        end_leftover(mark.pid, mark.started, f"{SESSION_VARIABLE}={mark.session}")
        return mark.session

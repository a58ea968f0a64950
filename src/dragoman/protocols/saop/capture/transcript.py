"""A record of an agent's work, line by line: of which kind it is, and which messages it gives."""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from dragoman.protocols.saop.capture.claude_code import ClaudeCode
from dragoman.protocols.saop.capture.codex import Codex
from dragoman.protocols.saop.capture.loose import Record, record
from dragoman.protocols.saop.capture.otel import Otel
from dragoman.protocols.saop.capture.scribe import About, Captured, Scribe
from dragoman.protocols.saop.capture.steps import Ended, Step


class Reader(Protocol):
    """Reader of one format of session records."""

    name: str
    session: str
    """Session name within the record, empty until a line states it."""
    is_whole: bool
    """An answer is one line, instead of being spread over several."""

    @staticmethod
    def is_ours(line: Record) -> bool:
        """Tell whether a line can only be of this format."""
        ...

    def steps(self, line: Record) -> Iterator[Step]:
        """Convert a line to steps."""
        ...


READERS: Final[dict[str, type[Reader]]] = {one.name: one for one in (ClaudeCode, Codex, Otel)}
"""Format -> its reader. To add a format, add a line here."""


_NAMELESS: Final = "transcript"

Begin = Callable[[str, str], tuple[str, int]]
"""Called with the record's session name and the proposed one; returns the session name to use and
the index of its first turn, which counts the turns of an earlier import."""


class Transcript:
    """Parses the lines of a record in their order."""

    def __init__(
        self,
        about: About,
        now: int,
        kind: str = "",
        begin: Begin = lambda _, session: (session, 0),
    ) -> None:
        """Without a session in `target`, the record's own name is used."""
        self._about = about
        self._now = now
        self._begin = begin
        self._reader = READERS[kind]() if kind else None
        self._scribe: Scribe | None = None
        self.lines = 0
        self.unreadable: list[int] = []
        """Numbers of lines that are not JSON objects."""

    @property
    def kind(self) -> str:
        """Format of the record; empty until it is detected."""
        return self._reader.name if self._reader is not None else ""

    @property
    def session(self) -> str:
        """Session name to use, else the record's own, as far as it has been stated."""
        return self._about.session or (self._reader.session if self._reader is not None else "")

    def feed(self, line: bytes) -> Iterator[Captured]:
        """Parse one more line, and yield the messages that it completes."""
        self.lines += 1
        if self.lines == 1:
            line = line.removeprefix(BOM_UTF8)
        if not line.strip():
            return
        try:
            found = record(msgspec.json.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found = record(None)
        if not found:
            self.unreadable.append(self.lines)
            return
        if self._reader is None:
            kind = next((kind for kind in READERS.values() if kind.is_ours(found)), None)
            self._reader = kind() if kind is not None else None
        reader = self._reader
        if reader is None:
            return
        for part, step in enumerate(reader.steps(found)):
            if self._scribe is None and isinstance(step, Ended):
                continue  # it ends an answer that is not in this record
            scribe = self._scribe or self._hired(reader)
            yield from scribe.take(step, f"{self.lines}.{part}")

    @property
    def is_begun(self) -> bool:
        """Tell whether the record contains any step."""
        return self._scribe is not None

    @property
    def is_over(self) -> bool:
        """Tell whether its last turn looks finished."""
        whole = self._reader is not None and self._reader.is_whole
        return whole or self._scribe is None or self._scribe.is_resting

    def close(self) -> Iterator[Captured]:
        """Yield the last turn, which no other turn has ended."""
        if self._scribe is not None:
            yield from self._scribe.close()

    def _hired(self, reader: Reader) -> Scribe:
        session, first = self._begin(reader.session, self.session or _NAMELESS)
        self._about = replace(self._about, session=session, origin=reader.name, own=reader.session)
        self._scribe = Scribe(self._about, self._now, first)
        return self._scribe

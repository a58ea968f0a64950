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
    """Makes steps of the lines of one kind of record."""

    name: str
    session: str
    """What the record calls its session, as far as it has said so."""
    is_whole: bool
    """Whether an answer stands in one piece, and not on several lines."""

    @staticmethod
    def is_ours(line: Record) -> bool:
        """Whether a line can only be of this kind."""
        ...

    def steps(self, line: Record) -> Iterator[Step]:
        """The steps of a line."""
        ...


READERS: Final[dict[str, type[Reader]]] = {one.name: one for one in (ClaudeCode, Codex, Otel)}
"""Kind of record -> what reads it. A new kind is one more line here."""


_NAMELESS: Final = "transcript"

Begin = Callable[[str, str], tuple[str, int]]
"""What a record calls its session, and how it would be called here -> how it is called, and the
number of its first turn: those that it had before, if it was taken over before."""


class Transcript:
    """Takes the lines of a record in their order."""

    def __init__(
        self,
        about: About,
        now: int,
        kind: str = "",
        begin: Begin = lambda _, session: (session, 0),
    ) -> None:
        """A session without a name is what the record calls it."""
        self._about = about
        self._now = now
        self._begin = begin
        self._reader = READERS[kind]() if kind else None
        self._scribe: Scribe | None = None
        self.lines = 0
        self.unreadable: list[int] = []
        """The numbers of lines that are no JSON objects."""

    @property
    def kind(self) -> str:
        """Which kind of record it is; empty while nobody can tell."""
        return self._reader.name if self._reader is not None else ""

    @property
    def session(self) -> str:
        """Its session: what it is called here, else what it calls it, as far as it has said so."""
        return self._about.session or (self._reader.session if self._reader is not None else "")

    def feed(self, line: bytes) -> Iterator[Captured]:
        """What one more line brings to its end."""
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
                continue  # of an answer that is not in this record
            scribe = self._scribe or self._hired(reader)
            yield from scribe.take(step, f"{self.lines}.{part}")

    @property
    def is_begun(self) -> bool:
        """Whether there was anything in it that somebody did or said."""
        return self._scribe is not None

    @property
    def is_over(self) -> bool:
        """Whether its last turn looks as if nothing more came of it."""
        whole = self._reader is not None and self._reader.is_whole
        return whole or self._scribe is None or self._scribe.is_resting

    def close(self) -> Iterator[Captured]:
        """The last turn, which nothing has followed."""
        if self._scribe is not None:
            yield from self._scribe.close()

    def _hired(self, reader: Reader) -> Scribe:
        session, first = self._begin(reader.session, self.session or _NAMELESS)
        self._about = replace(self._about, session=session, origin=reader.name, own=reader.session)
        self._scribe = Scribe(self._about, self._now, first)
        return self._scribe

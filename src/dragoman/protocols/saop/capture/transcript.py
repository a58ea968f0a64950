"""A record of an agent's work, line by line: of which kind it is, and which messages it gives."""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from dragoman.protocols.saop.capture.claude_code import ClaudeCode
from dragoman.protocols.saop.capture.codex import Codex
from dragoman.protocols.saop.capture.loose import Record, as_record
from dragoman.protocols.saop.capture.otel import OpenTelemetry
from dragoman.protocols.saop.capture.scribe import CapturedMessage, CaptureTarget, TraceBuilder
from dragoman.protocols.saop.capture.steps import AgentStep, AnswerEnd


class Reader(Protocol):
    """Reader of one format of session records."""

    name: str
    session: str
    """Session name within the record, empty until a line states it."""
    has_whole_answers: bool
    """An answer is one line, instead of being spread over several."""

    @staticmethod
    def recognizes(line: Record) -> bool:
        """Tell whether a line can only be of this format."""
        ...

    def steps(self, line: Record) -> Iterator[AgentStep]:
        """Convert a line to steps."""
        ...


READERS: Final[dict[str, type[Reader]]] = {
    one.name: one for one in (ClaudeCode, Codex, OpenTelemetry)
}
"""Format -> its reader. To add a format, add a line here."""


_DEFAULT_SESSION: Final = "transcript"

StartSession = Callable[[str, str], tuple[str, int]]
"""Called with the record's session name and the proposed one; returns the session name to use and
the index of its first turn, which counts the turns of an earlier import."""


class Transcript:
    """Parses the lines of a record in their order."""

    def __init__(
        self,
        target: CaptureTarget,
        now: int,
        kind: str = "",
        start_session: StartSession = lambda _, session: (session, 0),
    ) -> None:
        """Without a session in `target`, the record's own name is used."""
        self._target = target
        self._now = now
        self._start_session = start_session
        self._reader = READERS[kind]() if kind else None
        self._builder: TraceBuilder | None = None
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
        return self._target.session or (self._reader.session if self._reader is not None else "")

    def feed(self, line: bytes) -> Iterator[CapturedMessage]:
        """Parse one more line, and yield the messages that it completes."""
        self.lines += 1
        if self.lines == 1:
            line = line.removeprefix(BOM_UTF8)
        if not line.strip():
            return
        try:
            line_record = as_record(msgspec.json.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            line_record = as_record(None)
        if not line_record:
            self.unreadable.append(self.lines)
            return
        if self._reader is None:
            kind = next((kind for kind in READERS.values() if kind.recognizes(line_record)), None)
            self._reader = kind() if kind is not None else None
        reader = self._reader
        if reader is None:
            return
        for part, step in enumerate(reader.steps(line_record)):
            if self._builder is None and isinstance(step, AnswerEnd):
                continue  # it ends an answer that is not in this record
            builder = self._builder or self._start_builder(reader)
            yield from builder.add(step, f"{self.lines}.{part}")

    @property
    def has_content(self) -> bool:
        """Tell whether the record contains any step."""
        return self._builder is not None

    @property
    def is_finished(self) -> bool:
        """Tell whether its last turn looks finished."""
        whole = self._reader is not None and self._reader.has_whole_answers
        return whole or self._builder is None or self._builder.is_idle

    def close(self) -> Iterator[CapturedMessage]:
        """Yield the last turn, which no other turn has ended."""
        if self._builder is not None:
            yield from self._builder.close()

    def _start_builder(self, reader: Reader) -> TraceBuilder:
        session, first_turn = self._start_session(reader.session, self.session or _DEFAULT_SESSION)
        self._target = replace(
            self._target, session=session, origin=reader.name, own=reader.session
        )
        self._builder = TraceBuilder(self._target, self._now, first_turn)
        return self._builder

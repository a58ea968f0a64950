"""Output of an agent: split into lines, redacted, logged up to a limit, and recorded in its trace.

Lines that are messages of a dialect are returned to the runner. The program never waits for the
trace, and a hub that cannot write just now loses lines of it, not the program its work: lost lines
are counted, and the count is recorded as soon as something can be written again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.errors import DragomanError
from dragoman.core.timestamps import to_rfc3339
from dragoman.text.redact import Redactor
from dragoman.text.safe_text import safe_text

# --- lines and log ----------------------------------------------------------------------------

Stream = Literal["out", "err", "hub"]
"""Source of a line: the program's standard output or error, or the hub."""

Write = Callable[[bytes], object]

OnLines = Callable[[Sequence["Pulse"]], object]

_MAX_LINE: Final = 16_384
"""Longest logged part of a line, in characters."""

_EXTRA_SCANNED: Final = 4_096
"""Part of a longer line that is scanned, too: the cut must not hide a secret."""

_MAX_REPLIES: Final = 1_000

_PLACEHOLDER_START: Final = "[REDACTED:"


class Pulse(Struct, frozen=True, tag="SANDBOX_PULSE", tag_field="type"):
    """One line of an agent's output, named and shaped as in SAOP."""

    line: str
    masked: bool
    """True if a secret in it was masked."""
    timestamp: str


def hub_line(pulse: Pulse, text: str) -> Pulse:
    """Replace a program's line with one of the hub."""
    return replace(pulse, line=f"[dragoman] {text}", masked=False)


class MessageFormat(Struct, frozen=True):
    """Format of messages in the output, and limits of lines."""

    prefixes: tuple[bytes, ...]
    """Starts of lines that are messages."""
    max_bytes: int
    max_recorded_bytes: int
    """Longer lines, messages or not, are recorded in the trace as their size only."""


class LineSplitter:
    """Splits bytes into lines; of a long line only the beginning is kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._partial = bytearray()

    def feed(self, block: bytes) -> Iterator[bytes]:
        """Add bytes; the lines that they complete."""
        *ends, tail = block.split(b"\n")
        for end in ends:
            self._add(end)
            yield self.take_partial()
        self._add(tail)

    def skip(self, block: bytes) -> None:
        """Add bytes, without returning lines."""
        whole, newline, tail = block.rpartition(b"\n")
        if newline:
            self._partial.clear()
        self._add(tail if newline else whole + tail)

    def take_partial(self) -> bytes:
        """Take the incomplete line."""
        line = bytes(self._partial)
        self._partial.clear()
        return line

    @property
    def partial_start(self) -> bytes:
        """Start of the incomplete line."""
        return bytes(self._partial[:64])

    def _add(self, piece: bytes) -> None:
        self._partial += piece[: self._limit - len(self._partial)]


class RedactedLines:
    """Redacts one stream line by line.

    A private key of several lines becomes one line, when it has ended.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._stream = redactor.stream()
        self._partial = ""

    def feed(self, lines: list[bytes]) -> list[str]:
        """Add lines; those that are complete after redaction."""
        texts = (line.decode(errors="replace").removesuffix("\r") for line in lines)
        return self._split("".join(f"{text}\n" for text in texts), is_end=False)

    def close(self) -> list[str]:
        """End the stream; the remaining lines."""
        return self._split("", is_end=True)

    def _split(self, text: str, *, is_end: bool) -> list[str]:
        redacted = self._stream.feed(text) + (self._stream.close() if is_end else "")
        *lines, self._partial = (self._partial + redacted).split("\n")
        return lines


class Output:
    """Output of one run: writes its log, and returns the messages in it."""

    def __init__(
        self,
        write: Write,
        limit: int,
        now: Callable[[], int],
        redactor: Redactor,
        messages: MessageFormat,
    ) -> None:
        self.byte_count = 0
        """Bytes that were printed, logged or not."""
        self.on_lines: OnLines = lambda _: None
        """Called with the logged lines of the program."""
        self._write = write
        self._remaining_bytes = limit
        self._remaining_replies = _MAX_REPLIES
        self._now = now
        self._redactor = redactor
        self._messages = messages
        # One byte above the limit of a message, so that a longer one is refused as too long.
        longest = max(messages.max_bytes, _MAX_LINE + _EXTRA_SCANNED) + 1
        self._lines: dict[Stream, LineSplitter] = {
            "out": LineSplitter(longest),
            "err": LineSplitter(longest),
        }
        self._redacted: dict[Stream, RedactedLines] = {
            "out": RedactedLines(redactor),
            "err": RedactedLines(redactor),
        }

    def feed(self, stream: Stream, block: bytes) -> list[bytes]:
        """Log what was printed, and return the messages in it. An empty block ends the stream."""
        self.byte_count += len(block)
        lines = self._lines[stream]
        if self._remaining_bytes <= 0 and not self._may_hold_message(lines, block):
            lines.skip(block)
            return []
        complete = list(lines.feed(block))
        if not block and (last := lines.take_partial()):
            complete.append(last)
        self._log_lines(stream, complete, is_end=not block)
        return [line for line in complete if self._is_message(stream, line)]

    def note(self, text: str) -> None:
        """Log a line of the hub, outside of the limit: the start, and the reason of the end."""
        with suppress(OSError):
            self._write(self._hub_log_line("hub", self._redactor.text(text).text))

    def log_reply(self, text: str) -> None:
        """Log the hub's reply to a message; of very many only the first ones."""
        self._remaining_replies -= 1
        if self._remaining_replies > 0:
            self.note(text)
        elif not self._remaining_replies:
            self.note("no more answers to messages are logged")

    def make_pulse(self, text: str, at: str = "") -> Pulse:
        """Make a pulse of a redacted line, without terminal sequences."""
        is_masked = _PLACEHOLDER_START in text
        return Pulse(safe_text(text, one_line=True), is_masked, at or to_rfc3339(self._now()))

    def _hub_log_line(self, stream: Stream, text: str) -> bytes:
        return _format_log_line(stream, self._truncate(text, ""))

    def _truncate(self, text: str, at: str) -> Pulse:
        """Cut a line to its logged length."""
        pulse = self.make_pulse(text[:_MAX_LINE], at)
        return replace(pulse, line=f"{pulse.line} …") if len(text) > _MAX_LINE else pulse

    def _recorded_form(self, text: str, pulse: Pulse) -> Pulse:
        """Line for the trace; a line above the limit is replaced by its size.

        Messages or not: an intended message may go over many lines.
        """
        size = len(text.encode())
        if size <= self._messages.max_recorded_bytes:
            return pulse
        return hub_line(pulse, f"a line of {size:,} bytes: its content is left out")

    def _is_message(self, stream: Stream, line: bytes) -> bool:
        # Text on standard error may quote the agent's own prompt.
        return stream == "out" and line.startswith(self._messages.prefixes)

    def _may_hold_message(self, lines: LineSplitter, block: bytes) -> bool:
        return lines.partial_start.startswith(self._messages.prefixes) or any(
            prefix in lines.partial_start + block for prefix in self._messages.prefixes
        )

    def _log_lines(self, stream: Stream, lines: list[bytes], *, is_end: bool) -> None:
        if self._remaining_bytes <= 0 or not (lines or is_end):
            return
        redacted = self._redacted[stream]
        texts = redacted.feed(lines) + (redacted.close() if is_end else [])
        logged, recorded, at = list[bytes](), list[Pulse](), to_rfc3339(self._now())
        for text in texts:
            pulse = self._truncate(text, at)
            logged.append(_format_log_line(stream, pulse))
            self._remaining_bytes -= len(logged[-1])
            if self._remaining_bytes <= 0:
                logged[-1] = self._hub_log_line(
                    "hub", "the limit is reached: later output is not logged"
                )
                break
            recorded.append(self._recorded_form(text, pulse))
        self.on_lines(recorded)
        try:
            self._write(b"".join(logged))
        except OSError:  # a full disk: the agent goes on and is read, without a log
            self._remaining_bytes = 0


def _format_log_line(stream: Stream, pulse: Pulse) -> bytes:
    return f"{pulse.timestamp} {stream} {pulse.line}\n".encode()


# --- recording in the trace -------------------------------------------------------------------

RecordLines = Callable[[Sequence[Pulse]], Awaitable[object]]
"""Records lines in the trace, all or none; DragomanError: not possible now."""

_BATCH_LINES: Final = 100

_LIMIT_MESSAGE: Final = "the line limit is reached (max_trace_lines): the rest is in output.log"


class LineRecorder:
    """Records lines in order, in batches, up to a limit; new lines wait for the batch before."""

    def __init__(self, record: RecordLines, limit: int) -> None:
        self._record = record
        self._remaining = limit
        self._pending: list[Pulse] = []
        self._lost = 0
        self._recording: asyncio.Task[None] | None = None

    def add(self, pulses: Iterable[Pulse]) -> None:
        """Add printed lines; the last recorded one says that the limit is reached."""
        for pulse in pulses:
            if self._remaining <= 0:
                break
            self._remaining -= 1
            self._pending.append(pulse if self._remaining else hub_line(pulse, _LIMIT_MESSAGE))
        if self._pending and self._recording is None:
            self._recording = asyncio.get_running_loop().create_task(self._record_all())

    async def flush(self) -> None:
        """Wait until all lines are recorded."""
        if self._recording is not None:
            await self._recording

    async def _record_all(self) -> None:
        while self._pending:
            batch, self._pending = self._pending[:_BATCH_LINES], self._pending[_BATCH_LINES:]
            missing = f"{self._lost} lines are missing here: the hub could not write them"
            loss_notice = [hub_line(batch[0], missing)] if self._lost else []
            try:
                await self._record((*loss_notice, *batch))
            except DragomanError:  # a full disk: the log has them, if it has room
                self._lost += len(batch)
            else:
                self._lost = 0
        self._recording = None

"""What an agent prints: cut into lines, kept up to a limit, and heard where it is a message."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.moments import to_rfc3339
from dragoman.text.redact import Redactor
from dragoman.text.safe_text import safe_text

Stream = Literal["out", "err", "hub"]
"""Source of a line: the program's standard output or error, or the hub."""

Write = Callable[[bytes], object]
Tell = Callable[[Sequence["Pulse"]], object]

_MOST_SHOWN: Final = 16_384
"""Longest logged part of a line, in characters."""
_LOOKED_BEYOND: Final = 4_096
"""Part of a longer line that is scanned, too: the cut must not hide a secret."""
_MOST_ANSWERS: Final = 1_000
_PLACEHOLDER: Final = "[REDACTED:"


class Pulse(Struct, frozen=True, tag="SANDBOX_PULSE", tag_field="type"):
    """One line of an agent's output, named and shaped as in SAOP."""

    line: str
    masked: bool
    """True if a secret in it was masked."""
    timestamp: str


def hub_s(pulse: Pulse, text: str) -> Pulse:
    """Replace a program's line with one of the hub."""
    return replace(pulse, line=f"[dragoman] {text}", masked=False)


class Messages(Struct, frozen=True):
    """Format of messages in the output, and limits of lines."""

    prefixes: tuple[bytes, ...]
    """Starts of lines that are messages."""
    most_bytes: int
    most_told: int
    """Longer lines, messages or not, are recorded in the trace as their size only."""


class Lines:
    """Splits bytes into lines; of a long line only the beginning is kept."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = bytearray()

    def feed(self, block: bytes) -> Iterator[bytes]:
        """Add bytes; the lines that they complete."""
        *ends, tail = block.split(b"\n")
        for end in ends:
            self._add(end)
            yield self.rest()
        self._add(tail)

    def skip(self, block: bytes) -> None:
        """Add bytes, without returning lines."""
        whole, newline, tail = block.rpartition(b"\n")
        if newline:
            self._kept.clear()
        self._add(tail if newline else whole + tail)

    def rest(self) -> bytes:
        """Take the incomplete line."""
        line = bytes(self._kept)
        self._kept.clear()
        return line

    @property
    def start(self) -> bytes:
        """Start of the incomplete line."""
        return bytes(self._kept[:64])

    def _add(self, piece: bytes) -> None:
        self._kept += piece[: self._most - len(self._kept)]


class Shown:
    """Redacts one stream line by line.

    A private key of several lines becomes one line, when it has ended.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._stream = redactor.stream()
        self._rest = ""

    def feed(self, lines: list[bytes]) -> list[str]:
        """Add lines; those that are complete after redaction."""
        texts = (line.decode(errors="replace").removesuffix("\r") for line in lines)
        return self._split("".join(f"{text}\n" for text in texts), is_end=False)

    def close(self) -> list[str]:
        """End the stream; the remaining lines."""
        return self._split("", is_end=True)

    def _split(self, text: str, *, is_end: bool) -> list[str]:
        said = self._stream.feed(text) + (self._stream.close() if is_end else "")
        *lines, self._rest = (self._rest + said).split("\n")
        return lines


class Output:
    """Output of one run: writes its log, and returns the messages in it."""

    def __init__(
        self,
        write: Write,
        most: int,
        now: Callable[[], int],
        redactor: Redactor,
        messages: Messages,
    ) -> None:
        self.said = 0
        """Bytes that were printed, logged or not."""
        self.tell: Tell = lambda _: None
        """Called with the logged lines of the program."""
        self._write = write
        self._left = most
        self._answers_left = _MOST_ANSWERS
        self._now = now
        self._redactor = redactor
        self._messages = messages
        # One byte above the limit of a message, so that a longer one is refused as too long.
        longest = max(messages.most_bytes, _MOST_SHOWN + _LOOKED_BEYOND) + 1
        self._lines: dict[Stream, Lines] = {"out": Lines(longest), "err": Lines(longest)}
        self._shown: dict[Stream, Shown] = {"out": Shown(redactor), "err": Shown(redactor)}

    def take(self, stream: Stream, block: bytes) -> list[bytes]:
        """Log what was printed, and return the messages in it. An empty block ends the stream."""
        self.said += len(block)
        lines = self._lines[stream]
        if self._left <= 0 and not self._may_speak(lines, block):
            lines.skip(block)
            return []
        whole = list(lines.feed(block))
        if not block and (last := lines.rest()):
            whole.append(last)
        self._keep(stream, whole, is_end=not block)
        return [line for line in whole if self._is_message(stream, line)]

    def note(self, text: str) -> None:
        """Log a line of the hub, outside of the limit: the start, and the reason of the end."""
        with suppress(OSError):
            self._write(self._line("hub", self._redactor.text(text).text))

    def answer(self, text: str) -> None:
        """Log the hub's reply to a message; of very many only the first ones."""
        self._answers_left -= 1
        if self._answers_left > 0:
            self.note(text)
        elif not self._answers_left:
            self.note("no more answers to messages are logged")

    def pulse(self, text: str, at: str = "") -> Pulse:
        """Make a pulse of a redacted line, without terminal sequences."""
        is_masked = _PLACEHOLDER in text
        return Pulse(safe_text(text, one_line=True), is_masked, at or to_rfc3339(self._now()))

    def _line(self, stream: Stream, text: str) -> bytes:
        return _logged(stream, self._cut(text, ""))

    def _cut(self, text: str, at: str) -> Pulse:
        """Cut a line to its logged length."""
        pulse = self.pulse(text[:_MOST_SHOWN], at)
        return replace(pulse, line=f"{pulse.line} …") if len(text) > _MOST_SHOWN else pulse

    def _told(self, text: str, pulse: Pulse) -> Pulse:
        """Line for the trace; a line above the limit is replaced by its size.

        Messages or not: an intended message may go over many lines.
        """
        size = len(text.encode())
        if size <= self._messages.most_told:
            return pulse
        return hub_s(pulse, f"a line of {size:,} bytes: its content is left out")

    def _is_message(self, stream: Stream, line: bytes) -> bool:
        # Text on standard error may quote the agent's own prompt.
        return stream == "out" and line.startswith(self._messages.prefixes)

    def _may_speak(self, lines: Lines, block: bytes) -> bool:
        return lines.start.startswith(self._messages.prefixes) or any(
            prefix in lines.start + block for prefix in self._messages.prefixes
        )

    def _keep(self, stream: Stream, lines: list[bytes], *, is_end: bool) -> None:
        if self._left <= 0 or not (lines or is_end):
            return
        shown = self._shown[stream]
        texts = shown.feed(lines) + (shown.close() if is_end else [])
        kept, told, at = list[bytes](), list[Pulse](), to_rfc3339(self._now())
        for text in texts:
            pulse = self._cut(text, at)
            kept.append(_logged(stream, pulse))
            self._left -= len(kept[-1])
            if self._left <= 0:
                kept[-1] = self._line("hub", "the limit is reached: later output is not logged")
                break
            told.append(self._told(text, pulse))
        self.tell(told)
        try:
            self._write(b"".join(kept))
        except OSError:  # a full disk: the agent goes on and is read, without a log
            self._left = 0


def _logged(stream: Stream, pulse: Pulse) -> bytes:
    """Format a line of the log."""
    return f"{pulse.timestamp} {stream} {pulse.line}\n".encode()

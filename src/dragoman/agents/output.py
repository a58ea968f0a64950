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
"""Who says a line: the program on one of its two ways, or the hub about it."""

Write = Callable[[bytes], object]
Tell = Callable[[Sequence["Pulse"]], object]

_MOST_SHOWN: Final = 16_384
"""So many characters of a line are kept."""
_LOOKED_BEYOND: Final = 4_096
"""So much of a longer line is looked at, too: a secret must not be cut where it is kept no more."""
_MOST_ANSWERS: Final = 1_000
_PLACEHOLDER: Final = "[REDACTED:"


class Pulse(Struct, frozen=True, tag="SANDBOX_PULSE", tag_field="type"):
    """One line of an agent's output, as SAOP names and shapes it."""

    line: str
    masked: bool
    """Whether a secret in it was taken out."""
    timestamp: str


def hub_s(pulse: Pulse, text: str) -> Pulse:
    """A line of the hub's own, in the place of one of the program's."""
    return replace(pulse, line=f"[dragoman] {text}", masked=False)


class Messages(Struct, frozen=True):
    """Which lines are messages of a dialect, and how much of lines is taken and told."""

    prefixes: tuple[bytes, ...]
    """How such a line begins."""
    most_bytes: int
    most_told: int
    """Up to so many bytes a line, whatever it is, stands in the trace as it was printed."""


class Lines:
    """Bytes as they come, as lines; of a longer line the beginning, whatever else it says."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = bytearray()

    def feed(self, block: bytes) -> Iterator[bytes]:
        """The lines that end in this block."""
        *ends, tail = block.split(b"\n")
        for end in ends:
            self._add(end)
            yield self.rest()
        self._add(tail)

    def skip(self, block: bytes) -> None:
        """Nobody wants what ends in this block."""
        whole, newline, tail = block.rpartition(b"\n")
        if newline:
            self._kept.clear()
        self._add(tail if newline else whole + tail)

    def rest(self) -> bytes:
        """What came since the last line ended."""
        line = bytes(self._kept)
        self._kept.clear()
        return line

    @property
    def start(self) -> bytes:
        """How the line begins that has not ended yet."""
        return bytes(self._kept[:64])

    def _add(self, piece: bytes) -> None:
        self._kept += piece[: self._most - len(self._kept)]


class Shown:
    """What one stream says, line by line as it may be kept: without secrets.

    A private key that goes over many lines is one line here, when it has ended.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._stream = redactor.stream()
        self._rest = ""

    def feed(self, lines: list[bytes]) -> list[str]:
        """Lines that came; those that can be kept now."""
        texts = (line.decode(errors="replace").removesuffix("\r") for line in lines)
        return self._split("".join(f"{text}\n" for text in texts), is_end=False)

    def close(self) -> list[str]:
        """The end: those that were held back."""
        return self._split("", is_end=True)

    def _split(self, text: str, *, is_end: bool) -> list[str]:
        said = self._stream.feed(text) + (self._stream.close() if is_end else "")
        *lines, self._rest = (self._rest + said).split("\n")
        return lines


class Output:
    """The output of one run: a log that anybody can read, and the messages in it."""

    def __init__(
        self,
        write: Write,
        most: int,
        now: Callable[[], int],
        redactor: Redactor,
        messages: Messages,
    ) -> None:
        self.said = 0
        """How many bytes were printed, kept or not."""
        self.tell: Tell = lambda _: None
        """Is handed the lines of the program that are kept."""
        self._write = write
        self._left = most
        self._answers_left = _MOST_ANSWERS
        self._now = now
        self._redactor = redactor
        self._messages = messages
        # One more than a message may have, so that one that is too long is told so.
        longest = max(messages.most_bytes, _MOST_SHOWN + _LOOKED_BEYOND) + 1
        self._lines: dict[Stream, Lines] = {"out": Lines(longest), "err": Lines(longest)}
        self._shown: dict[Stream, Shown] = {"out": Shown(redactor), "err": Shown(redactor)}

    def take(self, stream: Stream, block: bytes) -> list[bytes]:
        """Keep what was printed; the messages in it. An empty block is the stream's end."""
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
        """A line of the hub's own, kept beside the limit: how it begins, and why it ends."""
        with suppress(OSError):
            self._write(self._line("hub", self._redactor.text(text).text))

    def answer(self, text: str) -> None:
        """What the hub says to a message; of very many only the first are kept."""
        self._answers_left -= 1
        if self._answers_left > 0:
            self.note(text)
        elif not self._answers_left:
            self.note("no more is kept of what the hub says to messages")

    def pulse(self, text: str, at: str = "") -> Pulse:
        """A line without secrets as it leaves the agent: without what steers a terminal."""
        is_masked = _PLACEHOLDER in text
        return Pulse(safe_text(text, one_line=True), is_masked, at or to_rfc3339(self._now()))

    def _line(self, stream: Stream, text: str) -> bytes:
        return _logged(stream, self._cut(text, ""))

    def _cut(self, text: str, at: str) -> Pulse:
        """As much of a line as is kept."""
        pulse = self.pulse(text[:_MOST_SHOWN], at)
        return replace(pulse, line=f"{pulse.line} …") if len(text) > _MOST_SHOWN else pulse

    def _told(self, text: str, pulse: Pulse) -> Pulse:
        """A line as it is told; of one with more than may be kept of it, only its size.

        Whether it is a message does not matter: what should have been one may go over many lines.
        """
        size = len(text.encode())
        if size <= self._messages.most_told:
            return pulse
        return hub_s(pulse, f"a line of {size:,} bytes: what it says is not told here")

    def _is_message(self, stream: Stream, line: bytes) -> bool:
        # What an agent prints as an error may be the very words that it was given.
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
                kept[-1] = self._line("hub", "the limit is reached: no more is kept")
                break
            told.append(self._told(text, pulse))
        self.tell(told)
        try:
            self._write(b"".join(kept))
        except OSError:  # a full disk: the agent goes on, and is heard, without a log
            self._left = 0


def _logged(stream: Stream, pulse: Pulse) -> bytes:
    """A line of the log."""
    return f"{pulse.timestamp} {stream} {pulse.line}\n".encode()

"""What an agent prints: cut into lines, kept up to a limit, and heard where it is a message."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, Literal

from msgspec import Struct

from dragoman.core.moments import to_rfc3339
from dragoman.text.safe_text import safe_text

Stream = Literal["out", "err", "hub"]
"""Who says a line: the program on one of its two ways, or the hub about it."""

Redact = Callable[[str], str]
"""Takes secrets out of a line; all that is kept of an agent's output has gone through it."""
Write = Callable[[bytes], object]

_MOST_SHOWN: Final = 16_384
"""So many bytes of a line are kept."""
_MOST_NOTES: Final = 1_000


class Pulse(Struct, frozen=True, tag="SANDBOX_PULSE", tag_field="type"):
    """One line of an agent's output, as SAOP names and shapes it; the log holds its text."""

    line: str
    masked: bool
    """Whether something in it was taken out by `redact`."""
    timestamp: str


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


class Output:
    """The output of one run: a log that anybody can read, and the messages in it."""

    def __init__(
        self,
        write: Write,
        most: int,
        now: Callable[[], int],
        redact: Redact,
        *,
        prefixes: tuple[bytes, ...],
        most_message: int,
    ) -> None:
        self.said = 0
        """How many bytes were printed, kept or not."""
        self._write = write
        self._left = most
        self._notes_left = _MOST_NOTES
        self._now = now
        self._redact = redact
        self._prefixes = prefixes
        # One more than a message may have, so that one that is too long is told so.
        longest = max(most_message, _MOST_SHOWN) + 1
        self._lines: dict[Stream, Lines] = {"out": Lines(longest), "err": Lines(longest)}

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
        self._keep(stream, whole)
        # What an agent prints as an error may be the very words that it was given.
        return [line for line in whole if stream == "out" and line.startswith(self._prefixes)]

    def note(self, text: str) -> None:
        """A line of the hub's own, kept beside the limit; of very many only the first."""
        self._notes_left -= 1
        if self._notes_left > 0:
            with suppress(OSError):
                self._write(self._line("hub", text))

    def pulse(self, text: str, at: str = "") -> Pulse:
        """A line as it leaves the agent: without secrets, and without what steers a terminal."""
        said = self._redact(text)
        return Pulse(safe_text(said, one_line=True), said != text, at or to_rfc3339(self._now()))

    def _line(self, stream: Stream, text: str, mark: str = "", at: str = "") -> bytes:
        pulse = self.pulse(text, at)
        return f"{pulse.timestamp} {stream} {pulse.line}{mark}\n".encode()

    def _may_speak(self, lines: Lines, block: bytes) -> bool:
        return lines.start.startswith(self._prefixes) or any(
            prefix in lines.start + block for prefix in self._prefixes
        )

    def _keep(self, stream: Stream, lines: list[bytes]) -> None:
        if not lines or self._left <= 0:
            return
        kept, at = list[bytes](), to_rfc3339(self._now())
        for line in lines:
            text = line[:_MOST_SHOWN].decode(errors="replace").removesuffix("\r")
            kept.append(self._line(stream, text, " …" if len(line) > _MOST_SHOWN else "", at))
            self._left -= len(kept[-1])
            if self._left <= 0:
                kept[-1] = self._line("hub", "the limit is reached: no more is kept")
                break
        try:
            self._write(b"".join(kept))
        except OSError:  # a full disk: the agent goes on, and is heard, without a log
            self._left = 0

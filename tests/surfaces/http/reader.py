"""The reader of a stream, over a bare connection."""

import json
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from tests.surfaces.http.house import House


class Event(Struct, frozen=True):
    """One server-sent event, or (without a name) a comment."""

    id: str = ""
    event: str = ""
    data: Any = None
    comment: str = ""


class Reader:
    """Reads what a stream sends, event by event."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self._file = line.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        self.headers: dict[str, str] = {}
        while head := self._file.readline().strip():
            name, _, value = head.decode().partition(": ")
            self.headers[name.lower()] = value
        self._text = b""

    def next(self, *, with_comments: bool = False) -> Event | None:
        """The next event; None when the stream has ended."""
        while True:
            frame = self.frame()
            if frame is None:
                return None
            if frame.event or (with_comments and frame.comment):
                return frame

    def take(self, count: int) -> list[Event]:
        """So many events."""
        found = [self.next() for _ in range(count)]
        assert None not in found, "the stream has ended"
        return [event for event in found if event is not None]

    def positions(self, count: int) -> list[int]:
        """The positions of so many entries."""
        return [event.data["position"] for event in self.take(count)]

    def close(self) -> None:
        """Go."""
        self._file.close()
        self.line.close()

    def frame(self) -> Event | None:
        """Whatever comes next, a mere id too; None when the stream has ended."""
        while b"\n\n" not in self._text:
            more = self._more()
            if not more:
                return None
            self._text += more
        frame, _, self._text = self._text.partition(b"\n\n")
        said: dict[str, str] = {}
        for line in frame.decode().split("\n"):
            name, _, value = line.partition(": ")
            said[name or "comment"] = value
        data = json.loads(said["data"]) if "data" in said else None
        comment = frame.decode()[2:] if frame.startswith(b": ") else ""
        return Event(said.get("id", ""), said.get("event", ""), data, comment)

    def _more(self) -> bytes:
        """A chunk; without chunks, a line of the body that ends with the connection."""
        if "transfer-encoding" not in self.headers:
            return self._file.readline()
        size = int(self._file.readline() or b"0", 16)
        return self._file.read(size + 2)[:-2] if size else b""


@contextmanager
def reading(
    house: House, query: str = "", *lines: str, buffer: int = 0, by: str = "owner"
) -> Generator[Reader]:
    """Follow the stream."""
    line = house.dial(buffer)
    line.sendall(house.head("GET", f"/v1/stream{query}", *lines, by=by))
    reader = Reader(line)
    try:
        yield reader
    finally:
        reader.close()

"""Reader of a server-sent event stream, over a bare connection."""

import json
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from tests.surfaces.http.hub_server import HubServer


class Event(Struct, frozen=True):
    """Server-sent event, or (without a name) a comment."""

    id: str = ""
    event: str = ""
    data: Any = None
    comment: str = ""


class Reader:
    """Reads a stream event by event."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._file = sock.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        self.headers: dict[str, str] = {}
        while head := self._file.readline().strip():
            name, _, value = head.decode().partition(": ")
            self.headers[name.lower()] = value
        self._text = b""

    def next(self, *, with_comments: bool = False) -> Event | None:
        """Return the next event; None when the stream has ended."""
        while True:
            frame = self.frame()
            if frame is None:
                return None
            if frame.event or (with_comments and frame.comment):
                return frame

    def take(self, count: int) -> list[Event]:
        """Return the next events."""
        events = [self.next() for _ in range(count)]
        assert None not in events, "the stream has ended"
        return [event for event in events if event is not None]

    def positions(self, count: int) -> list[int]:
        """Return the positions of the next entries."""
        return [event.data["position"] for event in self.take(count)]

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self.sock.close()

    def frame(self) -> Event | None:
        """Return the next frame, even one that has only an id; None when the stream has ended."""
        while b"\n\n" not in self._text:
            chunk = self._read_chunk()
            if not chunk:
                return None
            self._text += chunk
        frame, _, self._text = self._text.partition(b"\n\n")
        fields: dict[str, str] = {}
        for line in frame.decode().split("\n"):
            name, _, value = line.partition(": ")
            fields[name or "comment"] = value
        data = json.loads(fields["data"]) if "data" in fields else None
        comment = frame.decode()[2:] if frame.startswith(b": ") else ""
        return Event(fields.get("id", ""), fields.get("event", ""), data, comment)

    def _read_chunk(self) -> bytes:
        """Read a chunk; in an unchunked body, a line."""
        if "transfer-encoding" not in self.headers:
            return self._file.readline()
        size = int(self._file.readline() or b"0", 16)
        return self._file.read(size + 2)[:-2] if size else b""


@contextmanager
def follow_stream(
    server: HubServer, query: str = "", *lines: str, buffer: int = 0, by: str = "owner"
) -> Generator[Reader]:
    """Open a stream."""
    sock = server.connect(buffer)
    sock.sendall(server.request_head("GET", f"/v1/stream{query}", *lines, by=by))
    reader = Reader(sock)
    try:
        yield reader
    finally:
        reader.close()

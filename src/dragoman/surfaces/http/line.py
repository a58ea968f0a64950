"""The line to a caller: bytes of an answer that is under way, written without its coroutine.

To wake the coroutine of a reader costs more than to write to it, and all who are level are told the
same bytes: these take the form of a chunk once. Where there is no line in a scope (another server),
or it is not free, the answer is sent in the ordinary way.

A caller of an HTTP before 1.1 knows no chunks: what has no length ends with its connection.
"""

import weakref

from msgspec import Struct
from starlette.types import Message, Scope, Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_NAME = "dragoman.line"
_WITHOUT_CHUNKS = ("0.9", "1.0")


class Piece(Struct, frozen=True, gc=False):
    """Bytes of an answer, and the same as a chunk; nothing has no chunk, which would be the end."""

    data: bytes
    chunk: bytes


def piece(data: bytes) -> Piece:
    """Bytes in both forms in which they may go straight to a line."""
    return Piece(data, b"%x\r\n%b\r\n" % (len(data), data) if data else b"")


class Line:
    """The connection of one request, for as long as that is answered without a known length."""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        # It lies in the scope that the cycle has: a ring of the two would outlive every request.
        self._cycle = weakref.ref(cycle)
        self._ends_by_closing = False

    def write(self, piece: Piece) -> bool:
        """Write some more; False when the line is not free, and nothing is written.

        It is between the head and the end of such an answer, while what was written is taken.
        """
        cycle = self._cycle()
        if (
            cycle is None
            or not (cycle.chunked_encoding or self._ends_by_closing)
            or cycle.response_complete
            or cycle.disconnected
            or cycle.flow.write_paused
            or cycle.transport.is_closing()
        ):
            return False
        if piece.data:
            cycle.transport.write(piece.chunk if cycle.chunked_encoding else piece.data)
        return True

    def without_chunks(self, message: Message) -> None:
        """Before a message is sent: an answer whose head has no length ends with the connection."""
        cycle = self._cycle()
        if cycle is None:
            return
        if message["type"] == "http.response.start":
            names = {name.lower() for name, _ in message["headers"]}
            has_body = cycle.scope["method"] != "HEAD"
            self._ends_by_closing = has_body and b"content-length" not in names
            if self._ends_by_closing:
                cycle.chunked_encoding = cycle.keep_alive = False
        elif self._ends_by_closing:
            # The server counts down to the end of an answer in one length: each part is the last.
            cycle.expected_content_length = len(message.get("body", b""))


def for_its_http(scope: Scope, send: Send) -> Send:
    """How an answer is sent in a form that the HTTP of its request has."""
    line = line_of(scope)
    if line is None or scope["http_version"] not in _WITHOUT_CHUNKS:
        return send

    async def without_chunks(message: Message) -> None:
        line.without_chunks(message)
        await send(message)

    return without_chunks


def lay(scope: Scope, line: Line) -> None:
    """Let whoever answers a request find its line."""
    scope.setdefault("extensions", {})[_NAME] = line


def line_of(scope: Scope) -> Line | None:
    """The line of a request, if its server has laid one."""
    return scope.get("extensions", {}).get(_NAME)

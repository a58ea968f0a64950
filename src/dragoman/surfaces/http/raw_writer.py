"""Raw writer: writes to the connection of a running response without waking its coroutine.

Waking the coroutine of a reader costs more than writing to it, and all readers that are up to date
get the same bytes, which are encoded as an HTTP chunk once. Where there is no writer in the scope
(another server), or its connection is busy, the response is sent in the ordinary way.

A client of HTTP before 1.1 knows no chunks: a response without a length ends with its connection.
"""

import weakref

from msgspec import Struct
from starlette.types import Message, Scope, Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_SCOPE_KEY = "dragoman.line"
_UNCHUNKED_VERSIONS = ("0.9", "1.0")


class EncodedChunk(Struct, frozen=True, gc=False):
    """Bytes of a response, and the same as an HTTP chunk; an empty chunk would be the end, so there
    is none."""

    data: bytes
    chunk: bytes


def encode_chunk(data: bytes) -> EncodedChunk:
    """Encode bytes in both forms in which they may be written to a connection."""
    return EncodedChunk(data, b"%x\r\n%b\r\n" % (len(data), data) if data else b"")


class RawWriter:
    """The connection of one request, for as long as a response without a known length is sent."""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        # The writer is in the scope, which the cycle holds: a reference cycle would outlive every
        # request.
        self._cycle = weakref.ref(cycle)
        self._closes_at_end = False

    def write(self, encoded: EncodedChunk) -> bool:
        """Write some more; return False, with nothing written, if the connection is not free.

        It is free between the head and the end of such a response, while the client reads what was
        written.
        """
        cycle = self._cycle()
        if (
            cycle is None
            or not (cycle.chunked_encoding or self._closes_at_end)
            or cycle.response_complete
            or cycle.disconnected
            or cycle.flow.write_paused
            or cycle.transport.is_closing()
        ):
            return False
        if encoded.data:
            cycle.transport.write(encoded.chunk if cycle.chunked_encoding else encoded.data)
        return True

    def adapt_to_http10(self, message: Message) -> None:
        """Adapt a message to be sent: a response without a length ends with the connection."""
        cycle = self._cycle()
        if cycle is None:
            return
        if message["type"] == "http.response.start":
            names = {name.lower() for name, _ in message["headers"]}
            has_body = cycle.scope["method"] != "HEAD"
            self._closes_at_end = has_body and b"content-length" not in names
            if self._closes_at_end:
                cycle.chunked_encoding = cycle.keep_alive = False
        elif self._closes_at_end:
            # The server counts down to the end of a response with one length: each part counts as
            # the last.
            cycle.expected_content_length = len(message.get("body", b""))


def http10_adapter(scope: Scope, send: Send) -> Send:
    """Wrap `send` for clients whose version of HTTP knows no chunks."""
    writer = writer_of(scope)
    if writer is None or scope["http_version"] not in _UNCHUNKED_VERSIONS:
        return send

    async def send_unchunked(message: Message) -> None:
        writer.adapt_to_http10(message)
        await send(message)

    return send_unchunked


def attach_writer(scope: Scope, writer: RawWriter) -> None:
    """Attach the writer to the scope of its request."""
    scope.setdefault("extensions", {})[_SCOPE_KEY] = writer


def writer_of(scope: Scope) -> RawWriter | None:
    """Return the writer of a request, if its server has attached one."""
    return scope.get("extensions", {}).get(_SCOPE_KEY)

"""The line to a caller: bytes of an answer that is under way, written without its coroutine.

A hundred readers that are all told the same cost as much to wake as the hub has time; the same
bytes, put into the form of a chunk once, cost each of them a write. Whoever sees no line in a scope
(another server, a test without one), or a line that is not free, sends in the ordinary way.
"""

from starlette.types import Scope
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_NAME = "dragoman.line"


class Line:
    """The connection of one request, for as long as that is answered in chunks."""

    def __init__(self, cycle: RequestResponseCycle, flow: FlowControl) -> None:
        self._cycle = cycle
        self._flow = flow

    @property
    def is_free(self) -> bool:
        """Whether a chunk may be written now: the head is, the end is not, and all is taken."""
        cycle = self._cycle
        return (
            cycle.chunked_encoding is True
            and cycle.response_started
            and not cycle.response_complete
            and not cycle.disconnected
            and not self._flow.write_paused
            and not cycle.transport.is_closing()
        )

    def write(self, chunk: bytes) -> None:
        """Write what `as_chunk` has made, to a line that is free."""
        self._cycle.transport.write(chunk)


def as_chunk(data: bytes) -> bytes:
    """Bytes in the form in which a chunked answer has them; nothing remains nothing."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def lay(scope: Scope, line: Line) -> None:
    """Let whoever answers a request find its line."""
    scope.setdefault("extensions", {})[_NAME] = line


def line_of(scope: Scope) -> Line | None:
    """The line of a request, if its server has laid one."""
    return scope.get("extensions", {}).get(_NAME)

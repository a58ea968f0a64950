"""The line to a caller: bytes of an answer that is under way, written without its coroutine.

To wake the coroutine of a reader costs more than to write to it, and all who are level are told the
same bytes: these take the form of a chunk once. Where there is no line in a scope (another server),
or it is not free, the answer is sent in the ordinary way.
"""

import weakref

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_NAME = "dragoman.line"


class Line:
    """The connection of one request, for as long as that is answered in chunks."""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        # It lies in the scope that the cycle has: a ring of the two would outlive every request.
        self._cycle = weakref.ref(cycle)

    def write(self, chunk: bytes) -> bool:
        """Write what `as_chunk` has made; False when the line is not free, and nothing is written.

        It is between the head and the end of an answer in chunks, while what was written is taken.
        """
        cycle = self._cycle()
        if (
            cycle is None
            or cycle.chunked_encoding is not True
            or cycle.response_complete
            or cycle.disconnected
            or cycle.flow.write_paused
            or cycle.transport.is_closing()
        ):
            return False
        if chunk:
            cycle.transport.write(chunk)
        return True


def as_chunk(data: bytes) -> bytes:
    """Bytes in the form in which a chunked answer has them; nothing remains nothing."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def lay(scope: Scope, line: Line) -> None:
    """Let whoever answers a request find its line."""
    scope.setdefault("extensions", {})[_NAME] = line


def line_of(scope: Scope) -> Line | None:
    """The line of a request, if its server has laid one."""
    return scope.get("extensions", {}).get(_NAME)

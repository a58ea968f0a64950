"""Clients that cost as little as they can: callers that ask again at once, readers that count."""

import asyncio
import re
import socket
from collections.abc import Iterator
from itertools import accumulate
from time import perf_counter, perf_counter_ns
from typing import cast

from msgspec import Struct

_END = b"\r\n\r\n"
_LENGTH = b"content-length: "
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_SMALL = 4_096
_ARRIVAL = 1 << 20
_ID_IS = b"\nid: "
_ID = re.compile(rb"^id: (\d+)$", re.MULTILINE)


class _Connection(asyncio.BaseProtocol):
    """A connection that is there to be ended."""

    def __init__(self) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # What uvloop hands over is a transport by what it can do, not by its class.
        self.transport = cast(asyncio.Transport, transport)
        self.begin()

    def begin(self) -> None:
        """Send the first request."""

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if not self.done.done():
            self.done.set_result(None)


class _Caller(_Connection, asyncio.Protocol):
    """A request, its answer, the next request."""

    def __init__(self, requests: Iterator[bytes], until: float) -> None:
        super().__init__()
        self._requests = requests
        self._until = until
        self._buffer = b""
        self.answers = 0

    def begin(self) -> None:
        self.transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._is_whole():
            return
        assert self._buffer.startswith(b"HTTP/1.1 200"), self._buffer
        assert b'"ok":false' not in self._buffer, self._buffer
        self.answers += self._buffer.count(b'"ok":true')
        self._buffer = b""
        if perf_counter() < self._until:
            self.transport.write(next(self._requests))
        else:
            self.transport.close()

    def _is_whole(self) -> bool:
        head = self._buffer.find(_END)
        if head < 0:
            return False
        at = self._buffer.find(_LENGTH, 0, head)
        if at < 0:
            return self._buffer.endswith(_LAST_CHUNK)
        length = int(self._buffer[at + len(_LENGTH) : self._buffer.index(b"\r", at)])
        return len(self._buffer) >= head + len(_END) + length


async def answers_per_second(
    port: int, requests: Iterator[bytes], connections: int, seconds: float
) -> float:
    """Messages a second that are answered, over so many connections together."""
    loop = asyncio.get_running_loop()
    start = perf_counter()
    callers = [_Caller(requests, start + seconds) for _ in range(connections)]
    for caller in callers:
        await loop.create_connection(lambda one=caller: one, "127.0.0.1", port)
    await asyncio.gather(*(caller.done for caller in callers))
    return sum(caller.answers for caller in callers) / (perf_counter() - start)


class Readings(Struct, frozen=True):
    """Rate and delay that the readers of a stream measured."""

    events_per_second: float
    """Events a second of the slowest reader."""
    p99_ms: float
    """From the moment that an event was asked for to its arrival, for all readers together."""


class _Reader(_Connection, asyncio.BufferedProtocol):
    """Looks at the first and the last event of each arrival: looking at all of them, for very many
    readers, would take more than the hub takes to tell them.
    """

    def __init__(self, request: bytes) -> None:
        super().__init__()
        self._request = request
        self._buffer = bytearray(_ARRIVAL)
        self._filled = 0
        self._last = 0
        self.events = 0
        self.has_begun = asyncio.Event()
        self.delays: list[tuple[int, int]] = []
        """Nanoseconds of the slowest event of an arrival, and how many came with it."""

    def begin(self) -> None:
        self.transport.write(self._request)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Buffer for the next bytes, behind those of an incomplete frame."""
        del sizehint
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """So many have come."""
        self._filled += nbytes
        buffer, filled = self._buffer, self._filled
        # What stands before the last empty line is whole; the frame after it begins in a new line.
        end = buffer.rfind(b"\n\n", 0, filled) + 1
        if buffer.rfind(_ID_IS, 0, end) < 0:
            return
        self._take(buffer.index(_ID_IS, 0, end), end)
        buffer[: filled - end] = buffer[end:filled]
        self._filled -= end

    def _take(self, first: int, end: int) -> None:
        now, buffer = perf_counter_ns(), self._buffer
        at = _number(buffer, first + len(_ID_IS))
        until = _number(buffer, buffer.rindex(_ID_IS, 0, end) + len(_ID_IS))
        assert self._last in (0, at - 1), f"{at} follows {self._last}"
        self._last = until
        stamp = buffer.index(b'"text":"', first) + 8
        self.delays.append((now - int(buffer[stamp : stamp + 20]), until - at + 1))
        self.events += until - at + 1
        self.has_begun.set()


class _ExactReader(_Reader):
    """Looks at every event."""

    def _take(self, first: int, end: int) -> None:
        ids = [int(one) for one in _ID.findall(self._buffer, first, end)]
        assert ids == list(range(ids[0], ids[0] + len(ids))), "an event is missing"
        super()._take(first, end)


def _number(buffer: bytearray, at: int) -> int:
    return int(buffer[at : buffer.index(b"\n", at)])


def follow(port: int, token: str, buffer: int = _SMALL) -> socket.socket:
    """Follow the stream, and read nothing but the head of the answer."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    line.connect(("127.0.0.1", port))
    line.sendall(_request_bytes(port, token))
    assert line.recv(12) == b"HTTP/1.1 200"
    return line


def _request_bytes(port: int, token: str) -> bytes:
    head = f"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}"
    return f"{head}\r\n\r\n".encode()


async def readings(
    port: int, token: str, readers: int, seconds: float, begin: asyncio.Future[None]
) -> Readings:
    """Measure so many readers of a stream; `begin` is set when all of them listen."""
    loop = asyncio.get_running_loop()
    request = _request_bytes(port, token)
    all_of_them = [_ExactReader(request), *(_Reader(request) for _ in range(readers - 1))]
    for reader in all_of_them:
        await loop.create_connection(lambda one=reader: one, "127.0.0.1", port)
    await asyncio.sleep(0.5)
    begin.set_result(None)
    await asyncio.sleep(seconds)
    await asyncio.gather(*(reader.has_begun.wait() for reader in all_of_them))
    for reader in all_of_them:
        reader.transport.close()
    delays = sorted(delay for reader in all_of_them for delay in reader.delays)
    total = sum(count for _, count in delays)
    so_far = accumulate(count for _, count in delays)
    late = next(delay for (delay, _), n in zip(delays, so_far, strict=True) if n >= 0.99 * total)
    return Readings(min(reader.events for reader in all_of_them) / seconds, late / 1e6)

"""Clients that cost as little as they can: callers that ask again at once, readers that count."""

import asyncio
import socket
from collections.abc import Iterator
from time import perf_counter, perf_counter_ns
from typing import cast

from msgspec import Struct

_END = b"\r\n\r\n"
_LENGTH = b"content-length: "
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_SMALL = 4_096


class _Connection(asyncio.Protocol):
    """A connection that is there to be ended."""

    def __init__(self) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # What uvloop hands over is a transport by what it can do, not by its class.
        self.transport = cast(asyncio.Transport, transport)
        self.begin()

    def begin(self) -> None:
        """Say something first."""

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if not self.done.done():
            self.done.set_result(None)


class _Caller(_Connection):
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
    """How many messages a second are answered over so many connections together."""
    loop = asyncio.get_running_loop()
    start = perf_counter()
    callers = [_Caller(requests, start + seconds) for _ in range(connections)]
    for caller in callers:
        await loop.create_connection(lambda one=caller: one, "127.0.0.1", port)
    await asyncio.gather(*(caller.done for caller in callers))
    return sum(caller.answers for caller in callers) / (perf_counter() - start)


class Readings(Struct, frozen=True):
    """What the readers of a stream saw."""

    events_per_second: float
    """What each of them was told, the slowest one."""
    p99_ms: float
    """From the moment that an event was asked for to its arrival, for all readers together."""


class _Reader(_Connection):
    """Counts events, and looks whether one is missing."""

    def __init__(self, request: bytes) -> None:
        super().__init__()
        self._request = request
        self._rest = b""
        self._last = 0
        self.events = 0
        self.delays: list[tuple[int, int]] = []
        """Nanoseconds of the slowest event of an arrival, and how many came with it."""

    def begin(self) -> None:
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        text = self._rest + data
        end = text.rfind(b"\nevent: ")
        first = text.find(b"id: ")
        if first < 0 or end < first:
            self._rest = text
            return
        # What stands before the last frame is whole.
        last_id = text.rfind(b"id: ", 0, end)
        whole = text[first:last_id]
        self._rest = text[last_id:]
        if whole:
            self._take(whole)

    def _take(self, whole: bytes) -> None:
        now = perf_counter_ns()
        count = whole.count(b"\nevent: ")
        first = int(whole[4 : whole.index(b"\n")])
        at = whole.rindex(b"id: ") + 4
        last = int(whole[at : whole.index(b"\n", at)])
        assert last - first + 1 == count, "the events of one arrival follow each other"
        assert self._last in (0, first - 1), f"{first} follows {self._last}"
        self._last = last
        said = whole.index(b'"text":"') + 8
        self.delays.append((now - int(whole[said : said + 20]), count))
        self.events += count


def stalled_reader(port: int, token: str) -> socket.socket:
    """Somebody who follows the stream, and reads nothing but the head of the answer."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL)
    line.connect(("127.0.0.1", port))
    line.sendall(_follow(port, token))
    assert line.recv(12) == b"HTTP/1.1 200"
    return line


def _follow(port: int, token: str) -> bytes:
    head = f"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}"
    return f"{head}\r\n\r\n".encode()


async def readings(
    port: int, token: str, readers: int, seconds: float, begin: asyncio.Future[None]
) -> Readings:
    """What so many readers of a stream see in that time; `begin` is set when all of them listen."""
    loop = asyncio.get_running_loop()
    all_of_them = [_Reader(_follow(port, token)) for _ in range(readers)]
    for reader in all_of_them:
        await loop.create_connection(lambda one=reader: one, "127.0.0.1", port)
    await asyncio.sleep(0.5)
    begin.set_result(None)
    await asyncio.sleep(seconds)
    for reader in all_of_them:
        reader.transport.close()
    delays = sorted(delay for reader in all_of_them for delay in reader.delays)
    total, so_far = sum(count for _, count in delays), 0
    for delay, count in delays:
        so_far += count
        if so_far >= 0.99 * total:
            return Readings(min(reader.events for reader in all_of_them) / seconds, delay / 1e6)
    raise AssertionError("no event has arrived")

"""The HTTP door: messages beside a bare endpoint, batches beside the hub itself, and streams.

`uv run python -m bench.http` measures streams at rising rates, and prints the delay of events.
"""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count, islice
from pathlib import Path
from socket import socket
from threading import Thread
from time import perf_counter

import uvloop

from bench.aof import reports, task_ids
from bench.http_client import Readings, answers_per_second, follow, readings
from bench.http_server import BUSY, OWNER_TOKEN, TOKEN, paced
from bench.hub import until_idle
from bench.raw import RawLog
from dragoman.system.open_files import raise_limit

_LINES = 500
"""So many messages are in a batch."""
_SENDERS = 2
_FILLING_SECONDS = 2.0
"""For so long a hub is kept busy, to have more to tell than the buffers of a reader hold."""
_AT_ONCE = 1 << 20
_LINE = b"." * 370
"""As long as an event of the stream."""


def bare_posts(folder: Path, connections: int, seconds: float) -> float:
    """Messages per second of a bare Starlette endpoint that decodes, chains and group-commits."""
    return _posts("bare", folder, connections, seconds)


def posts(folder: Path, connections: int, seconds: float) -> float:
    """The same messages, at our door."""
    return _posts("hub", folder, connections, seconds)


def _posts(kind: str, folder: Path, connections: int, seconds: float) -> float:
    messages = reports(task_ids(BUSY), count())
    with _running(kind, folder) as server:
        requests = (_request(server.port, message, "json") for message in messages)
        return uvloop.run(answers_per_second(server.port, requests, connections, seconds))


def posts_beside_readers(folder: Path, connections: int, seconds: float, stalled: int) -> float:
    """The same, while one follows the stream, and very many follow it and read nothing."""
    messages = reports(task_ids(BUSY), count())
    with _running("hub", folder) as server, ExitStack() as readers:
        raise_limit()
        for _ in range(stalled):
            readers.enter_context(follow(server.port, OWNER_TOKEN))
        awake = readers.enter_context(follow(server.port, OWNER_TOKEN, _AT_ONCE))
        Thread(target=_read_all, args=(awake,), daemon=True).start()
        # Until its buffers are full, a reader that reads nothing is served like any other.
        filling = _batches(server.port, messages)
        uvloop.run(answers_per_second(server.port, filling, 1, _FILLING_SECONDS))
        until_idle(server.pid)
        requests = (_request(server.port, message, "json") for message in messages)
        return uvloop.run(answers_per_second(server.port, requests, connections, seconds))


def _read_all(line: socket) -> None:
    with suppress(OSError):
        while line.recv(_AT_ONCE):
            pass


def batches(folder: Path, seconds: float) -> float:
    """Messages per second when they come many at a time."""
    with _running("hub", folder) as server:
        requests = _batches(server.port, reports(task_ids(BUSY), count()))
        return uvloop.run(answers_per_second(server.port, requests, _SENDERS, seconds))


def _batches(port: int, messages: Iterator[bytes]) -> Iterator[bytes]:
    while True:
        yield _request(port, b"\n".join(islice(messages, _LINES)), "x-ndjson")


def streams(folder: Path, readers: int, rate: int, seconds: float) -> Readings:
    """What so many readers see of a hub that commits so many events a second."""

    async def read(server: "_Running") -> Readings:
        begin = asyncio.get_running_loop().create_future()
        begin.add_done_callback(lambda _: server.begin())
        return await readings(server.port, TOKEN, readers, seconds, begin)

    with _running("busy", folder, str(rate)) as server:
        return uvloop.run(read(server))


def _request(port: int, body: bytes, kind: str) -> bytes:
    return b"".join(
        (
            b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % port,
            b"Authorization: Bearer %s\r\n" % TOKEN.encode(),
            b"Content-Type: application/%s\r\n" % kind.encode(),
            b"Content-Length: %d\r\n\r\n" % len(body),
            body,
        )
    )


class _Running:
    """A server in a process of its own."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        assert server.stdout is not None
        self._server = server
        self.pid = server.pid
        self.port = int(server.stdout.readline())

    def begin(self) -> None:
        """Let its producer begin."""
        assert self._server.stdin is not None
        self._server.stdin.write("\n")
        self._server.stdin.flush()


@contextmanager
def _running(kind: str, folder: Path, *more: str) -> Generator[_Running]:
    command = [sys.executable, "-m", "bench.http_server", kind, str(folder), *more]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            yield _Running(server)
        finally:
            server.kill()


def committed(folder: Path, rate: int, seconds: float) -> float:
    """Milliseconds within which 99 of 100 lines are in a bare log; nobody is told of them."""
    log, delays = RawLog(folder / "raw.db"), list[float]()
    for due in paced(rate, seconds):
        asked = perf_counter()
        log.write([_LINE] * due)
        delays += [perf_counter() - asked] * due
    log.close()
    return sorted(delays)[len(delays) * 99 // 100] * 1_000


def main() -> None:
    """Streams at rising rates, each beside what the disk takes for the same lines alone."""
    head = f"{'100 readers, asked for /s':26} {'told to each /s':>16} {'p99 ms':>8}"
    print(f"{head} {'bare commit p99 ms':>19}")
    for rate in (1_000, 5_000, 10_000, 20_000):
        with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
            bare = committed(Path(folder), rate, 5.0)
            seen = streams(Path(folder), 100, rate, 5.0)
        print(f"{rate:26,} {seen.events_per_second:16,.0f} {seen.p99_ms:8.1f} {bare:19.1f}")


if __name__ == "__main__":
    main()

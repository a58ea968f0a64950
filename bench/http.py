"""The HTTP door: messages beside a bare endpoint, batches beside the hub itself."""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import count, islice
from pathlib import Path
from socket import socket
from threading import Thread

import uvloop

from bench.aof import reports, task_ids
from bench.http_client import answers_per_second, follow
from bench.http_process import running
from bench.http_server import BUSY, OWNER_TOKEN, TOKEN
from bench.hub import until_idle
from dragoman.system.process_tuning import raise_open_file_limit

_LINES = 500
"""So many messages are in a batch."""
_SENDERS = 2
_FILLING_SECONDS = 2.0
"""For so long a hub is kept busy, to have more to tell than the buffers of a reader hold."""
_AT_ONCE = 1 << 20


def bare_posts(folder: Path, connections: int, seconds: float) -> float:
    """Messages per second of a bare Starlette endpoint that decodes, chains and group-commits."""
    return _posts("bare", folder, connections, seconds)


def posts(folder: Path, connections: int, seconds: float) -> float:
    """The same messages, at our door."""
    return _posts("hub", folder, connections, seconds)


def _posts(kind: str, folder: Path, connections: int, seconds: float) -> float:
    messages = reports(task_ids(BUSY), count())
    with running(kind, folder) as server:
        requests = (_request(server.port, message, "json") for message in messages)
        return uvloop.run(answers_per_second(server.port, requests, connections, seconds))


def posts_beside_readers(folder: Path, connections: int, seconds: float, stalled: int) -> float:
    """The same, while one follows the stream, and very many follow it and read nothing."""
    messages = reports(task_ids(BUSY), count())
    with running("hub", folder) as server, ExitStack() as readers:
        raise_open_file_limit()
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
    with running("hub", folder) as server:
        requests = _batches(server.port, reports(task_ids(BUSY), count()))
        return uvloop.run(answers_per_second(server.port, requests, _SENDERS, seconds))


def _batches(port: int, messages: Iterator[bytes]) -> Iterator[bytes]:
    while True:
        yield _request(port, b"\n".join(islice(messages, _LINES)), "x-ndjson")


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

"""Raw writer: caught-up readers are written to directly, and miss nothing when it changes."""

import asyncio
import gc
import ssl
import threading
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPResponse
from pathlib import Path
from random import Random
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from dragoman.config import HttpSettings
from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.surfaces.http import Timeouts, build_app
from dragoman.surfaces.http.app import HttpApp
from dragoman.surfaces.http.fanout import WRITER, EncodedChunk, RawWriter, Waiter
from tests.certificate import make_certificate
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, serving
from tests.surfaces.http.reader import Reader, follow_stream

pytestmark = proves("HTTP-STREAM-LEVEL")

LONG_S = 30.0


class CountingApp(HttpApp):
    """Application of a server that counts the body messages sent by its coroutines."""

    def __init__(self, app: HttpApp, *, has_writers: bool = True) -> None:
        self.context = app.context
        self._app = app
        self._has_writers = has_writers
        self.sent = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counting_send(message: Message) -> None:
            self.sent += message["type"] == "http.response.body"
            await send(message)

        if not self._has_writers:
            del scope[WRITER]
        await self._app(scope, receive, counting_send)

    def close(self) -> None:
        self._app.close()


@contextmanager
def serving_counted(server: HubServer, *, has_writers: bool = True) -> Generator[CountingApp]:
    """Serve with a counting application."""
    server.app = app = CountingApp(server.app, has_writers=has_writers)
    with serving(server):
        yield app


def _add_notes_one_by_one(server: HubServer, task: str, reader: Reader, count: int) -> None:
    """Add notes, each after the reader has got the one before."""
    first = server.store.head() + 1
    for position in range(first, first + count):
        server.submit(NoteTask(task, "More."))
        assert reader.positions(1) == [position]


def test_caught_up_reader_is_written_to_without_its_coroutine() -> None:
    server = HubServer()
    with serving_counted(server) as app:
        task = server.submit(CreateTask("One"))
        with (
            follow_stream(server) as reader,
            follow_stream(server, "?type=task.claimed") as other_reader,
        ):
            assert reader.frame() is not None
            assert other_reader.frame() is not None
            _add_notes_one_by_one(server, task, reader, 30)
            # The begin of each stream, and what was committed before it was blocked.
            assert app.sent <= 4


def test_server_without_raw_writer_sends_everything() -> None:
    server = HubServer()
    with serving_counted(server, has_writers=False) as app:
        task = server.submit(CreateTask("One"))
        with follow_stream(server) as reader:
            assert reader.frame() is not None
            _add_notes_one_by_one(server, task, reader, 20)
            assert app.sent == 21


def test_raw_writer_works_over_tls(tmp_path: Path) -> None:
    path = make_certificate(tmp_path)
    server = HubServer(http=HttpSettings(port=0, tls_cert=str(path), tls_key=str(path)))
    tls_context = ssl.create_default_context(cafile=str(path))
    with serving_counted(server) as app, server.connect() as bare_sock:
        task = server.submit(CreateTask("One"))
        with tls_context.wrap_socket(bare_sock, server_hostname="localhost") as sock:
            sock.sendall(server.request_head("GET", "/v1/stream"))
            reader = Reader(sock)
            assert reader.frame() is not None
            _add_notes_one_by_one(server, task, reader, 20)
            assert app.sent <= 2
            reader.close()


@pytest.mark.parametrize("seed", range(3))
def test_stop_and_go_reader_gets_each_entry_once_in_order(seed: int) -> None:
    rng, server = Random(seed), HubServer()
    with serving_counted(server) as app:
        task = server.submit(CreateTask("One"))
        with follow_stream(server, buffer=4096) as reader:
            position = server.store.head()
            for _ in range(4):
                # More than its connection holds: it is behind, and reads on while more is written.
                sizes = [rng.randrange(9_000) for _ in range(200)]
                notes = [NoteTask(task, "x" * size) for size in sizes]
                before = app.sent
                server.submit(*notes[:100])
                writer = threading.Thread(target=_submit_each, args=(server, notes[100:]))
                writer.start()
                assert reader.positions(200) == list(range(position + 1, position + 201)), (
                    f"seed {seed}"
                )
                writer.join()
                position += 200
                assert app.sent > before, f"seed {seed}"
                before = app.sent
                _add_notes_one_by_one(server, task, reader, 10)
                position += 10
                assert app.sent <= before + 1, f"seed {seed}"


def _submit_each(server: HubServer, notes: list[NoteTask]) -> None:
    for note in notes:
        server.submit(note)


def test_raw_write_postpones_the_keepalive() -> None:
    now = [0.0]
    server = HubServer(timeouts=Timeouts(keepalive=0.05), monotonic=lambda: now[0])
    with serving_counted(server):
        task = server.submit(CreateTask("One"))
        with follow_stream(server) as reader:
            assert reader.frame() is not None
            for _ in range(5):
                # Less than a keepalive interval since the last write, more since the last comment.
                now[0] += 0.04
                server.submit(NoteTask(task, "More."))
                event = reader.frame()
                assert event is not None
                assert event.event == "task.noted"
            now[0] += 0.06
            keepalive = reader.next(with_comments=True)
            assert keepalive is not None
            assert keepalive.comment == "still here"


def encode_chunk(data: bytes) -> EncodedChunk:
    """Encode a chunk that moves no position."""
    return EncodedChunk(data, b"%x\r\n%b\r\n" % (len(data), data), 0)


class WriterProbe:
    """Mounted application that tries its raw writer at each step of a response."""

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.writes: list[bool] = []
        self.writer: weakref.ref[RawWriter] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write before, within and after a response."""
        del receive
        writer: RawWriter = scope[WRITER]
        self.writer = weakref.ref(writer)
        self.writes = [writer.write(encode_chunk(b"too early"))]
        await send({"type": "http.response.start", "status": 200, "headers": self.headers})
        self.writes.append(writer.write(encode_chunk(b"bare, ")))
        await send({"type": "http.response.body", "body": b"sent", "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        self.writes.append(writer.write(encode_chunk(b"too late")))

    def close(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("method", "headers", "body", "is_writable"),
    [
        (b"GET", [], b"bare, sent", True),
        (b"GET", [(b"content-length", b"4")], b"sent", False),
        (b"HEAD", [], b"", False),
    ],
)
def test_raw_writer_is_usable_only_within_a_body_of_unknown_length(
    method: bytes,
    headers: list[tuple[bytes, bytes]],
    body: bytes,
    is_writable: bool,
) -> None:
    server, probe = HubServer(), WriterProbe()
    probe.headers = headers
    server.app = build_app(server.deps, {"/other": probe})
    with serving(server), server.connect() as sock:
        head = server.request_head(method.decode(), "/other", "Connection: close")
        sock.sendall(head)
        with HTTPResponse(sock, method=method.decode()) as response:
            response.begin()
            assert response.read() == body
    assert probe.writes == [False, is_writable, False]


def test_raw_writer_is_freed_with_its_request() -> None:
    server, probe = HubServer(), WriterProbe()
    server.app = build_app(server.deps, {"/other": probe})
    gc.disable()
    try:
        with serving(server):
            assert server.request("GET", "/other").body == b"bare, sent"
        assert probe.writer is not None
        assert probe.writer() is None
    finally:
        gc.enable()


def test_waiter_with_inline_handler_waits_until_it_fails_or_closes() -> None:
    async def run() -> list[Any]:
        waiter, results, observed = Waiter(set()), [True, True, False], list[Any]()

        def handle_inline() -> bool:
            observed.append(results[0])
            return results.pop(0)

        async def start_wait() -> asyncio.Task[None]:
            task = asyncio.create_task(waiter.wait(LONG_S, handle_inline))
            await asyncio.sleep(0)
            return task

        task = await start_wait()
        for _ in range(2):
            waiter.notify()
            await asyncio.sleep(0)
            observed.append(task.done())
        waiter.notify()
        # It was woken, and its inline handler is not called until it waits again.
        waiter.notify()
        await task
        await waiter.wait(LONG_S)
        task = await start_wait()
        waiter.close()
        await task
        return observed

    assert asyncio.run(run()) == [True, False, True, False, False]


def test_error_in_inline_handler_wakes_its_waiter(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken() -> bool:
        raise RuntimeError("the line is gone")

    async def wait() -> None:
        waiter = Waiter(set())
        task = asyncio.create_task(waiter.wait(LONG_S, broken))
        await asyncio.sleep(0)
        waiter.notify()
        await task

    asyncio.run(wait())
    assert "the waiter is woken" in caplog.text

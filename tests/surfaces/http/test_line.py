"""Lines: a reader that is level is written to outright, and misses nothing between the two ways."""

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
from dragoman.core.commands import CreateTask, NoteTask
from dragoman.surfaces.http import Patience, build_app
from dragoman.surfaces.http.app import HttpApp
from dragoman.surfaces.http.line import Line, line_of, piece
from dragoman.surfaces.http.seat import Seat
from tests.certificate import make_certificate
from tests.requirements import proves
from tests.surfaces.http.house import House, serving
from tests.surfaces.http.reader import Reader, reading

pytestmark = proves("HTTP-STREAM-LEVEL")

LONG_S = 30.0


class Counted(HttpApp):
    """The application of a house, which counts what its coroutines send of bodies."""

    def __init__(self, app: HttpApp, *, has_lines: bool = True) -> None:
        self.office = app.office
        self._app = app
        self._has_lines = has_lines
        self.sent = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counting(message: Message) -> None:
            self.sent += message["type"] == "http.response.body"
            await send(message)

        if not self._has_lines:
            del scope["extensions"]
        await self._app(scope, receive, counting)

    def close(self) -> None:
        self._app.close()


@contextmanager
def counted(house: House, *, has_lines: bool = True) -> Generator[Counted]:
    """Serve a house that counts."""
    house.app = app = Counted(house.app, has_lines=has_lines)
    with serving(house):
        yield app


def _note_one_by_one(house: House, task: str, reader: Reader, count: int) -> None:
    """Each is told when the reader is level, and read before the next one."""
    first = house.store.head() + 1
    for position in range(first, first + count):
        house.do(NoteTask(task, "More."))
        assert reader.positions(1) == [position]


def test_a_reader_that_is_level_is_told_without_its_coroutine() -> None:
    house = House()
    with counted(house) as app:
        task = house.do(CreateTask("One"))
        with reading(house) as reader, reading(house, "?type=task.claimed") as other:
            assert reader.frame() is not None
            assert other.frame() is not None
            _note_one_by_one(house, task, reader, 30)
            # How a stream begins, and what came before it had sat down.
            assert app.sent <= 4


@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_where_a_server_lays_no_line_everything_is_sent(version: str) -> None:
    house = House()
    with counted(house, has_lines=False) as app:
        task = house.do(CreateTask("One"))
        with house.dial() as line:
            head = house.head("GET", "/v1/stream")
            line.sendall(head.replace(b"HTTP/1.1", b"HTTP/%b" % version.encode(), 1))
            reader = Reader(line)
            assert reader.frame() is not None
            _note_one_by_one(house, task, reader, 20)
            assert app.sent == 21
            reader.close()


def test_over_tls_and_for_an_older_http_it_is_the_same(tmp_path: Path) -> None:
    path = make_certificate(tmp_path)
    house = House(http=HttpSettings(port=0, tls_cert=str(path), tls_key=str(path)))
    trusting = ssl.create_default_context(cafile=str(path))
    with counted(house) as app, house.dial() as bare:
        task = house.do(CreateTask("One"))
        with trusting.wrap_socket(bare, server_hostname="localhost") as line:
            line.sendall(house.head("GET", "/v1/stream").replace(b"HTTP/1.1", b"HTTP/1.0", 1))
            reader = Reader(line)
            assert reader.frame() is not None
            _note_one_by_one(house, task, reader, 20)
            assert app.sent <= 2
            reader.close()


OLDER = [b"HTTP/1.0", b"HTTP/0.9"]


@proves("HTTP-OLDER")
@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize("buffer", [0, 4096])
def test_a_stream_for_an_older_http_has_no_chunks_and_ends_with_its_connection(
    version: bytes, buffer: int
) -> None:
    house = House()
    with counted(house) as app:
        task = house.do(CreateTask("One"))
        first = house.store.head()
        with house.dial(buffer) as line:
            head = house.head("GET", "/v1/stream", "Connection: keep-alive")
            line.sendall(head.replace(b"HTTP/1.1", version, 1))
            reader = Reader(line)
            assert reader.headers["connection"] == "close"
            assert not {"transfer-encoding", "content-length"}.intersection(reader.headers)
            assert reader.frame() is not None
            # Some by its line, and with more than its connection holds some by its coroutine.
            house.do(*(NoteTask(task, "x" * 5_000) for _ in range(200)))
            assert reader.positions(200) == list(range(first + 1, first + 201))
            _note_one_by_one(house, task, reader, 5)
            app.close()
            assert reader.frame() is None
            reader.close()


@proves("HTTP-OLDER")
@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize("path", ["/v1/tasks", "/v1/nothing", "/v1/stream?form=trace"])
def test_each_answer_for_an_older_http_is_one_that_it_knows(version: bytes, path: str) -> None:
    house = House()
    with serving(house), house.dial() as line:
        line.sendall(house.head("HEAD", path).replace(b"HTTP/1.1", version, 1))
        head = line.makefile("rb").read()
        assert head.endswith(b"\r\n\r\n")
        assert b"connection: close" in head
        assert b"transfer-encoding" not in head


@pytest.mark.parametrize("seed", range(3))
def test_a_reader_that_stops_and_goes_sees_everything_once_and_in_order(seed: int) -> None:
    chance, house = Random(seed), House()
    with counted(house) as app:
        task = house.do(CreateTask("One"))
        with reading(house, buffer=4096) as reader:
            at = house.store.head()
            for _ in range(4):
                # More than its connection holds: it is behind, and goes on while more is written.
                sizes = [chance.randrange(9_000) for _ in range(200)]
                notes = [NoteTask(task, "x" * size) for size in sizes]
                before = app.sent
                house.do(*notes[:100])
                writer = threading.Thread(target=_each, args=(house, notes[100:]))
                writer.start()
                assert reader.positions(200) == list(range(at + 1, at + 201)), f"seed {seed}"
                writer.join()
                at += 200
                assert app.sent > before, f"seed {seed}"
                before = app.sent
                _note_one_by_one(house, task, reader, 10)
                at += 10
                assert app.sent <= before + 1, f"seed {seed}"


def _each(house: House, notes: list[NoteTask]) -> None:
    for note in notes:
        house.do(note)


def test_what_is_told_outright_is_a_sign_of_life_too() -> None:
    now = [0.0]
    house = House(patience=Patience(beat=0.05), monotonic=lambda: now[0])
    with counted(house):
        task = house.do(CreateTask("One"))
        with reading(house) as reader:
            assert reader.frame() is not None
            for _ in range(5):
                # Less than a beat since the last sign, more than one since the last comment.
                now[0] += 0.04
                house.do(NoteTask(task, "More."))
                event = reader.frame()
                assert event is not None
                assert event.event == "task.noted"
            now[0] += 0.06
            beat = reader.next(with_comments=True)
            assert beat is not None
            assert beat.comment == "still here"


class Answering:
    """An application beside ours that looks at its line at each step of an answer."""

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.was_free: list[bool] = []
        self.line: weakref.ref[Line] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Say something in two ways."""
        del receive
        line = line_of(scope)
        assert line is not None
        self.line = weakref.ref(line)
        self.was_free = [line.write(piece(b"too early"))]
        await send({"type": "http.response.start", "status": 200, "headers": self.headers})
        self.was_free.append(line.write(piece(b"bare, ")))
        await send({"type": "http.response.body", "body": b"sent", "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        self.was_free.append(line.write(piece(b"too late")))

    def close(self) -> None:
        """End."""


@pytest.mark.parametrize("version", [b"HTTP/1.1", *OLDER])
@pytest.mark.parametrize(
    ("method", "headers", "body", "is_free"),
    [
        (b"GET", [], b"bare, sent", True),
        (b"GET", [(b"content-length", b"4")], b"sent", False),
        (b"HEAD", [], b"", False),
    ],
)
def test_a_line_is_free_from_the_head_to_the_end_of_an_answer_without_a_length(
    version: bytes, method: bytes, headers: list[tuple[bytes, bytes]], body: bytes, is_free: bool
) -> None:
    house, other = House(), Answering()
    other.headers = headers
    house.app = build_app(house.door, {"/other": other})
    with serving(house), house.dial() as line:
        head = house.head(method.decode(), "/other", "Connection: close")
        line.sendall(head.replace(b"HTTP/1.1", version, 1))
        with HTTPResponse(line, method=method.decode()) as answer:
            answer.begin()
            assert answer.read() == body
    assert other.was_free == [False, is_free, False]


def test_a_line_goes_with_its_request_and_is_not_left_to_the_collector() -> None:
    house, other = House(), Answering()
    house.app = build_app(house.door, {"/other": other})
    gc.disable()
    try:
        with serving(house):
            assert house.ask("GET", "/other").body == b"bare, sent"
        assert other.line is not None
        assert other.line() is None
    finally:
        gc.enable()


def test_nothing_is_no_chunk_because_that_would_be_the_end() -> None:
    assert piece(b"").chunk == b""
    assert piece(b"x" * 17).chunk == b"11\r\n" + b"x" * 17 + b"\r\n"


def test_whoever_is_served_where_it_sits_waits_on_until_that_fails_or_it_leaves() -> None:
    async def run() -> list[Any]:
        seat, answers, seen = Seat(set()), [True, True, False], list[Any]()

        def serve() -> bool:
            seen.append(answers[0])
            return answers.pop(0)

        async def sit() -> asyncio.Task[bool]:
            waiting = asyncio.create_task(seat.wait(LONG_S, serve))
            await asyncio.sleep(0)
            return waiting

        waiting = await sit()
        for _ in range(2):
            seat.ring()
            await asyncio.sleep(0)
            seen.append(waiting.done())
        seat.ring()
        # It was woken, and is served no more until it sits again.
        seat.ring()
        seen.append(await waiting)
        seat.forget()
        waiting = await sit()
        seat.leave()
        seen.append(await waiting)
        return seen

    assert asyncio.run(run()) == [True, False, True, False, False, True, True]


def test_a_fault_in_one_line_wakes_its_reader_and_stops_nobody_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken() -> bool:
        raise RuntimeError("the line is gone")

    async def wait() -> bool:
        seat = Seat(set())
        waits = asyncio.create_task(seat.wait(LONG_S, broken))
        await asyncio.sleep(0)
        seat.ring()
        return await waits

    assert asyncio.run(wait()) is True
    assert "it is woken" in caplog.text

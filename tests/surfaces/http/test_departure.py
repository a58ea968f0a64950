"""Readers that leave at a wrong moment: nothing of them is left, and the log is quiet."""

import asyncio
import socket
import ssl
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest
from starlette.types import Message, Scope

from dragoman.config import HttpSettings
from dragoman.core.commands import CreateTask, NoteTask
from dragoman.core.ids import task_stream
from dragoman.engine.ports import Row
from dragoman.store.memory import MemoryStore
from dragoman.surfaces.http.hearing import hearing_of, lay_hearing, until_it_ends
from tests.certificate import make_certificate
from tests.requirements import proves
from tests.surfaces.http.house import House, serving
from tests.surfaces.http.reader import Reader, reading
from tests.surfaces.http.waiting import until_seats

pytestmark = proves("HTTP-LEFT")

AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: whoever closes resets the connection."""


def _dial(house: House, trusting: ssl.SSLContext | None = None, buffer: int = 0) -> socket.socket:
    line = house.dial(buffer)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    return trusting.wrap_socket(line, server_hostname="localhost") if trusting else line


def _left(house: House, task: str, trusting: ssl.SSLContext | None = None) -> bool:
    """Whether nobody sits there any more, after a while in which there was something to tell."""
    for _ in range(1_000):
        if not house.app.office.feed.seats:
            return house.app.office.metrics.readers == 0
        house.do(NoteTask(task, "Is anybody there?"))
        with _dial(house, trusting) as line:
            line.sendall(house.head("GET", "/healthz"))
            assert line.recv(1)
    return False


@pytest.mark.parametrize("behind", [0, 1, 3])
def test_a_reader_that_resets_with_requests_behind_its_first_is_gone(
    house: House, behind: int, caplog: pytest.LogCaptureFixture
) -> None:
    task = house.do(CreateTask("One"))
    line = _dial(house)
    line.sendall(house.head("GET", "/v1/stream"))
    reader = Reader(line)
    assert reader.frame() is not None
    line.sendall(house.head("GET", "/v1/tasks") * behind)
    house.do(NoteTask(task, "Told."))
    assert reader.next() is not None
    reader.close()
    assert _left(house, task)
    assert caplog.text == ""


@proves("HTTP-STOP")
@pytest.mark.parametrize("count", [1, 1_000])
def test_readers_that_do_not_read_do_not_hold_up_a_hub_that_stops(
    count: int, caplog: pytest.LogCaptureFixture
) -> None:
    house = House()
    with ExitStack() as readers, serving(house):
        task = house.do(CreateTask("One"))
        for version in (b"HTTP/1.1", b"HTTP/1.0"):
            line = readers.enter_context(house.dial(4_096))
            line.sendall(house.head("GET", "/v1/stream").replace(b"HTTP/1.1", version, 1))
            assert line.recv(1)
        # It has little that it does not take, or much that the hub waits to be rid of.
        house.do(*(NoteTask(task, "x" * 2_000) for _ in range(count)))
        with reading(house, f"?after={house.store.head() - 1}") as other:
            assert other.next() is not None
    assert caplog.text == ""


def test_what_is_asked_behind_an_answer_is_answered_after_it(house: House) -> None:
    with house.dial() as line:
        last = house.head("GET", "/v1/tasks", "Connection: close")
        line.sendall(house.head("GET", "/v1/tasks") * 2 + last)
        assert line.makefile("rb").read().count(b"HTTP/1.1 200 OK") == 3


@pytest.mark.parametrize("is_tls", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_readers_that_come_and_reset_while_much_happens_leave_nothing(
    seed: int, is_tls: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cert = str(make_certificate(tmp_path)) if is_tls else ""
    http = HttpSettings(port=0, rate_per_second=0, tls_cert=cert, tls_key=cert)
    trusting = ssl.create_default_context(cafile=cert) if is_tls else None
    is_over = threading.Event()
    with serving(House(http=http)) as house, ThreadPoolExecutor() as crowd:
        task = house.do(CreateTask("One"))
        writer = crowd.submit(_write, house, task, Random(seed), is_over)
        guests = [
            crowd.submit(_come_and_go, house, trusting, Random(f"{seed} {number}"))
            for number in range(4)
        ]
        try:
            for guest in guests:
                guest.result()
        finally:
            is_over.set()
        writer.result()
        assert _left(house, task, trusting), f"seed {seed}"
    assert caplog.text == "", f"seed {seed}"


def _write(house: House, task: str, chance: Random, is_over: threading.Event) -> None:
    while not is_over.is_set():
        house.do(*(NoteTask(task, "x" * chance.randrange(1, 3_000)) for _ in range(5)))


def _come_and_go(house: House, trusting: ssl.SSLContext | None, chance: Random) -> None:
    for _ in range(15):
        with _dial(house, trusting, chance.choice([0, 4_096])) as line:
            behind = house.head("GET", "/v1/tasks") * chance.randrange(3)
            line.sendall(house.head("GET", f"/v1/stream{chance.choice(['', '?after=0'])}") + behind)
            for _ in range(chance.randrange(4)):
                line.recv(chance.randrange(1, 20_000))


NEW = b'{"title":"One","id":"T-1"}'


@proves("HTTP-HALF-CLOSED")
@pytest.mark.parametrize("version", [b"HTTP/1.1", b"HTTP/1.0"])
def test_a_caller_that_says_no_more_is_answered(house: House, version: bytes) -> None:
    declared = ("Content-Type: application/json", f"Content-Length: {len(NEW)}")
    for request, status in (
        (house.head("POST", "/v1/tasks", *declared) + NEW, b" 201 "),
        (house.head("GET", "/v1/tasks/T-1"), b" 200 "),
        (house.head("GET", "/v1/nowhere"), b" 404 "),
    ):
        with house.dial() as line:
            line.sendall(request.replace(b"HTTP/1.1", version, 1))
            line.shutdown(socket.SHUT_WR)
            head, _, body = line.makefile("rb").read().partition(b"\r\n\r\n")
            assert status in head.partition(b"\r\n")[0]
            assert body.endswith(b"}")


@proves("HTTP-HALF-CLOSED")
def test_all_that_it_has_asked_for_is_answered_and_half_a_request_is_not(house: House) -> None:
    asked = house.head("GET", "/v1/tasks")
    without_body = house.head("POST", "/v1/tasks", "Content-Length: 9")
    for said, answers in (
        (asked * 3, 3),
        (asked * 3 + asked[:20], 3),
        (asked[:20], 0),
        (without_body, 0),
        (b"", 0),
    ):
        with house.dial() as line:
            line.sendall(said)
            line.shutdown(socket.SHUT_WR)
            assert line.makefile("rb").read().count(b"HTTP/1.1 ") == answers


@proves("HTTP-HALF-CLOSED", "HTTP-WAIT")
@pytest.mark.parametrize("is_seated", [True, False])
def test_whoever_waits_and_says_no_more_has_gone(house: House, is_seated: bool) -> None:
    body = b'{"wait_ms":60000}'
    declared = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    with house.dial() as line:
        line.sendall(house.head("POST", "/v1/work", *declared, by="ada") + body)
        if is_seated:
            until_seats(house, 1)
        line.shutdown(socket.SHUT_WR)
        assert line.makefile("rb").read()[:13] in (b"", b"HTTP/1.1 204 ")
        until_seats(house, 0)
        task = house.do(CreateTask("One", ready=True))
        assert house.get(f"/v1/tasks/{task}")["status"] == "ready"


class Snared(MemoryStore):
    """A store that shows no task until it is let go, so that who asks has time to leave."""

    def __init__(self) -> None:
        super().__init__("snared")
        self.let_go = threading.Event()

    def stream(self, name: str) -> Row | None:
        if name.startswith(task_stream("")):
            self.let_go.wait()
        return super().stream(name)


@proves("HTTP-HALF-CLOSED", "HTTP-WAIT")
def test_what_was_taken_for_another_that_is_told_nothing_goes_back() -> None:
    store = Snared()
    with serving(House(store)) as house:
        task = house.do(CreateTask("One", ready=True))
        before = store.head()
        body = b'{"agent":"zed","wait_ms":3000}'
        declared = ("Content-Type: application/json", f"Content-Length: {len(body)}")
        with house.dial() as line:
            line.sendall(house.head("POST", "/v1/work", *declared) + body)
            while store.head() == before:
                house.ask("GET", "/healthz", by="")
            line.shutdown(socket.SHUT_WR)
            assert line.makefile("rb").read() == b""
        store.let_go.set()
        assert any(house.get(f"/v1/tasks/{task}")["status"] == "ready" for _ in range(1_000))


@proves("HTTP-HALF-CLOSED")
def test_the_end_of_what_a_caller_says_is_heard_behind_its_request() -> None:
    scope: Scope = {}
    lay_hearing(scope)
    coming: list[Message] = [
        {"type": "http.request", "body": b"a", "more_body": True},
        {"type": "http.request", "body": b"b"},
        {"type": "http.request", "body": b"never asked for"},
    ]

    async def receive() -> Message:
        return coming.pop(0)

    async def heard() -> list[Message]:
        received = until_it_ends(scope, receive)
        hearing_of(scope).has_ended = True
        return [await received() for _ in range(4)]

    first, second, *ends = asyncio.run(heard())
    assert (first["body"], second["body"]) == (b"a", b"b")
    assert [end["type"] for end in ends] == ["http.disconnect"] * 2
    assert not hearing_of(scope).is_watched


@proves("HTTP-HALF-CLOSED")
def test_whoever_has_waited_and_says_no_more_is_told_what_it_waited_for() -> None:
    scope: Scope = {}
    lay_hearing(scope)
    coming: list[Message] = [{"type": "http.request", "body": b""}]

    async def receive() -> Message:
        return coming.pop(0) if coming else await asyncio.get_running_loop().create_future()

    async def watched() -> list[bool]:
        received = until_it_ends(scope, receive)
        await received()
        watch = asyncio.ensure_future(received())
        await asyncio.sleep(0)
        seen = [hearing_of(scope).is_watched]
        watch.cancel()
        await asyncio.sleep(0)
        return [*seen, hearing_of(scope).is_watched]

    assert asyncio.run(watched()) == [True, False]


@proves("HTTP-HALF-CLOSED")
def test_a_request_that_came_elsewhere_is_received_as_it_is() -> None:
    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    assert until_it_ends({}, receive) is receive

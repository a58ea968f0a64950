"""Disconnected clients: nothing is left of them, and nothing is logged."""

import socket
import ssl
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

from dragoman.config import HttpSettings
from dragoman.core.ids import task_stream
from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.engine.ports import StreamRow
from dragoman.store.memory import MemoryStore
from tests.certificate import make_certificate
from tests.requirements import proves
from tests.surfaces.http.background_requests import wait_for_waiters
from tests.surfaces.http.hub_server import HubServer, serving
from tests.surfaces.http.reader import Reader, follow_stream

pytestmark = proves("HTTP-LEFT")

LINGER_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: closing the socket resets the connection."""


def _connect(
    server: HubServer, tls_context: ssl.SSLContext | None = None, buffer: int = 0
) -> socket.socket:
    sock = server.connect(buffer)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
    return tls_context.wrap_socket(sock, server_hostname="localhost") if tls_context else sock


def _is_forgotten(server: HubServer, task: str, tls_context: ssl.SSLContext | None = None) -> bool:
    """Report whether all waiters are closed after some more entries."""
    for _ in range(1_000):
        if not server.app.context.feed.waiter_count:
            return server.app.context.metrics.readers == 0
        server.submit(NoteTask(task, "Is anybody there?"))
        with _connect(server, tls_context) as sock:
            sock.sendall(server.request_head("GET", "/healthz"))
            assert sock.recv(1)
    return False


@pytest.mark.parametrize("pipelined", [0, 1, 3])
def test_reader_that_resets_with_pipelined_requests_is_forgotten(
    server: HubServer, pipelined: int, caplog: pytest.LogCaptureFixture
) -> None:
    task = server.submit(CreateTask("One"))
    sock = _connect(server)
    sock.sendall(server.request_head("GET", "/v1/stream"))
    reader = Reader(sock)
    assert reader.frame() is not None
    sock.sendall(server.request_head("GET", "/v1/tasks") * pipelined)
    server.submit(NoteTask(task, "Told."))
    assert reader.next() is not None
    reader.close()
    assert _is_forgotten(server, task)
    assert caplog.text == ""


@proves("HTTP-STOP")
@pytest.mark.parametrize("count", [1, 1_000])
def test_stalled_readers_do_not_delay_shutdown(
    count: int, caplog: pytest.LogCaptureFixture
) -> None:
    server = HubServer()
    with ExitStack() as readers, serving(server):
        task = server.submit(CreateTask("One"))
        for _ in range(2):
            sock = readers.enter_context(server.connect(4_096))
            sock.sendall(server.request_head("GET", "/v1/stream"))
            assert sock.recv(1)
        # Unread data of the readers is little, or more than the sockets hold.
        server.submit(*(NoteTask(task, "x" * 2_000) for _ in range(count)))
        with follow_stream(server, f"?after={server.store.head() - 1}") as other:
            assert other.next() is not None
    assert caplog.text == ""


def test_pipelined_requests_are_answered_in_order(server: HubServer) -> None:
    with server.connect() as sock:
        last = server.request_head("GET", "/v1/tasks", "Connection: close")
        sock.sendall(server.request_head("GET", "/v1/tasks") * 2 + last)
        assert sock.makefile("rb").read().count(b"HTTP/1.1 200 OK") == 3


@pytest.mark.parametrize("is_tls", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_readers_that_reset_under_load_leave_nothing_behind(
    seed: int, is_tls: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cert = str(make_certificate(tmp_path)) if is_tls else ""
    http = HttpSettings(port=0, rate_per_second=0, tls_cert=cert, tls_key=cert)
    tls_context = ssl.create_default_context(cafile=cert) if is_tls else None
    has_ended = threading.Event()
    with serving(HubServer(http=http)) as server, ThreadPoolExecutor() as executor:
        task = server.submit(CreateTask("One"))
        writer = executor.submit(_write, server, task, Random(seed), has_ended)
        readers = [
            executor.submit(_read_and_reset, server, tls_context, Random(f"{seed} {number}"))
            for number in range(4)
        ]
        try:
            for reader in readers:
                reader.result()
        finally:
            has_ended.set()
        writer.result()
        assert _is_forgotten(server, task, tls_context), f"seed {seed}"
    assert caplog.text == "", f"seed {seed}"


def _write(server: HubServer, task: str, rng: Random, has_ended: threading.Event) -> None:
    while not has_ended.is_set():
        server.submit(*(NoteTask(task, "x" * rng.randrange(1, 3_000)) for _ in range(5)))


def _read_and_reset(server: HubServer, tls_context: ssl.SSLContext | None, rng: Random) -> None:
    for _ in range(15):
        with _connect(server, tls_context, rng.choice([0, 4_096])) as sock:
            pipelined = server.request_head("GET", "/v1/tasks") * rng.randrange(3)
            sock.sendall(
                server.request_head("GET", f"/v1/stream{rng.choice(['', '?after=0'])}") + pipelined
            )
            for _ in range(rng.randrange(4)):
                sock.recv(rng.randrange(1, 20_000))


@proves("HTTP-WAIT")
@pytest.mark.parametrize("is_blocked", [True, False])
def test_half_close_ends_a_long_poll(server: HubServer, is_blocked: bool) -> None:
    body = b'{"wait_ms":60000}'
    body_headers = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    with server.connect() as sock:
        sock.sendall(server.request_head("POST", "/v1/work", *body_headers, by="ada") + body)
        if is_blocked:
            wait_for_waiters(server, 1)
        sock.shutdown(socket.SHUT_WR)
        assert sock.makefile("rb").read()[:13] in (b"", b"HTTP/1.1 204 ")
        wait_for_waiters(server, 0)
        task = server.submit(CreateTask("One", ready=True))
        assert server.get(f"/v1/tasks/{task}")["status"] == "ready"


class BlockedStore(MemoryStore):
    """Store that blocks reads of tasks until it may continue, so that a client can disconnect."""

    def __init__(self) -> None:
        super().__init__("snared")
        self.may_continue = threading.Event()

    def stream(self, name: str) -> StreamRow | None:
        if name.startswith(task_stream("")):
            self.may_continue.wait()
        return super().stream(name)


@proves("HTTP-WAIT")
def test_task_claimed_for_half_closed_client_is_released() -> None:
    store = BlockedStore()
    with serving(HubServer(store)) as server:
        task = server.submit(CreateTask("One", ready=True))
        before = store.head()
        body = b'{"agent":"zed","wait_ms":3000}'
        body_headers = ("Content-Type: application/json", f"Content-Length: {len(body)}")
        with server.connect() as sock:
            sock.sendall(server.request_head("POST", "/v1/work", *body_headers) + body)
            while store.head() == before:
                server.request("GET", "/healthz", by="")
            sock.shutdown(socket.SHUT_WR)
            assert sock.makefile("rb").read() == b""
        store.may_continue.set()
        assert any(server.get(f"/v1/tasks/{task}")["status"] == "ready" for _ in range(1_000))

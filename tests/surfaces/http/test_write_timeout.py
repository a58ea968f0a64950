"""Write timeout: clients that do not read their response are cut off."""

import select
import socket
from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic

import pytest

from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.surfaces.http import Timeouts
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, serving

pytestmark = proves("HTTP-TAKING")

NOTE_COUNT = 120
NOTE_LENGTH = 60_000
WITHIN_MS = 30_000


@contextmanager
def _large_response(write_stall: float, path: str) -> Generator[tuple[HubServer, socket.socket]]:
    """Request several megabytes over a connection with a small receive buffer."""
    with (
        serving(HubServer(timeouts=Timeouts(write_stall=write_stall))) as server,
        server.connect(4_096) as sock,
    ):
        task = server.submit(CreateTask("One"))
        server.submit(*(NoteTask(task, "x" * NOTE_LENGTH) for _ in range(NOTE_COUNT)))
        sock.sendall(server.request_head("GET", path, "Connection: close"))
        yield server, sock


def _is_cut(sock: socket.socket, within_ms: int) -> bool:
    """Report whether the server closes the connection, though nothing is read."""
    poll = select.poll()
    poll.register(sock, 0)
    return bool(poll.poll(within_ms))


@pytest.mark.parametrize(
    "path",
    ["/v1/events?limit=1000", "/v1/tasks/TASK-2026-02-09-001/events", "/v1/stream?after=0"],
)
def test_client_that_reads_nothing_is_cut_off(path: str) -> None:
    with _large_response(0.1, path) as (server, sock):
        assert _is_cut(sock, WITHIN_MS)
        assert server.request("GET", "/healthz").status == 200


def test_slow_client_gets_the_whole_response() -> None:
    with _large_response(1.0, "/v1/events?limit=1000") as (server, sock):
        started_at, size = monotonic(), 0
        while part := sock.recv(8_192):
            size += len(part)
            if monotonic() - started_at < 1.5:
                assert server.request("GET", "/healthz").status == 200
        assert size > NOTE_COUNT * NOTE_LENGTH

"""Callers that ask, and then do not take the answer: it is not kept for them for ever."""

import select
import socket
from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic

import pytest

from dragoman.core.commands import CreateTask, NoteTask
from dragoman.surfaces.http import Patience
from tests.requirements import proves
from tests.surfaces.http.house import House, serving

pytestmark = proves("HTTP-TAKING")

NOTES = 120
LONG = 60_000
IN_TIME_MS = 30_000


@contextmanager
def _asking(taking: float, path: str) -> Generator[tuple[House, socket.socket]]:
    """Somebody who has asked for several megabytes, and has room for very little of it."""
    with serving(House(patience=Patience(taking=taking))) as house, house.dial(4_096) as line:
        task = house.do(CreateTask("One"))
        house.do(*(NoteTask(task, "x" * LONG) for _ in range(NOTES)))
        line.sendall(house.head("GET", path, "Connection: close"))
        yield house, line


def _is_cut(line: socket.socket, within_ms: int) -> bool:
    """Whether the server ends the connection, though nothing is read of it."""
    watch = select.poll()
    watch.register(line, 0)
    return bool(watch.poll(within_ms))


@pytest.mark.parametrize("path", ["/v1/events?limit=1000", "/v1/tasks/TASK-2026-02-09-001/events"])
def test_whoever_takes_nothing_of_its_answer_is_cut_off(path: str) -> None:
    with _asking(0.1, path) as (house, line):
        assert _is_cut(line, IN_TIME_MS)
        assert house.ask("GET", "/healthz").status == 200


def test_whoever_takes_its_answer_slowly_gets_all_of_it() -> None:
    with _asking(1.0, "/v1/events?limit=1000") as (house, line):
        begun, size = monotonic(), 0
        while part := line.recv(8_192):
            size += len(part)
            if monotonic() - begun < 1.5:
                assert house.ask("GET", "/healthz").status == 200
        assert size > NOTES * LONG


def test_the_reader_of_a_stream_may_take_its_time() -> None:
    with _asking(0.05, "/v1/stream?after=0") as (_, line):
        assert line.recv(1)
        assert not _is_cut(line, 500)

"""A hub as people start it, `dragoman up`: what it costs while nothing happens, and how soon a task
that comes in over HTTP has its agent running."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from threading import Event
from time import perf_counter
from urllib.parse import urlsplit

from msgspec import Struct

_TICKS = os.sysconf("SC_CLK_TCK")
_CPU = slice(11, 13)
"""Fields of /proc/PID/stat behind the name with a program's ticks: its own, the kernel's."""
_START_SECONDS = 3.0
"""After so long a hub that was started is idle."""
_READY_LOOK_SECONDS = 0.02
_IDLE_LOOK_SECONDS = 0.25
"""Whoever takes no tick of a core in this time is idle."""

IDLE_SHARE = 0.01
IDLE_BYTES = 120_000_000
"""Limits of an idle hub: share of a core, and memory."""


class Hub(Struct, frozen=True):
    """A hub in a process of its own."""

    pid: int
    url: str
    token: str

    def cpu_seconds(self) -> float:
        """Processor time so far, in seconds."""
        return _cpu_ticks(self.pid) / _TICKS

    def memory(self) -> int:
        """Resident memory in bytes."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[_CPU]))


def until_idle(pid: int) -> None:
    """Wait until a process has nothing to do."""
    before = -1
    while (now := _cpu_ticks(pid)) != before:
        before = now
        Event().wait(_IDLE_LOOK_SECONDS)


@contextmanager
def started(folder: Path) -> Generator[Hub]:
    """Start one; its settings, if any, lie in the folder."""
    words = ["-m", "dragoman", "--data", str(folder), "up", "--port", "0", "--json"]
    with subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        try:
            url = json.loads(process.stdout.readline())["url"]
            yield Hub(process.pid, url, (folder / "token").read_text().strip())
        finally:
            process.terminate()


def idle_seconds(folder: Path, seconds: float) -> float:
    """Idle seconds for each second of processor time."""
    with started(folder) as hub:
        Event().wait(_START_SECONDS)
        before, begun = hub.cpu_seconds(), perf_counter()
        Event().wait(seconds)
        taken = perf_counter() - begun
        return taken / max(hub.cpu_seconds() - before, 1 / _TICKS)


def idle_in_a_gigabyte(folder: Path, _: float) -> float:
    """Idle hubs that fit into a gigabyte of memory."""
    with started(folder) as hub:
        Event().wait(_START_SECONDS)
        return 1e9 / hub.memory()


class Caller:
    """One connection to a hub."""

    def __init__(self, hub: Hub) -> None:
        address = urlsplit(hub.url)
        self._line = HTTPConnection(address.hostname or "", address.port)
        self._headers = {
            "Authorization": f"Bearer {hub.token}",
            "Content-Type": "application/json",
        }

    def make_ready(self) -> None:
        """Make a task that is ready."""
        status, body_read = self._request("POST", "/v1/tasks", b'{"title":"one","ready":true}')
        assert status == HTTPStatus.CREATED, body_read

    def look(self) -> None:
        """Read the newest page of tasks."""
        status, body_read = self._request("GET", "/v1/tasks")
        assert status == HTTPStatus.OK, body_read

    def until_ready(self) -> None:
        """Ask until the hub says that all is well with it."""
        while self._request("GET", "/readyz")[0] != HTTPStatus.OK:
            Event().wait(_READY_LOOK_SECONDS)

    def _request(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        self._line.request(method, path, body, self._headers)
        answer = self._line.getresponse()
        return answer.status, answer.read()

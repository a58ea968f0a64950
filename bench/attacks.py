"""Load that means harm: what an honest caller waits before it and during it, and the hub's memory.

`uv run python -m bench.attacks` starts a hub of its own for each case and prints one line for it.
"""

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

from msgspec import Struct

_MIB = 1 << 20
_CALLERS = ("eve", "mal", "oda", "pip")
"""Agents that attack together."""
_PAUSE_S = 0.005
"""Between two requests of the honest caller."""


class Hub(Struct, frozen=True):
    """A hub that runs, and the tokens of its agents."""

    port: int
    pid: int
    tokens: Mapping[str, str]

    def memory_mib(self) -> float:
        """Resident memory of its process."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / _MIB


class Waits(Struct, frozen=True):
    """Waits of an honest caller, in milliseconds."""

    count: int
    refused: int
    p50: float
    p99: float
    most: float


class Reading(Struct, frozen=True):
    """Waits before and during an attack, and the memory of the hub before, at most and after."""

    before: Waits
    during: Waits
    memory: tuple[float, float, float]


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


# --- attacks ----------------------------------------------------------------------------------


def _post(hub: Hub, by: str, path: str, body: bytes, media: str = "application/json") -> None:
    """Send a request and read its answer, whatever becomes of it."""
    connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=60)
    headers = {"Content-Type": media, "Accept": "application/json, text/event-stream"}
    headers |= {"Authorization": f"Bearer {hub.tokens[by]}"} if by else {}
    with suppress(OSError, http.client.HTTPException):
        connection.request("POST", path, body, headers)
        connection.getresponse().read()
    connection.close()


def nodes(hub: Hub, number: int) -> None:
    """Send six million empty lists to MCP."""
    body = b"[" + b"[]," * 5_999_999 + b"[]]"
    while True:
        _post(hub, _CALLERS[number % 4], "/mcp", body)


def open_bodies(hub: Hub, number: int) -> None:
    """Send large bodies without a token."""
    del number
    while True:
        _post(hub, "", "/v1/signed", b'{"envelope":"' + b"x" * 23 * _MIB)


def bodies(hub: Hub, number: int) -> None:
    """Send large bodies with one token."""
    del number
    while True:
        _post(hub, "eve", "/v1/tasks", b'{"title":"' + b"x" * 23 * _MIB)


def slow_bodies(hub: Hub, number: int) -> None:
    """Announce bodies of the largest size, of four callers, and send hardly any of them."""
    while True:
        head = (
            f"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:{hub.port}\r\n"
            f"Authorization: Bearer {hub.tokens[_CALLERS[number % 4]]}\r\n"
            f"Content-Type: application/x-ndjson\r\nContent-Length: {24 * _MIB}\r\n\r\n"
        )
        with suppress(OSError), socket.create_connection(("127.0.0.1", hub.port), 60) as sock:
            sock.sendall(head.encode())
            while True:
                sock.sendall(b"\n")
                _pause(0.5)


def junk_batches(hub: Hub, number: int) -> None:
    """Send batches of lines that are no messages."""
    body = b'{"protocol":"aof","version":1,"type":"x"\n' * 100_000
    while True:
        _post(hub, _CALLERS[number % 4], "/v1/messages", body, "application/x-ndjson")


def deaf_readers(hub: Hub, number: int) -> None:
    """Open streams from the beginning, and read nothing."""
    head = (
        f"GET /v1/stream?after=0 HTTP/1.1\r\nHost: 127.0.0.1:{hub.port}\r\n"
        f"Authorization: Bearer {hub.tokens[_CALLERS[number % 4]]}\r\n\r\n"
    )
    with suppress(OSError), socket.create_connection(("127.0.0.1", hub.port), 60) as sock:
        sock.sendall(head.encode())
        _pause(3_600)


def half_heads(hub: Hub, number: int) -> None:
    """Open connections, and send a byte of a head now and then."""
    del number
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", hub.port), 60) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n")
            while True:
                sock.sendall(b"x")
                _pause(1)


CASES: Mapping[str, tuple[Callable[[Hub, int], None], int]] = {
    "six million nodes to /mcp": (nodes, 4),
    "bodies of 23 MB to /v1/signed": (open_bodies, 16),
    "bodies of 23 MB to /v1/tasks": (bodies, 16),
    "slow bodies of four callers": (slow_bodies, 8),
    "batches of junk": (junk_batches, 4),
    "readers that read nothing": (deaf_readers, 200),
    "heads that do not end": (half_heads, 200),
}
"""Case -> the attack, and in how many threads it is made."""


# --- measuring --------------------------------------------------------------------------------


@contextmanager
def served() -> Generator[Hub]:
    """Start a hub with its agents, in processes of its own."""
    with tempfile.TemporaryDirectory() as folder:
        program = (sys.executable, "-m", "dragoman", "--data", f"{folder}/hub")

        def ask(*args: str) -> dict[str, str]:
            done = subprocess.run((*program, *args, "--json"), capture_output=True, check=True)
            return json.loads(done.stdout)

        tokens = {name: ask("agent", "add", name)["token"] for name in ("ann", *_CALLERS)}
        ask("task", "create", "x", "--id", "T")
        command = (*program, "up", "--port", "0", "--json")
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            started = json.loads(process.stdout.readline())
            try:
                yield Hub(int(started["url"].rpartition(":")[2]), process.pid, tokens)
            finally:
                process.terminate()


def waits_of(hub: Hub, seconds: float) -> Waits:
    """Have an honest caller write remarks for so long."""
    taken, refused, end = list[float](), 0, perf_counter() + seconds
    headers = {"Authorization": f"Bearer {hub.tokens['ann']}", "Content-Type": "application/json"}
    while perf_counter() < end or not taken:
        began = perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=60)
        connection.request("POST", "/v1/tasks/T/note", b'{"text":"x"}', headers)
        refused += connection.getresponse().status != 200
        connection.close()
        taken.append(1e3 * (perf_counter() - began))
        _pause(_PAUSE_S)
    taken.sort()
    p50, p99 = (taken[int(share * (len(taken) - 1))] for share in (0.5, 0.99))
    return Waits(len(taken), refused, p50, p99, taken[-1])


def attack(case: str, hub: Hub) -> None:
    """Attack a hub from this process, until it is ended."""
    make, threads = CASES[case]
    for number in range(threads):
        threading.Thread(target=make, args=(hub, number), daemon=True).start()
    _pause(3_600)


def measure(case: str, seconds: float) -> Reading:
    """Measure one case with a hub of its own."""
    most = 0.0
    with served() as hub:
        before, at_first = waits_of(hub, seconds), hub.memory_mib()
        is_over = threading.Event()

        def watch() -> None:
            nonlocal most
            while not is_over.wait(0.05):
                most = max(most, hub.memory_mib())

        watcher = threading.Thread(target=watch)
        attacker = get_context("spawn").Process(target=attack, args=(case, hub))
        watcher.start()
        attacker.start()
        try:
            during = waits_of(hub, seconds)
        finally:
            attacker.kill()
            attacker.join()
            is_over.set()
            watcher.join()
        waits_of(hub, seconds)
        return Reading(before, during, (at_first, max(most, at_first), hub.memory_mib()))


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each part of a case")
    parser.add_argument("--only", default="", choices=["", *CASES])
    options = parser.parse_args()
    print(f"{'case':32} {'p99 before':>10} {'during':>9} {'most':>9} {'refused':>8}  MiB")
    for case in [options.only] if options.only else CASES:
        reading = measure(case, options.seconds)
        before, during = reading.before, reading.during
        memory = " → ".join(f"{one:.0f}" for one in reading.memory)
        print(
            f"{case:32} {before.p99:7.1f} ms {during.p99:6.1f} ms {during.most:6.0f} ms"
            f" {during.refused:4}/{during.count:<4} {memory}",
            flush=True,
        )


if __name__ == "__main__":
    main()

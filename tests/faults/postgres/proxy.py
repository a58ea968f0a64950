"""Proxy to a real PostgreSQL that cuts connections at bytes chosen by a seed."""

import random
import select
import socket
import struct
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct
from psycopg.conninfo import conninfo_to_dict

CutManner = Literal["close", "reset", "late", "stall"]
"""Close; reset (RST); close, and deliver the unsent bytes later; fall silent."""
Flow = Literal["asked", "answered"]
CutAfter = Literal["begin", "commit"]

_COMMIT = b"\0commit\0"
"""Call of the statement of that name over the wire."""
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER without time: a close that sends a RST."""
_LONGEST: dict[tuple[CutAfter, Flow], int] = {
    ("commit", "asked"): 6_000,
    ("commit", "answered"): 200,
    ("begin", "asked"): 12_000,
    ("begin", "answered"): 2_000,
}
"""About as many bytes as a committing exchange, or the start of a connection, has."""


class Cut(Struct, frozen=True):
    """Position of a cut: so many bytes of one flow after a moment."""

    manner: CutManner
    since: CutAfter
    flow: Flow
    offset: int


def plan_cuts(seed: int, *, stalls: int = 0) -> Iterator[Cut]:
    """Endless cuts, three of four in the middle of a commit; so many of the first 99 stall."""
    rng = random.Random(seed)
    stalled = set(rng.sample(range(99), stalls))
    for n in range(1 << 62):
        since: CutAfter = rng.choice(("commit", "commit", "commit", "begin"))
        flow: Flow = rng.choice(get_args(Flow))
        manner: CutManner = rng.choice(("close", "reset", "late"))
        offset = rng.randrange(_LONGEST[since, flow])
        yield Cut("stall" if n in stalled else manner, since, flow, offset)


class Proxy:
    """Forwards all bytes; each connection lives until its cut, if one is left."""

    def __init__(self, target: Path, planned: Iterator[Cut]) -> None:
        self._target = target
        self._planned = planned
        self._unused: list[Cut] = []
        """Cuts of connections that ended before."""
        self._lock = threading.Lock()
        self._delayed: list[tuple[socket.socket, bytes]] = []
        self.made: list[Cut] = []
        """Cuts made so far."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no further connections."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._deliver_late()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        with self._lock:
            cut = self._unused.pop() if self._unused else next(self._planned, None)
        try:
            server.connect(str(self._target))
            unsent = _forward(client, server, cut)
        except OSError:
            unsent = None
        if cut is not None:
            with self._lock:
                (self._unused if unsent is None else self.made).append(cut)
        if cut is not None and unsent is not None:
            self._cut_connection(cut, client, server, unsent)
        else:
            client.close()
            server.close()

    def _cut_connection(
        self, cut: Cut, client: socket.socket, server: socket.socket, unsent: bytes
    ) -> None:
        if cut.manner == "stall":
            _read_silently(client)
        if cut.manner == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        if cut.manner == "late" and cut.flow == "asked":
            with self._lock:
                self._delayed.append((server, unsent))
        else:
            server.close()
        client.close()

    def _deliver_late(self) -> None:
        """Deliver delayed bytes when their sender has given up and connects again."""
        with self._lock:
            delayed, self._delayed = self._delayed, []
        for server, unsent in delayed:
            with server, suppress(OSError):
                server.sendall(unsent)


def _forward(client: socket.socket, server: socket.socket, cut: Cut | None) -> bytes | None:
    """Forward until the cut; returns the bytes that were not forwarded, or None if one side closed
    before."""
    bytes_left = cut.offset if cut is not None and cut.since == "begin" else None
    while True:
        readable, _, _ = select.select([client, server], [], [])
        for side in readable:
            data = side.recv(65_536)
            if not data:
                return None
            is_from_client = side is client
            if cut is not None and bytes_left is None and is_from_client and _COMMIT in data:
                bytes_left = cut.offset
            if (
                cut is not None
                and bytes_left is not None
                and is_from_client == (cut.flow == "asked")
            ):
                if len(data) > bytes_left:
                    (server if is_from_client else client).sendall(data[:bytes_left])
                    return data[bytes_left:]
                bytes_left -= len(data)
            (server if is_from_client else client).sendall(data)


def _read_silently(client: socket.socket) -> None:
    """Read until the other side times out."""
    with suppress(OSError):
        while client.recv(65_536):
            pass


@contextmanager
def run_proxy(server_url: str, planned: Iterator[Cut]) -> Generator[Proxy]:
    """Start a proxy to the server of this URL, which listens on a socket in a folder."""
    folder = conninfo_to_dict(server_url.partition("&schema=")[0])["host"]
    proxy = Proxy(Path(str(folder)) / ".s.PGSQL.5432", planned)
    try:
        yield proxy
    finally:
        proxy.close()


def proxy_url(proxy: Proxy, schema: str) -> str:
    """URL of a store behind the proxy."""
    address = f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres"
    return f"{address}?schema={schema}&connect_timeout=2&sslmode=disable&gssencmode=disable"

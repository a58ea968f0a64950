"""The raw limit: hand-written group-commit loops over apsw that write lines of the same size.

64 asyncio callers, one writer thread, uvloop, synchronous=FULL. Six steps make a lifecycle: create,
claim, heartbeat (one unchained row), complete, review, done (one chained entry and one state row
each). A message is one chained entry; a handoff is as many entries and states as ours. They decide
nothing, check nothing, write no key row and keep no index.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from hashlib import sha256
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

import apsw
import msgspec
from msgspec import Struct

from dragoman.store.sqlite.apsw_types import Connection, open_database

_SCHEMA = """
CREATE TABLE entries(position INTEGER PRIMARY KEY, stream INTEGER, line BLOB, hash BLOB);
CREATE TABLE states(stream INTEGER PRIMARY KEY, state BLOB);
CREATE TABLE leases(stream INTEGER PRIMARY KEY, expires INTEGER);
"""

_STATE = b"." * 320
"""As long as the state of an ordinary task."""

STEPS = ("created", "claimed", "beat", "completed", "review", "done")


class Rows(Struct):
    """Rows of a batch of steps, table by table."""

    entries: list[tuple[int, int, bytes, bytes]] = []
    states: dict[int, bytes] = {}
    leases: dict[int, int] = {}


class Steps:
    """Makes rows of steps: entries chained by SHA-256, a state for each, a lease for a beat."""

    def __init__(self) -> None:
        self._hashes: dict[int, bytes] = {}
        self._position = 0

    def rows(self, batch: list[tuple[int, int]]) -> Rows:
        """Those of (stream, step) pairs."""
        rows = Rows()
        for stream, step in batch:
            name = STEPS[step]
            if name == "beat":
                rows.leases[stream] = step
                continue
            self._position += 1
            line = msgspec.json.encode(
                {
                    "stream": f"task:TASK-2026-02-09-{stream:08d}",
                    "version": step,
                    "event": name,
                    "v": 1,
                    "at": 1_770_670_500_000,
                    "actor": "agent:swe-backend",
                    "cause": "019c4d3a-0000-7000-8000-000000000000",
                    "body": {"id": stream, "title": "a task of ordinary length", "status": name},
                }
            )
            digest = sha256(self._hashes.get(stream, b"") + line).digest()
            self._hashes[stream] = digest
            rows.entries.append((self._position, stream, line, digest))
            rows.states[stream] = _STATE
        return rows


class RawLoop:
    """The writer: one transaction for all who wait."""

    def __init__(self, path: Path) -> None:
        self._db = _open(path)
        self._steps = Steps()

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def write(self, batch: list[tuple[int, int]]) -> None:
        """One transaction for (stream, step) pairs."""
        rows = self._steps.rows(batch)
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT INTO entries VALUES(?,?,?,?)", rows.entries)
        self._db.executemany("INSERT OR REPLACE INTO states VALUES(?,?)", rows.states.items())
        self._db.executemany("INSERT OR REPLACE INTO leases VALUES(?,?)", rows.leases.items())
        self._db.execute("COMMIT")


class Written(Struct, frozen=True):
    """One entry to write: of which stream, what it says, and the state that it leaves behind."""

    stream: int
    line: Mapping[str, Any]
    state: bytes


class RawStreams:
    """The writer of entries of many streams, each with its state row; one transaction for all."""

    def __init__(self, path: Path) -> None:
        self._db = _open(path)
        self._hashes: dict[int, bytes] = {}
        self._position = 0

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def write(self, batch: list[list[Written]]) -> None:
        """One transaction for what several callers have handed in."""
        entries: list[tuple[int, int, bytes, bytes]] = []
        states: dict[int, bytes] = {}
        for one in chain.from_iterable(batch):
            self._position += 1
            line = msgspec.json.encode(one.line)
            digest = sha256(self._hashes.get(one.stream, b"") + line).digest()
            self._hashes[one.stream] = digest
            entries.append((self._position, one.stream, line, digest))
            states[one.stream] = one.state
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT INTO entries VALUES(?,?,?,?)", entries)
        self._db.executemany("INSERT OR REPLACE INTO states VALUES(?,?)", states.items())
        self._db.execute("COMMIT")


class RawLog:
    """The writer of messages: each one a line of one chain, one transaction for all who wait."""

    def __init__(self, path: Path) -> None:
        self._db = _open(path)
        self._hash = b""
        self._position = 0

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def write(self, batch: list[bytes]) -> None:
        """One transaction for these lines."""
        entries: list[tuple[int, int, bytes, bytes]] = []
        for line in batch:
            self._position += 1
            self._hash = sha256(self._hash + line).digest()
            entries.append((self._position, 0, line, self._hash))
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT INTO entries VALUES(?,?,?,?)", entries)
        self._db.execute("COMMIT")


def _open(path: Path) -> Connection:
    db = open_database(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    for pragma in ("journal_mode=WAL", "synchronous=FULL"):
        db.execute(f"PRAGMA {pragma}").fetchall()
    db.execute(_SCHEMA).fetchall()
    return db


T = TypeVar("T")


class RawFront(Generic[T]):
    """The asyncio side: callers wait for the commit that holds what they have handed in."""

    def __init__(self, write: Callable[[list[T]], None]) -> None:
        self._write_all = write
        self._loop = asyncio.get_running_loop()
        self._gathering: list[tuple[T, asyncio.Future[None]]] = []
        self._queue: SimpleQueue[list[tuple[T, asyncio.Future[None]]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the writer."""
        self._queue.put(None)
        self._thread.join()

    async def write(self, item: T) -> None:
        """Hand in one item; it is durable when this returns."""
        future: asyncio.Future[None] = self._loop.create_future()
        if not self._gathering:
            self._loop.call_soon(self._send)
        self._gathering.append((item, future))
        await future

    def _send(self) -> None:
        self._queue.put(self._gathering)
        self._gathering = []

    def _write(self) -> None:
        while (batch := self._queue.get()) is not None:
            self._write_all([item for item, _ in batch])
            self._loop.call_soon_threadsafe(_resolve, [future for _, future in batch])


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        future.set_result(None)

"""The raw limit: a hand-written group-commit loop over apsw that writes lines of the same size.

64 asyncio callers, one writer thread, uvloop, synchronous=FULL. Six steps make a lifecycle: create,
claim, heartbeat (one unchained row), complete, review, done (one chained entry and one state row
each). It decides nothing, checks nothing, writes no key row and keeps no index.
"""

import asyncio
import threading
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue

import apsw
import msgspec

from dragoman.store.sqlite.driver import open_database

_SCHEMA = """
CREATE TABLE entries(position INTEGER PRIMARY KEY, stream INTEGER, line BLOB, hash BLOB);
CREATE TABLE states(stream INTEGER PRIMARY KEY, state BLOB);
CREATE TABLE leases(stream INTEGER PRIMARY KEY, expires INTEGER);
"""

_STATE = b"." * 320
"""As long as the state of an ordinary task."""

STEPS = ("created", "claimed", "beat", "completed", "review", "done")


class RawLoop:
    """The writer: entries chained by SHA-256, one transaction for all who wait."""

    def __init__(self, path: Path) -> None:
        self._db = open_database(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        for pragma in ("journal_mode=WAL", "synchronous=FULL"):
            self._db.execute(f"PRAGMA {pragma}").fetchall()
        self._db.execute(_SCHEMA).fetchall()
        self._hashes: dict[int, bytes] = {}
        self._position = 0

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def write(self, batch: list[tuple[int, int]]) -> None:
        """One transaction for (stream, step) pairs."""
        entries: list[tuple[int, int, bytes, bytes]] = []
        states: dict[int, bytes] = {}
        leases: dict[int, int] = {}
        for stream, step in batch:
            name = STEPS[step]
            if name == "beat":
                leases[stream] = step
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
            entries.append((self._position, stream, line, digest))
            states[stream] = _STATE
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT INTO entries VALUES(?,?,?,?)", entries)
        self._db.executemany("INSERT OR REPLACE INTO states VALUES(?,?)", states.items())
        self._db.executemany("INSERT OR REPLACE INTO leases VALUES(?,?)", leases.items())
        self._db.execute("COMMIT")


Waiting = tuple[tuple[int, int], asyncio.Future[None]]


class RawFront:
    """The asyncio side: callers wait for the commit that holds their step."""

    def __init__(self, loop: RawLoop) -> None:
        self._raw = loop
        self._loop = asyncio.get_running_loop()
        self._gathering: list[Waiting] = []
        self._queue: SimpleQueue[list[Waiting] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the writer."""
        self._queue.put(None)
        self._thread.join()

    async def step(self, stream: int, step: int) -> None:
        """One durable step."""
        future: asyncio.Future[None] = self._loop.create_future()
        if not self._gathering:
            self._loop.call_soon(self._send)
        self._gathering.append(((stream, step), future))
        await future

    def _send(self) -> None:
        self._queue.put(self._gathering)
        self._gathering = []

    def _write(self) -> None:
        while (batch := self._queue.get()) is not None:
            self._raw.write([pair for pair, _ in batch])
            self._loop.call_soon_threadsafe(_resolve, batch)


def _resolve(batch: list[Waiting]) -> None:
    for _, future in batch:
        future.set_result(None)

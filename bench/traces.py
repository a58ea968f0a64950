"""Traces: messages checked beside zod on Node, and thoughts kept and told beside raw rows."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import apsw
import msgspec
import uvloop

from bench.callers import Call, drive
from bench.raw import RawFront
from dragoman.core.actor import Actor
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.queries.visibility import EntrySource
from dragoman.engine.request import Accepted
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.engine.subscribe import CommitHints
from dragoman.protocols import saop
from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.apsw_types import open_database
from dragoman.surfaces.http.fanout import Feed, TraceFilter
from dragoman.system.clock import SystemClock, new_id
from dragoman.system.redaction_carry_over_file import CarryOverFile
from dragoman.text.redact import Redactor

DEVELOPER = Actor("agent", "developer")
READERS: Final = 20
ZOD: Final = "zod@4"
_AT: Final = "2026-02-21T10:00:00.000Z"
_SESSIONS: Final = 8
_THOUGHT: Final = "so the token is read before it is refreshed, and "
ENDS: Final = {"at a word's end": "", "in a word": "refre"}
"""Ends of a chunk of a thought; one within a word may go on as a secret and is held back."""

_TURN_BYTES: Final = 2_300


def _turn() -> bytes:
    content = {"thought": "", "action": "Run the tests again.", "observation": "2 failed."}
    envelope: dict[str, Any] = {
        "turn_index": 7,
        "agent_id": "developer",
        "role": "developer",
        "content": content,
        "metadata": {
            "version": "1.0.0",
            "task_id": "task-abc-123",
            "timestamp": _AT,
            "confidence": 0.85,
            "estimated_complexity": "medium",
        },
    }
    room = _TURN_BYTES - len(msgspec.json.encode(envelope))
    content["thought"] = (_THOUGHT * (room // len(_THOUGHT) + 1))[:room]
    return msgspec.json.encode(envelope)


def _event(payload: dict[str, Any], number: int = 1) -> bytes:
    id = f"01890a5d-ac96-774b-bcce-{number:012x}"
    session = f"s-{number % _SESSIONS}"
    return msgspec.json.encode({"event_id": id, "session_id": session, "payload": payload})


_TOOL: Final = {
    "type": "TOOL_LIFECYCLE_INVOKED",
    "call_id": "call_8Zk2",
    "tool": "bash",
    "arguments": {"command": "uv run pytest tests/core -q", "timeout": 120, "env": {"CI": "1"}},
    "timestamp": _AT,
}


def _chunk(number: int = 0, end: str = "") -> dict[str, Any]:
    return {
        "type": "THOUGHT_STREAM",
        "agent_id": "developer",
        "turn_index": number % 1_000,
        "chunk": _THOUGHT + end,
        "is_final": False,
    }


MESSAGES: Final[dict[str, tuple[str, bytes]]] = {
    f"turn of {_TURN_BYTES:,} bytes": ("turn", _turn()),
    "tool event": ("event", _event(_TOOL)),
    "thought event": ("event", _event(_chunk())),
}
"""Name of the message -> its shape and its bytes."""


def checked(name: str, seconds: float) -> float:
    """Messages a second that become checked objects."""
    kind, text = MESSAGES[name]
    schema: Any = {"turn": saop.TurnEnvelopeSchema, "event": saop.EventSchema}[kind]
    parse: Callable[[bytes], object] = schema.parse
    start, done = perf_counter(), 0
    while (passed := perf_counter() - start) < seconds:
        for _ in range(100):
            parse(text)
        done += 100
    return done / passed


class Zod:
    """zod on Node, from npm, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.trouble = ""
        """Reason why it cannot be measured; empty: it can."""
        node, npm = shutil.which("node"), shutil.which("npm")
        if node is None or npm is None:
            self.trouble = "there is no node with npm on PATH"
            return
        self._node = node
        install = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix"]
        try:
            subprocess.run([*install, str(folder), ZOD], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            self.trouble = f"npm cannot install {ZOD}: {error}"

    def checked(self, name: str, seconds: float) -> float:
        """The same, by zod."""
        kind, text = MESSAGES[name]
        script = str(Path(__file__).with_name("zod.mjs"))
        home = str(self._folder / "package.json")
        words = [self._node, script, kind, str(seconds), home]
        done = subprocess.run(words, input=text, check=True, capture_output=True)
        return float(done.stdout)


def tell(trouble: str) -> None:
    """Say why something is not in the table."""
    sys.stderr.write(f"zod is not measured: {trouble}\n")


# Thoughts, kept and told

_SCHEMA = """
CREATE TABLE entries(position INTEGER PRIMARY KEY, stream INTEGER NOT NULL,
  version INTEGER NOT NULL, event TEXT NOT NULL, line BLOB NOT NULL, previous BLOB NOT NULL,
  hash BLOB NOT NULL, UNIQUE (stream, version));
CREATE TABLE logs(position INTEGER PRIMARY KEY, task TEXT NOT NULL, attempt INTEGER NOT NULL,
  turn_index INTEGER, event_id TEXT, digest TEXT NOT NULL, masked INTEGER NOT NULL);
CREATE UNIQUE INDEX logs_event ON logs (event_id);
CREATE INDEX logs_task ON logs (task);
CREATE TABLE answers(scope INTEGER NOT NULL, key TEXT NOT NULL, fingerprint BLOB NOT NULL,
  answer BLOB NOT NULL, PRIMARY KEY (scope, key)) WITHOUT ROWID;
"""


class _RawRows:
    """The rows that a thought becomes, without a look at it: entry, log, answer."""

    def __init__(self, path: Path) -> None:
        self._db = open_database(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        for pragma in ("journal_mode=WAL", "synchronous=FULL"):
            self._db.execute(f"PRAGMA {pragma}").fetchall()
        self._db.execute(_SCHEMA).fetchall()
        self._position = 0

    def write(self, batch: list[tuple[str, bytes]]) -> None:
        """One transaction for these events."""
        entries, logs, answers = list[Any](), list[Any](), list[Any]()
        for id, line in batch:
            self._position = at = self._position + 1
            entries.append((at, 1, at, "trace.recorded", line, _DIGEST, _DIGEST))
            logs.append((at, "task-abc-123", 1, None, id, _DIGEST.hex()[:32], 0))
            answers.append((1, id, _DIGEST[:16], _ANSWER))
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT INTO entries VALUES(?,?,?,?,?,?,?)", entries)
        self._db.executemany("INSERT INTO logs VALUES(?,?,?,?,?,?,?)", logs)
        self._db.executemany("INSERT INTO answers VALUES(?,?,?,?)", answers)
        self._db.execute("COMMIT")

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()


_DIGEST: Final = b"." * 32
_ANSWER: Final = b"." * 120
_LINE: Final = b"." * 640
"""As long as the line of a thought."""


def raw_rows(folder: Path, callers: int, seconds: float) -> float:
    """Thoughts a second of the hand-written loop."""

    @asynccontextmanager
    async def inserts() -> AsyncGenerator[Call]:
        rows = _RawRows(folder / "raw.db")
        front = RawFront(rows.write)
        numbers = count()
        yield lambda: front.write((f"01890a5d-ac96-774b-bcce-{next(numbers):012x}", _LINE))
        front.close()
        rows.close()

    return uvloop.run(drive(inserts(), callers, seconds))


def ingested(folder: Path, callers: int, seconds: float, end: str = "") -> float:
    """Thoughts a second that were checked, masked, committed and sent to twenty readers.

    What is held back of one with this `end` is kept as the hub keeps it: synced, in a file.
    """
    hints = CommitHints()
    store = SqliteStore.open(folder / "dragoman.db", new_id)
    hub = Hub(Engine(store, SystemClock(), b"bench" * 6, on_commit=hints.notify), new_id)
    feed = Feed(EntrySource(store, {}), hints, hub.engine.recent_entries, poll_interval=0.5)
    facts = StoreFacts(store, lambda _task, _ref: False)
    tails = CarryOverFile(folder / "carry-over", b"bench" * 6, perf_counter)
    choices = saop.Choices(redactor=Redactor(key=b"bench"), digest=hub.content_key, tails=tails)
    router = Router(hub, (saop.dialect(choices),), facts)
    events = _events(end)

    async def send() -> None:
        answer = await router.call_async("saop.event", next(events), DEVELOPER)
        assert isinstance(answer, Accepted), answer

    @asynccontextmanager
    async def sends() -> AsyncGenerator[Call]:
        has_ended = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for _ in range(READERS):
                group.create_task(_read(feed, store, has_ended))
            yield send
            has_ended.set()

    try:
        return uvloop.run(drive(sends(), callers, seconds))
    finally:
        hub.close()


def _events(end: str) -> Iterator[bytes]:
    for number in count():
        yield _event(_chunk(number, end), number)


async def _read(feed: Feed, store: SqliteStore, has_ended: asyncio.Event) -> None:
    """Take everything as fast as it comes, up to what was committed at the end."""
    everything, position = TraceFilter(), 0
    async with feed.open_waiter(traces=True) as waiter:
        position = feed.head
        while not has_ended.is_set() or position < store.head():
            if position >= feed.head:
                await waiter.wait(0.1)
                continue
            chunk = feed.next_chunk(position, everything)
            position = (
                (await feed.read_older(position, everything))[1]
                if chunk is None
                else chunk.position
            )
            await asyncio.sleep(0)

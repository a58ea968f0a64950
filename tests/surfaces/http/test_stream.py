"""Stream of the ledger: each entry once and in order, from any position; cheap slow readers."""

import asyncio
import resource
import threading
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from dragoman.core.agent import RevokeToken
from dragoman.core.errors import StoreUnavailable
from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.engine.auth import CACHE_TTL_MS
from dragoman.engine.queries.visibility import EntrySource
from dragoman.engine.subscribe import CommitHints, RecentEntries
from dragoman.ledger.entry import Entry
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore
from dragoman.surfaces.http import Timeouts
from dragoman.surfaces.http.fanout import (
    KEPT_FRAMES,
    MAX_WOKEN,
    MAX_WRITE_BYTES,
    EntryFilter,
    Feed,
    encode_frame,
)
from dragoman.surfaces.http.limits import MAX_STREAMS
from tests.requirements import proves
from tests.surfaces.http.hub_server import DAY_MS, HubServer, serving
from tests.surfaces.http.reader import follow_stream

STALLED = 2_000
MEMORY_PER_READER = 128 * 1024
"""Memory that a stalled reader may cost: its pending write, the next one, and both ends of its
connection."""


def _add_notes(server: HubServer, task: str, count: int, text: str = "note") -> None:
    server.submit(*(NoteTask(task, f"{text} {number}") for number in range(count)))


@proves("HTTP-STREAM")
def test_stream_sends_new_entries(server: HubServer) -> None:
    task = server.submit(CreateTask("Before"))
    with follow_stream(server) as reader:
        assert (reader.status, reader.headers["cache-control"]) == (200, "no-store")
        assert reader.headers["content-type"].startswith("text/event-stream")
        assert reader.frame() is not None
        _add_notes(server, task, 3)
        events = reader.take(3)
    assert [event.event for event in events] == ["task.noted"] * 3
    assert [event.data["body"]["text"] for event in events] == ["note 0", "note 1", "note 2"]
    assert [int(event.id) for event in events] == [event.data["position"] for event in events]
    assert server.get("/v1/events?type=task.noted")["events"] == [event.data for event in events]


class _CountingStore(MemoryStore):
    """Store that counts the entries read from it."""

    entries_read = 0

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        page = super().entries(after, limit, until=until)
        self.entries_read += len(page)
        return page


@proves("HTTP-STREAM")
@pytest.mark.parametrize(("length", "max_read"), [(20, 500), (MAX_WRITE_BYTES // 4, 100)])
def test_read_of_old_entries_is_bounded(length: int, max_read: int) -> None:
    store = _CountingStore("house")
    server = HubServer(store)
    _add_notes(server, server.submit(CreateTask("One")), 600, "x" * length)
    feed, store.entries_read = (
        Feed(EntrySource(store, {}), CommitHints(), RecentEntries(), poll_interval=1.0),
        0,
    )
    data, position = asyncio.run(feed.read_older(0, EntryFilter()))
    assert data.count(b"\n\n") == position
    assert 0 < len(data) <= MAX_WRITE_BYTES
    assert store.entries_read <= max_read


@proves("HTTP-STREAM")
def test_replay_from_any_position_is_complete_without_duplicates(server: HubServer) -> None:
    task = server.submit(CreateTask("One"))
    _add_notes(server, task, 40)
    head = server.store.head()
    for after in (0, 1, 17, head - 1):
        with follow_stream(server, "", f"Last-Event-ID: {after}") as reader:
            _add_notes(server, task, 5)
            now = server.store.head()
            assert reader.positions(now - after) == list(range(after + 1, now + 1))
    with follow_stream(server, f"?after={head}") as reader:
        assert reader.positions(3) == [head + 1, head + 2, head + 3]


@proves("HTTP-STREAM")
def test_reconnecting_reader_gets_each_entry_once(server: HubServer) -> None:
    task = server.submit(CreateTask("One"))
    first = server.store.head()
    writer = threading.Thread(target=lambda: [_add_notes(server, task, 7) for _ in range(60)])
    writer.start()
    positions: list[int] = []
    last = first
    while len(positions) < 420:
        with follow_stream(server, "", f"Last-Event-ID: {last}") as reader:
            positions += reader.positions(min(50, 420 - len(positions)))
            last = positions[-1]
    writer.join()
    assert positions == list(range(first + 1, first + 421))


@proves("HTTP-STREAM")
def test_stream_is_filtered(server: HubServer) -> None:
    first_task, second_task = (
        server.submit(CreateTask("One", ready=True)),
        server.submit(CreateTask("Two", ready=True)),
    )
    after = f"after={server.store.head()}"
    server.post(f"/v1/tasks/{first_task}/claim", {}, by="ada")
    server.post(f"/v1/tasks/{second_task}/note", {"text": "Hm."}, by="bob")
    server.add_agent("cleo")
    server.post(f"/v1/tasks/{second_task}/move", {"to": "blocked"})

    def types_for(query: str, count: int) -> list[str]:
        with follow_stream(server, f"?{after}&{query}") as reader:
            return [event.event for event in reader.take(count)]

    assert types_for(f"task={first_task}", 1) == ["task.claimed"]
    assert types_for(f"task={second_task}", 2) == ["task.noted", "task.transitioned"]
    assert types_for("type=task.noted", 1) == ["task.noted"]
    assert types_for("type=agent", 1) == ["agent.registered"]
    assert types_for("agent=bob", 1) == ["task.noted"]
    assert types_for("dialect=aof", 4) == [
        "task.claimed",
        "task.noted",
        "agent.registered",
        "task.transitioned",
    ]
    for wrong in ("type=x", "task=nothing", "dialect=latin", "after=x"):
        assert server.request("GET", f"/v1/stream?{wrong}").status in (400, 404)
    bad = server.request("GET", "/v1/stream", headers={"Last-Event-ID": "x"})
    assert (bad.status, bad.code, bad.json["path"]) == (400, "invalid_request", "Last-Event-ID")


@proves("HTTP-STREAM")
def test_quiet_stream_sends_keepalives() -> None:
    with (
        serving(HubServer(timeouts=Timeouts(keepalive=0.01))) as server,
        follow_stream(server) as reader,
    ):
        comments = [reader.next(with_comments=True) for _ in range(3)]
    assert [event.comment for event in comments if event] == ["still here"] * 3


@proves("HTTP-STREAM")
def test_stream_reports_position_while_skipping_filtered_entries() -> None:
    calls = count()
    with serving(HubServer(monotonic=lambda: min(next(calls), 50) * 100.0)) as server:
        task = server.submit(CreateTask("One"))
        _add_notes(server, task, 1_200)
        with follow_stream(server, "?after=0&type=task.claimed") as reader:
            positions: list[int] = []
            while not positions or positions[-1] < server.store.head():
                frame = reader.frame()
                assert frame is not None
                assert not frame.event
                positions += [int(frame.id)] if frame.id else []
    # A reader that reconnects goes on from there, and does not skip all of it once more.
    assert len(positions) > 1
    assert positions == sorted(positions)


@proves("HTTP-STREAM")
def test_filtered_stream_sends_keepalives_under_load() -> None:
    with serving(HubServer(timeouts=Timeouts(keepalive=0.05))) as server:
        task = server.submit(CreateTask("One"))
        with follow_stream(server, "?type=task.claimed") as reader:
            has_ended = threading.Event()

            def write() -> None:
                while not has_ended.is_set():
                    _add_notes(server, task, 1)

            writer = threading.Thread(target=write)
            writer.start()
            keepalives = [reader.next(with_comments=True) for _ in range(3)]
            has_ended.set()
            writer.join()
    assert [keepalive.comment for keepalive in keepalives if keepalive] == ["still here"] * 3


@proves("HTTP-STREAM")
def test_position_beyond_the_end_gets_a_gap_event(server: HubServer) -> None:
    task = server.submit(CreateTask("Of a restored backup"))
    head = server.store.head()
    with follow_stream(server, "", "Last-Event-ID: 5000") as reader:
        (gap,) = reader.take(1)
        assert (gap.event, gap.id, gap.data) == ("gap", f"{head}", {"after": 5000, "until": head})
        _add_notes(server, task, 2)
        assert reader.positions(2) == [head + 1, head + 2]


class FailingOnceStore(MemoryStore):
    """Store that can be made to fail once when its head is read."""

    fails = False

    def head(self) -> int:
        if self.fails:
            self.fails = False
            raise StoreUnavailable("the line was cut")
        return super().head()


@proves("HTTP-STREAM")
def test_store_error_fails_the_first_reader_only() -> None:
    store = FailingOnceStore("faulty")
    with serving(HubServer(store)) as server:
        store.fails = True
        failed = server.request("GET", "/v1/stream")
        assert (failed.status, failed.code) == (503, "store_unavailable")
        with follow_stream(server) as reader:
            server.submit(CreateTask("One"))
            assert reader.take(1)[0].event == "task.created"


def _revoke_token(server: HubServer) -> None:
    server.submit(RevokeToken("ada"))


def _expire_token(server: HubServer) -> None:
    server.clock.advance(DAY_MS)


@proves("HTTP-STAYS")
@pytest.mark.parametrize("end_token", [_revoke_token, _expire_token])
def test_stream_ends_with_its_token(end_token: Callable[[HubServer], None]) -> None:
    with serving(HubServer(timeouts=Timeouts(token_check=0.02))) as server:
        server.add_agent("ada")
        with follow_stream(server, by="ada") as ada, follow_stream(server) as owner:
            task = server.submit(CreateTask("Before"))
            assert ada.take(1)[0].data["body"]["id"] == task
            end_token(server)
            while (event := ada.next()) is not None:
                assert event.event != "task.noted"
            _add_notes(server, task, 1)
            while owner.take(1)[0].event != "task.noted":
                continue


@proves("HTTP-STAYS")
def test_stream_ends_when_another_process_revokes_its_token() -> None:
    server = HubServer(timeouts=Timeouts(token_check=0.02), is_hinted=False)
    server.add_agent("ada")
    with serving(server), follow_stream(server, by="ada") as ada:
        _revoke_token(server)
        server.clock.advance(CACHE_TTL_MS)
        while ada.next() is not None:
            continue
        assert server.request("GET", "/v1/tasks", by="ada").code == "token_revoked"


@proves("HTTP-STAYS")
def test_streams_and_long_polls_per_caller_are_limited(server: HubServer) -> None:
    with ExitStack() as stack:
        for _ in range(MAX_STREAMS):
            stack.enter_context(follow_stream(server, by="ada"))
        for request in (("GET", "/v1/stream"), ("GET", "/v1/events?wait=60000&after=1000")):
            response = server.request(*request, by="ada")
            assert (response.status, response.code) == (429, "too_many_waiting")
        assert (
            server.request("POST", "/v1/work", {"wait_ms": 9}, by="ada").code == "too_many_waiting"
        )
        assert server.request("GET", "/v1/tasks", by="ada").status == 200
        # Other callers are not limited, nor is the owner.
        for name in ("bob", "owner"):
            with follow_stream(server, by=name) as reader:
                assert reader.status == 200
    while server.app.context.feed.waiter_count:
        server.request("GET", "/healthz", by="")
    with follow_stream(server, by="ada") as reader:
        assert reader.status == 200


@proves("HTTP-STREAM")
def test_entries_of_another_process_are_found_without_a_hint() -> None:
    server = HubServer(timeouts=Timeouts(poll_interval=0.01), is_hinted=False)
    with serving(server), follow_stream(server) as reader:
        server.submit(CreateTask("One"))
        assert reader.take(1)[0].event == "task.created"


@proves("HTTP-STREAM-SLOW")
def test_lagging_reader_gets_a_gap_event() -> None:
    with serving(HubServer(timeouts=Timeouts(max_lag=100))) as server:
        task = server.submit(CreateTask("One"))
        with follow_stream(server, buffer=4096) as reader:
            position, gaps = server.store.head(), 0
            # 30 MB: more than the connection of a stalled reader can hold.
            for _ in range(60):
                _add_notes(server, task, 50, "x" * 10_000)
            while position < server.store.head():
                event = reader.take(1)[0]
                if event.event == "gap":
                    assert event.data["after"] == position
                    assert int(event.id) == event.data["until"]
                    position, gaps = event.data["until"], gaps + 1
                else:
                    position += 1
                    assert event.data["position"] == position
        assert gaps >= 1
        assert (
            f"dragoman_stream_gaps_total {gaps}" in server.request("GET", "/metrics").body.decode()
        )


@proves("HTTP-STREAM")
def test_reader_of_old_entries_gets_all_of_them() -> None:
    with serving(HubServer(timeouts=Timeouts(max_lag=10))) as server:
        task = server.submit(CreateTask("One"))
        _add_notes(server, task, 1_200)
        with follow_stream(server, "?after=0") as reader:
            assert reader.positions(1_201) == list(range(1, 1_202))


@proves("HTTP-STREAM-SLOW")
def test_many_readers_each_get_all_entries_in_order(server: HubServer) -> None:
    task = server.submit(CreateTask("One"))
    first = server.store.head()
    with ExitStack() as stack:
        readers = [stack.enter_context(follow_stream(server)) for _ in range(MAX_WOKEN + 10)]
        # Several writes for each reader, one per turn.
        for _ in range(4):
            _add_notes(server, task, 15, "x" * 2_000)
        for reader in readers:
            assert reader.positions(60) == list(range(first + 1, first + 61))


@proves("HTTP-STREAM-SLOW")
def test_stalled_readers_cost_bounded_memory_and_block_no_one(tmp_path: Path) -> None:
    max_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max_files, max_files))
    store = SqliteStore.open(tmp_path / "dragoman.db", lambda: "stream")
    with serving(HubServer(store)) as server, ExitStack() as stack:
        task = server.submit(CreateTask("One"))
        _add_notes(server, task, 200, "y" * 1_000)
        for number in range(STALLED):
            # Most were caught up once; some began in the past, and are stalled there.
            query = "" if number % 20 else "?after=0"
            stack.enter_context(follow_stream(server, query, buffer=4096))
        before = _resident()
        with follow_stream(server) as reader:
            first = server.store.head()
            for _ in range(10):
                _add_notes(server, task, 500, "z" * 1_000)
                # A reader gets everything while the others are stalled.
                assert reader.positions(500) == list(range(first + 1, first + 501))
                first += 500
        assert server.app.context.metrics.readers >= STALLED
        shared = (2 * KEPT_FRAMES * 1_600) + 16 * 1024 * 1024
        assert _resident() - before < STALLED * MEMORY_PER_READER + shared
        assert server.request("GET", "/v1/tasks").status == 200


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@proves("HTTP-STREAM-SLOW")
def test_one_write_is_bounded_but_for_a_single_long_entry(server: HubServer) -> None:
    task = server.submit(CreateTask("One"))
    server.submit(
        NoteTask(task, "€" * (MAX_WRITE_BYTES // 3)),
        NoteTask(task, "y"),
        *(NoteTask(task, "z" * (MAX_WRITE_BYTES // 5)),) * 5,
    )
    start = server.store.head() - 7
    entries = [encode_frame(entry) for entry in server.store.entries(start, 10)]
    feed = Feed(EntrySource(server.store, {}), CommitHints(), RecentEntries(), poll_interval=1.0)
    data, position = asyncio.run(feed.read_older(start, EntryFilter()))
    assert (data, position) == (entries[0].data, start + 1)
    data, position = asyncio.run(feed.read_older(position, EntryFilter()))
    assert len(data) <= MAX_WRITE_BYTES
    assert data == b"".join(entry.data for entry in entries[1 : position - start])


@proves("HTTP-STREAM")
def test_waiter_closes_with_its_stream(server: HubServer) -> None:
    with follow_stream(server):
        assert server.app.context.feed.waiter_count == 1
    server.get("/v1/tasks")
    # The server notices a disconnect in its own time; some requests later it has.
    for _ in range(1_000):
        if not server.app.context.feed.waiter_count:
            break
        server.get("/v1/tasks")
    assert server.app.context.feed.waiter_count == 0


@proves("HTTP-STOP")
def test_stopping_hub_closes_its_streams() -> None:
    server = HubServer()
    with serving(server):
        with follow_stream(server) as reader:
            assert reader.status == 200
            thread = threading.Thread(target=server.app.close)
            thread.start()
            thread.join()
            assert reader.next() is None
        response = server.request("GET", "/v1/stream")
        assert (response.status, response.code) == (503, "stopping")
        assert response.headers["retry-after"] == "1"
        assert server.request("GET", "/v1/tasks").status == 200

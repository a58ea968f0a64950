"""The stream: every entry once and in order, from any position; slow readers cost little."""

import asyncio
import resource
import threading
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from dragoman.core.commands import CreateTask, NoteTask, RevokeToken
from dragoman.core.errors import StoreUnavailable
from dragoman.engine.hints import Hints
from dragoman.engine.tail import Tail
from dragoman.ledger.entry import Entry
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore
from dragoman.surfaces.http import Patience
from dragoman.surfaces.http.feed import EVERYTHING, KEPT, MOST_BYTES, Feed, Filter, frame, join
from dragoman.surfaces.http.stays import MOST_STAYS
from dragoman.surfaces.http.turns import FEW
from tests.requirements import proves
from tests.surfaces.http.house import A_DAY, House, serving
from tests.surfaces.http.reader import reading

STALLED = 2_000
A_READER_S_SHARE = 128 * 1024
"""The memory that a reader which does not read may cost: a write that it has not taken, the next
one, which waits for it, and what a connection costs anyway, at both of its ends."""


def _note(house: House, task: str, count: int, text: str = "note") -> None:
    house.do(*(NoteTask(task, f"{text} {number}") for number in range(count)))


@proves("HTTP-STREAM")
def test_a_reader_is_told_what_happens_from_now_on(house: House) -> None:
    task = house.do(CreateTask("Before"))
    with reading(house) as reader:
        assert (reader.status, reader.headers["cache-control"]) == (200, "no-store")
        assert reader.headers["content-type"].startswith("text/event-stream")
        assert reader.frame() is not None
        _note(house, task, 3)
        events = reader.take(3)
    assert [event.event for event in events] == ["task.noted"] * 3
    assert [event.data["body"]["text"] for event in events] == ["note 0", "note 1", "note 2"]
    assert [int(event.id) for event in events] == [event.data["position"] for event in events]
    assert house.get("/v1/events?type=task.noted")["events"] == [event.data for event in events]


class _Counting(MemoryStore):
    """Counts the entries that are read from it."""

    read = 0

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        found = super().entries(after, limit, until=until)
        self.read += len(found)
        return found


@proves("HTTP-STREAM")
@pytest.mark.parametrize(("length", "most_read"), [(20, 500), (MOST_BYTES // 4, 100)])
def test_of_what_is_old_no_more_is_read_than_goes_out_soon(length: int, most_read: int) -> None:
    store = _Counting("house")
    house = House(store)
    _note(house, house.do(CreateTask("One")), 600, "x" * length)
    feed, store.read = Feed(store, Hints(), Tail(), look=1.0), 0
    data, reached = asyncio.run(feed.older(0, EVERYTHING))
    assert data.count(b"\n\n") == reached
    assert 0 < len(data) <= MOST_BYTES
    assert store.read <= most_read


@proves("HTTP-STREAM")
def test_replay_from_any_position_misses_and_doubles_nothing(house: House) -> None:
    task = house.do(CreateTask("One"))
    _note(house, task, 40)
    head = house.store.head()
    for after in (0, 1, 17, head - 1):
        with reading(house, "", f"Last-Event-ID: {after}") as reader:
            _note(house, task, 5)
            now = house.store.head()
            assert reader.positions(now - after) == list(range(after + 1, now + 1))
    with reading(house, f"?after={head}") as reader:
        assert reader.positions(3) == [head + 1, head + 2, head + 3]


@proves("HTTP-STREAM")
def test_a_reader_that_comes_again_and_again_sees_everything_once(house: House) -> None:
    task = house.do(CreateTask("One"))
    first = house.store.head()
    writer = threading.Thread(target=lambda: [_note(house, task, 7) for _ in range(60)])
    writer.start()
    seen: list[int] = []
    last = first
    while len(seen) < 420:
        with reading(house, "", f"Last-Event-ID: {last}") as reader:
            seen += reader.positions(min(50, 420 - len(seen)))
            last = seen[-1]
    writer.join()
    assert seen == list(range(first + 1, first + 421))


@proves("HTTP-STREAM")
def test_only_what_is_wanted_is_told(house: House) -> None:
    one, two = house.do(CreateTask("One", ready=True)), house.do(CreateTask("Two", ready=True))
    after = f"after={house.store.head()}"
    house.post(f"/v1/tasks/{one}/claim", {}, by="ada")
    house.post(f"/v1/tasks/{two}/note", {"text": "Hm."}, by="bob")
    house.welcome("cleo")
    house.post(f"/v1/tasks/{two}/move", {"to": "blocked"})

    def told(query: str, count: int) -> list[str]:
        with reading(house, f"?{after}&{query}") as reader:
            return [event.event for event in reader.take(count)]

    assert told(f"task={one}", 1) == ["task.claimed"]
    assert told(f"task={two}", 2) == ["task.noted", "task.transitioned"]
    assert told("type=task.noted", 1) == ["task.noted"]
    assert told("type=agent", 1) == ["agent.registered"]
    assert told("agent=bob", 1) == ["task.noted"]
    assert told("dialect=aof", 4) == [
        "task.claimed",
        "task.noted",
        "agent.registered",
        "task.transitioned",
    ]
    for wrong in ("type=x", "task=nothing", "dialect=latin", "after=x"):
        assert house.ask("GET", f"/v1/stream?{wrong}").status in (400, 404)
    bad = house.ask("GET", "/v1/stream", headers={"Last-Event-ID": "x"})
    assert (bad.status, bad.code, bad.json["path"]) == (400, "invalid_request", "Last-Event-ID")


@proves("HTTP-STREAM")
def test_a_quiet_stream_shows_that_it_lives() -> None:
    with serving(House(patience=Patience(beat=0.01))) as house, reading(house) as reader:
        comments = [reader.next(with_comments=True) for _ in range(3)]
    assert [event.comment for event in comments if event] == ["still here"] * 3


@proves("HTTP-STREAM")
def test_a_stream_that_looks_through_what_is_not_wanted_shows_how_far_it_is() -> None:
    calls = count()
    with serving(House(monotonic=lambda: min(next(calls), 50) * 100.0)) as house:
        task = house.do(CreateTask("One"))
        _note(house, task, 1_200)
        with reading(house, "?after=0&type=task.claimed") as reader:
            places: list[int] = []
            while not places or places[-1] < house.store.head():
                frame = reader.frame()
                assert frame is not None
                assert not frame.event
                places += [int(frame.id)] if frame.id else []
    # Whoever comes again goes on from there, and does not look through all of it once more.
    assert len(places) > 1
    assert places == sorted(places)


@proves("HTTP-STREAM")
def test_a_live_stream_shows_that_it_lives_while_others_are_told_things() -> None:
    with serving(House(patience=Patience(beat=0.05))) as house:
        task = house.do(CreateTask("One"))
        with reading(house, "?type=task.claimed") as reader:
            end = threading.Event()

            def write() -> None:
                while not end.is_set():
                    _note(house, task, 1)

            writer = threading.Thread(target=write)
            writer.start()
            beats = [reader.next(with_comments=True) for _ in range(3)]
            end.set()
            writer.join()
    assert [beat.comment for beat in beats if beat] == ["still here"] * 3


@proves("HTTP-STREAM")
def test_a_position_beyond_the_end_is_brought_back_to_it_and_told(house: House) -> None:
    task = house.do(CreateTask("Of a restored backup"))
    head = house.store.head()
    with reading(house, "", "Last-Event-ID: 5000") as reader:
        (gap,) = reader.take(1)
        assert (gap.event, gap.id, gap.data) == ("gap", f"{head}", {"after": 5000, "until": head})
        _note(house, task, 2)
        assert reader.positions(2) == [head + 1, head + 2]


class FaultyOnce(MemoryStore):
    """A store that can be told to fail once when it is asked for its end."""

    fails = False

    def head(self) -> int:
        if self.fails:
            self.fails = False
            raise StoreUnavailable("the line was cut")
        return super().head()


@proves("HTTP-STREAM")
def test_a_fault_when_the_first_reader_comes_is_told_and_is_over_with_the_next() -> None:
    store = FaultyOnce("faulty")
    with serving(House(store)) as house:
        store.fails = True
        failed = house.ask("GET", "/v1/stream")
        assert (failed.status, failed.code) == (503, "store_unavailable")
        with reading(house) as reader:
            house.do(CreateTask("One"))
            assert reader.take(1)[0].event == "task.created"


def _revoked(house: House) -> None:
    house.do(RevokeToken("ada"))


def _expired(house: House) -> None:
    house.clock.advance(A_DAY)


@proves("HTTP-STAYS")
@pytest.mark.parametrize(("ending", "look"), [(_revoked, 600.0), (_expired, 0.02)])
def test_a_stream_ends_with_its_token(ending: Callable[[House], None], look: float) -> None:
    with serving(House(patience=Patience(token=look))) as house:
        house.welcome("ada")
        with reading(house, by="ada") as ada, reading(house) as owner:
            task = house.do(CreateTask("Before"))
            assert ada.take(1)[0].data["body"]["id"] == task
            ending(house)
            while (event := ada.next()) is not None:
                assert event.event != "task.noted"
            _note(house, task, 1)
            while owner.take(1)[0].event != "task.noted":
                continue


@proves("HTTP-STAYS")
def test_a_stream_ends_when_another_process_takes_its_token_back() -> None:
    house = House(patience=Patience(look=0.01, token=600.0), is_hinted=False)
    house.welcome("ada")
    with serving(house), reading(house, by="ada") as ada:
        _revoked(house)
        while ada.next() is not None:
            continue
        assert house.ask("GET", "/v1/tasks", by="ada").code == "token_revoked"


@proves("HTTP-STAYS")
def test_one_caller_cannot_take_the_streams_and_waits_of_all(house: House) -> None:
    with ExitStack() as open_ones:
        for _ in range(MOST_STAYS):
            open_ones.enter_context(reading(house, by="ada"))
        for asked in (("GET", "/v1/stream"), ("GET", "/v1/events?wait=60000&after=1000")):
            answer = house.ask(*asked, by="ada")
            assert (answer.status, answer.code) == (429, "too_many_waiting")
        assert house.ask("POST", "/v1/work", {"wait_ms": 9}, by="ada").code == "too_many_waiting"
        assert house.ask("GET", "/v1/tasks", by="ada").status == 200
        # Others are not concerned, nor is the person whose machine it is.
        for name in ("bob", "owner"):
            with reading(house, by=name) as reader:
                assert reader.status == 200
    while house.app.office.feed.seats:
        house.ask("GET", "/healthz", by="")
    with reading(house, by="ada") as reader:
        assert reader.status == 200


@proves("HTTP-STREAM")
def test_what_another_process_has_written_is_seen_without_a_hint() -> None:
    house = House(patience=Patience(look=0.01), is_hinted=False)
    with serving(house), reading(house) as reader:
        house.do(CreateTask("One"))
        assert reader.take(1)[0].event == "task.created"


@proves("HTTP-STREAM-SLOW")
def test_a_reader_that_is_too_far_behind_is_told_what_it_misses() -> None:
    with serving(House(patience=Patience(behind=100))) as house:
        task = house.do(CreateTask("One"))
        with reading(house, buffer=4096) as reader:
            seen, gaps = house.store.head(), 0
            # 30 MB: more than the connection of a reader that does not read can hold.
            for _ in range(60):
                _note(house, task, 50, "x" * 10_000)
            while seen < house.store.head():
                event = reader.take(1)[0]
                if event.event == "gap":
                    assert event.data["after"] == seen
                    assert int(event.id) == event.data["until"]
                    seen, gaps = event.data["until"], gaps + 1
                else:
                    seen += 1
                    assert event.data["position"] == seen
        assert gaps >= 1
        assert f"dragoman_stream_gaps_total {gaps}" in house.ask("GET", "/metrics").body.decode()


@proves("HTTP-STREAM")
def test_whoever_asks_for_the_past_gets_all_of_it_however_far_behind() -> None:
    with serving(House(patience=Patience(behind=10))) as house:
        task = house.do(CreateTask("One"))
        _note(house, task, 1_200)
        with reading(house, "?after=0") as reader:
            assert reader.positions(1_201) == list(range(1, 1_202))


@proves("HTTP-STREAM-SLOW")
def test_each_of_a_crowd_that_reads_sees_everything_in_order(house: House) -> None:
    task = house.do(CreateTask("One"))
    first = house.store.head()
    with ExitStack() as open_ones:
        crowd = [open_ones.enter_context(reading(house)) for _ in range(FEW + 10)]
        # Several writes for each of them, of which it has one in a turn.
        for _ in range(4):
            _note(house, task, 15, "x" * 2_000)
        for reader in crowd:
            assert reader.positions(60) == list(range(first + 1, first + 61))


@proves("HTTP-STREAM-SLOW")
def test_readers_that_do_not_read_cost_little_and_slow_nobody(tmp_path: Path) -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    store = SqliteStore.open(tmp_path / "dragoman.db", lambda: "stream")
    with serving(House(store)) as house, ExitStack() as stalled:
        task = house.do(CreateTask("One"))
        _note(house, task, 200, "y" * 1_000)
        for number in range(STALLED):
            # Most of them were level once; some have begun with the past, and stand still there.
            query = "" if number % 20 else "?after=0"
            stalled.enter_context(reading(house, query, buffer=4096))
        before = _resident()
        with reading(house) as reader:
            first = house.store.head()
            for _ in range(10):
                _note(house, task, 500, "z" * 1_000)
                # Whoever reads gets everything while the others stand still.
                assert reader.positions(500) == list(range(first + 1, first + 501))
                first += 500
        assert house.app.office.metrics.readers >= STALLED
        kept = (2 * KEPT * 1_600) + 16 * 1024 * 1024
        assert _resident() - before < STALLED * A_READER_S_SHARE + kept
        assert house.ask("GET", "/v1/tasks").status == 200


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@proves("HTTP-STREAM-SLOW")
def test_one_write_is_bounded_and_a_long_entry_goes_alone(house: House) -> None:
    task = house.do(CreateTask("One"))
    house.do(
        NoteTask(task, "€" * (MOST_BYTES // 3)),
        NoteTask(task, "y"),
        *(NoteTask(task, "z" * (MOST_BYTES // 5)),) * 5,
    )
    entries = [frame(entry) for entry in house.store.entries(house.store.head() - 7, 10)]
    start = entries[0].position - 1
    data, at = join(entries, Filter(), start)
    assert (data, at) == (entries[0].data, start + 1)
    data, at = join(entries[1:], Filter(), at)
    assert len(data) <= MOST_BYTES
    assert data == b"".join(one.data for one in entries[1 : at - start])


@proves("HTTP-STREAM")
def test_nobody_follows_the_ledger_when_nobody_listens(house: House) -> None:
    with reading(house):
        assert house.app.office.feed.seats == 1
    house.get("/v1/tasks")
    # The server notices the end of a connection in its own time; a request later it has.
    for _ in range(1_000):
        if not house.app.office.feed.seats:
            break
        house.get("/v1/tasks")
    assert house.app.office.feed.seats == 0


@proves("HTTP-STOP")
def test_a_hub_that_stops_sends_its_readers_away() -> None:
    house = House()
    with serving(house):
        with reading(house) as reader:
            assert reader.status == 200
            thread = threading.Thread(target=house.app.close)
            thread.start()
            thread.join()
            assert reader.next() is None
        answer = house.ask("GET", "/v1/stream")
        assert (answer.status, answer.code) == (503, "stopping")
        assert answer.headers["retry-after"] == "1"
        assert house.ask("GET", "/v1/tasks").status == 200

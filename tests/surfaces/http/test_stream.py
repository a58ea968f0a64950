"""The stream: every entry once and in order, from any position; slow readers cost little."""

import os
import resource
import threading
from contextlib import ExitStack
from pathlib import Path

from dragoman.core.commands import CreateTask, NoteTask
from dragoman.store.sqlite import SqliteStore
from dragoman.surfaces.http import Patience
from dragoman.surfaces.http.feed import KEPT, MOST_BYTES, Filter, frame, join
from tests.conftest import LONG_RUN
from tests.requirements import proves
from tests.surfaces.http.house import House, serving
from tests.surfaces.http.reader import reading

STALLED = 2_000 if os.environ.get(LONG_RUN) else 200
A_READER_S_SHARE = 160 * 1024
"""The memory that a reader which does not read may cost: what it was sent and has not taken, twice
(once on its way out, once while it is put together), and what a connection costs anyway."""


def _note(house: House, task: str, count: int, text: str = "note") -> None:
    house.do(*(NoteTask(task, f"{text} {number}") for number in range(count)))


@proves("HTTP-STREAM")
def test_a_reader_is_told_what_happens_from_now_on(house: House) -> None:
    task = house.do(CreateTask("Before"))
    with reading(house) as reader:
        assert (reader.status, reader.headers["cache-control"]) == (200, "no-store")
        assert reader.headers["content-type"].startswith("text/event-stream")
        assert reader.next(with_comments=True) is not None
        _note(house, task, 3)
        events = reader.take(3)
    assert [event.event for event in events] == ["task.noted"] * 3
    assert [event.data["body"]["text"] for event in events] == ["note 0", "note 1", "note 2"]
    assert [int(event.id) for event in events] == [event.data["position"] for event in events]
    assert house.get("/v1/events?type=task.noted")["events"] == [event.data for event in events]


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
    assert (bad.status, bad.code) == (400, "invalid_request")


@proves("HTTP-STREAM")
def test_a_quiet_stream_shows_that_it_lives() -> None:
    with serving(House(patience=Patience(beat=0.01))) as house, reading(house) as reader:
        comments = [reader.next(with_comments=True) for _ in range(3)]
    assert [event.comment for event in comments if event] == ["still here"] * 3


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
def test_readers_that_do_not_read_cost_little_and_slow_nobody(tmp_path: Path) -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    store = SqliteStore.open(tmp_path / "dragoman.db", lambda: "stream")
    with serving(House(store)) as house, ExitStack() as stalled:
        task = house.do(CreateTask("One"))
        _note(house, task, 200, "y" * 1_000)
        for _ in range(STALLED):
            stalled.enter_context(reading(house, "?after=0", buffer=4096))
        before = _resident()
        with reading(house) as reader:
            first = house.store.head()
            for _ in range(20):
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
    house.do(NoteTask(task, "x" * 60_000), NoteTask(task, "y"), *(NoteTask(task, "z" * 9_000),) * 5)
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
            thread = threading.Thread(target=house.app.close)
            thread.start()
            thread.join()
        assert reader.status == 200
        answer = house.ask("GET", "/v1/stream")
        assert (answer.status, answer.code) == (503, "stopping")
        assert answer.headers["retry-after"] == "1"
        assert house.ask("GET", "/v1/tasks").status == 200

"""Turns and traces over HTTP: told, read back, and followed live in their own form."""

import json
import re
from pathlib import Path
from typing import Any

import apsw
import pytest

from dragoman.core.actors import Actor
from dragoman.core.commands import ClaimTask, CreateTask, RecordTrace
from dragoman.engine.reads.traces import events_of
from dragoman.store.sqlite import SqliteStore
from tests.protocols.saop.hub import SECRET, event, invoked, pulse, thought, transition, turn
from tests.requirements import proves
from tests.store.sqlite.disk import failing_disk
from tests.surfaces.http.house import House, serving
from tests.surfaces.http.reader import reading

pytestmark = proves("SAOP-HTTP")

LINES = {"Content-Type": "application/x-ndjson"}


def say(house: House, operation: str, message: dict[str, object]) -> None:
    """The developer says something."""
    answer = house.ask("POST", f"/v1/saop/{operation}", message, by="developer")
    assert answer.status == 200, answer
    assert answer.json["reply"]["ok"] if "reply" in answer.json else answer.json["ok"]


def test_turns_and_traces_are_read_back(house: House) -> None:
    house.welcome("developer")
    for index in (1, 0, 3):
        say(house, "saop.turn", turn(index))
    say(house, "saop.event", event(1, invoked("c-1")))
    page = house.get("/v1/tasks/task-abc-123/turns")
    some = house.get("/v1/tasks/task-abc-123/turns?attempt=1&after=0&limit=1")
    trace = house.get("/v1/tasks/task-abc-123/trace")

    assert [one["envelope"]["turn_index"] for one in page["turns"]] == [0, 1, 3]
    assert (page["gaps"], page["more"]) == ([2], False)
    assert page["missing"] == [{"attempt": 1, "first": 2, "last": 2}]
    assert {(one["attempt"], one["by"], one["beside"]) for one in page["turns"]} == {(1, "", None)}
    assert [one["envelope"]["turn_index"] for one in some["turns"]] == [1]
    assert [one["event"]["payload"]["type"] for one in trace["events"]] == [
        "TASK_TRANSITION",
        "TOOL_LIFECYCLE_INVOKED",
    ]
    rest = house.get(f"/v1/tasks/task-abc-123/trace?after={trace['next']}&session=s-1")
    assert rest["events"] == []
    assert house.ask("GET", "/v1/tasks/nothing/turns").status == 404


def test_the_chunks_of_a_batch_share_their_transactions(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.welcome("developer")
    begun, transact = list[int](), house.store.transact

    def counted(work: Any) -> Any:
        begun.append(house.store.head())
        return transact(work)

    monkeypatch.setattr(house.store, "transact", counted)
    whole = f"it is {SECRET}, and more of it " * 5
    pieces = [thought(whole[at : at + 3]) for at in range(0, len(whole), 3)]
    lines = [json.dumps(event(number, one)).encode() for number, one in enumerate(pieces)]
    answer = house.ask("POST", "/v1/messages", b"\n".join(lines), by="developer", headers=LINES)
    assert all(json.loads(line)["ok"] for line in answer.body.splitlines())
    assert len(begun) < len(lines) / 3
    told = events_of(house.store, session="s-1").events
    said = "".join(one.event["payload"]["chunk"] for one in told)
    assert re.fullmatch(r"(it is \[REDACTED:github_token:\w+\], and more of it ){5}", said)


def test_the_stream_tells_traces_live_and_from_any_position(house: House) -> None:
    house.welcome("developer")
    say(house, "saop.turn", turn(0))
    with reading(house, "?form=trace&after=0&task=task-abc-123") as reader:
        assert reader.headers["content-type"].startswith("text/event-stream")
        assert reader.take(1)[0].data["payload"]["to_state"] == "in-progress"
        say(house, "saop.event", event(1, thought("I think ")))
        say(house, "saop.event", event(2, transition("blocked")))
        live = reader.take(2)
    assert [one.event for one in live] == ["THOUGHT_STREAM", "TASK_TRANSITION"]
    assert live[0].data["payload"]["chunk"] == "I think "
    again = f"Last-Event-ID: {live[0].id}"
    with reading(house, "?form=trace&type=TASK_TRANSITION", again) as reader:
        assert reader.take(1)[0].id == live[1].id
    with reading(house, "?form=trace&session=s-2&after=0") as reader:
        say(house, "saop.event", event(3, pulse("over there"), "s-2"))
        assert reader.take(1)[0].data["payload"]["line"] == "over there"


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("form=trace&agent=ada", "agent"),
        ("form=trace&dialect=aof", "dialect"),
        ("session=s-1", "session"),
    ],
)
def test_a_filter_of_the_other_form_is_refused_by_name(house: House, query: str, name: str) -> None:
    answer = house.ask("GET", f"/v1/stream?{query}")
    problem = json.loads(answer.body)
    assert (answer.status, problem["code"], problem["path"]) == (400, "invalid_request", name)
    assert f"has no filter '{name}'" in problem["detail"]


def test_a_move_is_told_in_the_session_that_asked_for_it_and_in_that_of_the_work(
    house: House,
) -> None:
    house.welcome("developer")
    house.do(CreateTask("One", id="task-abc-123", ready=True))
    house.do(ClaimTask("task-abc-123", "developer", "work"))
    say(house, "saop.event", event(1, transition("blocked"), "asker"))
    found = house.post("/v1/saop/saop.events", {"session_id": "asker"})["events"]
    of_task = house.get("/v1/tasks/task-abc-123/trace?session=asker")["events"]
    with reading(house, "?form=trace&session=asker&after=0") as reader:
        (move,) = reader.take(1)
    with reading(house, "?form=trace&session=work&after=0") as reader:
        _, left = reader.take(2)
    assert [one["position"] for one in found] == [one["position"] for one in of_task]
    assert [int(move.id), int(left.id)] == [found[0]["position"]] * 2
    assert (move.data["session_id"], move.data["payload"]["to_state"]) == ("work", "blocked")


def test_a_reader_who_is_sent_away_is_told_his_cursor(house: House) -> None:
    house.welcome("developer")
    with reading(house, "?form=trace") as reader:
        house.app.office.bus.close()
        last = reader.take(1)[0]
    assert last.event == "closed"
    assert int(last.id) == house.store.head()


def calls(house: House, numbers: range, size: int = 80_000) -> None:
    """Tools are called, with much to say."""
    commands = [
        RecordTrace(
            event_id=said["event_id"],
            session="s-1",
            kind="TOOL_LIFECYCLE_INVOKED",
            envelope=said,
            digest=f"{number}",
            call=f"c-{number}",
        )
        for number in numbers
        for said in [event(number, invoked(f"c-{number}", text="x" * size))]
    ]
    house.do(*commands, actor=Actor("agent", "developer"))


@proves("SAOP-STALLED")
def test_a_socket_that_stops_reading_is_cut_without_harm_to_others(house: House) -> None:
    house.welcome("developer")
    query = "?form=trace&session=s-1"
    with reading(house, query, buffer=4096) as stalled, reading(house, query) as other:
        first = house.store.head()
        for begin in range(0, 280, 20):
            calls(house, range(begin, begin + 20))
            # Who reads gets all of it in order, and the door answers, while one stands still.
            assert [one.data["payload"]["call_id"] for one in other.take(20)] == [
                f"c-{number}" for number in range(begin, begin + 20)
            ]
        assert house.get("/v1/tasks")["tasks"] == []
        *seen, last = iter(stalled.next, None)
    assert (last.event, {one.event for one in seen}) == ("closed", {"TOOL_LIFECYCLE_INVOKED"})
    positions = [int(one.id) for one in seen]
    assert positions == [*range(first + 1, first + 1 + len(seen))]
    assert len(seen) < 280
    with reading(house, query, f"Last-Event-ID: {last.id}") as again:
        rest = again.take(280 - len(seen))
    assert [int(one.id) for one in rest] == [*range(positions[-1] + 1, first + 281)]


@proves("SAOP-FULL")
def test_a_disk_that_is_full_while_a_trace_is_told_loses_nothing_that_was_answered(
    tmp_path: Path,
) -> None:
    with failing_disk() as disk:
        store = SqliteStore.open(tmp_path / "dragoman.db", lambda: "full")
        with serving(House(store)) as house:
            house.welcome("developer")
            say(house, "saop.turn", turn(0))
            with reading(house, "?form=trace&session=s-1") as reader:
                say(house, "saop.event", event(1, pulse("one")))
                disk.fail_at(1, "write", apsw.FullError)
                full = house.ask(
                    "POST", "/v1/saop/saop.event", event(2, pulse("two")), by="developer"
                )
                assert (full.status, full.code) == (503, "store_unavailable")
                disk.recover()
                say(house, "saop.event", event(2, pulse("two")))
                say(house, "saop.event", event(3, pulse("three")))
                told = [one.data["payload"]["line"] for one in reader.take(3)]
            assert told == ["one", "two", "three"]
            trace = house.get("/v1/tasks/task-abc-123/trace")["events"]
            lines = [one["event"]["payload"].get("line") for one in trace]
            assert lines == [None, "one", "two", "three"]


@proves("LOST-CURSOR")
def test_a_position_beyond_the_end_is_brought_back_to_it_and_told(house: House) -> None:
    house.welcome("developer")
    say(house, "saop.turn", turn(0))
    head = house.store.head()
    lost = {"after": 5000, "until": head}
    page = house.get("/v1/tasks/task-abc-123/trace?after=5000")
    assert (page["events"], page["next"], page["gap"]) == ([], head, lost)
    said = house.post("/v1/saop/saop.events", {"after": 5000}, by="developer")
    assert (said["events"], said["cursor"], said["gap"]) == ([], head, lost)
    with reading(house, "?form=trace&after=5000") as reader:
        (gap,) = reader.take(1)
        assert (gap.event, gap.id, gap.data) == ("gap", f"{head}", lost)
        say(house, "saop.event", event(1, pulse("after it")))
        assert reader.take(1)[0].data["payload"]["line"] == "after it"

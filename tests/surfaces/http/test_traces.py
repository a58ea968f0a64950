"""Turns and traces over HTTP: recorded, read back, and followed live."""

import json
import re
from pathlib import Path
from typing import Any

import apsw
import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.task_state import CreateTask
from dragoman.core.trace import RecordTrace
from dragoman.engine.queries.traces import trace_page
from dragoman.store.sqlite import SqliteStore
from tests.protocols.saop.hub import SECRET, event, invoked, pulse, thought, transition, turn
from tests.requirements import proves
from tests.store.sqlite.disk import failing_disk
from tests.surfaces.http.hub_server import HubServer, serving
from tests.surfaces.http.reader import follow_stream

pytestmark = proves("SAOP-HTTP")

JSON_LINES = {"Content-Type": "application/x-ndjson"}


def call_as_developer(server: HubServer, operation: str, message: dict[str, object]) -> None:
    """Call an operation as the developer."""
    response = server.request("POST", f"/v1/saop/{operation}", message, by="developer")
    assert response.status == 200, response
    assert response.json["reply"]["ok"] if "reply" in response.json else response.json["ok"]


def test_turns_and_traces_are_read_back(server: HubServer) -> None:
    server.add_agent("developer")
    for index in (1, 0, 3):
        call_as_developer(server, "saop.turn", turn(index))
    call_as_developer(server, "saop.event", event(1, invoked("c-1")))
    page = server.get("/v1/tasks/task-abc-123/turns")
    one_turn = server.get("/v1/tasks/task-abc-123/turns?attempt=1&after=0&limit=1")
    trace = server.get("/v1/tasks/task-abc-123/trace")

    assert [one["envelope"]["turn_index"] for one in page["turns"]] == [0, 1, 3]
    assert (page["gaps"], page["more"]) == ([2], False)
    assert page["missing"] == [{"attempt": 1, "first": 2, "last": 2}]
    assert {(one["attempt"], one["by"], one["after_attempt"]) for one in page["turns"]} == {
        (1, "", None)
    }
    assert [one["envelope"]["turn_index"] for one in one_turn["turns"]] == [1]
    assert [one["event"]["payload"]["type"] for one in trace["events"]] == [
        "TASK_TRANSITION",
        "TOOL_LIFECYCLE_INVOKED",
    ]
    rest = server.get(f"/v1/tasks/task-abc-123/trace?after={trace['next']}&session=s-1")
    assert rest["events"] == []
    assert server.request("GET", "/v1/tasks/nothing/turns").status == 404


def test_chunks_of_a_batch_share_transactions(
    server: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add_agent("developer")
    transactions, transact = list[int](), server.store.transact

    def counting_transact(work: Any) -> Any:
        transactions.append(server.store.head())
        return transact(work)

    monkeypatch.setattr(server.store, "transact", counting_transact)
    text = f"it is {SECRET}, and more of it " * 5
    pieces = [thought(text[start : start + 3]) for start in range(0, len(text), 3)]
    lines = [json.dumps(event(number, item)).encode() for number, item in enumerate(pieces)]
    response = server.request(
        "POST", "/v1/messages", b"\n".join(lines), by="developer", headers=JSON_LINES
    )
    assert all(json.loads(line)["ok"] for line in response.body.splitlines())
    assert len(transactions) < len(lines) / 3
    events = trace_page(server.store, session="s-1").events
    chunks = "".join(item.event["payload"]["chunk"] for item in events)
    assert re.fullmatch(r"(it is \[REDACTED:github_token:\w+\], and more of it ){5}", chunks)


def test_trace_stream_is_live_and_resumable(server: HubServer) -> None:
    server.add_agent("developer")
    call_as_developer(server, "saop.turn", turn(0))
    with follow_stream(server, "?form=trace&after=0&task=task-abc-123") as reader:
        assert reader.headers["content-type"].startswith("text/event-stream")
        assert reader.take(1)[0].data["payload"]["to_state"] == "in-progress"
        call_as_developer(server, "saop.event", event(1, thought("I think ")))
        call_as_developer(server, "saop.event", event(2, transition("blocked")))
        live = reader.take(2)
    assert [one.event for one in live] == ["THOUGHT_STREAM", "TASK_TRANSITION"]
    assert live[0].data["payload"]["chunk"] == "I think "
    again = f"Last-Event-ID: {live[0].id}"
    with follow_stream(server, "?form=trace&type=TASK_TRANSITION", again) as reader:
        assert reader.take(1)[0].id == live[1].id
    with follow_stream(server, "?form=trace&session=s-2&after=0") as reader:
        call_as_developer(server, "saop.event", event(3, pulse("over there"), "s-2"))
        assert reader.take(1)[0].data["payload"]["line"] == "over there"


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("form=trace&agent=ada", "agent"),
        ("form=trace&dialect=aof", "dialect"),
        ("session=s-1", "session"),
    ],
)
def test_filter_of_the_other_stream_form_is_refused(
    server: HubServer, query: str, name: str
) -> None:
    response = server.request("GET", f"/v1/stream?{query}")
    problem = json.loads(response.body)
    assert (response.status, problem["code"], problem["path"]) == (400, "invalid_request", name)
    assert f"has no filter '{name}'" in problem["detail"]


def test_transition_is_in_sessions_of_caller_and_holder(
    server: HubServer,
) -> None:
    server.add_agent("developer")
    server.submit(CreateTask("One", id="task-abc-123", ready=True))
    server.submit(ClaimTask("task-abc-123", "developer", "work"))
    call_as_developer(server, "saop.event", event(1, transition("blocked"), "asker"))
    listed = server.post("/v1/saop/saop.events", {"session_id": "asker"})["events"]
    of_task = server.get("/v1/tasks/task-abc-123/trace?session=asker")["events"]
    with follow_stream(server, "?form=trace&session=asker&after=0") as reader:
        (move_in_asker,) = reader.take(1)
    with follow_stream(server, "?form=trace&session=work&after=0") as reader:
        _, move_in_work = reader.take(2)
    assert [one["position"] for one in listed] == [one["position"] for one in of_task]
    assert [int(move_in_asker.id), int(move_in_work.id)] == [listed[0]["position"]] * 2
    assert (move_in_asker.data["session_id"], move_in_asker.data["payload"]["to_state"]) == (
        "work",
        "blocked",
    )


def record_tool_calls(server: HubServer, numbers: range, size: int = 80_000) -> None:
    """Record tool calls with long texts."""
    commands = [
        RecordTrace(
            event_id=envelope["event_id"],
            session="s-1",
            kind="TOOL_LIFECYCLE_INVOKED",
            envelope=envelope,
            digest=f"{number}",
            call=f"c-{number}",
        )
        for number in numbers
        for envelope in [event(number, invoked(f"c-{number}", text="x" * size))]
    ]
    server.submit(*commands, actor=Actor("agent", "developer"))


@proves("SAOP-STALLED")
def test_stalled_trace_reader_is_closed_without_affecting_others(server: HubServer) -> None:
    server.add_agent("developer")
    query = "?form=trace&session=s-1"
    with (
        follow_stream(server, query, buffer=4096) as stalled,
        follow_stream(server, query) as other_reader,
    ):
        first = server.store.head()
        for start in range(0, 280, 20):
            record_tool_calls(server, range(start, start + 20))
            # While one is stalled, the other gets all of it in order, and requests are answered.
            assert [one.data["payload"]["call_id"] for one in other_reader.take(20)] == [
                f"c-{number}" for number in range(start, start + 20)
            ]
        assert server.get("/v1/tasks")["tasks"] == []
        *received, last = iter(stalled.next, None)
    assert (last.event, {one.event for one in received}) == ("lagged", {"TOOL_LIFECYCLE_INVOKED"})
    positions = [int(one.id) for one in received]
    assert positions == [*range(first + 1, first + 1 + len(received))]
    assert len(received) < 280
    with follow_stream(server, query, f"Last-Event-ID: {last.id}") as resumed:
        rest = resumed.take(280 - len(received))
    assert [int(one.id) for one in rest] == [*range(positions[-1] + 1, first + 281)]


@proves("SAOP-FULL")
def test_full_disk_loses_no_acknowledged_trace_event(
    tmp_path: Path,
) -> None:
    with failing_disk() as disk:
        store = SqliteStore.open(tmp_path / "dragoman.db", lambda: "full")
        with serving(HubServer(store)) as server:
            server.add_agent("developer")
            call_as_developer(server, "saop.turn", turn(0))
            with follow_stream(server, "?form=trace&session=s-1") as reader:
                call_as_developer(server, "saop.event", event(1, pulse("one")))
                disk.fail_at(1, "write", apsw.FullError)
                refused = server.request(
                    "POST", "/v1/saop/saop.event", event(2, pulse("two")), by="developer"
                )
                assert (refused.status, refused.code) == (503, "store_unavailable")
                disk.recover()
                call_as_developer(server, "saop.event", event(2, pulse("two")))
                call_as_developer(server, "saop.event", event(3, pulse("three")))
                live_lines = [one.data["payload"]["line"] for one in reader.take(3)]
            assert live_lines == ["one", "two", "three"]
            trace = server.get("/v1/tasks/task-abc-123/trace")["events"]
            lines = [one["event"]["payload"].get("line") for one in trace]
            assert lines == [None, "one", "two", "three"]


@proves("LOST-CURSOR")
def test_position_beyond_the_end_gets_a_gap(server: HubServer) -> None:
    server.add_agent("developer")
    call_as_developer(server, "saop.turn", turn(0))
    head = server.store.head()
    expected_gap = {"after": 5000, "until": head}
    page = server.get("/v1/tasks/task-abc-123/trace?after=5000")
    assert (page["events"], page["next"], page["gap"]) == ([], head, expected_gap)
    listed = server.post("/v1/saop/saop.events", {"after": 5000}, by="developer")
    assert (listed["events"], listed["cursor"], listed["gap"]) == ([], head, expected_gap)
    with follow_stream(server, "?form=trace&after=5000") as reader:
        (gap,) = reader.take(1)
        assert (gap.event, gap.id, gap.data) == ("gap", f"{head}", expected_gap)
        call_as_developer(server, "saop.event", event(1, pulse("after it")))
        assert reader.take(1)[0].data["payload"]["line"] == "after it"

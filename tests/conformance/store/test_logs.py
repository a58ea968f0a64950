"""Log rows of turns and events: unique, ordered, and found by task."""

from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.base import Status
from dragoman.core.errors import StoreConflict
from dragoman.core.task_state import MoveTask
from dragoman.core.trace import RecordTrace, RecordTurn, RequestTransition
from dragoman.engine.ports import Changes, NewEntry, NewLogRow, Store, StreamRow, Transaction
from dragoman.engine.queries.traces import trace_page
from dragoman.engine.request import committed_or_raise
from dragoman.ledger.entry import GENESIS
from dragoman.ledger.stream_state import FOLD_VERSION, LogRow
from dragoman.store.postgres.connect import connect, parse_url
from dragoman.store.sqlite.apsw_types import open_database
from tests.conformance.store.conftest import OpenStore
from tests.conformance.store.hubs import Hubs
from tests.conformance.store.storages import Storage
from tests.requirements import proves

pytestmark = proves("SAOP-TABLES")

DEVELOPER = Actor("agent", "developer")
HUMAN = Actor("human", "lea")
ODD = "nothing \x00 but \u2028 text"


def turn(index: int) -> RecordTurn:
    """Make a turn of the developer."""
    return RecordTurn("one", index, "developer", 0.5, {"thought": ODD}, f"d{index}")


def trace(number: int) -> RecordTrace:
    """Make an event of a session."""
    id = f"01890a5d-ac96-774b-bcce-{number:012x}"
    return RecordTrace(id, "s-1", "ANY", {"n": number}, f"e{number}", masked=number == 2)


def test_turns_and_events_are_found_in_order(hubs: Hubs) -> None:
    hub = hubs.new()
    for index in (2, 0, 9_007_199_254_740_991, 1):
        hub.do(DEVELOPER, turn(index))
    first = [hub.do(DEVELOPER, trace(number)) for number in (1, 2, 3)]
    again = [hub.do(DEVELOPER, trace(number)) for number in (1, 2, 3)]
    store = hub.store

    assert [one.position for one in first] == [7, 8, 9]
    assert [(one.position, one.masked) for one in again] == [(7, False), (8, True), (9, False)]
    assert [entry.position for entry in store.turns("one", 1, -1, 10)] == [4, 6, 3, 5]
    assert [entry.position for entry in store.turns("one", 1, 0, 2)] == [6, 3]
    assert [entry.position for entry in store.last_turns("one", 1, 2)] == [5, 3]
    assert store.turns("one", 2, -1, 10) == []
    assert [entry.position for entry in store.trace_events("one", 7, 10)] == [8, 9]
    assert [entry.position for entry in store.trace_events("one", 0, 1)] == [7]
    assert store.trace_events("", 0, 10) == []
    assert store.trace_event(trace(2).event_id) == store.entries(7, 1)[0]
    assert store.trace_event(trace(4).event_id) is None
    assert store.log_rows(6, 8) == [
        (7, LogRow("one", 1, None, trace(1).event_id, "e1", False)),
        (8, LogRow("one", 1, None, trace(2).event_id, "e2", True)),
    ]
    assert store.log_rows(2, 3) == [(3, LogRow("one", 1, 2, None, "d2", False))]


def test_batch_sees_its_own_log_rows(hubs: Hubs) -> None:
    hub = hubs.new()
    hub.do(DEVELOPER, turn(0))
    outcome = hub.ask(DEVELOPER, trace(1), trace(2), trace(1), turn(1), turn(1))
    receipts = committed_or_raise(outcome).receipts

    assert [one.position for one in receipts] == [4, 5, 4, 6, 6]
    assert hub.store.head() == 6


@pytest.mark.parametrize(
    "log",
    [
        LogRow("one", 1, 0, None, "other", False),
        LogRow("two", 9, None, trace(1).event_id, "x", False),
    ],
)
def test_unique_log_row_cannot_be_stored_twice(open_store: OpenStore, log: LogRow) -> None:
    store = open_store()
    stored = [
        LogRow("one", 1, 0, None, "d", False),
        LogRow("one", 1, None, trace(1).event_id, "e", False),
    ]
    _write(store, *stored)
    with pytest.raises(StoreConflict):
        _write(store, log)
    assert len(store.log_rows(0, 10)) == 2


def test_views_have_the_columns_of_the_seed(database: Storage) -> None:
    hubs = Hubs(database.open)
    hub = hubs.new()
    hub.engine.current_commit = lambda: "f" * 40
    hub.do(DEVELOPER, turn(3))
    hub.do(DEVELOPER, replace(trace(1), envelope={"event_id": "x"}))

    assert rows(
        database,
        "SELECT task_id, attempt, turn_index, event_id FROM agent_logs "
        "WHERE type IS DISTINCT FROM 'TASK_TRANSITION' ORDER BY id",
    ) == [("one", 1, 3, None), ("one", 1, None, trace(1).event_id)]
    assert rows(database, "SELECT envelope_json FROM agent_logs WHERE type = 'ANY'") == [
        ('{"event_id":"x"}',)
    ]
    assert len(rows(database, "SELECT envelope_json FROM agent_logs WHERE turn_index = 3")) == 1
    assert rows(database, "SELECT id, status, head_hash FROM tasks") == [
        ("one", "in-progress", "f" * 40)
    ]
    hubs.close()


def test_task_without_a_commit_has_no_head_hash(database: Storage) -> None:
    hubs = Hubs(database.open)
    hubs.new().do(DEVELOPER, turn(3))
    assert rows(database, "SELECT id, head_hash FROM tasks") == [("one", None)]
    hubs.close()


def rows(database: Storage, sql: str) -> list[Any]:
    """Query the database itself."""
    if database.kind == "sqlite":
        file = open_database(Path(database.location), apsw.SQLITE_OPEN_READONLY)
        return file.execute(sql).fetchall()
    with connect(parse_url(database.location)) as connection:
        return connection.execute(sql.encode()).fetchall()


def test_agent_log_view_lists_moves_as_the_trace_does_and_requested_moves(
    database: Storage,
) -> None:
    hubs = Hubs(database.open)
    hub = hubs.new()
    hub.engine.current_commit = lambda: "f" * 40
    statuses: tuple[Status, ...] = ("in-progress", "done", "review")
    for number, to in enumerate(statuses, 1):
        request = hub.request(DEVELOPER, _move_request(number, to))
        effect = RequestTransition("one", to, trace(number).event_id, session="s-1")
        committed_or_raise(hub.engine.handle_now(replace(request, effect=(effect,))))
    hub.do(DEVELOPER, _move_request(4, "elsewhere"))
    hub.do(HUMAN, MoveTask("one", "ready", "again"))
    hub.do(DEVELOPER, ClaimTask("one", "developer", "s-2"))
    hub.do(DEVELOPER, ReportOutcome("one", "failed", apply=True))
    trace_events = [one for one in trace_page(hub.store).events if one.type == "TASK_TRANSITION"]
    logged = rows(database, f"{_COLUMNS} WHERE type = 'TASK_TRANSITION' ORDER BY id")
    moves = [
        (position, task, event_id, session, msgspec.json.decode(envelope))
        for position, task, event_id, session, envelope in logged
    ]
    performed = [one for one in moves if "requested" not in one[4]["payload"]]
    assert performed == [
        (one.position, one.task, one.event["event_id"], one.event["session_id"], one.event)
        for one in trace_events
        if "requested" not in one.event["payload"]
    ]
    assert len(performed) == 5
    attempts = dict(rows(database, "SELECT id, attempt FROM agent_logs"))
    assert [attempts[one[0]] for one in performed] == [1, 1, None, 2, 2]
    requested = [one for one in moves if one not in performed]
    assert [one[4]["payload"]["to_state"] for one in requested] == ["done", "elsewhere"]
    assert requested[0][4]["payload"] == {
        **_payload("done"),
        "git_hash": "c" * 40,
        "requested": True,
    }
    ids = [one[2] for one in moves]
    assert len(set(ids)) == len(ids)
    hubs.close()


def test_log_view_of_one_task_does_not_collect_all_moves(database: Storage) -> None:
    hubs = Hubs(database.open)
    hubs.new()
    explain = "EXPLAIN QUERY PLAN" if database.kind == "sqlite" else "EXPLAIN"
    steps = rows(database, f"{explain} {_COLUMNS} WHERE task_id = 'one'")
    plan = "\n".join(str(step[-1]) for step in steps)
    for operator in ("MATERIALIZE", "LIST SUBQUERY", "CTE"):
        assert operator not in plan
    hubs.close()


_COLUMNS = "SELECT id, task_id, event_id, session_id, envelope_json FROM agent_logs"


def _move_request(number: int, to: str) -> RecordTrace:
    """Make an event that requests a move."""
    base = trace(number)
    envelope = {"event_id": base.event_id, "session_id": "s-1", "payload": _payload(to)}
    return replace(base, kind="TASK_TRANSITION", envelope=envelope, task="one", commit="c" * 40)


def _payload(to: str) -> dict[str, str]:
    return {"type": "TASK_TRANSITION", "task_id": "one", "from_state": "x", "to_state": to}


def _write(store: Store, *logs: LogRow) -> None:
    def work(session: Transaction) -> None:
        number = session.new_stream_number()
        name = f"turns:{number}"
        entries = [
            NewEntry(number, version, "turn.recorded", b"{}", GENESIS, GENESIS)
            for version in range(1, len(logs) + 1)
        ]
        row = StreamRow(number, name, len(logs), GENESIS, FOLD_VERSION, b"{}")
        new = [NewLogRow(number, version, log) for version, log in enumerate(logs, 1)]
        session.write(Changes(entries=entries, streams=[row], logs=new))

    store.transact(work)

"""Turns and events in every store: unique, in order, found by task; and races have one winner."""

from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import RecordTrace, RecordTurn
from dragoman.core.errors import StoreConflict
from dragoman.engine.ports import Changes, NewEntry, NewLog, Row, Session, Store
from dragoman.engine.request import accepted
from dragoman.ledger.chain import GENESIS
from dragoman.ledger.logs import Log
from dragoman.ledger.views import FOLD
from dragoman.store.postgres.connect import connect, parse_url
from dragoman.store.sqlite.driver import open_database
from tests.conformance.store.conftest import OpenStore
from tests.conformance.store.hubs import Hubs
from tests.conformance.store.storages import Storage
from tests.requirements import proves

pytestmark = proves("SAOP-TABLES")

DEVELOPER = Actor("agent", "developer")
ODD = "nothing \x00 but \u2028 text"


def turn(index: int) -> RecordTurn:
    """A turn of the developer."""
    return RecordTurn("one", index, "developer", 0.5, {"thought": ODD}, f"d{index}")


def trace(number: int) -> RecordTrace:
    """An event of a session."""
    id = f"01890a5d-ac96-774b-bcce-{number:012x}"
    return RecordTrace(id, "s-1", "ANY", {"n": number}, f"e{number}", masked=number == 2)


def test_turns_and_events_are_found_in_their_order(hubs: Hubs) -> None:
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
    assert [entry.position for entry in store.turns_back("one", 1, 2)] == [5, 3]
    assert store.turns("one", 2, -1, 10) == []
    assert [entry.position for entry in store.traces("one", 7, 10)] == [8, 9]
    assert [entry.position for entry in store.traces("one", 0, 1)] == [7]
    assert store.traces("", 0, 10) == []
    assert store.logs(6, 8) == [
        (7, Log("one", 1, None, trace(1).event_id, "e1", False)),
        (8, Log("one", 1, None, trace(2).event_id, "e2", True)),
    ]
    assert store.logs(2, 3) == [(3, Log("one", 1, 2, None, "d2", False))]


def test_a_batch_knows_what_it_has_recorded_itself(hubs: Hubs) -> None:
    hub = hubs.new()
    hub.do(DEVELOPER, turn(0))
    asked = hub.ask(DEVELOPER, trace(1), trace(2), trace(1), turn(1), turn(1))
    told = accepted(asked).receipts

    assert [one.position for one in told] == [4, 5, 4, 6, 6]
    assert hub.store.head() == 6


@pytest.mark.parametrize(
    "log",
    [Log("one", 1, 0, None, "other", False), Log("two", 9, None, trace(1).event_id, "x", False)],
)
def test_what_is_unique_cannot_be_stored_twice(open_store: OpenStore, log: Log) -> None:
    store = open_store()
    kept = [Log("one", 1, 0, None, "d", False), Log("one", 1, None, trace(1).event_id, "e", False)]
    _write(store, *kept)
    with pytest.raises(StoreConflict):
        _write(store, log)
    assert len(store.logs(0, 10)) == 2


def test_views_have_the_columns_of_the_seed(database: Storage) -> None:
    hubs = Hubs(database.open)
    hub = hubs.new()
    hub.engine.head = lambda: "f" * 40
    hub.do(DEVELOPER, turn(3))
    hub.do(DEVELOPER, replace(trace(1), envelope={"event_id": "x"}))

    def rows(sql: str) -> list[Any]:
        if database.kind == "sqlite":
            return (
                open_database(Path(database.where), apsw.SQLITE_OPEN_READONLY)
                .execute(sql)
                .fetchall()
            )
        with connect(parse_url(database.where)) as connection:
            return connection.execute(sql.encode()).fetchall()

    assert rows("SELECT task_id, attempt, turn_index, event_id FROM agent_logs ORDER BY id") == [
        ("one", 1, 3, None),
        ("one", 1, None, trace(1).event_id),
    ]
    assert rows("SELECT envelope_json FROM agent_logs WHERE event_id IS NOT NULL") == [
        ('{"event_id":"x"}',)
    ]
    assert len(rows("SELECT envelope_json FROM agent_logs WHERE turn_index = 3")) == 1
    assert rows("SELECT id, status, head_hash FROM tasks") == [("one", "in-progress", "f" * 40)]
    hubs.close()


def _write(store: Store, *logs: Log) -> None:
    def work(session: Session) -> None:
        number = session.new_stream()
        name = f"turns:{number}"
        entries = [
            NewEntry(number, version, "turn.recorded", b"{}", GENESIS, GENESIS)
            for version in range(1, len(logs) + 1)
        ]
        row = Row(number, name, len(logs), GENESIS, FOLD, b"{}")
        new = [NewLog(number, version, log) for version, log in enumerate(logs, 1)]
        session.write(Changes(entries=entries, streams=[row], logs=new))

    store.transact(work)

"""A long ledger is verified by several processes with the same result as by one."""

import sys
from pathlib import Path

import pytest

from dragoman.bootstrap import open_store
from dragoman.bootstrap.data_directory import slice_checker
from dragoman.core.actor import Actor
from dragoman.core.task_state import CreateTask
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.verify import check_ledger
from dragoman.engine.verify_slice import check_slice, slice_spans
from dragoman.store.sqlite.apsw_types import open_database
from dragoman.system.clock import FixedClock
from dragoman.system.ids import new_id
from tests.requirements import proves

PERSON = Actor("human", "reviewer")
ENTRIES = 40
SIZE = 16


@pytest.fixture
def data(tmp_path: Path) -> Path:
    hub = Hub(Engine(open_store("", tmp_path), FixedClock(1), b"secret"), new_id)
    for number in range(ENTRIES):
        hub.submit(PERSON, CreateTask(f"task {number}"))
    hub.close()
    return tmp_path


def ignore_progress(_: int) -> None:
    """Ignore the progress."""


@proves("VERIFY-HASHES")
def test_processes_find_the_same_as_one(data: Path) -> None:
    store = open_store("", data)
    parts = slice_spans(store.head(), (7, 20), SIZE)
    assert len(parts) > 1
    elsewhere = list(slice_checker(store, "", data, min_slices=2)(parts))
    assert elsewhere == [check_slice(store, span) for span in parts]
    assert (
        list(check_ledger(store, (), ignore_progress, slice_checker(store, "", data, 2), SIZE))
        == []
    )
    store.close()


@proves("VERIFY-HASHES")
def test_changed_entry_is_found_by_processes(data: Path) -> None:
    forger = open_database(data / "dragoman.db", 2)
    forger.execute("DROP TRIGGER entries_are_not_changed")
    forger.execute("UPDATE entries SET line = CAST(line || ' ' AS BLOB) WHERE position = 21")
    forger.close()
    store = open_store("", data)
    check = slice_checker(store, "", data, min_slices=2)
    found = [one.position for one in check_ledger(store, (), ignore_progress, check, SIZE)]
    assert found[0] == 21
    store.close()


@proves("VERIFY-HASHES")
@pytest.mark.parametrize("python", ["/bin/false", "/nowhere/python"])
def test_failing_processes_are_replaced_by_this_one(
    data: Path, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    store = open_store("", data)
    parts = slice_spans(store.head(), (), SIZE)
    checked = list(slice_checker(store, "", data, min_slices=2)(parts))
    assert checked == [check_slice(store, span) for span in parts]
    store.close()

"""Transactions: atomic, durable, aware of commits of others; concurrent readers."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import apsw
import pytest
from msgspec.structs import replace

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.ports import Changes, Transaction
from dragoman.ledger.stream_state import IndexRow
from tests.conformance.store.changes import (
    begin_stream,
    everything,
    make_entry,
    make_lease,
    make_row,
)
from tests.requirements import proves
from tests.store.sqlite.disk import Happening, failing_disk
from tests.store.sqlite.files import add_streams, connect, create_filled, open_store


@proves("STORE-ATOMIC")
def test_failure_before_the_commit_leaves_nothing(tmp_path: Path) -> None:
    store = open_store(create_filled(tmp_path / "hub.db", 2))
    before = everything(store)

    def work(session: Transaction) -> None:
        add_streams(session, 3)
        session.write(Changes(leases=[(1, make_lease())], daily_numbers={"2026-02-09": 4}))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.transact(work)

    assert everything(store) == before
    assert store.transact(lambda session: session.last_number("2026-02-09")) == 0
    assert store.transact(lambda session: session.new_stream_number()) == 3
    store.close()


@proves("STORE-CACHE")
def test_store_detects_commits_of_others(tmp_path: Path) -> None:
    def is_fresh(session: Transaction) -> bool:
        return session.is_fresh

    def fail(session: Transaction) -> None:
        add_streams(session, 1)
        raise RuntimeError

    one, two = open_store(tmp_path / "hub.db"), open_store(tmp_path / "hub.db")
    assert [one.transact(is_fresh), one.transact(is_fresh)] == [False, True]
    begin_stream(one, "task:mine")
    assert one.transact(is_fresh)
    with pytest.raises(RuntimeError):
        two.transact(fail)
    assert two.head() == 1
    assert one.transact(is_fresh)
    begin_stream(two, "task:theirs")
    assert [one.transact(is_fresh), one.transact(is_fresh)] == [False, True]
    one.close()
    two.close()


@proves("STORE-CACHE", "STORE-SEARCH")
def test_indexing_neither_hides_nor_imitates_commits_of_others(tmp_path: Path) -> None:
    def is_fresh(session: Transaction) -> bool:
        return session.is_fresh

    one, two = open_store(tmp_path / "hub.db"), open_store(tmp_path / "hub.db")
    begin_stream(one, "task:mine")
    one.index_texts([(1, ("red",))], 1)
    assert one.transact(is_fresh)
    begin_stream(two, "task:theirs")
    one.index_texts([(2, ("red",))], 2)
    assert [one.transact(is_fresh), one.transact(is_fresh)] == [False, True]
    two.index_texts([], 3)
    assert not one.transact(is_fresh)
    one.close()
    two.close()


@proves("LEDGER-POSITION")
@pytest.mark.parametrize(
    "statement", ["UPDATE entries SET line = x'00' WHERE position = 2", "DELETE FROM entries"]
)
def test_ledger_is_append_only(tmp_path: Path, statement: str) -> None:
    path = create_filled(tmp_path / "hub.db", 3)
    store = open_store(path)
    before = everything(store)

    with pytest.raises(apsw.ConstraintError, match="the ledger is append-only"):
        connect(path).execute(statement)

    assert everything(store) == before
    store.close()


@proves("STORE-DURABLE")
def test_commit_is_on_disk_when_it_returns(tmp_path: Path) -> None:
    with failing_disk() as disk:
        store = open_store(tmp_path / "hub.db")
        for count in (1, 100):
            disk.happened.clear()
            store.transact(lambda session, count=count: add_streams(session, count))
            assert ("write", "wal") in disk.happened
            assert disk.happened[-1] == ("sync", "wal")
        store.close()


@proves("STORE-DURABLE")
def test_readers_see_the_last_commit_without_waiting(tmp_path: Path) -> None:
    store, other = open_store(create_filled(tmp_path / "hub.db")), open_store(tmp_path / "hub.db")

    def work(session: Transaction) -> None:
        add_streams(session, 1)
        assert (store.head(), other.head()) == (1, 1)

    store.transact(work)

    assert (store.head(), other.head()) == (2, 2)
    other.close()
    store.close()


@proves("STORE-DURABLE")
def test_threads_may_read_while_another_writes(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    store = open_store(path)

    def read(_: int) -> bool:
        heads = [store.head() for _ in range(20)]
        return heads == sorted(heads) and len(store.entries(0, 1_000)) >= heads[-1]

    with ThreadPoolExecutor(8) as threads:
        reading = threads.map(read, range(40))
        for _ in range(50):
            store.transact(lambda session: add_streams(session, 1))
        assert all(reading)
    assert store.head() == 50
    store.close()

    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@proves("STORE-DURABLE")
def test_store_may_be_closed_during_a_read(tmp_path: Path) -> None:
    with failing_disk() as disk:
        store, other = (
            open_store(create_filled(tmp_path / "hub.db")),
            open_store(tmp_path / "hub.db"),
        )

        def close(happening: Happening) -> None:
            if happening == ("read", "main"):
                disk.recover()
                store.close()

        disk.before = close
        assert store.head() == 1

        with pytest.raises(StoreUnavailable, match="was closed"):
            store.head()
        assert other.head() == 1
        other.close()


@proves("ENGINE-BATCH-POISON")
def test_value_that_cannot_be_stored_fails_alone(tmp_path: Path) -> None:
    store = open_store(create_filled(tmp_path / "hub.db"))
    before = everything(store)
    poisoned = replace(make_row(2, "task:2"), state=cast(bytes, "text in place of bytes"))

    with pytest.raises(StoreUnavailable, match=r"cannot store TEXT value .*nothing was written"):
        store.transact(lambda session: session.write(Changes(streams=[poisoned])))
    with pytest.raises(OverflowError):
        store.entries(2**70, 1)

    assert everything(store) == before
    store.close()


@proves("STORE-CONTRACT")
def test_owner_and_deadline_are_updated_when_changed(tmp_path: Path) -> None:
    store = open_store(tmp_path / "hub.db")
    number = begin_stream(store, "task:a")
    index_rows = [
        IndexRow(status, owner=owner, deadline=deadline)
        for owner, deadline in (("alice", None), ("alice", 7), (None, 7), ("bob", None), ("bob", 9))
        for status in ("ready", "blocked", "blocked")
    ]
    for version, index_row in enumerate(index_rows, start=2):
        row = make_row(number, "task:a", version, index_row)
        changes = Changes(entries=[make_entry(number, version)], streams=[row])
        store.transact(lambda session, changes=changes: session.write(changes))
        assert store.stream("task:a") == row
    store.close()

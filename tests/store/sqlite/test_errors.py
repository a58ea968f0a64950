"""Failures: a full disk, a failing disk, a held lock; all are reported, and nothing is lost."""

from pathlib import Path

import apsw
import pytest

from dragoman.core.attempt import ClaimTask
from dragoman.core.errors import FAULTS, StoreError, StoreLost, StoreUnavailable
from dragoman.core.task_state import CreateTask
from dragoman.engine.ports import Transaction
from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.errors import commit_error, store_error
from tests.conformance.store.changes import everything
from tests.conformance.store.hubs import ALICE, ANN, Hubs
from tests.requirements import proves
from tests.store.sqlite.disk import Happening, failing_disk
from tests.store.sqlite.files import add_streams, connect, create_filled, open_store
from tests.system.child_processes import child

SMALL_DISK = """
import resource
import sys
from pathlib import Path
from dragoman.core.errors import StoreUnavailable
from dragoman.store.sqlite import SqliteStore
from tests.store.sqlite.files import add_streams
store = SqliteStore.open(Path(sys.argv[1]), str)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
written = 0
try:
    while True:
        store.transact(lambda session: add_streams(session, 10))
        written += 10
except StoreUnavailable as error:
    print(error)
print(written, store.head())
"""


def add_some(session: Transaction) -> None:
    """Write a few pages."""
    add_streams(session, 60)


@proves("STORE-ATOMIC", "STORE-READ-ONLY")
def test_full_disk_is_reported_at_every_write_and_nothing_is_written(tmp_path: Path) -> None:
    with failing_disk() as disk:
        store = open_store(create_filled(tmp_path / "hub.db"))
        before, failures = everything(store), 0
        while True:
            disk.fail_at(failures + 1, "write", apsw.FullError)
            failure = try_write(store)
            if failure is None:
                break
            failures += 1
            assert not isinstance(failure, StoreLost)
            assert "the disk is full" in failure.detail
            assert "nothing was written" in failure.detail
            assert everything(store) == before
        assert failures > 10
        assert store.head() == 61
        disk.recover()
        store.transact(add_some)
        store.close()
    again = open_store(tmp_path / "hub.db")
    assert again.head() == 121
    again.close()


def try_write(store: SqliteStore) -> StoreUnavailable | None:
    """Run a transaction, and return its error."""
    try:
        store.transact(add_some)
    except StoreUnavailable as error:
        return error
    return None


@proves("STORE-ATOMIC")
def test_failed_sync_leaves_the_outcome_unknown_and_replaces_the_connection(
    tmp_path: Path,
) -> None:
    with failing_disk() as disk:
        store = open_store(create_filled(tmp_path / "hub.db"))
        assert [is_fresh(store), is_fresh(store)] == [False, True]

        disk.fail_at(1, "sync", apsw.IOError)
        with pytest.raises(StoreLost, match="failed during a commit"):
            store.transact(add_some)
        disk.recover()

        assert store.head() == 1
        assert not is_fresh(store)
        store.transact(add_some)
        assert store.head() == 61
        store.close()


def is_fresh(store: SqliteStore) -> bool:
    """Return True if the store detects no commit of another connection."""
    return store.transact(lambda session: session.is_fresh)


@proves("STORE-CACHE", "IDEM-REPEAT")
def test_request_with_a_failed_commit_is_rerun_and_happens_once(tmp_path: Path) -> None:
    with failing_disk() as disk:
        store = open_store(tmp_path / "hub.db")
        hubs = Hubs(lambda: store)
        hub = hubs.new()
        task = hub.do(ANN, CreateTask("a task", ready=True)).task

        def fail_once(happening: Happening) -> None:
            if happening == ("sync", "wal"):
                disk.recover()
                raise apsw.IOError

        disk.before = fail_once
        claimed = hub.do(ALICE, ClaimTask(task, agent="alice"))

        assert claimed.attempt == 1
        assert [entry.event for entry in store.entries(0, 10)] == ["task.created", "task.claimed"]
        hubs.close()
        store.close()


@proves("STORE-ATOMIC")
def test_failing_operating_system_write_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"

    with child(SMALL_DISK, path) as writer:
        assert writer.stdout is not None
        message, counts = writer.stdout.read().splitlines()
        assert writer.wait() == 0

    written, head = map(int, counts.split())
    assert f"the disk under {path} failed" in message
    assert head == written
    store = open_store(path)
    assert store.head() == written
    store.close()


@proves("STORE-SECOND-HUB")
def test_lock_held_too_long_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.store.sqlite.connect.BUSY_TIMEOUT_MS", 1)
    path = create_filled(tmp_path / "hub.db")
    store, other = open_store(path), connect(path)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreUnavailable, match=r"another process has held .* for 30 s; nothing"):
        store.transact(add_some)

    assert store.head() == 1
    other.execute("COMMIT")
    store.transact(add_some)
    assert store.head() == 61
    store.close()


@proves("STORE-SECOND-HUB")
def test_locked_journal_mode_of_a_new_file_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.store.sqlite.connect.BUSY_TIMEOUT_MS", 20)
    path = create_filled(tmp_path / "hub.db")
    other = connect(path)
    other.execute("PRAGMA journal_mode = delete").fetchall()
    other.execute("BEGIN; SELECT * FROM meta").fetchall()

    with pytest.raises(StoreUnavailable, match="another process has held"):
        open_store(path)

    other.execute("COMMIT")
    store = open_store(path)
    assert store.head() == 1
    store.close()


@proves("STORE-MIGRATIONS")
def test_journal_mode_switch_waits_for_another_one(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db")
    with failing_disk() as disk:
        other = connect(path)
        other.execute("PRAGMA journal_mode = delete").fetchall()
        other.execute("BEGIN IMMEDIATE")
        attempts = 0

        def unlock_at_the_second_attempt(happening: Happening) -> None:
            nonlocal attempts
            attempts += happening[0] == "reserve"
            if attempts == 2:
                disk.recover()
                other.execute("ROLLBACK")

        disk.before = unlock_at_the_second_attempt
        store = open_store(path)

        assert attempts == 2
        assert store.head() == 1
        store.close()
        other.close()


@proves("STORE-DURABLE")
def test_location_without_wal_support_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreUnavailable, match=r"journal mode stays memory.*local disk"):
        open_store(Path(":memory:"))


@proves("STORE-CORRUPT", "STORE-READ-ONLY")
@pytest.mark.parametrize(
    "kind",
    [
        kind
        for kind in vars(apsw).values()
        if isinstance(kind, type) and issubclass(kind, apsw.Error)
    ],
    ids=lambda kind: kind.__name__,
)
def test_every_sqlite_error_is_mapped_and_names_the_file(kind: type[apsw.Error]) -> None:
    path = Path("/data/hub.db")
    for error in (store_error(kind("why"), path), commit_error(kind("why"), path)):
        assert isinstance(error, StoreError)
        assert error.code in FAULTS
        assert str(path) in error.detail


@proves("STORE-READ-ONLY")
def test_missing_room_for_the_shm_file_is_a_full_disk() -> None:
    class NoRoomForIndexError(apsw.IOError):
        extendedresult = apsw.SQLITE_IOERR_SHMSIZE

    assert "the disk is full" in store_error(NoRoomForIndexError(), Path("hub.db")).detail

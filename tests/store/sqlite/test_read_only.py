"""Reads without the right or the room to write: safe, or refused with the reason."""

import shutil
from pathlib import Path

import apsw
import pytest

from dragoman.core.errors import DragomanError, StoreCorrupt, StoreUnavailable
from dragoman.store.sqlite import SqliteStore, migrate
from dragoman.store.sqlite.errors import store_error
from dragoman.store.sqlite.migrate import MIGRATIONS
from tests.requirements import proves
from tests.store.sqlite.files import (
    add_streams,
    connect,
    create_filled,
    ledger_id,
    open_store,
    overwrite,
    root_page,
)
from tests.system.full_disk import full_disk

pytestmark = proves("STORE-READ-STILL")


def open_without_room(path: Path) -> SqliteStore:
    with full_disk():
        return SqliteStore.open_to_read(path, ledger_id)


def test_database_without_room_is_read_and_refuses_writes(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "a hub?.db", 3)
    with full_disk():
        store = SqliteStore.open_to_read(path, ledger_id)
        assert (store.head(), len(store.entries(0, 10))) == (3, 3)
        with store.snapshot() as frozen:
            assert frozen.head() == 3
        with pytest.raises(StoreUnavailable, match=r"a hub\?.db failed .* nothing was written"):
            store.transact(lambda session: session.new_stream_number())
        assert store.head() == 3
        store.close()
    again = open_store(path)
    again.transact(lambda session: add_streams(session, 1))
    assert again.head() == 4
    again.close()


@pytest.mark.parametrize("is_closed", [False, True], ids=["open", "closed"])
def test_read_during_a_write_is_refused(tmp_path: Path, is_closed: bool) -> None:
    path = create_filled(tmp_path / "hub.db")
    store = open_without_room(path)
    with store.snapshot() as frozen:
        other = open_store(path)
        other.transact(lambda session: add_streams(session, 1))
        if is_closed:
            other.close()
        for read in (store.head, frozen.head):
            with pytest.raises(StoreUnavailable, match="another process has begun to write"):
                read()
    other.close()
    store.close()


def test_unreadable_wal_is_not_ignored(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db")
    store = open_store(path)
    store.transact(lambda session: add_streams(session, 1))
    (tmp_path / "killed").mkdir()
    killed = tmp_path / "killed" / "hub.db"
    for end in ("", "-wal"):
        shutil.copy(f"{path}{end}", f"{killed}{end}")
    store.close()
    index = killed.with_name("hub.db-shm")
    index.symlink_to("nowhere")

    with pytest.raises(StoreUnavailable, match=r"not closed properly: .* copy the whole directory"):
        open_without_room(killed)

    index.unlink()
    index.touch()
    assert open_without_room(killed).head() == 2, "an index, empty or not, is enough"
    assert SqliteStore.open_to_read(killed, ledger_id).head() == 2


def test_inaccessible_wal_is_not_taken_for_none(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db")
    log = tmp_path / "hub.db-wal"
    log.symlink_to(log)

    with pytest.raises(StoreUnavailable, match=r"hub\.db-wal cannot be examined \(Too many"):
        open_without_room(path)


def test_database_removed_during_a_read_is_reported(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db")
    store = open_without_room(path)
    with store.snapshot() as frozen:
        path.rename(tmp_path / "moved.db")
        with pytest.raises(StoreUnavailable, match=r"hub\.db cannot be examined \(No such file"):
            frozen.head()
    store.close()


def test_readers_share_open_wal_files_without_room(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db")
    other = open_store(path)
    other.transact(lambda session: add_streams(session, 1))

    store = open_without_room(path)

    assert store.head() == 2
    other.transact(lambda session: add_streams(session, 1))
    assert store.head() == 3
    store.close()
    other.close()


@pytest.mark.parametrize(
    ("pragma", "kind", "message"),
    [
        ("user_version = 0", StoreUnavailable, "made by another version of dragoman"),
        ("user_version = 13", StoreUnavailable, "made by another version of dragoman"),
        ("application_id = 7", StoreCorrupt, "not one of dragoman's"),
    ],
)
def test_incompatible_database_is_refused(
    tmp_path: Path, pragma: str, kind: type[DragomanError], message: str
) -> None:
    path = create_filled(tmp_path / "hub.db")
    database = connect(path)
    database.execute(f"PRAGMA {pragma}").fetchall()
    database.close()
    with pytest.raises(kind, match=message):
        open_without_room(path)


def test_older_database_is_not_migrated_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = create_filled(tmp_path / "hub.db")
    monkeypatch.setattr(migrate, "MIGRATIONS", [*MIGRATIONS, "CREATE TABLE more (x)"])
    with pytest.raises(StoreUnavailable, match="of an earlier dragoman"):
        open_without_room(path)


def test_damaged_database_is_reported(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db")
    overwrite(path, (root_page(path, "entries") - 1) * 4_096, b"\xff" * 100)
    store = open_without_room(path)
    with pytest.raises(StoreCorrupt, match="is damaged"):
        store.entries(0, 10)
    store.close()


def test_missing_room_for_the_shm_file_is_a_full_disk() -> None:
    class NoRoomForIndexError(apsw.IOError):
        extendedresult = apsw.SQLITE_IOERR_SHMSIZE

    assert "the disk is full" in store_error(NoRoomForIndexError(), Path("hub.db")).detail

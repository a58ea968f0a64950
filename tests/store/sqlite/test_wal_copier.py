"""WAL copier: copies the write-ahead log into the file while others write."""

import threading
from pathlib import Path

import pytest

from dragoman.store.sqlite import SqliteStore, connect, wal_copier
from dragoman.store.sqlite.apsw_types import Connection
from tests.conformance.store.changes import begin_stream
from tests.requirements import proves
from tests.store.sqlite.files import PAGE, open_store

pytestmark = proves("STORE-LOG-COPIED")

NAME = "log copier"
TIMEOUT_S = 30
"""Longer than anything here takes on a slow machine."""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(wal_copier, "_COPY_EVERY_PAGES", 20)
    return tmp_path / "hub.db"


def write(store: SqliteStore, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        begin_stream(store, f"task:{number}")


class RecordingConnection:
    """Connection of a copier that signals a finished copy."""

    def __init__(self, connection: Connection, is_copied: threading.Event) -> None:
        self._connection = connection
        self._is_copied = is_copied
        self.may_copy = threading.Event()
        self.may_copy.set()

    def wal_checkpoint(self, *, mode: int) -> tuple[int, int]:
        assert self.may_copy.wait(TIMEOUT_S)
        copied = self._connection.wal_checkpoint(mode=mode)
        self._is_copied.set()
        return copied

    def close(self, by_force: bool) -> None:
        self._connection.close(by_force)


def copiers() -> set[threading.Thread]:
    """List the copier threads of this process."""
    return {thread for thread in threading.enumerate() if thread.name == NAME}


def test_wal_is_copied_while_the_writer_continues(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_copied = threading.Event()

    def open_recording(path: Path) -> RecordingConnection:
        return RecordingConnection(connect.open_wal_copier(path), is_copied)

    monkeypatch.setattr(wal_copier, "open_wal_copier", open_recording)
    store = open_store(path)
    others, before = copiers(), path.stat().st_size
    assert copiers() == others, "who writes little needs none"
    write(store, 200)
    assert is_copied.wait(TIMEOUT_S)
    assert path.stat().st_size > before
    write(store, 200, first=200)
    assert store.head() == 400
    store.close()


def test_copier_ends_with_its_store(path: Path) -> None:
    others, store = copiers(), open_store(path)
    write(store, 50)
    assert len(copiers() - others) == 1
    store.close()
    assert copiers() <= others
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    again = open_store(path)
    assert again.head() == 50
    again.close()


def test_wal_size_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (connect, wal_copier):
        monkeypatch.setattr(module, "WAL_PAGES", 100)
    store = open_store(path)
    write(store, 600)  # several pages each
    assert path.with_name(f"{path.name}-wal").stat().st_size < 1_000 * PAGE
    store.close()


def test_writer_far_ahead_waits_for_the_copier(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copiers = list[RecordingConnection]()

    def open_blocked(path: Path) -> RecordingConnection:
        copiers.append(RecordingConnection(connect.open_wal_copier(path), threading.Event()))
        copiers[0].may_copy.clear()
        return copiers[0]

    monkeypatch.setattr(wal_copier, "open_wal_copier", open_blocked)
    store = open_store(path)
    writing = threading.Thread(target=write, args=(store, 100))
    writing.start()
    writing.join(0.3)
    assert writing.is_alive()
    assert store.head() < 50
    copiers[0].may_copy.set()
    writing.join(TIMEOUT_S)
    assert store.head() == 100
    store.close()


def test_writer_continues_without_a_copier_thread(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    store = open_store(path)
    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", refuse)
        write(store, 100)
    assert store.head() == 100
    store.close()


def test_writer_continues_when_copying_fails(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_missing(_: Path) -> Connection:
        return connect.open_wal_copier(path.with_name("none.db"))

    monkeypatch.setattr(wal_copier, "open_wal_copier", open_missing)
    store = open_store(path)
    write(store, 100)
    assert store.head() == 100
    store.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]

"""The write-ahead log is copied into the file beside whoever writes."""

import threading
from pathlib import Path

import pytest

from dragoman.store.sqlite import SqliteStore, connect, log
from dragoman.store.sqlite.driver import Connection
from tests.conformance.store.changes import begin_stream
from tests.requirements import proves
from tests.store.sqlite.files import PAGE, open_store

pytestmark = proves("STORE-LOG-COPIED")

NAME = "log copier"
PATIENCE_S = 30
"""Longer than anything here takes on a slow machine."""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(log, "_PAGES", 20)
    return tmp_path / "hub.db"


def write(store: SqliteStore, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        begin_stream(store, f"task:{number}")


class Noting:
    """The connection of a copier, which tells that something was copied."""

    def __init__(self, connection: Connection, is_copied: threading.Event) -> None:
        self._connection = connection
        self._is_copied = is_copied
        self.may_copy = threading.Event()
        self.may_copy.set()

    def wal_checkpoint(self, *, mode: int) -> tuple[int, int]:
        assert self.may_copy.wait(PATIENCE_S)
        copied = self._connection.wal_checkpoint(mode=mode)
        self._is_copied.set()
        return copied

    def close(self, by_force: bool) -> None:
        self._connection.close(by_force)


def copiers() -> set[threading.Thread]:
    """Those of all stores of this process."""
    return {thread for thread in threading.enumerate() if thread.name == NAME}


def test_what_was_written_reaches_the_file_while_the_writer_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_copied = threading.Event()

    def noting(path: Path) -> Noting:
        return Noting(connect.open_copier(path), is_copied)

    monkeypatch.setattr(log, "open_copier", noting)
    store = open_store(path)
    others, before = copiers(), path.stat().st_size
    assert copiers() == others, "who writes little needs none"
    write(store, 200)
    assert is_copied.wait(PATIENCE_S)
    assert path.stat().st_size > before
    write(store, 200, first=200)
    assert store.head() == 400
    store.close()


def test_it_ends_with_the_store_whose_log_is_then_in_the_file(path: Path) -> None:
    others, store = copiers(), open_store(path)
    write(store, 50)
    assert len(copiers() - others) == 1
    store.close()
    assert copiers() <= others
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    again = open_store(path)
    assert again.head() == 50
    again.close()


def test_the_log_does_not_grow_without_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (connect, log):
        monkeypatch.setattr(module, "WAL_PAGES", 100)
    store = open_store(path)
    write(store, 600)  # several pages each
    assert path.with_name(f"{path.name}-wal").stat().st_size < 1_000 * PAGE
    store.close()


def test_whoever_is_far_ahead_of_the_copier_waits_for_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copiers = list[Noting]()

    def slow(path: Path) -> Noting:
        copiers.append(Noting(connect.open_copier(path), threading.Event()))
        copiers[0].may_copy.clear()
        return copiers[0]

    monkeypatch.setattr(log, "open_copier", slow)
    store = open_store(path)
    writing = threading.Thread(target=write, args=(store, 100))
    writing.start()
    writing.join(0.3)
    assert writing.is_alive()
    assert store.head() < 50
    copiers[0].may_copy.set()
    writing.join(PATIENCE_S)
    assert store.head() == 100
    store.close()


def test_where_no_thread_can_be_started_the_writer_goes_on(
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


def test_where_it_cannot_be_copied_the_writer_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(_: Path) -> Connection:
        return connect.open_copier(path.with_name("none.db"))

    monkeypatch.setattr(log, "open_copier", nothing)
    store = open_store(path)
    write(store, 100)
    assert store.head() == 100
    store.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]

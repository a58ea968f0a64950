"""Opening: new files, our files, and everything else."""

import tempfile
from collections.abc import Generator
from pathlib import Path

import apsw
import pytest

from dragoman.core.errors import DragomanError, StoreCorrupt, StoreUnavailable
from dragoman.store.sqlite import connect as connect_module
from dragoman.store.sqlite.connect import check_sqlite_version
from dragoman.store.sqlite.migrate import APPLICATION_ID
from tests.conformance.store.changes import EMPTY, begin_stream, everything
from tests.requirements import proves
from tests.store.sqlite.files import (
    PAGE,
    add_streams,
    connect,
    create_filled,
    files_in,
    open_store,
    overwrite,
    root_page,
)
from tests.system.child_processes import child, next_line, resume
from tests.system.full_disk import full_disk

OPENER = """
import sys
from pathlib import Path
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import new_id
print("there", flush=True)
sys.stdin.readline()
store = SqliteStore.open(Path(sys.argv[1]), new_id)
print(store.ledger_id(), flush=True)
store.close()
"""

UNPRIVILEGED = """
import os
import sys
from pathlib import Path
from dragoman.core.errors import StoreUnavailable
from dragoman.store.sqlite import SqliteStore
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
path = Path(sys.argv[1])
try:
    SqliteStore.open(path, str)
except StoreUnavailable as error:
    print(error, flush=True)
"""
"""Program without root's rights, so that permissions apply."""


@proves("STORE-DURABLE")
def test_new_file_is_in_wal_mode_and_keeps_its_id(tmp_path: Path) -> None:
    path = tmp_path / "new.db"

    store = open_store(path)
    assert everything(store) == EMPTY
    assert store.ledger_id() == "ledger"
    store.close()

    header = path.read_bytes()[:100]
    assert header[18:20] == b"\x02\x02"
    assert int.from_bytes(header[68:72], "big") == APPLICATION_ID
    assert list(files_in(tmp_path)) == ["new.db"]
    again = open_store(path)
    assert again.ledger_id() == "ledger"
    again.close()


@proves("STORE-ATOMIC")
def test_reopened_store_shows_the_stored_data(tmp_path: Path) -> None:
    store = open_store(create_filled(tmp_path / "some.db", 3))

    assert store.head() == 3
    assert [row.name for row in store.rows(0, 10)] == ["task:1", "task:2", "task:3"]
    assert store.transact(lambda session: session.new_stream_number()) == 4
    store.close()


@proves("STORE-MIGRATIONS")
def test_processes_opening_a_new_file_agree_on_its_id(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    with child(OPENER, path) as one, child(OPENER, path) as two, child(OPENER, path) as three:
        openers = (one, two, three)
        assert [next_line(opener) for opener in openers] == ["there"] * 3
        for opener in openers:
            resume(opener)
        ids = {next_line(opener) for opener in openers}

    assert len(ids) == 1
    assert ids != {""}


@proves("STORE-CORRUPT")
def test_database_of_another_program_is_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "foreign.db"
    database = connect(path)
    database.execute("PRAGMA journal_mode = wal").fetchall()
    database.execute("CREATE TABLE bookmarks (url TEXT)").fetchall()
    # Its WAL stays beside the file, as after a crash of its program.
    database.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    database.close()
    before = files_in(tmp_path)
    assert before["foreign.db-wal"]

    with pytest.raises(StoreCorrupt, match=r"not one of dragoman's .* nothing was changed"):
        open_store(path)

    assert files_in(tmp_path) == before


@proves("STORE-CORRUPT")
@pytest.mark.parametrize(
    "content",
    [b"xy", b"a letter to the editor\n" * 100, b"SQLite format 3\0", bytes(PAGE)],
    ids=["two bytes", "text", "header start only", "zeros"],
)
def test_file_that_is_not_a_database_is_unchanged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "letter.txt"
    path.write_bytes(content)

    with pytest.raises(StoreCorrupt, match=r"not a SQLite database .*`dragoman restore"):
        open_store(path)

    assert files_in(tmp_path) == {"letter.txt": content}


@proves("STORE-CORRUPT")
def test_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()

    store = open_store(path)

    assert store.ledger_id() == "ledger"
    store.close()


@proves("STORE-CORRUPT")
def test_damaged_header_byte_is_survived_or_reported(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db")
    sound, named = path.read_bytes(), 0
    for offset in range(100):
        damaged = bytearray(sound)
        damaged[offset] ^= 0xFF
        path.write_bytes(damaged)
        refusal = refusal_to_open(path)
        if refusal:
            assert str(path) in refusal
            assert files_in(tmp_path) == {"hub.db": bytes(damaged)}
            named += 1

    assert named >= 20


def refusal_to_open(path: Path) -> str:
    """Return the reason why a file cannot be opened, or "" after reading it."""
    try:
        store = open_store(path)
    except DragomanError as error:
        return error.detail
    assert store.head() == 1
    store.close()
    return ""


@proves("STORE-CORRUPT")
def test_damaged_page_is_reported_to_readers_and_writers(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db", 200)
    overwrite(path, (root_page(path, "entries") - 1) * PAGE, b"\xff" * 16)
    damaged = path.read_bytes()
    store = open_store(path)

    for read in (store.head, lambda: store.entries(0, 10)):
        with pytest.raises(StoreCorrupt, match=r"damaged .* nothing was written"):
            read()
    with pytest.raises(StoreCorrupt, match=r"damaged .* out of a backup"):
        store.transact(lambda session: session.stream_lines("task:1"))
    assert store.stream("task:1") is not None
    store.close()

    assert path.read_bytes() == damaged


@proves("STORE-CORRUPT")
def test_truncated_file_is_reported_and_unchanged(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db", 2_000)
    path.write_bytes(path.read_bytes()[: 20 * PAGE])
    cut = path.read_bytes()

    with pytest.raises(StoreCorrupt, match="damaged"):
        open_store(path).entries(0, 2_000)

    assert path.read_bytes() == cut


@proves("STORE-CUT")
@pytest.mark.parametrize("missing", [1, 100, PAGE - 1])
def test_file_with_an_incomplete_last_page_is_not_opened(tmp_path: Path, missing: int) -> None:
    path = create_filled(tmp_path / "hub.db", 200)  # its last page is none of the header pages
    path.write_bytes(path.read_bytes()[:-missing])
    cut = path.read_bytes()

    with pytest.raises(StoreCorrupt, match=rf"bytes missing: {missing}\).*nothing was written"):
        open_store(path)

    assert path.read_bytes() == cut


@proves("STORE-LOG")
def test_existing_wal_is_kept_until_the_next_commit(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db")
    store = open_store(path)
    begin_stream(store, "task:more")
    log = path.with_name("hub.db-wal")
    whole, database = log.read_bytes(), path.read_bytes()
    store.close()
    path.write_bytes(database)
    damaged = bytearray(whole)
    damaged[200] ^= 1
    log.write_bytes(damaged)

    store = open_store(path)
    assert store.head() == 1
    store.close()
    assert log.read_bytes() == damaged

    log.write_bytes(whole)
    store = open_store(path)
    assert store.head() == 2
    begin_stream(store, "task:third")
    store.close()
    assert not log.exists()
    assert open_store(path).head() == 3


@proves("STORE-CUT")
def test_pages_found_only_in_the_wal_are_not_missing(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db")
    database = connect(path)
    database.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    database.execute("CREATE TABLE more AS SELECT zeroblob(100000) AS x").fetchall()
    database.close()
    # A process was killed while it copied the WAL into the file, after the first page.
    overwrite(path, 0, first_page(path.with_name("hub.db-wal").read_bytes()))
    page_count = int.from_bytes(path.read_bytes()[28:32], "big")
    assert path.stat().st_size < page_count * PAGE

    store = open_store(path)

    assert store.head() == 1
    assert store.inspect().damage == ()
    store.close()
    assert path.stat().st_size == page_count * PAGE


def first_page(log: bytes) -> bytes:
    """Return the database's first page from the WAL."""
    frames = (log[at : at + 24 + PAGE] for at in range(32, len(log), 24 + PAGE))
    return [frame[24:] for frame in frames if frame[:4] == b"\0\0\0\1"][-1]


@proves("STORE-TEXT")
def test_damaged_text_is_reported_to_readers_and_writers(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db", 3)
    database = connect(path)
    database.execute("UPDATE streams SET due = 1 WHERE number = 2")
    database.execute("UPDATE streams SET name = CAST(x'f461736b3a32' AS TEXT) WHERE number = 2")
    database.execute("UPDATE meta SET value = CAST(x'ff' AS TEXT) WHERE key = 'ledger_id'")
    database.close()
    store = open_store(path)

    for read in (lambda: store.rows(0, 10), lambda: store.entries(0, 10), store.ledger_id):
        with pytest.raises(StoreCorrupt, match=r"text in it can no longer be read .*restore"):
            read()
    with pytest.raises(StoreCorrupt, match=r"b'\\xf4ask:2'"):
        store.transact(lambda session: session.promote_due(1, 10))
    with store.snapshot() as frozen, pytest.raises(StoreCorrupt, match="no longer be read"):
        frozen.entries(0, 10)
    assert [row.name for row in store.rows(2, 10)] == ["task:3"]
    store.close()


@proves("STORE-CORRUPT")
def test_missing_tables_are_reported(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db")
    database = connect(path)
    database.execute("DROP TABLE names").fetchall()
    database.close()
    store = open_store(path)

    with pytest.raises(StoreCorrupt, match=r"does not have the tables .*no such table: names"):
        store.find_aliases("x")
    with pytest.raises(StoreCorrupt, match="does not have the tables"):
        store.transact(lambda session: session.find_aliases(["x"]))
    assert store.head() == 1
    store.close()


@proves("STORE-READ-ONLY")
@pytest.mark.parametrize("parent", ["nowhere", "file.txt"])
def test_missing_directory_is_reported(tmp_path: Path, parent: str) -> None:
    (tmp_path / "file.txt").touch()

    with pytest.raises(StoreUnavailable, match=r"cannot be opened .*Its directory must exist"):
        open_store(tmp_path / parent / "hub.db")


@proves("STORE-READ-ONLY")
def test_directory_in_place_of_the_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "hub.db").mkdir()

    with pytest.raises(StoreUnavailable, match=r"hub\.db is a directory, and no database"):
        open_store(tmp_path / "hub.db")


@pytest.fixture
def open_folder() -> Generator[Path]:
    """Folder that everyone can reach; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


def output_unprivileged(path: Path) -> list[str]:
    """Run the unprivileged program, and return its output."""
    with child(UNPRIVILEGED, path) as stranger:
        assert stranger.stdout is not None
        return stranger.stdout.read().splitlines()


@proves("STORE-READ-ONLY")
def test_read_only_folder_is_reported(open_folder: Path) -> None:
    open_folder.chmod(0o555)

    (message,) = output_unprivileged(open_folder / "hub.db")

    assert "cannot be opened" in message
    assert "right to read and write both" in message


@proves("STORE-READ-ONLY")
def test_read_only_database_in_a_read_only_folder_is_reported(open_folder: Path) -> None:
    path = create_filled(open_folder / "hub.db")
    path.chmod(0o444)
    open_folder.chmod(0o555)

    (message,) = output_unprivileged(path)

    assert str(path) in message
    assert "right to" in message


@proves("STORE-READ-ONLY")
def test_read_only_database_is_refused_and_gets_no_files_beside_it(open_folder: Path) -> None:
    path = create_filled(open_folder / "hub.db")
    path.chmod(0o444)
    open_folder.chmod(0o777)

    (message,) = output_unprivileged(path)

    assert "cannot be written" in message
    assert "nothing was changed" in message
    assert list(open_folder.iterdir()) == [path], "what lies beside it has its rights, for ever"


@proves("STORE-READ-ONLY")
def test_full_disk_is_reported_and_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db", 3)
    before = path.read_bytes()

    with full_disk(), pytest.raises(StoreUnavailable, match="nothing was written"):
        open_store(path)

    assert path.read_bytes() == before
    assert open_store(path).head() == 3


@proves("STORE-LOG-COPIED")
def test_wal_size_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: dict[int, int] = {}
    for pages in (100, 100_000):
        monkeypatch.setattr(connect_module, "_WAL_PAGES", pages)
        store = open_store(tmp_path / f"{pages}.db")
        for _ in range(60):
            store.transact(lambda session: add_streams(session, 200))
        sizes[pages] = (tmp_path / f"{pages}.db-wal").stat().st_size
        store.close()
    assert sizes[100] < 300 * PAGE < sizes[100_000]


@proves("STORE-CUT")
def test_inaccessible_wal_is_not_taken_for_none(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db")
    log = tmp_path / "hub.db-wal"
    log.symlink_to(log)

    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        open_store(path)


@proves("STORE-DURABLE")
def test_sqlite_with_the_wal_reset_bug_is_refused() -> None:
    check_sqlite_version("3.51.3")
    check_sqlite_version(apsw.sqlite_lib_version())
    for version in ("3.40.1", "3.51.2"):
        with pytest.raises(StoreUnavailable, match=f"SQLite {version} can damage"):
            check_sqlite_version(version)


@proves("STORE-CONTRACT")
def test_closed_store_refuses_use(tmp_path: Path) -> None:
    store = open_store(tmp_path / "hub.db")
    store.close()
    store.close()

    for use in (store.head, lambda: store.transact(lambda session: session.new_stream_number())):
        with pytest.raises(StoreUnavailable, match="was closed"):
            use()
    assert list(files_in(tmp_path)) == ["hub.db"]


@proves("STORE-MOVED")
def test_store_of_a_moved_file_writes_nothing(tmp_path: Path) -> None:
    path, away = tmp_path / "hub.db", tmp_path / "away.db"
    store = open_store(path)
    begin_stream(store, "task:1")
    path.rename(away)

    for _ in range(2):  # also with the connection that is opened after the first refusal
        with pytest.raises(StoreUnavailable, match=r"no longer the file .* nothing was written"):
            begin_stream(store, "task:2")
    assert not path.exists()

    away.rename(path)
    begin_stream(store, "task:2")
    assert store.head() == 2
    store.close()


@proves("STORE-MOVED")
def test_store_of_a_replaced_file_leaves_the_new_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    store = open_store(path)
    begin_stream(store, "task:1")
    other = create_filled(tmp_path / "other.db")
    new = other.read_bytes()
    other.replace(path)

    with pytest.raises(StoreUnavailable, match="no longer the file"):
        begin_stream(store, "task:2")
    store.close()
    assert path.read_bytes() == new


@proves("STORE-CORRUPT")
def test_missing_ledger_id_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    store = open_store(path)
    connect(path).execute("DELETE FROM meta WHERE key = 'ledger_id'")
    with pytest.raises(StoreCorrupt, match="lost the id of its ledger"):
        store.ledger_id()
    store.close()

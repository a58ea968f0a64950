"""Database files for these tests: made by the store, then damaged or examined."""

from pathlib import Path
from typing import Any, Protocol, cast

import apsw

from dragoman.engine.ports import Changes, Transaction
from dragoman.store.sqlite import SqliteStore
from tests.conformance.store.changes import make_entry, make_row

PAGE = 4_096


class Cursor(Protocol):
    def fetchall(self) -> list[Any]: ...


class Database(Protocol):
    """Connection besides the store's own."""

    def execute(self, statements: str, bindings: Any = None, /) -> Cursor: ...

    def config(self, _option: int, value: int, /) -> int: ...

    def set_busy_timeout(self, milliseconds: int, /) -> None: ...

    def close(self) -> None: ...


def ledger_id() -> str:
    """Return the id of every ledger here."""
    return "ledger"


def open_store(path: Path) -> SqliteStore:
    """Open the store on a file."""
    return SqliteStore.open(path, ledger_id)


def connect(path: Path) -> Database:
    """Open a plain connection to a file."""
    return cast(Database, apsw.Connection(str(path)))


def create_filled(path: Path, streams: int = 1) -> Path:
    """Create a closed database with this many streams of one entry each."""
    store = open_store(path)
    store.transact(lambda session: add_streams(session, streams))
    store.close()
    return path


def add_streams(session: Transaction, count: int) -> None:
    """Create streams that are named by their numbers."""
    numbers = [session.new_stream_number() for _ in range(count)]
    session.write(
        Changes(
            entries=[make_entry(number, 1, text="x" * 100) for number in numbers],
            streams=[make_row(number, f"task:{number}") for number in numbers],
        )
    )


def root_page(path: Path, table: str) -> int:
    """Return the number of a table's root page."""
    database = connect(path)
    query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
    ((page,),) = database.execute(query, (table,)).fetchall()
    database.close()
    return page


def overwrite(path: Path, offset: int, data: bytes) -> None:
    """Overwrite bytes of a file."""
    whole = bytearray(path.read_bytes())
    whole[offset : offset + len(data)] = data
    path.write_bytes(whole)


def hide_from_index(path: Path, index: str, stream: str) -> None:
    """Remove one stream from an index, as damage would, but not from its table."""
    database = connect(path)
    query = "SELECT sql FROM sqlite_schema WHERE name = ?"
    ((sound,),) = database.execute(query, (index,)).fetchall()
    for sql in (f"{sound} AND name <> '{stream}'", sound):
        if sql == sound:
            database.execute(f"REINDEX {index}").fetchall()
        database.execute("PRAGMA writable_schema = on").fetchall()
        database.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql, index)).fetchall()
        database.execute("PRAGMA writable_schema = reset").fetchall()
    database.close()


def files_in(folder: Path) -> dict[str, bytes]:
    """Read all files of a folder, except the shared-memory index of a WAL."""
    return {
        file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith("-shm")
    }

"""What we use of apsw, with types that a checker can follow: rows are whatever the query says."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import apsw


class Runner(Protocol):
    """What runs statements."""

    def execute(
        self, statements: str, bindings: Sequence[Any] | Mapping[str, Any] = (), /
    ) -> "Cursor":
        """Run a statement."""
        ...

    def executemany(self, statements: str, bindings: Iterable[Sequence[Any]], /) -> "Cursor":
        """Run a statement for each of many bindings, one after the other."""
        ...


class Cursor(Runner, Protocol):
    """A place to run statements, and the result of the last one."""

    @property
    def get(self) -> Any:
        """The only value of the only row; None when there is no row."""
        ...

    def fetchall(self) -> list[Any]:
        """All rows."""
        ...


class Connection(Runner, Protocol):
    """An open database."""

    def readonly(self, _name: str, /) -> bool:
        """Whether nothing can be written, whatever was asked for."""
        ...

    def total_changes(self) -> int:
        """How many rows it has written in its life."""
        ...

    def last_insert_rowid(self) -> int:
        """The number of the row that was written last."""
        ...

    def cursor(self) -> Cursor:
        """A cursor that can be used again and again."""
        ...

    def pragma(self, name: str, value: str | int | None = None, /) -> Any:
        """Set or ask a setting of SQLite."""
        ...

    def config(self, _option: int, value: int, /) -> int:
        """Set an option of this connection."""
        ...

    def status(self, _what: int, /) -> tuple[int, int]:
        """One of the numbers that SQLite keeps of a connection, now and at most."""
        ...

    def wal_checkpoint(self, *, mode: int) -> tuple[int, int]:
        """Copy the write-ahead log: of so many pages so many."""
        ...

    def set_progress_handler(self, _ask: Callable[[], bool], _steps: int, /) -> None:
        """Ask it every so many steps whether to stop."""
        ...

    def set_busy_timeout(self, milliseconds: int, /) -> None:
        """So long it waits for a lock."""
        ...

    def close(self, _by_force: bool = False, /) -> None:
        """Close it; by force when it may be in any state."""
        ...


def open_database(file: Path | str, flags: int) -> Connection:
    """A connection to a file: by its path, or with SQLITE_OPEN_URI by its URI."""
    return cast(Connection, apsw.Connection(str(file), flags))


Failure = apsw.Error | UnicodeDecodeError
FAILURES = (apsw.Error, UnicodeDecodeError)
"""How a statement fails: SQLite gives a text as it finds it, and if its bytes were damaged it is
none."""


def extended_code(error: apsw.Error) -> int:
    """SQLite's own code for what went wrong."""
    return getattr(error, "extendedresult", 0)

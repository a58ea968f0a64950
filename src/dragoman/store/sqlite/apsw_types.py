"""Typed protocols for the part of apsw that we use; rows are whatever the query selects."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import apsw


class Executor(Protocol):
    """Runs statements."""

    def execute(
        self, statements: str, bindings: Sequence[Any] | Mapping[str, Any] = (), /
    ) -> "Cursor":
        """Run a statement."""
        ...

    def executemany(self, statements: str, bindings: Iterable[Sequence[Any]], /) -> "Cursor":
        """Run a statement for each of many bindings, one after the other."""
        ...


class Cursor(Executor, Protocol):
    """Runs statements, and has the result of the last one."""

    @property
    def get(self) -> Any:
        """The only value of the only row; None when there is no row."""
        ...

    def fetchall(self) -> list[Any]:
        """All rows."""
        ...


class Connection(Executor, Protocol):
    """An open database."""

    def total_changes(self) -> int:
        """The number of rows written since it was opened."""
        ...

    def last_insert_rowid(self) -> int:
        """The rowid of the row that was written last."""
        ...

    def cursor(self) -> Cursor:
        """A reusable cursor."""
        ...

    def pragma(self, name: str, value: str | int | None = None, /) -> Any:
        """Set or read a setting of SQLite."""
        ...

    def config(self, _option: int, value: int, /) -> int:
        """Set an option of this connection."""
        ...

    def set_progress_handler(self, _ask: Callable[[], bool], _steps: int, /) -> None:
        """Call a function every so many steps; True interrupts the statement."""
        ...

    def set_busy_timeout(self, milliseconds: int, /) -> None:
        """Set the longest wait for a lock."""
        ...

    def close(self, _by_force: bool = False, /) -> None:
        """Close it; with force in whatever state it is."""
        ...


def open_database(file: Path, flags: int) -> Connection:
    """Open a file."""
    return cast(Connection, apsw.Connection(str(file), flags))


DriverError = apsw.Error | UnicodeDecodeError
DRIVER_ERRORS = (apsw.Error, UnicodeDecodeError)
"""Errors of a statement: SQLite returns a text as stored, and damaged bytes may not decode."""


def extended_code(error: apsw.Error) -> int:
    """SQLite's extended result code."""
    return getattr(error, "extendedresult", 0)

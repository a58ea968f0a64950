"""How the answers of SQLite to what readers ask become those of the contract."""

from typing import Any

from dragoman.engine.ports import Row
from dragoman.store.readers import SqlReaders
from dragoman.store.sqlite.match import match
from dragoman.store.sqlite.session import as_row
from dragoman.text.words import Wanted


class SqliteReaders(SqlReaders):
    """Reads of whatever has a connection to the file."""

    def _row(self, found: Any) -> Row:
        return as_row(found)

    def _match(self, wanted: Wanted) -> str:
        return match(wanted)

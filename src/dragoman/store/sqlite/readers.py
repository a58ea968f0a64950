"""How the answers of SQLite to what readers ask become those of the contract."""

from typing import Any

from dragoman.engine.ports import StreamRow
from dragoman.store.readers import SqlReads
from dragoman.store.sqlite.match import fts5_query
from dragoman.store.sqlite.session import stream_row
from dragoman.text.words import SearchQuery


class SqliteReads(SqlReads):
    """Reads of whatever has a connection to the file."""

    def _stream_row(self, found: Any) -> StreamRow:
        return stream_row(found)

    def _search_expression(self, query: SearchQuery) -> str:
        return fts5_query(query)

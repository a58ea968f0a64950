"""How the answers of PostgreSQL to what readers ask become those of the contract."""

from typing import Any

from dragoman.core.states.lease import Lease
from dragoman.engine.ports import StreamRow
from dragoman.store.postgres.session import stream_row
from dragoman.store.postgres.words import tsquery
from dragoman.store.readers import SqlReads
from dragoman.store.sql_files import load_queries
from dragoman.text.words import SearchQuery

QUERIES = load_queries("dragoman.store.postgres")


class PostgresReads(SqlReads):
    """Reads of whatever has a connection to the server."""

    def _stream_row(self, found: Any) -> StreamRow:
        lease = None if found[13] is None else Lease(*found[13:])
        return stream_row(found[:13], lease)

    def _search_expression(self, query: SearchQuery) -> str:
        return tsquery(query)

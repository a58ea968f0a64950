"""How the answers of PostgreSQL to what readers ask become those of the contract."""

from typing import Any

from dragoman.core.states.lease import Lease
from dragoman.engine.ports import Row
from dragoman.store.postgres.session import as_row
from dragoman.store.postgres.words import tsquery
from dragoman.store.readers import SqlReaders
from dragoman.store.sql_files import load_queries
from dragoman.text.words import Wanted

QUERIES = load_queries("dragoman.store.postgres")


class PostgresReaders(SqlReaders):
    """Reads of whatever has a connection to the server."""

    def _row(self, found: Any) -> Row:
        lease = None if found[13] is None else Lease(*found[13:])
        return as_row(found[:13], lease)

    def _match(self, wanted: Wanted) -> str:
        return tsquery(wanted)

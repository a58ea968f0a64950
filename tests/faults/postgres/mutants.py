"""Stores that are broken on purpose, each by one statement: the suite must find them."""

from collections.abc import Mapping

from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.connect import Address, connect
from dragoman.store.postgres.store import QUERIES
from dragoman.store.postgres.wire import Wire

WITHOUT_ANSWERS = {
    "put_answers": "SELECT FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::bytea[]) LIMIT 0"
}
"""What became of a lost commit cannot be found out, so it is simply done again."""

PLAIN_SEQUENCE = {
    "append_entries": """
        WITH put AS (
          INSERT INTO entries (position, stream, version, event, line, previous, hash)
          SELECT nextval('positions'), *
          FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bytea[], $5::bytea[], $6::bytea[])
          RETURNING position
        )
        SELECT min(position) FROM put
    """,
    "check_head": "SELECT $1::bigint",
}
"""Positions in the order in which they are asked for, not in that of the commits."""


class Mutant(PostgresStore):
    """A store with other words for some of its statements, or with commits that are answered
    before they are written."""

    def __init__(
        self, address: Address, statements: Mapping[str, str] = {}, *, answers_early: bool = False
    ) -> None:
        super().__init__(address)
        self._queries = {**QUERIES, **statements}
        self._answers_early = answers_early

    def _connect(self) -> Wire:
        connection = connect(self._address)
        if self._answers_early:
            connection.execute("SET synchronous_commit = off")
        return Wire(connection, self._queries, self._address.patience)

"""Mutant stores, each broken by one statement: the suite must detect them."""

from collections.abc import Mapping

from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.connect import Address, connect
from dragoman.store.postgres.pipeline import Pipeline
from dragoman.store.postgres.reads import QUERIES

WITHOUT_ANSWERS = {
    "put_answers": "SELECT FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::bytea[]) LIMIT 0"
}
"""Store without idempotency answers: a request with a lost commit is simply done again."""

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
"""Store with positions in the order of requests, not in that of commits."""


class Mutant(PostgresStore):
    """Store with other statements, or with commits that are answered before they are written."""

    def __init__(
        self, address: Address, statements: Mapping[str, str] = {}, *, answers_early: bool = False
    ) -> None:
        super().__init__(address)
        self._queries = {**QUERIES, **statements}
        self._answers_early = answers_early

    def _connect(self) -> Pipeline:
        connection = connect(self._address)
        if self._answers_early:
            connection.execute("SET synchronous_commit = off")
        return Pipeline(connection, self._queries, self._address.answer_timeout_s)

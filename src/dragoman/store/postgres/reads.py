"""Reads of the PostgreSQL store: rows as contract values, search expressions, and snapshots."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from msgspec.structs import replace

from dragoman.core.attempt_state import Lease
from dragoman.engine.ports import StreamRow
from dragoman.store.postgres.connect import Address, connect
from dragoman.store.postgres.errors import store_error
from dragoman.store.postgres.pipeline import Call, Pipeline, Scalar, scalar
from dragoman.store.postgres.transaction import stream_row
from dragoman.store.sql import SqlReads, load_queries
from dragoman.text.search_terms import SearchQuery, SearchTerm, Words

# --- rows and search expressions --------------------------------------------------------------


def tsvector(words: Words) -> str:
    """A tsvector of the words and their positions, independent of PostgreSQL's parsers. Words are
    letters and digits, so none ends a quote."""
    positions: dict[str, list[str]] = {}
    for place, word in enumerate(words, 1):
        positions.setdefault(word, []).append(str(place))
    return " ".join(f"'{word}':{','.join(found)}" for word, found in positions.items())


def tsquery(query: SearchQuery) -> str:
    """A tsquery of groups of terms, independent of PostgreSQL's parsers."""
    return " | ".join(map(_group, query))


def _group(terms: Sequence[SearchTerm]) -> str:
    return f"({' & '.join(map(_phrase, terms))})"


def _phrase(term: SearchTerm) -> str:
    words = " <-> ".join(f"'{word}'" for word in term.words)
    return f"{'!' * term.is_excluded}({words}{':*' * term.is_prefix})"


QUERIES = load_queries("dragoman.store.postgres")


class PostgresReads(SqlReads):
    """Reads of whatever has a connection to the server."""

    def _stream_row(self, found: Any) -> StreamRow:
        lease = None if found[13] is None else Lease(*found[13:])
        return stream_row(found[:13], lease)

    def _search_expression(self, query: SearchQuery) -> str:
        return tsquery(query)


# --- snapshots --------------------------------------------------------------------------------


class PostgresSnapshot(PostgresReads):
    """Reads in REPEATABLE READ: every statement sees what was committed before the first."""

    def __init__(self, pipeline: Pipeline, address: Address) -> None:
        self._pipeline = pipeline
        self._address = address

    def _read(self, query: str, *values: Scalar) -> list[Any]:
        try:
            return self._pipeline.run([Call(query, tuple(map(scalar, values)))])[0]
        except psycopg.Error as error:
            raise store_error(
                error, str(self._address), is_closed=self._pipeline.is_closed
            ) from error

    def _location(self) -> str:
        return str(self._address)


@contextmanager
def open_snapshot(address: Address) -> Generator[PostgresSnapshot]:
    """The schema as it is now."""
    # Reading a large store may take longer than any other transaction.
    pipeline = Pipeline(
        connect(replace(address, idle_timeout_ms=0)), QUERIES, address.answer_timeout_s
    )
    try:
        pipeline.run([Call("begin_snapshot")])
        view = PostgresSnapshot(pipeline, address)
        # PostgreSQL chooses the moment at the first read.
        view.head()
        yield view
    finally:
        pipeline.close()

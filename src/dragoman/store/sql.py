"""Shared parts of the SQL stores: queries and migrations from .sql files, and read methods.

A query stands under a line `-- name: what_it_is_called`. Lines that are only a comment are for the
reader of the file and are not sent to the database.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import starmap
from pathlib import Path
from typing import Any

from dragoman.core.errors import StoreCorrupt, StoreUnavailable
from dragoman.engine.ports import (
    EntryColumns,
    IdempotencyRecord,
    ListItem,
    ListQuery,
    NamedIdempotencyRecord,
    StreamHead,
    StreamRow,
)
from dragoman.ledger.entry import Entry
from dragoman.ledger.stream_state import HandoffRow, LogRow
from dragoman.text.search_terms import SearchQuery

# --- files ------------------------------------------------------------------------------------

_NAME = re.compile(r"-- name: ([a-z][a-z0-9_]*)", re.ASCII)

_MIGRATION = re.compile(r"([0-9]{4})_[a-z0-9_]+\.sql", re.ASCII)


def load_queries(package: str, file: str = "queries.sql") -> Mapping[str, str]:
    """The queries of a file, by name."""
    queries: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (_folder(package) / file).read_text("utf-8").splitlines():
        if name := _NAME.fullmatch(line):
            if name[1] in queries:
                raise ValueError(f"{package}/{file}: two queries are called {name[1]}")
            lines = queries.setdefault(name[1], [])
        elif not line.lstrip().startswith("--"):
            lines.append(line.strip())
    return {name: "\n".join(lines).strip() for name, lines in queries.items()}


def load_migrations(package: str) -> list[str]:
    """The scripts `migrations/NNNN_name.sql` in order; number n is at n - 1."""
    found = {
        int(name[1]): file.read_text("utf-8")
        for file in (_folder(package) / "migrations").iterdir()
        if (name := _MIGRATION.fullmatch(file.name))
    }
    if sorted(found) != list(range(1, len(found) + 1)):
        raise ValueError(f"{package}: migrations must be numbered 0001, 0002, … without a gap")
    return [found[number] for number in sorted(found)]


def _folder(package: str) -> Path:
    return Path(import_module(package).__path__[0])


def other_version(store: object, version: int, known: int) -> StoreUnavailable:
    """The error for a store whose schema version no migration here leads on from."""
    return StoreUnavailable(
        f"{store} was made by another version of dragoman (schema {version}, this one knows "
        f"{known}); nothing was changed. Use that version, or export there and import here"
    )


# --- reads ------------------------------------------------------------------------------------

MAX_POSITION = 2**63 - 1
"""The highest position, and number, that a database can hold."""


class SqlReads(ABC):
    """The reads of an SQL store; a store adds how a named query is run."""

    @abstractmethod
    def _read(self, query: str, *values: Any) -> list[Any]:
        """All rows that a named query finds."""

    @abstractmethod
    def _stream_row(self, found: Any) -> StreamRow:
        """The contract's row from a row of the database."""

    @abstractmethod
    def _location(self) -> str:
        """The location of the store, for messages."""

    @abstractmethod
    def _search_expression(self, query: SearchQuery) -> str:
        """A search in the database's own query language."""

    def head(self) -> int:
        return self._read("head")[0][0]

    def ledger_id(self) -> str:
        for (ledger_id,) in self._read("ledger_id"):
            return ledger_id
        raise StoreCorrupt(
            f"{self._location()} has lost the id of its ledger; nothing was written: restore it "
            "from a backup, and keep the present data"
        )

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        end = MAX_POSITION if until is None else until
        return list(starmap(Entry, self._read("entries", after, end, limit)))

    def entry_columns(self, after: int, until: int, limit: int) -> list[EntryColumns]:
        """The same, as the database gives them."""
        return self._read("entries", after, until, limit)

    def history(
        self, stream: str, after: int, limit: int, *, until: int | None = None
    ) -> list[Entry]:
        end = MAX_POSITION if until is None else until
        return list(starmap(Entry, self._read("history", stream, after, end, limit)))

    def stream(self, name: str) -> StreamRow | None:
        found = self._read("stream", name)
        return self._stream_row(found[0]) if found else None

    def rows(self, after: int, limit: int) -> list[StreamRow]:
        return list(map(self._stream_row, self._read("rows", after, limit)))

    def heads(self, after: int, limit: int) -> list[StreamHead]:
        return self._read("heads", after, limit)

    def streams_of_kind(self, kind: str, after: str, limit: int) -> list[StreamRow]:
        # A semicolon is the character after the colon, so all names of the kind lie between.
        found = self._read("kind", f"{kind}:{after}", f"{kind};", limit)
        return list(map(self._stream_row, found))

    def aliases(self, after: tuple[str, str], limit: int) -> list[tuple[str, str, str]]:
        return self._read("names", *after, limit)

    def status_counts(self) -> dict[str, int]:
        return dict(self._read("counts"))

    def queue_counts(self) -> dict[str, int]:
        return dict(self._read("queue_counts"))

    def expired_leases(self, now: int, limit: int) -> list[str]:
        return [name for (name,) in self._read("expired", now, limit)]

    def overdue_streams(self, now: int, limit: int) -> list[str]:
        return [name for (name,) in self._read("overdue", now, limit)]

    def streams_in_session(self, session: str) -> list[str]:
        return [name for (name,) in self._read("sessions", session)]

    def claims(self, session: str, after: int, limit: int) -> list[Entry]:
        return list(starmap(Entry, self._read("claims", session, after, limit)))

    def last_claims(self, session: str, before: int, limit: int) -> list[Entry]:
        return list(starmap(Entry, self._read("claims_back", session, before, limit)))

    def list_page(self, query: ListQuery) -> list[ListItem]:
        if query.before is None:
            found = self._read("listed", query.list, query.after, query.limit)
        else:
            found = self._read("listed_back", query.list, query.after, query.before, query.limit)
        return list(map(self._list_item, found))

    def list_items(self, after: tuple[str, int], limit: int) -> list[tuple[str, int, str]]:
        return self._read("places", *after, limit)

    def handoffs(self, after: str, limit: int) -> list[HandoffRow]:
        return list(starmap(HandoffRow, self._read("handoffs", after, limit)))

    def turns(self, task: str, attempt: int, after: int, limit: int) -> list[Entry]:
        return list(starmap(Entry, self._read("turns", task, attempt, after, limit)))

    def last_turns(self, task: str, attempt: int, limit: int) -> list[Entry]:
        return list(starmap(Entry, self._read("turns_back", task, attempt, limit)))

    def trace_events(self, task: str, after: int, limit: int) -> list[Entry]:
        return list(starmap(Entry, self._read("traces", task, after, limit)))

    def trace_event(self, event_id: str) -> Entry | None:
        return next(starmap(Entry, self._read("trace", event_id)), None)

    def log_rows(self, after: int, until: int) -> list[tuple[int, LogRow]]:
        found = self._read("logs", after, until)
        return [(row[0], _log_row(row[1:])) for row in found]

    def held_streams(self, after: int, limit: int) -> list[StreamRow]:
        return list(map(self._stream_row, self._read("held", after, limit)))

    def answers(self, after: tuple[int, str], limit: int) -> list[NamedIdempotencyRecord]:
        found = self._read("answers", *after, limit)
        return [
            NamedIdempotencyRecord(stream, IdempotencyRecord(*answer)) for stream, *answer in found
        ]

    def indexed_position(self) -> int:
        return int(next((value for (value,) in self._read("indexed")), 0))

    def search(self, query: SearchQuery, before: int | None, limit: int) -> list[ListItem]:
        end = MAX_POSITION if before is None else before
        return list(
            map(self._list_item, self._read("search", self._search_expression(query), end, limit))
        )

    def _list_item(self, found: Any) -> ListItem:
        """A position, followed by the row of its stream."""
        return ListItem(found[0], self._stream_row(found[1:]))


def _log_row(found: Any) -> LogRow:
    *row, masked = found
    return LogRow(*row, masked=bool(masked))


SchemaObjects = Mapping[str, str]
"""Object of a schema, with its kind -> its definition."""


def compare_schemas(found: SchemaObjects, expected: SchemaObjects) -> Iterator[str]:
    """Yield each object that is missing, changed, or not of this version."""
    for name in sorted({*found, *expected}):
        if name not in found:
            yield f"{name} is missing"
        elif name not in expected:
            yield f"{name} is not dragoman's"
        elif found[name] != expected[name]:
            yield f"{name} was changed"


class SqlMeta(SqlReads):
    """Facts beside the ledger: the fingerprint of the hub's secret, and the checkpoints that were
    issued. A store adds how a named query writes."""

    @abstractmethod
    def _write_one(self, query: str, *values: Any) -> None:
        """Run a named query that writes, outside of a writer's transaction."""

    def secret_fingerprint(self, own: str, *, overwrite: bool = False) -> str:
        if overwrite:
            self._write_one("overwrite_secret_fingerprint", own)
        elif not self._read("secret_fingerprint"):
            self._write_one("keep_secret_fingerprint", own)
        return self._read("secret_fingerprint")[0][0]

    def issued_checkpoints(self) -> Mapping[str, str]:
        return dict(self._read("issued_checkpoints"))

    def keep_issued_checkpoints(self, file: str, extent: str) -> None:
        self._write_one("keep_issued_checkpoints", file, extent)

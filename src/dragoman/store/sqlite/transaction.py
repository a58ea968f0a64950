"""A writing transaction of the SQLite store: keys are looked up, and tables written, in bulk."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import apsw
from msgspec.structs import astuple

from dragoman.core.attempt_state import Lease
from dragoman.core.errors import ActiveHandoffConflict, StoreConflict
from dragoman.engine.ports import (
    Changes,
    IdempotencyRecord,
    NewEntry,
    NewLogRow,
    ReadyKey,
    StreamRow,
)
from dragoman.ledger.stream_state import (
    FOLD_VERSION,
    IndexRow,
    index_row,
    load_state,
    parse_log_key,
)
from dragoman.store.sql import load_queries
from dragoman.store.sqlite.apsw_types import Connection, extended_code

QUERIES = load_queries("dragoman.store.sqlite")

Binding = tuple[Any, ...]

IndexRows = dict[int, IndexRow]
"""Stream number -> its stored index row, valid as long as nobody else writes."""

_MAX_INDEX_ROWS = 20_000
_QUEUE_START = (-(2**63), 0, 0)
_CONFLICTS = frozenset(
    {
        apsw.SQLITE_CONSTRAINT_PRIMARYKEY,
        apsw.SQLITE_CONSTRAINT_ROWID,
        apsw.SQLITE_CONSTRAINT_UNIQUE,
    }
)

_ONE_ACTIVE_HANDOFF = "handoffs.task_id"
"""The column that SQLite names when idx_handoffs_task_active is violated."""


class SqliteTransaction:
    """A transaction that has SQLite's only write lock."""

    def __init__(self, connection: Connection, index_rows: IndexRows, *, is_fresh: bool) -> None:
        if not is_fresh or len(index_rows) > _MAX_INDEX_ROWS:
            index_rows.clear()
        self.is_fresh = is_fresh
        self._index_rows = index_rows
        self._connection = connection
        self._cursor = connection.cursor()
        self._last_stream = 0
        self.first_position = 0

    def streams(self, names: Sequence[str]) -> list[StreamRow]:
        return [stream_row(found) for found in self._query_each("stream", zip(names, strict=True))]

    def stream_lines(self, stream: str) -> list[bytes]:
        return [line for (line,) in self._query("lines", stream)]

    def new_stream_number(self) -> int:
        self._last_stream = 1 + (self._last_stream or self._query_value("last_stream"))
        return self._last_stream

    def find_aliases(self, names: Sequence[str]) -> list[tuple[str, str, str]]:
        return self._query_each("named", zip(names, strict=True))

    def find_answers(self, keys: Sequence[tuple[int, str]]) -> list[IdempotencyRecord]:
        return [IdempotencyRecord(*found) for found in self._query_each("answered", keys)]

    def promote_due(self, now: int, limit: int) -> int:
        due = self._query("due", now, limit)
        index_rows = {
            number: self._index_row(name, fold, state, now) for number, name, fold, state in due
        }
        self._write_each(
            "shelve", [(*astuple(index_row), number) for number, index_row in index_rows.items()]
        )
        self._index_rows.update(index_rows)
        return len(due)

    def ready_page(self, queue: str, after: ReadyKey | None, limit: int) -> list[ReadyKey]:
        place = _QUEUE_START if after is None else (after.rank, after.since, after.number)
        return [ReadyKey(*found) for found in self._query("ready", queue, *place, limit)]

    def last_number(self, day: str) -> int:
        return self._query_value("last_number", day) or 0

    def find_log_rows(self, keys: Sequence[str]) -> list[tuple[str, int, str, bool]]:
        log_keys = list(map(parse_log_key, keys))
        events = self._query_each(
            "logged_event", [(one,) for one in log_keys if isinstance(one, str)]
        )
        turns = self._query_each(
            "logged_turn", [one for one in log_keys if not isinstance(one, str)]
        )
        return [
            *((f"event:{id}", at, digest, bool(cut)) for id, at, digest, cut in events),
            *(
                (f"turn:{task}/{attempt}/{index}", at, digest, bool(cut))
                for task, attempt, index, at, digest, cut in turns
            ),
        ]

    def streams_held(self, session: str, holder: str) -> list[str]:
        found = self._query("held_in", session) or self._query("held_by", holder)
        return [name for (name,) in found]

    def list_members(self, name: str) -> list[str]:
        return [stream for (stream,) in self._query("on_list", name)]

    def write(self, changes: Changes) -> None:
        """Write each table once."""
        try:
            self._write_each("append_entry", changes.entries, astuple)
            self.first_position = 1 + self._connection.last_insert_rowid() - len(changes.entries)
            if changes.streams:
                self._write_streams(changes.streams, changes.entries)
            if changes.leases:
                self._write_leases(changes.leases)
            self._write_each("bind_name", changes.aliases)
            self._write_each("put_answer", changes.answers, astuple)
            self._write_each("put_number", changes.daily_numbers.items())
            self._write_each("unlist", changes.list_removals)
            self._write_each("list", changes.list_additions)
            self._write_each("move_handoff", changes.handoff_updates, astuple)
            self._write_each("put_handoff", changes.new_handoffs, astuple)
            self._write_each("put_log", changes.logs, _log_binding)
        except apsw.ConstraintError as error:
            if _ONE_ACTIVE_HANDOFF in str(error):
                raise ActiveHandoffConflict(
                    f"another handoff of it is under way ({error})"
                ) from error
            if extended_code(error) in _CONFLICTS:
                raise StoreConflict(f"another writer was faster ({error})") from error
            raise

    def _write_streams(self, rows: Sequence[StreamRow], entries: Sequence[NewEntry]) -> None:
        """Write each row, if it is still at the version that its new entries follow."""
        versions = {entry.stream: entry.version - 1 for entry in reversed(entries)}
        """Stream number -> the version that its first new entry follows."""
        index_rows = self._index_rows
        put: list[Binding] = []
        moved: list[Binding] = []
        unmoved: list[Binding] = []
        for row in rows:
            number, index = row.number, row.index
            head = row.version, row.hash, row.fold_version, row.state
            before = versions.get(number, row.version)
            known = index_rows.get(number)
            if known == index:
                unmoved.append((*head, number, before))
            elif known and (known.owner, known.deadline) == (index.owner, index.deadline):
                moved.append((*head, *astuple(index)[:-2], number, before))
            else:
                put.append((number, row.name, *head, *astuple(index), before))
            index_rows[number] = index
        written = self._connection.total_changes()
        self._write_each("put_stream", put)
        self._write_each("move_stream", moved)
        self._write_each("keep_stream", unmoved)
        if self._connection.total_changes() - written != len(rows):
            raise StoreConflict("another writer was faster: a stream is at another version")

    def _write_leases(self, leases: Sequence[tuple[int, Lease | None]]) -> None:
        self._write_each("put_lease", [(n, *astuple(lease)) for n, lease in leases if lease])
        self._write_each("end_lease", [(n,) for n, lease in leases if lease is None])

    def _write_each(
        self, query: str, rows: Collection[Any], bind: Callable[[Any], Binding] | None = None
    ) -> None:
        """Run a statement that writes for each of these rows; `bind` makes its parameters."""
        if rows:
            self._cursor.executemany(QUERIES[query], map(bind, rows) if bind else rows)

    def _query_each(self, query: str, bindings: Iterable[Binding]) -> list[Any]:
        """Run a statement for each of these bindings; all rows found."""
        return self._cursor.executemany(QUERIES[query], bindings).fetchall()

    def _query(self, query: str, *bindings: Any) -> list[Any]:
        return self._cursor.execute(QUERIES[query], bindings).fetchall()

    def _query_value(self, query: str, *bindings: Any) -> Any:
        return self._cursor.execute(QUERIES[query], bindings).get

    def _index_row(self, name: str, fold: int, state: bytes, now: int) -> IndexRow:
        lines = () if fold == FOLD_VERSION else self.stream_lines(name)
        return index_row(load_state(name, fold, state, lines), now)


def _log_binding(new: NewLogRow) -> Binding:
    return (*astuple(new.row), new.stream, new.version)


def stream_row(found: Any) -> StreamRow:
    """The contract's row from a row of the view stream_rows."""
    number, name, version, hash, fold, state, *others = found
    lease = None if others[7] is None else Lease(*others[7:])
    return StreamRow(number, name, version, hash, fold, state, lease, IndexRow(*others[:7]))

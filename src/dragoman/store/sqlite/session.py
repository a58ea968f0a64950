"""One transaction of the SQLite store: keys are looked up, and a table is written, all at once."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import apsw
from msgspec.structs import astuple

from dragoman.core.errors import StoreConflict, TaskOnItsWay
from dragoman.core.states.lease import Lease
from dragoman.engine.ports import Answer, Changes, NewEntry, NewLog, ReadyKey, Row
from dragoman.ledger.logs import split_key
from dragoman.ledger.views import FOLD, Shelf, current_state, shelve
from dragoman.store.sql_files import load_queries
from dragoman.store.sqlite.driver import Connection, extended_code

QUERIES = load_queries("dragoman.store.sqlite")

Binding = tuple[Any, ...]

Shelves = dict[int, Shelf]
"""Stream number -> its stored index row, valid as long as nobody else writes."""

_MOST_SHELVES = 20_000
_BEFORE_ALL = (-(2**63), 0, 0)
_CONFLICTS = frozenset(
    {
        apsw.SQLITE_CONSTRAINT_PRIMARYKEY,
        apsw.SQLITE_CONSTRAINT_ROWID,
        apsw.SQLITE_CONSTRAINT_UNIQUE,
    }
)

_ONE_UNDER_WAY = "handoffs.task_id"
"""The column that SQLite names when idx_handoffs_task_active is violated."""


class SqliteSession:
    """A transaction that has SQLite's only write lock."""

    def __init__(self, connection: Connection, shelves: Shelves, *, is_fresh: bool) -> None:
        if not is_fresh or len(shelves) > _MOST_SHELVES:
            shelves.clear()
        self.is_fresh = is_fresh
        self._shelves = shelves
        self._connection = connection
        self._cursor = connection.cursor()
        self._last_stream = 0
        self.first = 0

    def streams(self, names: Sequence[str]) -> list[Row]:
        """The rows of those streams that exist."""
        return [as_row(found) for found in self._each("stream", zip(names, strict=True))]

    def history(self, stream: str) -> list[bytes]:
        """The lines of one stream."""
        return [line for (line,) in self._all("lines", stream)]

    def new_stream(self) -> int:
        """A stream number that is not in use."""
        self._last_stream = 1 + (self._last_stream or self._value("last_stream"))
        return self._last_stream

    def named(self, names: Sequence[str]) -> list[tuple[str, str, str]]:
        """(name, kind, stream) of every task that has one of these names as an alias."""
        return self._each("named", zip(names, strict=True))

    def answered(self, keys: Sequence[tuple[int, str]]) -> list[Answer]:
        """The stored answers for these keys."""
        return [Answer(*found) for found in self._each("answered", keys)]

    def promote(self, now: int, limit: int) -> int:
        """Put tasks whose backoff is over into their queues."""
        due = self._all("due", now, limit)
        shelves = {number: self._shelf(name, fold, state, now) for number, name, fold, state in due}
        self._put("shelve", [(*astuple(shelf), number) for number, shelf in shelves.items()])
        self._shelves.update(shelves)
        return len(due)

    def ready(self, queue: str, after: ReadyKey | None, limit: int) -> list[ReadyKey]:
        """A page of the queue, in order."""
        place = _BEFORE_ALL if after is None else (after.rank, after.since, after.number)
        return [ReadyKey(*found) for found in self._all("ready", queue, *place, limit)]

    def last_number(self, day: str) -> int:
        """The last AOF number given out on this day."""
        return self._value("last_number", day) or 0

    def logged(self, keys: Sequence[str]) -> list[tuple[str, int, str, bool]]:
        """(Key, position, digest, masked) of those turns and events that are recorded already."""
        asked = list(map(split_key, keys))
        events = self._each("logged_event", [(one,) for one in asked if isinstance(one, str)])
        turns = self._each("logged_turn", [one for one in asked if not isinstance(one, str)])
        return [
            *((f"event:{id}", at, digest, bool(cut)) for id, at, digest, cut in events),
            *(
                (f"turn:{task}/{attempt}/{index}", at, digest, bool(cut))
                for task, attempt, index, at, digest, cut in turns
            ),
        ]

    def held(self, session: str, holder: str) -> list[str]:
        """The streams of tasks held in this session; if there is none, of those held by this
        holder."""
        found = self._all("held_in", session) or self._all("held_by", holder)
        return [name for (name,) in found]

    def on_list(self, name: str) -> list[str]:
        """The streams on this list, oldest first."""
        return [stream for (stream,) in self._all("on_list", name)]

    def write(self, changes: Changes) -> None:
        """Write each table once."""
        try:
            self._put("append_entry", changes.entries, astuple)
            self.first = 1 + self._connection.last_insert_rowid() - len(changes.entries)
            if changes.streams:
                self._write_streams(changes.streams, changes.entries)
            if changes.leases:
                self._write_leases(changes.leases)
            self._put("bind_name", changes.names)
            self._put("put_answer", changes.answers, astuple)
            self._put("put_number", changes.numbers.items())
            self._put("unlist", changes.unlisted)
            self._put("list", changes.listed)
            self._put("move_handoff", changes.courses, astuple)
            self._put("put_handoff", changes.handoffs, astuple)
            self._put("put_log", changes.logs, _log)
        except apsw.ConstraintError as error:
            if _ONE_UNDER_WAY in str(error):
                raise TaskOnItsWay(f"another handoff of it is under way ({error})") from error
            if extended_code(error) in _CONFLICTS:
                raise StoreConflict(f"another writer was faster ({error})") from error
            raise

    def _write_streams(self, rows: Sequence[Row], entries: Sequence[NewEntry]) -> None:
        """Write each row, if it is still at the version that its new entries follow."""
        versions = {entry.stream: entry.version - 1 for entry in reversed(entries)}
        """Stream number -> the version that its first new entry follows."""
        shelves = self._shelves
        put: list[Binding] = []
        moved: list[Binding] = []
        kept: list[Binding] = []
        for row in rows:
            number, shelf = row.number, row.shelf
            head = row.version, row.hash, row.fold, row.state
            before = versions.get(number, row.version)
            known = shelves.get(number)
            if known == shelf:
                kept.append((*head, number, before))
            elif known and (known.owner, known.deadline) == (shelf.owner, shelf.deadline):
                moved.append((*head, *astuple(shelf)[:-2], number, before))
            else:
                put.append((number, row.name, *head, *astuple(shelf), before))
            shelves[number] = shelf
        written = self._connection.total_changes()
        self._put("put_stream", put)
        self._put("move_stream", moved)
        self._put("keep_stream", kept)
        if self._connection.total_changes() - written != len(rows):
            raise StoreConflict("another writer was faster: a stream is at another version")

    def _write_leases(self, leases: Sequence[tuple[int, Lease | None]]) -> None:
        self._put("put_lease", [(n, *astuple(lease)) for n, lease in leases if lease])
        self._put("end_lease", [(n,) for n, lease in leases if lease is None])

    def _put(
        self, query: str, rows: Collection[Any], bound: Callable[[Any], Binding] | None = None
    ) -> None:
        """Run a statement that writes for each of these rows; `bind` makes its parameters."""
        if rows:
            self._cursor.executemany(QUERIES[query], map(bound, rows) if bound else rows)

    def _each(self, query: str, bindings: Iterable[Binding]) -> list[Any]:
        """Run a statement for each of these bindings; all rows found."""
        return self._cursor.executemany(QUERIES[query], bindings).fetchall()

    def _all(self, query: str, *bindings: Any) -> list[Any]:
        return self._cursor.execute(QUERIES[query], bindings).fetchall()

    def _value(self, query: str, *bindings: Any) -> Any:
        return self._cursor.execute(QUERIES[query], bindings).get

    def _shelf(self, name: str, fold: int, state: bytes, now: int) -> Shelf:
        lines = () if fold == FOLD else self.history(name)
        return shelve(current_state(name, fold, state, lines), now)


def _log(new: NewLog) -> Binding:
    return (*astuple(new.log), new.stream, new.version)


def as_row(found: Any) -> Row:
    """The contract's row from a row of the view stream_rows."""
    number, name, version, hash, fold, state, *rest = found
    lease = None if rest[7] is None else Lease(*rest[7:])
    return Row(number, name, version, hash, fold, state, lease, Shelf(*rest[:7]))

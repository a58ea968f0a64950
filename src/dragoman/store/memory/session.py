"""One transaction of the memory store: it reads the tables, and keeps what it would write."""

from collections.abc import Sequence

from msgspec.structs import replace

from dragoman.core.errors import StoreConflict, TaskOnItsWay
from dragoman.engine.ports import Answer, Changes, ReadyKey, Row
from dragoman.ledger.records import HandoffRecord
from dragoman.ledger.views import current_state, shelve
from dragoman.store.memory.tables import Tables


class MemorySession:
    """A transaction under the store's lock, so nobody else has written since the last one."""

    is_fresh = True

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._last_number = tables.last_stream
        self._unpromoted: dict[int, Row] = {}
        self.written: list[Changes] = []
        self._first = 0

    def streams(self, names: Sequence[str]) -> list[Row]:
        """The rows of those streams that exist."""
        return [row for row in map(self._tables.row, names) if row is not None]

    def history(self, stream: str) -> list[bytes]:
        """The lines of one stream."""
        return [entry.line for entry in self._tables.histories.get(stream, [])]

    def new_stream(self) -> int:
        """A stream number that is not in use."""
        self._last_number += 1
        return self._last_number

    def named(self, names: Sequence[str]) -> list[tuple[str, str, str]]:
        """(name, kind, stream) of every task that has one of these names as an alias."""
        return [(name, *found) for name in names for found in self._tables.named(name)]

    def answered(self, keys: Sequence[tuple[int, str]]) -> list[Answer]:
        """The stored answers for these keys."""
        answers = self._tables.answers
        return [answers[key] for key in keys if key in answers]

    def promote(self, now: int, limit: int) -> int:
        """Put tasks whose backoff is over into their queues."""
        due = sorted(
            (row.shelf.due, number)
            for number, row in self._tables.rows.items()
            if row.shelf.due is not None and row.shelf.due <= now
        )[:limit]
        for _, number in due:
            row = self._tables.rows[number]
            state = current_state(row.name, row.fold, row.state, self.history(row.name))
            shelf = shelve(state, now)
            self._unpromoted[number] = row
            self._tables.rows[number] = replace(row, shelf=shelf)
        return len(due)

    def undo(self) -> None:
        """Undo promotions; nothing else has been written yet."""
        self._tables.rows.update(self._unpromoted)

    def ready(self, queue: str, after: ReadyKey | None, limit: int) -> list[ReadyKey]:
        """A page of the queue, in order."""
        keys = (
            ReadyKey(row.shelf.rank, row.shelf.since, number, row.name)
            for number, row in self._tables.rows.items()
            if row.shelf.queue == queue
        )
        return sorted(key for key in keys if after is None or key > after)[:limit]

    def last_number(self, day: str) -> int:
        """The last AOF number given out on this day."""
        return self._tables.last_numbers.get(day, 0)

    def logged(self, keys: Sequence[str]) -> list[tuple[str, int, str, bool]]:
        """(Key, position, digest, masked) of those turns and events that are recorded already."""
        known = [(key, self._tables.logs[key]) for key in keys if key in self._tables.logs]
        return [(key, entry.position, log.digest, log.masked) for key, (log, entry) in known]

    def held(self, session: str, holder: str) -> list[str]:
        """The streams of tasks held in this session; if there is none, of those held by this
        holder."""
        rows = [row for _, row in sorted(self._tables.rows.items()) if row.lease is not None]
        inside = [row.name for row in rows if row.lease and row.lease.session == session]
        return inside or [row.name for row in rows if row.lease and row.lease.holder == holder]

    def on_list(self, name: str) -> list[str]:
        """The streams on this list, oldest first."""
        return [stream for _, stream in sorted(self._tables.lists.get(name, {}).items())]

    @property
    def first(self) -> int:
        """The position of the first entry that was written."""
        return self._first

    def write(self, changes: Changes) -> None:
        """Hold the changes for the commit, if they do not conflict."""
        reached: dict[int, int] = {}
        for entry in changes.entries:
            if entry.version != reached.get(entry.stream, self._version(entry.stream)) + 1:
                raise StoreConflict(f"stream {entry.stream} is not at version {entry.version - 1}")
            reached[entry.stream] = entry.version
        for name, kind, _ in changes.names:
            if (name, kind) in self._tables.names:
                raise StoreConflict(f"{kind}:{name} is taken")
        for answer in changes.answers:
            if (answer.scope, answer.key) in self._tables.answers:
                raise StoreConflict(f"key {answer.key} was answered")
        self._check_handoffs(self._tables.after(changes))
        for new in changes.logs:
            if new.log.key in self._tables.logs:
                raise StoreConflict(f"{new.log.key} was recorded")
        self._first = len(self._tables.entries) + 1 if changes.entries else 0
        self.written.append(changes)

    def _check_handoffs(self, records: Sequence[HandoffRecord]) -> None:
        """Check that each task has at most one active handoff."""
        over = {record.id for record in records if not record.is_active}
        under_way: dict[str, str] = {}
        for new in records:
            if not new.is_active:
                continue
            known = under_way.get(new.task_id) or self._tables.under_way.get(new.task_id)
            if known not in (None, new.id, *over):
                raise TaskOnItsWay(f"another handoff of {new.task_id} is under way, {known}")
            under_way[new.task_id] = new.id

    def _version(self, number: int) -> int:
        row = self._tables.rows.get(number)
        return row.version if row is not None else 0

"""One transaction of the memory store: it reads the tables, and keeps what it would write."""

from collections.abc import Sequence

from msgspec.structs import replace

from dragoman.core.errors import ActiveHandoffConflict, StoreConflict
from dragoman.engine.ports import Changes, IdempotencyRecord, ReadyKey, StreamRow
from dragoman.ledger.records import HandoffRow
from dragoman.ledger.views import index_row, load_state
from dragoman.store.memory.tables import Tables


class MemoryTransaction:
    """A transaction under the store's lock, so nobody else has written since the last one."""

    is_fresh = True

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._last_number = tables.last_stream
        self._unpromoted: dict[int, StreamRow] = {}
        self.written: list[Changes] = []
        self._first_position = 0

    def streams(self, names: Sequence[str]) -> list[StreamRow]:
        """The rows of those streams that exist."""
        return [row for row in map(self._tables.row, names) if row is not None]

    def stream_lines(self, stream: str) -> list[bytes]:
        """The lines of one stream."""
        return [entry.line for entry in self._tables.histories.get(stream, [])]

    def new_stream_number(self) -> int:
        """A stream number that is not in use."""
        self._last_number += 1
        return self._last_number

    def find_aliases(self, names: Sequence[str]) -> list[tuple[str, str, str]]:
        """(name, kind, stream) of every task that has one of these names as an alias."""
        return [(name, *found) for name in names for found in self._tables.find_aliases(name)]

    def find_answers(self, keys: Sequence[tuple[int, str]]) -> list[IdempotencyRecord]:
        """The stored answers for these keys."""
        answers = self._tables.answers
        return [answers[key] for key in keys if key in answers]

    def promote_due(self, now: int, limit: int) -> int:
        """Put tasks whose backoff is over into their queues."""
        due = sorted(
            (row.index.ready_at, number)
            for number, row in self._tables.rows.items()
            if row.index.ready_at is not None and row.index.ready_at <= now
        )[:limit]
        for _, number in due:
            row = self._tables.rows[number]
            state = load_state(row.name, row.fold_version, row.state, self.stream_lines(row.name))
            index = index_row(state, now)
            self._unpromoted[number] = row
            self._tables.rows[number] = replace(row, index=index)
        return len(due)

    def undo(self) -> None:
        """Undo promotions; nothing else has been written yet."""
        self._tables.rows.update(self._unpromoted)

    def ready_page(self, queue: str, after: ReadyKey | None, limit: int) -> list[ReadyKey]:
        """A page of the queue, in order."""
        keys = (
            ReadyKey(row.index.rank, row.index.since, number, row.name)
            for number, row in self._tables.rows.items()
            if row.index.queue == queue
        )
        return sorted(key for key in keys if after is None or key > after)[:limit]

    def last_number(self, day: str) -> int:
        """The last AOF number given out on this day."""
        return self._tables.daily_numbers.get(day, 0)

    def find_log_rows(self, keys: Sequence[str]) -> list[tuple[str, int, str, bool]]:
        """(Key, position, digest, masked) of those turns and events that are recorded already."""
        known = [(key, self._tables.log_rows[key]) for key in keys if key in self._tables.log_rows]
        return [(key, entry.position, log.digest, log.masked) for key, (log, entry) in known]

    def streams_held(self, session: str, holder: str) -> list[str]:
        """The streams of tasks held in this session; if there is none, of those held by this
        holder."""
        rows = [row for _, row in sorted(self._tables.rows.items()) if row.lease is not None]
        inside = [row.name for row in rows if row.lease and row.lease.session == session]
        return inside or [row.name for row in rows if row.lease and row.lease.holder == holder]

    def list_members(self, name: str) -> list[str]:
        """The streams on this list, oldest first."""
        return [stream for _, stream in sorted(self._tables.lists.get(name, {}).items())]

    @property
    def first_position(self) -> int:
        """The position of the first entry that was written."""
        return self._first_position

    def write(self, changes: Changes) -> None:
        """Hold the changes for the commit, if they do not conflict."""
        versions: dict[int, int] = {}
        for entry in changes.entries:
            if entry.version != versions.get(entry.stream, self._version(entry.stream)) + 1:
                raise StoreConflict(f"stream {entry.stream} is not at version {entry.version - 1}")
            versions[entry.stream] = entry.version
        for name, kind, _ in changes.aliases:
            if (name, kind) in self._tables.aliases:
                raise StoreConflict(f"{kind}:{name} is taken")
        for answer in changes.answers:
            if (answer.scope, answer.key) in self._tables.answers:
                raise StoreConflict(f"key {answer.key} was answered")
        self._check_handoffs(self._tables.handoff_rows_after(changes))
        for new in changes.logs:
            if new.row.key in self._tables.log_rows:
                raise StoreConflict(f"{new.row.key} was recorded")
        self._first_position = len(self._tables.entries) + 1 if changes.entries else 0
        self.written.append(changes)

    def _check_handoffs(self, records: Sequence[HandoffRow]) -> None:
        """Check that each task has at most one active handoff."""
        resolved = {record.id for record in records if not record.is_active}
        active: dict[str, str] = {}
        for new in records:
            if not new.is_active:
                continue
            known = active.get(new.task_id) or self._tables.active_handoffs.get(new.task_id)
            if known not in (None, new.id, *resolved):
                raise ActiveHandoffConflict(
                    f"another handoff of {new.task_id} is under way, {known}"
                )
            active[new.task_id] = new.id

    def _version(self, number: int) -> int:
        row = self._tables.rows.get(number)
        return row.version if row is not None else 0

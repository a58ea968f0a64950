"""The memory store: one lock; nothing changes until the work of a transaction is done."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from itertools import islice
from typing import Any, TypeVar, cast

from msgspec import json
from msgspec.structs import asdict, astuple, replace

from dragoman.core.attempt_state import TaskClaimed
from dragoman.core.errors import ActiveHandoffConflict, StoreConflict
from dragoman.core.event_table import EVENT_NAMES
from dragoman.engine.ports import (
    Changes,
    EntryColumns,
    IdempotencyRecord,
    IntegrityReport,
    ListItem,
    ListQuery,
    ReadyKey,
    StreamHead,
    StreamRow,
    TaskQuery,
    Transaction,
)
from dragoman.ledger.entry import Entry
from dragoman.ledger.stream_state import HandoffRow, LogRow, index_row, load_state
from dragoman.text.search_terms import SearchQuery, SearchTerm, Words


class Tables:
    """The tables of the databases, as dictionaries."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.histories: dict[str, list[Entry]] = {}
        self.rows: dict[int, StreamRow] = {}
        self.numbers: dict[str, int] = {}
        """Stream name -> stream number."""
        self.last_stream = 0
        self.aliases: dict[tuple[str, str], str] = {}
        """(Name, kind) -> stream name."""
        self.kinds_of_alias: dict[str, list[str]] = {}
        """Name -> its kinds."""
        self.answers: dict[tuple[int, str], IdempotencyRecord] = {}
        self.daily_numbers: dict[str, int] = {}
        self.lists: dict[str, dict[int, str]] = {}
        """List -> its streams, by position."""
        self.texts: dict[int, Words] = {}
        """Position -> its indexed text."""
        self.indexed_position = 0
        self.handoffs: dict[str, HandoffRow] = {}
        self.active_handoffs: dict[str, str] = {}
        """Task -> its active handoff."""
        self.log_rows: dict[str, tuple[LogRow, Entry]] = {}
        """Key of a turn or a trace event -> its row and its entry."""

    def row(self, stream: str) -> StreamRow | None:
        number = self.numbers.get(stream)
        return None if number is None else self.rows[number]

    def find_aliases(self, name: str) -> list[tuple[str, str]]:
        return sorted(
            (kind, self.aliases[name, kind]) for kind in self.kinds_of_alias.get(name, ())
        )

    def turns(self, task: str, attempt: int) -> list[tuple[int, Entry]]:
        found = [
            (log.turn_index, entry)
            for log, entry in self.log_rows.values()
            if log.turn_index is not None and (log.task, log.attempt) == (task, attempt)
        ]
        return sorted(found, key=lambda one: one[0])

    def claims(self, session: str) -> list[Entry]:
        needle = f'"session":"{session}"'.encode()
        likely = (one for one in self.entries if one.event == _CLAIMED and needle in one.line)
        return [one for one in likely if json.decode(one.line)["body"].get("session") == session]

    def apply(self, changes: Changes) -> None:
        """Write all changes."""
        for row in changes.streams:
            self.rows[row.number] = row
            self.numbers[row.name] = row.number
            self.last_stream = max(self.last_stream, row.number)
        for number, lease in changes.leases:
            self.rows[number] = replace(self.rows[number], lease=lease)
        for new in changes.entries:
            stream = self.rows[new.stream].name
            position = len(self.entries) + 1
            entry = Entry(
                position, stream, new.version, new.event, new.line, new.previous, new.hash
            )
            self.entries.append(entry)
            self.histories.setdefault(stream, []).append(entry)
        for name, kind, number in changes.aliases:
            self.aliases[name, kind] = self.rows[number].name
            self.kinds_of_alias.setdefault(name, []).append(kind)
        for answer in changes.answers:
            self.answers[answer.scope, answer.key] = answer
        self.daily_numbers.update(changes.daily_numbers)
        self._update_lists(changes)
        for new in changes.logs:
            entry = self.histories[self.rows[new.stream].name][new.version - 1]
            self.log_rows[new.row.key] = new.row, entry

    def _update_lists(self, changes: Changes) -> None:
        for name, number in changes.list_removals:
            for first in self._first_entry(number):
                self.lists.get(name, {}).pop(first.position, None)
        for name, number in changes.list_additions:
            for first in self._first_entry(number):
                self.lists.setdefault(name, {})[first.position] = first.stream

        self._put_handoff_rows(self.handoff_rows_after(changes))

    def handoff_rows_after(self, changes: Changes) -> list[HandoffRow]:
        """The rows of handoffs after the changes, updated ones first."""
        updated = [
            replace(self.handoffs[update.id], **asdict(update))
            for update in changes.handoff_updates
            if update.id in self.handoffs
        ]
        return [*updated, *changes.new_handoffs]

    def _put_handoff_rows(self, records: Sequence[HandoffRow]) -> None:
        for record in records:
            self.handoffs[record.id] = record
            if record.is_active:
                self.active_handoffs[record.task_id] = record.id
            elif self.active_handoffs.get(record.task_id) == record.id:
                del self.active_handoffs[record.task_id]

    def _first_entry(self, number: int) -> list[Entry]:
        """The entry that gives a stream its position on lists; an empty stream has none."""
        return self.histories.get(self.rows[number].name, [])[:1]


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
        return [row for row in map(self._tables.row, names) if row is not None]

    def stream_lines(self, stream: str) -> list[bytes]:
        return [entry.line for entry in self._tables.histories.get(stream, [])]

    def new_stream_number(self) -> int:
        self._last_number += 1
        return self._last_number

    def find_aliases(self, names: Sequence[str]) -> list[tuple[str, str, str]]:
        return [(name, *found) for name in names for found in self._tables.find_aliases(name)]

    def find_answers(self, keys: Sequence[tuple[int, str]]) -> list[IdempotencyRecord]:
        answers = self._tables.answers
        return [answers[key] for key in keys if key in answers]

    def promote_due(self, now: int, limit: int) -> int:
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
        keys = (
            ReadyKey(row.index.rank, row.index.since, number, row.name)
            for number, row in self._tables.rows.items()
            if row.index.queue == queue
        )
        return sorted(key for key in keys if after is None or key > after)[:limit]

    def last_number(self, day: str) -> int:
        return self._tables.daily_numbers.get(day, 0)

    def find_log_rows(self, keys: Sequence[str]) -> list[tuple[str, int, str, bool]]:
        known = [(key, self._tables.log_rows[key]) for key in keys if key in self._tables.log_rows]
        return [(key, entry.position, log.digest, log.masked) for key, (log, entry) in known]

    def streams_held(self, session: str, holder: str) -> list[str]:
        rows = [row for _, row in sorted(self._tables.rows.items()) if row.lease is not None]
        inside = [row.name for row in rows if row.lease and row.lease.session == session]
        return inside or [row.name for row in rows if row.lease and row.lease.holder == holder]

    def list_members(self, name: str) -> list[str]:
        return [stream for _, stream in sorted(self._tables.lists.get(name, {}).items())]

    @property
    def first_position(self) -> int:
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


def is_match(words: Words, query: SearchQuery) -> bool:
    """True if one of the groups matches: it has all its wanted terms, and none that is excluded.
    The indexes of the databases must agree with this."""
    return any(
        all(_contains(words, term) is not term.is_excluded for term in group) for group in query
    )


def _contains(words: Words, term: SearchTerm) -> bool:
    *first, last = term.words
    size = len(term.words)
    for start in range(len(words) - size + 1):
        *before, end = words[start : start + size]
        is_last = end.startswith(last) if term.is_prefix else end == last
        if is_last and before == first:
            return True
    return False


T = TypeVar("T")


def _locked(method: Callable[..., T]) -> Callable[..., T]:
    @wraps(method)
    def run(store: "MemoryStore", *args: Any, **options: Any) -> T:
        with store.lock:
            return method(store, *args, **options)

    return run


def _lock_methods(store: type["MemoryStore"]) -> type["MemoryStore"]:
    """Hold the lock of the store during each call of a public method."""
    for name, method in list(vars(store).items()):
        if not name.startswith("_"):
            setattr(store, name, _locked(method))
    return store


@_lock_methods
class MemoryStore:
    """A store that lives as long as its process."""

    def __init__(self, ledger_id: str) -> None:
        self._ledger_id = ledger_id
        self._secret_fingerprint = ""
        self._issued_checkpoints: dict[str, str] = {}
        self._tables = Tables()
        self.lock = threading.RLock()

    def transact(self, work: Callable[[Transaction], T]) -> T:
        session = MemoryTransaction(self._tables)
        try:
            result = work(session)
        except BaseException:
            session.undo()
            raise
        for changes in session.written:
            self._tables.apply(changes)
        return result

    def head(self) -> int:
        return len(self._tables.entries)

    def ledger_id(self) -> str:
        return self._ledger_id

    def secret_fingerprint(self, own: str, *, overwrite: bool = False) -> str:
        if overwrite or not self._secret_fingerprint:
            self._secret_fingerprint = own
        return self._secret_fingerprint

    def issued_checkpoints(self) -> Mapping[str, str]:
        return dict(self._issued_checkpoints)

    def keep_issued_checkpoints(self, file: str, extent: str) -> None:
        self._issued_checkpoints[file] = extent

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        end = after + limit if until is None else min(after + limit, until)
        return self._tables.entries[after:end]

    def entry_columns(self, after: int, until: int, limit: int) -> list[EntryColumns]:
        """The same, as tuples of columns."""
        return [cast(EntryColumns, astuple(one)) for one in self.entries(after, limit, until=until)]

    def history(
        self, stream: str, after: int, limit: int, *, until: int | None = None
    ) -> list[Entry]:
        page = self._tables.histories.get(stream, [])[after : after + limit]
        return [entry for entry in page if until is None or entry.position <= until]

    def stream(self, name: str) -> StreamRow | None:
        return self._tables.row(name)

    def rows(self, after: int, limit: int) -> list[StreamRow]:
        rows = sorted(self._tables.rows.items())
        return [row for number, row in rows if number > after][:limit]

    def heads(self, after: int, limit: int) -> list[StreamHead]:
        return [(row.number, row.name, row.version, row.hash) for row in self.rows(after, limit)]

    def streams_of_kind(self, kind: str, after: str, limit: int) -> list[StreamRow]:
        numbers = sorted(self._tables.numbers.items())
        first, end = f"{kind}:{after}", f"{kind};"
        found = (number for name, number in numbers if first < name < end)
        return [self._tables.rows[number] for number in found][:limit]

    def aliases(self, after: tuple[str, str], limit: int) -> list[tuple[str, str, str]]:
        pairs = sorted(self._tables.aliases.items())
        return [(*pair, stream) for pair, stream in pairs if pair > after][:limit]

    def find_aliases(self, name: str) -> list[tuple[str, str]]:
        return self._tables.find_aliases(name)

    def task_page(self, query: TaskQuery) -> list[StreamRow]:
        found = [
            row
            for number, row in sorted(self._tables.rows.items(), reverse=True)
            if row.index.status is not None
            and query.status in (None, row.index.status)
            and query.owner in (None, row.index.owner)
            and (query.before is None or number < query.before)
        ]
        return found[: query.limit]

    def status_counts(self) -> dict[str, int]:
        statuses = (row.index.status for row in self._tables.rows.values())
        return dict(Counter(status for status in statuses if status is not None))

    def queue_counts(self) -> dict[str, int]:
        queues = (row.index.queue for row in self._tables.rows.values())
        return dict(Counter(queue for queue in queues if queue is not None))

    def expired_leases(self, now: int, limit: int) -> list[str]:
        dead = [
            (row.lease.expires_at, row.number, row.name)
            for row in self._tables.rows.values()
            if row.lease is not None and not row.lease.is_valid(now)
        ]
        return [name for _, _, name in sorted(dead)[:limit]]

    def overdue_streams(self, now: int, limit: int) -> list[str]:
        late = [
            (row.index.deadline, row.number, row.name)
            for row in self._tables.rows.values()
            if row.index.deadline is not None and row.index.deadline <= now
        ]
        return [name for _, _, name in sorted(late)[:limit]]

    def streams_in_session(self, session: str) -> list[str]:
        rows = sorted(self._tables.rows.items())
        return [row.name for _, row in rows if row.lease and row.lease.session == session != ""]

    def claims(self, session: str, after: int, limit: int) -> list[Entry]:
        return [one for one in self._tables.claims(session) if one.position > after][:limit]

    def last_claims(self, session: str, before: int, limit: int) -> list[Entry]:
        last = reversed(self._tables.claims(session))
        return [one for one in last if one.position < before][:limit]

    def list_page(self, query: ListQuery) -> list[ListItem]:
        members = self._tables.lists.get(query.list, {})
        page = sorted(
            place
            for place in members
            if query.after < place and (query.before is None or place < query.before)
        )
        if query.before is not None:
            page.reverse()
        return [self._list_item(place, members[place]) for place in page[: query.limit]]

    def list_items(self, after: tuple[str, int], limit: int) -> list[tuple[str, int, str]]:
        lists = sorted(name for name in self._tables.lists if name >= after[0])
        items = (
            (name, position, stream)
            for name in lists
            for position, stream in sorted(self._tables.lists[name].items())
            if (name, position) > after
        )
        return list(islice(items, limit))

    def handoffs(self, after: str, limit: int) -> list[HandoffRow]:
        records = sorted(self._tables.handoffs.items())
        return [record for id, record in records if id > after][:limit]

    def turns(self, task: str, attempt: int, after: int, limit: int) -> list[Entry]:
        found = self._tables.turns(task, attempt)
        return [entry for index, entry in found if index > after][:limit]

    def last_turns(self, task: str, attempt: int, limit: int) -> list[Entry]:
        return [entry for _, entry in reversed(self._tables.turns(task, attempt))][:limit]

    def trace_events(self, task: str, after: int, limit: int) -> list[Entry]:
        positions = sorted(
            entry.position
            for log, entry in self._tables.log_rows.values()
            if log.event_id is not None and log.task == task and entry.position > after
        )
        return [self._tables.entries[place - 1] for place in positions[:limit]]

    def trace_event(self, event_id: str) -> Entry | None:
        found = self._tables.log_rows.get(f"event:{event_id}")
        return None if found is None else found[1]

    def log_rows(self, after: int, until: int) -> list[tuple[int, LogRow]]:
        rows = sorted((at.position, key) for key, (_, at) in self._tables.log_rows.items())
        log_rows = self._tables.log_rows
        return [(at, log_rows[key][0]) for at, key in rows if after < at <= until]

    def indexed_position(self) -> int:
        return self._tables.indexed_position

    def index_texts(self, texts: Sequence[tuple[int, Words]], until: int) -> None:
        self._tables.texts.update(texts)
        self._tables.indexed_position = max(self._tables.indexed_position, until)

    def search(self, query: SearchQuery, before: int | None, limit: int) -> list[ListItem]:
        found = [
            position
            for position, words in sorted(self._tables.texts.items(), reverse=True)
            if (before is None or position < before) and is_match(words, query)
        ]
        entries = self._tables.entries
        return [self._list_item(place, entries[place - 1].stream) for place in found[:limit]]

    def inspect(self, seconds: float | None = None) -> IntegrityReport:
        """Report no damage: there is nothing below the rows."""
        del seconds
        return IntegrityReport()

    def inspect_schema(self) -> IntegrityReport:
        """Report no difference: there is no schema."""
        return IntegrityReport()

    def close(self) -> None:
        """Nothing to release."""

    def _list_item(self, position: int, stream: str) -> ListItem:
        return ListItem(position, self._tables.rows[self._tables.numbers[stream]])


_CLAIMED = EVENT_NAMES[TaskClaimed]

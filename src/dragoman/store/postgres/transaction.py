"""A writing transaction of the PostgreSQL store: reads under locks, all writes with the COMMIT."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from msgspec.structs import astuple

from dragoman.core.attempt_state import Lease
from dragoman.core.errors import StoreConflict
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
from dragoman.store.postgres.migrate import known_version
from dragoman.store.postgres.pipeline import (
    Call,
    Pipeline,
    Scalar,
    blobs,
    nullable_numbers,
    nullable_texts,
    numbers,
    scalar,
    texts,
)

NUMBERS_PER_RESERVATION = 100
"""Number of stream numbers that one value of the sequence stands for."""

_MAX_QUEUES = 100
"""Limit of queues that are listed; when there are more, each is queried by itself."""

_QUEUE_START = (-(2**63), 0, 0)
_LISTED_AFTER = {"list": True, "unlist": False}


class PostgresTransaction:
    """A transaction among other writing processes, so nothing is cached from before."""

    is_fresh = False

    def __init__(self, pipeline: Pipeline, free_numbers: list[int]) -> None:
        self._pipeline = pipeline
        self._free_numbers = free_numbers
        self._has_begun = False
        self._versions: dict[int, int] = {}
        self._queues: set[str] | None = None
        """The queues that are not empty, once they were read."""
        self._queued: dict[str, None] = {}
        """Streams that `ready_page` has returned and locked; they are likely to be read soon."""
        self._read_ahead: dict[str, StreamRow] = {}
        self._look_ahead = 1
        self._staged: list[Call] = []
        self._entries: list[NewEntry] = []
        self._logs: list[NewLogRow] = []
        self.first_position = 0
        self._list_changes: dict[tuple[str, int], bool] = {}
        """Lists and streams: True to add, False to remove."""

    # Reads

    def streams(self, names: Sequence[str]) -> list[StreamRow]:
        known = self._read_ahead
        unread = [name for name in names if name not in known]
        rows = self._lock_streams(self._with_next_in_queue(unread)) if unread else {}
        known.update(rows)
        return [known.pop(name) for name in names if name in known]

    def stream_lines(self, stream: str) -> list[bytes]:
        return [line for (line,) in self._query("lines", stream)]

    def new_stream_number(self) -> int:
        if not self._free_numbers:
            ((first,),) = self._query("reserve_numbers")
            self._free_numbers += range(first + NUMBERS_PER_RESERVATION - 1, first - 1, -1)
        number = self._free_numbers.pop()
        self._versions[number] = 0
        return number

    def find_aliases(self, names: Sequence[str]) -> list[tuple[str, str, str]]:
        return self._run(Call("aliases", (texts(names),)))[0]

    def find_answers(self, keys: Sequence[tuple[int, str]]) -> list[IdempotencyRecord]:
        scopes, texts_ = zip(*keys, strict=True)
        found = self._run(Call("answered", (numbers(scopes), texts(texts_))))[0]
        return [IdempotencyRecord(*answer) for answer in found]

    def promote_due(self, now: int, limit: int) -> int:
        due = self._query("due", now, limit)
        if due:
            index_rows = [self._index_row(name, fold, state, now) for _, name, fold, state in due]
            self._run(_index_call([number for number, *_ in due], index_rows))
            self._read_ahead.clear()
            self._queues = None
        return len(due)

    def ready_page(self, queue: str, after: ReadyKey | None, limit: int) -> list[ReadyKey]:
        """A page of the queue, without what other writers have locked; locked until the end."""
        if self._is_empty(queue):
            return []
        place = _QUEUE_START if after is None else (after.rank, after.since, after.number)
        keys = [ReadyKey(*found) for found in self._query("ready", queue, *place, limit)]
        self._queued.update((key.name, None) for key in keys)
        return keys

    def find_log_rows(self, keys: Sequence[str]) -> list[tuple[str, int, str, bool]]:
        log_keys = list(map(parse_log_key, keys))
        found: list[tuple[str, int, str, bool]] = []
        events = [one for one in log_keys if isinstance(one, str)]
        if events:
            (rows,) = self._run(Call("logged_events", (texts(events),)))
            found += [(f"event:{id}", *rest) for id, *rest in rows]
        turns = [one for one in log_keys if not isinstance(one, str)]
        if turns:
            tasks, attempts, indexes = zip(*turns, strict=True)
            columns = texts(tasks), numbers(attempts), numbers(indexes)
            (rows,) = self._run(Call("logged_turns", columns))
            found += [(f"turn:{task}/{attempt}/{at}", *rest) for task, attempt, at, *rest in rows]
        return found

    def streams_held(self, session: str, holder: str) -> list[str]:
        found = self._query("held_in", session) or self._query("held_by", holder)
        return [name for (name,) in found]

    def list_members(self, name: str) -> list[str]:
        return [stream for (stream,) in self._query("on_list", name)]

    def last_number(self, day: str) -> int:
        values = (scalar(day),)
        _, ((last,),) = self._run(Call("open_day", values), Call("last_number", values))
        return last

    # Writes

    def write(self, changes: Changes) -> None:
        """Stage the changes for the commit, if they fit the streams that they append to."""
        self._check_versions(changes.entries)
        self._entries += changes.entries
        self._logs += changes.logs
        self._staged += _write_calls(changes)
        self._list_changes.update(dict.fromkeys(changes.list_removals, False))
        self._list_changes.update(dict.fromkeys(changes.list_additions, True))

    def commit(self) -> None:
        """Send everything and the COMMIT in one piece; the lock on the ledger's head comes last."""
        if self._pipeline.has_failed:
            raise StoreConflict("a statement of this transaction failed; nothing was written")
        before = [*self._staged, *self._list_calls("unlist")]
        append = _append_calls(self._entries) if self._entries else []
        logs = [_put_logs_call(self._logs)] if self._logs else []
        calls = [*before, *append, *self._list_calls("list"), *logs]
        if self._has_begun or calls:
            answers = self._run(*calls, Call("commit"))
            self.first_position = answers[len(before)][0][0] if append else 0

    def undo(self) -> None:
        """Roll back."""
        if self._has_begun:
            self._run(Call("rollback"))

    # Helpers

    def _query(self, query: str, *values: Scalar) -> list[Any]:
        return self._run(Call(query, tuple(map(scalar, values))))[0]

    def _run(self, *calls: Call) -> list[list[Any]]:
        if self._has_begun:
            return self._pipeline.run(calls)
        self._has_begun = True
        return self._pipeline.run((Call("begin"), version_check(), *calls))[2:]

    def _is_empty(self, queue: str) -> bool:
        """True if the queue is empty. In a batch each agent asks for its own, and few have one."""
        if self._queues is None:
            self._queues = {name for (name,) in self._query("queues", _MAX_QUEUES)}
        return queue not in self._queues and len(self._queues) < _MAX_QUEUES

    def _with_next_in_queue(self, names: Sequence[str]) -> Sequence[str]:
        """These names, and twice as many of their queue as last time: a batch goes on claiming."""
        if not any(name in self._queued for name in names):
            return names
        for name in names:
            self._queued.pop(name, None)
        ahead = list(islice(self._queued, self._look_ahead))
        for name in ahead:
            del self._queued[name]
        self._look_ahead *= 2
        return [*names, *ahead]

    def _lock_streams(self, names: Sequence[str]) -> dict[str, StreamRow]:
        parameters = (texts(names),)
        found, leases = self._run(Call("lock_streams", parameters), Call("leases_of", parameters))
        by_stream = {stream: Lease(*lease) for stream, *lease in leases}
        self._versions.update((number, version) for number, _, version, *_ in found)
        return {row[1]: stream_row(row, by_stream.get(row[0])) for row in found}

    def _list_calls(self, query: str) -> list[Call]:
        """Calls for list items to add or remove; in order, so that two writers cannot deadlock."""
        changed = sorted(
            place for place, stays in self._list_changes.items() if stays is _LISTED_AFTER[query]
        )
        if not changed:
            return []
        lists, streams = zip(*changed, strict=True)
        return [Call(query, (texts(lists), numbers(streams)))]

    def _index_row(self, name: str, fold: int, state: bytes, now: int) -> IndexRow:
        lines = () if fold == FOLD_VERSION else self.stream_lines(name)
        return index_row(load_state(name, fold, state, lines), now)

    def _check_versions(self, entries: Sequence[NewEntry]) -> None:
        """Check that each entry continues its stream; the ledger's key alone would allow a gap."""
        unknown = {entry.stream for entry in entries}.difference(self._versions)
        if unknown:
            self._versions.update(dict.fromkeys(unknown, 0))
            self._versions.update(self._run(Call("lock_versions", (numbers(unknown),)))[0])
        for entry in entries:
            if entry.version != self._versions[entry.stream] + 1:
                raise StoreConflict(f"stream {entry.stream} is not at version {entry.version - 1}")
            self._versions[entry.stream] = entry.version


def version_check() -> Call:
    """The first call of every exchange that writes: it fails if the schema version has changed."""
    return Call("check_version", (scalar(known_version()),))


def stream_row(found: Any, lease: Lease | None) -> StreamRow:
    """The contract's row from the columns of a stream."""
    number, name, version, digest, fold, state, *index = found
    return StreamRow(number, name, version, digest, fold, state, lease, IndexRow(*index))


def _index_call(streams: Sequence[int], index_rows: Sequence[IndexRow]) -> Call:
    return Call("shelve", (numbers(streams), *_index_columns(index_rows)))


def _index_columns(index_rows: Sequence[IndexRow]) -> tuple[bytes, ...]:
    return (
        nullable_texts([index_row.status for index_row in index_rows]),
        nullable_texts([index_row.queue for index_row in index_rows]),
        numbers([index_row.rank for index_row in index_rows]),
        numbers([index_row.since for index_row in index_rows]),
        nullable_numbers([index_row.ready_at for index_row in index_rows]),
        nullable_texts([index_row.owner for index_row in index_rows]),
        nullable_numbers([index_row.deadline for index_row in index_rows]),
    )


def _write_calls(changes: Changes) -> list[Call]:
    """Calls that write each table once; keys in order, so that two writers cannot deadlock."""
    held = [(number, lease) for number, lease in changes.leases if lease is not None]
    ended = [number for number, lease in changes.leases if lease is None]
    calls: list[Call] = []
    if changes.streams:
        calls.append(_put_streams_call(sorted(changes.streams, key=_row_name)))
    if held:
        calls.append(_put_leases_call(held))
    if ended:
        calls.append(Call("end_leases", (numbers(ended),)))
    if changes.aliases:
        names, kinds, streams = zip(*sorted(changes.aliases), strict=True)
        calls.append(Call("bind_names", (texts(names), texts(kinds), numbers(streams))))
    if changes.answers:
        calls.append(_put_answers_call(changes.answers))
    if changes.daily_numbers:
        days, last = zip(*sorted(changes.daily_numbers.items()), strict=True)
        calls.append(Call("put_numbers", (texts(days), numbers(last))))
    for query, rows in (
        ("move_handoffs", changes.handoff_updates),
        ("put_handoffs", changes.new_handoffs),
    ):
        if rows:
            columns = zip(*map(astuple, rows), strict=True)
            calls.append(Call(query, tuple(map(nullable_texts, columns))))
    return calls


def _row_name(row: StreamRow) -> str:
    return row.name


def _put_streams_call(rows: Sequence[StreamRow]) -> Call:
    return Call(
        "put_streams",
        (
            numbers([row.number for row in rows]),
            texts([row.name for row in rows]),
            numbers([row.version for row in rows]),
            blobs([row.hash for row in rows]),
            numbers([row.fold_version for row in rows]),
            blobs([row.state for row in rows]),
            *_index_columns([row.index for row in rows]),
        ),
    )


def _put_leases_call(held: Sequence[tuple[int, Lease]]) -> Call:
    leases = [lease for _, lease in held]
    return Call(
        "put_leases",
        (
            numbers([stream for stream, _ in held]),
            texts([lease.holder for lease in leases]),
            numbers([lease.fence for lease in leases]),
            numbers([lease.ttl_ms for lease in leases]),
            numbers([lease.last_heartbeat for lease in leases]),
            numbers([lease.expires_at for lease in leases]),
            texts([lease.session for lease in leases]),
            numbers([lease.heartbeats for lease in leases]),
            numbers([lease.started_at for lease in leases]),
            numbers([lease.progress_at for lease in leases]),
            numbers([lease.quiet_level for lease in leases]),
        ),
    )


def _put_answers_call(answers: Sequence[IdempotencyRecord]) -> Call:
    return Call(
        "put_answers",
        (
            numbers([answer.scope for answer in answers]),
            texts([answer.key for answer in answers]),
            blobs([answer.fingerprint for answer in answers]),
            blobs([answer.answer for answer in answers]),
        ),
    )


def _put_logs_call(new: Sequence[NewLogRow]) -> Call:
    logs = [one.row for one in new]
    return Call(
        "put_logs",
        (
            numbers([one.stream for one in new]),
            numbers([one.version for one in new]),
            texts([log.task for log in logs]),
            numbers([log.attempt for log in logs]),
            nullable_numbers([log.turn_index for log in logs]),
            nullable_texts([log.event_id for log in logs]),
            texts([log.digest for log in logs]),
            numbers([log.masked for log in logs]),
        ),
    )


def _append_calls(entries: Sequence[NewEntry]) -> list[Call]:
    append = Call(
        "append_entries",
        (
            numbers([entry.stream for entry in entries]),
            numbers([entry.version for entry in entries]),
            texts([entry.event for entry in entries]),
            blobs([entry.line for entry in entries]),
            blobs([entry.previous for entry in entries]),
            blobs([entry.hash for entry in entries]),
        ),
    )
    return [append, Call("check_head", (scalar(len(entries)),))]

"""Bulk load of ledger entries, verbatim, into an empty store; its views are folded on the way.

Heads of streams are dropped from memory when there are many, and read back from the store when
their stream goes on, so that a ledger of any length is loaded in little memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from dragoman.core.attempt_state import Lease, TaskClaimed, grant_lease
from dragoman.core.task_state import Task, TaskCreated
from dragoman.engine.ports import (
    Changes,
    IdempotencyRecord,
    NewEntry,
    NewLogRow,
    Store,
    StreamRow,
    Transaction,
)
from dragoman.files.archive import StoredAnswer
from dragoman.ledger.entry import CODEC, GENESIS, link_hash, read_line
from dragoman.ledger.indexes import (
    aliases_bound_by,
    index_row,
    lists_of,
    log_row,
    order_handoff_rows,
)
from dragoman.ledger.stream_state import FOLD_VERSION, State, encode_state, fold, load_state

_MAX_HEADS: Final = 20_000


class _StreamHead(Struct):
    number: int
    version: int = 0
    hash: bytes = GENESIS
    state: State | None = None
    lists: tuple[str, ...] = ()
    """Lists that hold the stream in the store."""


class LedgerLoader:
    """Fills an empty store; the store gives every entry the position that it had."""

    def __init__(self, store: Store, now: int, max_heads: int = _MAX_HEADS) -> None:
        self._store = store
        self._now = now
        self._max_heads = max_heads
        self._heads: dict[str, _StreamHead] = {}
        self._in_progress: dict[str, int] = {}
        """Stream of a task in progress -> number of the stream."""

    def append(self, lines: Sequence[bytes]) -> None:
        """Append lines, which continue those before, in one transaction."""
        self._store.transact(lambda session: session.write(self._build_changes(session, lines)))
        self._trim_heads()

    def restore_leases(self, leases: Mapping[str, Lease]) -> None:
        """Restore leases of tasks in progress; a missing one is restored as it was when claimed."""

        def work(session: Transaction) -> None:
            held = [
                (
                    number,
                    _choose_lease(
                        _lease_of_last_claim(session.stream_lines(stream)), leases.get(stream)
                    ),
                )
                for stream, number in self._in_progress.items()
            ]
            session.write(Changes(leases=[*held]))

        if self._in_progress:
            self._store.transact(work)

    def restore_answers(self, answers: Sequence[StoredAnswer]) -> None:
        """Restore recorded answers of idempotency keys."""

        def work(session: Transaction) -> None:
            changes = Changes()
            self._load_heads(session, (one.stream for one in answers))
            for one in answers:
                if one.stream not in self._heads:
                    # An actor that was never refused has a stream that holds keys and nothing else.
                    head = self._heads[one.stream] = _StreamHead(session.new_stream_number())
                    changes.streams.append(self._row(one.stream, head))
                number = self._heads[one.stream].number
                changes.answers.append(
                    IdempotencyRecord(number, one.key, one.fingerprint, one.answer)
                )
            session.write(changes)

        self._store.transact(work)
        self._trim_heads()

    def _load_heads(self, session: Transaction, streams: Iterable[str]) -> None:
        """Load the heads of these streams that are in the store and not in memory."""
        forgotten = dict.fromkeys(stream for stream in streams if stream not in self._heads)
        for row in session.streams([*forgotten]) if forgotten else ():
            state = load_state(row.name, row.fold_version, row.state, ())
            head = _StreamHead(row.number, row.version, row.hash, state, lists_of(state))
            self._heads[row.name] = head

    def _trim_heads(self) -> None:
        if len(self._heads) > self._max_heads:
            self._heads.clear()

    def _build_changes(self, session: Transaction, lines: Sequence[bytes]) -> Changes:
        changed: dict[str, _StreamHead] = {}
        changes = Changes()
        read = [(data, read_line(data)) for data in lines]
        self._load_heads(session, (line.stream for _, line in read))
        for data, line in read:
            event = CODEC.decode(line.event, line.v, line.body)
            head = self._heads.get(line.stream)
            if head is None:
                head = self._heads[line.stream] = _StreamHead(session.new_stream_number())
            previous, head.hash = head.hash, link_hash(head.hash, data)
            head.version += 1
            head.state = fold(head.state, event, line.at)
            changed[line.stream] = head
            changes.entries.append(
                NewEntry(head.number, head.version, line.event, data, previous, head.hash)
            )
            log = log_row(event)
            if log is not None:
                changes.logs.append(NewLogRow(head.number, head.version, log))
            changes.aliases.extend(
                (name, kind, head.number) for name, kind in aliases_bound_by(event)
            )
            if isinstance(event, TaskCreated):
                changes.daily_numbers |= _day_number(event.aof_id, changes.daily_numbers, session)
        changes.streams.extend(self._row(stream, head) for stream, head in changed.items())
        for stream, head in changed.items():
            _update_lists(head, changes)
            if isinstance(head.state, Task) and head.state.status == "in-progress":
                self._in_progress[stream] = head.number
            else:
                self._in_progress.pop(stream, None)
        changes.new_handoffs.extend(order_handoff_rows(head.state for head in changed.values()))
        return changes

    def _row(self, stream: str, head: _StreamHead) -> StreamRow:
        state = b"" if head.state is None else encode_state(head.state)
        indexed = index_row(head.state, self._now)
        return StreamRow(
            head.number, stream, head.version, head.hash, FOLD_VERSION, state, None, indexed
        )


def _update_lists(head: _StreamHead, changes: Changes) -> None:
    before, head.lists = head.lists, lists_of(head.state)
    changes.list_additions.extend((name, head.number) for name in head.lists if name not in before)
    changes.list_removals.extend((name, head.number) for name in before if name not in head.lists)


def _lease_of_last_claim(history: Sequence[bytes]) -> Lease | None:
    """Lease that the last claim of a task granted."""
    for data in reversed(history):
        line = read_line(data)
        event = CODEC.decode(line.event, line.v, line.body)
        if isinstance(event, TaskClaimed):
            return grant_lease(event.agent, event.fence, event.session, event.ttl_ms, line.at)
    return None


def _choose_lease(claimed: Lease | None, lease: Lease | None) -> Lease | None:
    """The archived lease if it belongs to the present attempt, otherwise the one of the claim."""
    if lease is None or claimed is None:
        return claimed
    same = (lease.holder, lease.fence, lease.session) == (
        claimed.holder,
        claimed.fence,
        claimed.session,
    )
    return lease if same else claimed


def _day_number(aof_id: str, known: Mapping[str, int], session: Transaction) -> dict[str, int]:
    """Day of an AOF id, and the highest number used on it."""
    day, _, tail = aof_id.removeprefix("TASK-").rpartition("-")
    if not tail.isdigit():
        return {}
    highest = known[day] if day in known else session.last_number(day)
    return {day: max(highest, int(tail))}

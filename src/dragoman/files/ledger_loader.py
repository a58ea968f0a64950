"""Bulk load of ledger entries, verbatim, into an empty store; its views are folded on the way.

Heads of streams are dropped from memory when there are many, and read back from the store when
their stream goes on, so that a ledger of any length is loaded in little memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from dragoman.core.attempt_state import Lease
from dragoman.core.errors import LedgerError
from dragoman.core.ids import actor_stream
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
from dragoman.ledger.stream_state import (
    FOLD_VERSION,
    State,
    aliases_bound_by,
    encode_state,
    fold,
    index_row,
    lists_of,
    load_state,
    log_row,
    order_handoff_rows,
)

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

    def append(self, lines: Sequence[bytes]) -> None:
        """Append lines, which continue those before, in one transaction."""
        self._store.transact(lambda session: session.write(self._build_changes(session, lines)))
        self._trim_heads()

    def restore_leases(self, leases: Mapping[str, Lease]) -> None:
        """Restore the leases of the tasks in progress, by the stream of the task."""

        def work(session: Transaction) -> None:
            self._load_heads(session, leases)
            held = {stream for stream in leases if _is_in_progress(self._heads.get(stream))}
            session.write(
                Changes(leases=[(self._heads[stream].number, leases[stream]) for stream in held])
            )
            in_progress = self._store.status_counts().get("in-progress", 0)
            if not len(leases) == len(held) == in_progress:
                raise LedgerError("the leases are not those of the tasks in progress")

        self._store.transact(work)

    def restore_answers(self, answers: Sequence[StoredAnswer]) -> None:
        """Restore recorded answers of idempotency keys."""

        def work(session: Transaction) -> None:
            changes = Changes()
            self._load_heads(session, (one.stream for one in answers))
            for one in answers:
                if one.stream not in self._heads:
                    # An actor that was never refused has a stream without entries.
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
        speakers = dict.fromkeys(actor_stream(*line.actor.split(":", 1)) for _, line in read)
        self._load_heads(session, (*speakers, *(line.stream for _, line in read)))
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
        for speaker in speakers:
            if speaker not in self._heads:
                head = self._heads[speaker] = _StreamHead(session.new_stream_number())
                changed[speaker] = head
        changes.streams.extend(self._row(stream, head) for stream, head in changed.items())
        for head in changed.values():
            _update_lists(head, changes)
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


def _is_in_progress(head: _StreamHead | None) -> bool:
    return head is not None and isinstance(head.state, Task) and head.state.status == "in-progress"


def _day_number(aof_id: str, known: Mapping[str, int], session: Transaction) -> dict[str, int]:
    """Day of an AOF id, and the highest number used on it."""
    day, _, tail = aof_id.removeprefix("TASK-").rpartition("-")
    if not tail.isdigit():
        return {}
    highest = known[day] if day in known else session.last_number(day)
    return {day: max(highest, int(tail))}

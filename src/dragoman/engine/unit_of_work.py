"""Unit of work: what a batch of requests will write, on top of one store transaction.

Rows that the requests name are read in bulk at the start; states change in memory; the store writes
each table once, at the end. A refusal leaves nothing behind: what a request changed is undone when
one of its commands is refused.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.attempt_state import Lease
from dragoman.core.base import Command, Event
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import ALL_HANDOFFS, Handoff
from dragoman.core.read import Decision, LeaseChange, TimedEvent
from dragoman.core.task_state import STATUS_CHANGES, TaskCreated
from dragoman.core.trace import RecordedEntry
from dragoman.engine.batch_reads import BatchReads, CachedStream, StreamCache
from dragoman.engine.idempotency import AnswerKey
from dragoman.engine.ports import (
    Changes,
    IdempotencyRecord,
    NewEntry,
    NewLogRow,
    StreamRow,
    Transaction,
)
from dragoman.engine.request import Committed, Request
from dragoman.ledger.entry import CODEC, WRITTEN_AS, Line, link_hash, read_line, write_line
from dragoman.ledger.stream_state import (
    ALIASES_BOUND_BY,
    FOLD_VERSION,
    FOLDS,
    LOG_ROWS,
    encode_state,
    handoff_update,
    index_row,
    lists_of,
    order_handoff_rows,
)


class _UndoPoint(Struct):
    """The state to return to when one of several commands is refused."""

    entry_count: int
    alias_count: int
    daily_numbers: dict[str, int]
    original_text: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    streams_before: dict[str, CachedStream] = {}
    log_count: int = 0


class EarlierAnswer(Struct, frozen=True):
    """The answer that a message got in an earlier attempt."""

    attempt: int
    current_attempt: int
    answer: IdempotencyRecord


class PendingEntries(list[Line[Event]]):
    """The new entries of a batch, in order.

    They are encoded and hashed at the end of the batch, all in one go: between two decisions that
    would take twice as long, because the short steps evict each other from the processor's caches.
    """

    def chain(self, known: Mapping[str, CachedStream]) -> tuple[list[NewEntry], dict[str, bytes]]:
        """Chain the entries: the rows to write, and the last hash of each stream; `known` has the
        hashes from before the batch."""
        entries: list[NewEntry] = []
        hashes: dict[str, bytes] = {}
        for line, data in zip(self, list(map(write_line, self)), strict=True):
            stream = known[line.stream]
            previous = hashes.get(line.stream, stream.hash)
            digest = hashes[line.stream] = link_hash(previous, data)
            entries.append(
                NewEntry(stream.number, line.version, line.event, data, previous, digest)
            )
        return entries, hashes


class Unit(BatchReads):
    """Reads and writes of one batch."""

    def __init__(
        self,
        session: Transaction,
        cache: StreamCache,
        now: int,
        secret: bytes = b"",
        commit: str = "",
    ) -> None:
        """`secret`: keys the fingerprints of answers; `commit`: what the repository has checked
        out, recorded with moves of tasks."""
        super().__init__(session, cache, now, secret)
        self._commit = commit
        self._entries = PendingEntries()
        self._new_aliases: list[tuple[str, str, str]] = []
        self._leases_before: dict[str, Lease | None] = {}
        """Leases that the current request has changed, as they were before it."""
        self._new_log_rows: list[NewLogRow] = []

    # History for deciders

    def history(self, stream: str) -> Iterator[TimedEvent]:
        """All events of a stream, in order, including those of this batch."""
        for stored in map(read_line, self._session.stream_lines(stream)):
            yield CODEC.decode(stored.event, stored.v, stored.body), stored.at
        yield from ((line.body, line.at) for line in self._entries if line.stream == stream)

    # Changes of one request

    def begin_request(self, request: Request) -> AnswerKey:
        """Begin a request, for which the unit reads and records from now on; returns its answer
        key."""
        self.actor = request.actor
        self.cause = request.id
        self._original_text = msgspec.UNSET
        self._original_kept_in: tuple[str, ...] = ()
        self._first_entry = len(self._entries)
        self._leases_before.clear()
        # A single command that is refused has changed nothing, so there is nothing to undo.
        self._undo_point = None
        if len(request.commands) > 1:
            self.set_undo_point()
        return self.answer_key(request)

    def set_undo_point(self) -> None:
        """Set the point that an undo returns to; earlier changes of the request stay."""
        self._undo_point = _UndoPoint(
            len(self._entries),
            len(self._new_aliases),
            self._daily_numbers,
            self._original_text,
            log_count=len(self._new_log_rows),
        )

    def set_original_text(
        self, original_text: msgspec.Raw, commands: Sequence[Command]
    ) -> Refusal | None:
        """Keep the original text of these commands for the first entry that may have it, on one
        line; refused if it is not JSON."""
        self._original_kept_in = next(filter(None, (one.original_kept_in for one in commands)), ())
        try:
            msgspec.json.decode(original_text)
            self._original_text = msgspec.Raw(msgspec.json.format(bytes(original_text), indent=-1))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return Refusal("invalid_field", f"original_text is not JSON: {error}")
        if self._undo_point is not None:
            self._undo_point.original_text = self._original_text
        return None

    def answer_key(self, request: Request) -> AnswerKey:
        """The stream in which a request's key is unique (its target, or else its actor), and the
        key; a request without a key has its own id."""
        key = request.key or request.id
        about = request.commands[0].target_task
        if about:
            task = self.task(about)
            if not isinstance(task, Refusal):
                place = "task:" + task.id
                return place, f"{key}.{task.attempts}" if request.per_attempt else key
        return request.actor.stream, key

    def find_earlier_answer(self, request: Request, sent_at: int) -> EarlierAnswer | None:
        """The answer to the same message in an earlier attempt, if it is dated before the task last
        moved (which was the claim, while the task is held).

        The credential of an attempt says itself which attempt it speaks for.
        """
        about = request.commands[0].target_task
        if not about or request.actor.task:
            return None
        task = self.task(about)
        if isinstance(task, Refusal) or not task.attempts or sent_at >= task.moved_at:
            return None
        answer_keys = {n: ("task:" + task.id, f"{request.key}.{n}") for n in range(task.attempts)}
        self.load_answers(answer_keys.values())
        for attempt, answer_key in answer_keys.items():
            answer = self.answers.find(answer_key)
            if answer is not None and self.answers.matches(answer, request):
                return EarlierAnswer(attempt, task.attempts, answer)
        return None

    @property
    def has_log_rows(self) -> bool:
        """True if the batch has recorded a turn or a trace event."""
        return bool(self._new_log_rows)

    @property
    def entry_streams(self) -> Iterator[str]:
        """The stream of each entry of the batch, in order."""
        return (line.stream for line in self._entries)

    def has_recorded(self) -> bool:
        """True if the current request has added an entry."""
        return len(self._entries) > self._first_entry

    def has_changed(self) -> bool:
        """True if anything has changed since the undo point."""
        return self._undo_point is not None and bool(self._undo_point.streams_before)

    def undo(self) -> None:
        """Undo everything since the undo point."""
        undo = self._undo_point
        if undo is None:
            return
        for name, kind, stream in self._new_aliases[undo.alias_count :]:
            self._aliases[name].remove((kind, stream))
        for new in self._new_log_rows[undo.log_count :]:
            self._log_positions[new.row.key] = None
        del (
            self._entries[undo.entry_count :],
            self._new_aliases[undo.alias_count :],
            self._new_log_rows[undo.log_count :],
        )
        self._daily_numbers = undo.daily_numbers
        self._original_text = undo.original_text
        self._streams.update(undo.streams_before)
        self._requeued.update(dict.fromkeys(undo.streams_before))

    def apply(self, decision: Decision) -> None:
        """Record a decision."""
        for stream, event in decision.events:
            self.record(stream, event)
        if decision.lease is not None:
            self.write_lease(decision.lease)
        if decision.aof_number is not None:
            day, number = decision.aof_number
            self._daily_numbers = {**self._daily_numbers, day: number}

    def write_lease(self, change: LeaseChange) -> None:
        """Write or end a lease, without an entry."""
        stream = "task:" + change.task
        old, lease = self._streams[stream], change.lease
        if self._undo_point is not None:
            self._undo_point.streams_before.setdefault(stream, old)
        lease = _with_one_heartbeat(lease, self._leases_before.setdefault(stream, old.lease))
        self.leased[stream] = None
        self._streams[stream] = CachedStream(
            old.number, stream, old.version, old.hash, old.state, lease
        )

    def record(self, stream: str, event: Event) -> None:
        """Append an entry and fold it into the stream's state."""
        old = self._stream_to_write(stream)
        event_type = type(event)
        if self._commit and (event_type in STATUS_CHANGES or event_type is TaskCreated):
            event = self._with_commit(event)
        version = old.version + 1
        name, shape = WRITTEN_AS[event_type]
        self._entries.append(
            Line(
                stream,
                version,
                name,
                shape,
                self._now,
                self.actor.label,
                self.cause,
                event,
                self.actor.via,
                msgspec.UNSET
                if self._original_text is msgspec.UNSET
                else self._take_original_text(stream),
            )
        )
        state = FOLDS[event_type](old.state, event, self._now)
        self._streams[stream] = CachedStream(
            old.number, stream, version, old.hash, state, old.lease
        )
        if event_type in LOG_ROWS:
            row = LOG_ROWS[event_type](event)
            self._new_log_rows.append(NewLogRow(old.number, version, row))
            self._log_positions[row.key] = RecordedEntry(
                -len(self._entries), row.digest, row.masked
            )
        if event_type in ALIASES_BOUND_BY:
            self._bind_aliases(stream, ALIASES_BOUND_BY[event_type](event))

    def _take_original_text(self, stream: str) -> msgspec.Raw | msgspec.UnsetType:
        """The original text, if an entry of this stream keeps it."""
        kept_in = self._original_kept_in
        if kept_in and not stream.startswith(kept_in):
            return msgspec.UNSET
        kept, self._original_text = self._original_text, msgspec.UNSET
        return kept

    # Idempotency

    def store_answer(self, answer_key: AnswerKey, request: Request, outcome: Committed) -> None:
        """Store the answer to a request for its repeats."""
        scope = answer_key[0]
        number = self._stream(scope).number or self._stream_to_write(scope).number
        self.answers.add(answer_key, number, request, outcome)

    def note_actor(self) -> None:
        """Give the actor of the request a stream, by which it is known to have spoken."""
        stream = self.actor.stream
        if not self._stream(stream).number:
            self._stream_to_write(stream)

    # End of the batch

    def changes(self) -> Changes:
        """All changes to write, each table once. The unit must not be used after that."""
        known = self._streams
        entries, hashes = self._entries.chain(known)
        for name, digest in hashes.items():
            at = known[name]
            known[name] = CachedStream(at.number, name, at.version, digest, at.state, at.lease)
        changes = Changes(
            entries=entries,
            leases=[
                (known[name].number, known[name].lease)
                for name in self.leased
                if known[name].number
            ],
            aliases=[
                (name, kind, known[stream].number) for name, kind, stream in self._new_aliases
            ],
            answers=self.answers.take_pending(),
            daily_numbers=dict(self._daily_numbers.items() - self._daily_numbers_read.items()),
            logs=self._new_log_rows,
        )
        self._add_streams(changes)
        return changes

    def _add_streams(self, changes: Changes) -> None:
        """Add the rows of changed streams, with their lists and tables."""
        new_handoffs: list[Handoff] = []
        for name, before in self.changed.items():
            at = self._streams[name]
            if not at.number:
                continue
            changes.streams.append(self._stream_row(at))
            lists, lists_before = lists_of(at.state), lists_of(before)
            if lists != lists_before:
                changes.list_additions += [
                    (one, at.number) for one in lists if one not in lists_before
                ]
                changes.list_removals += [
                    (one, at.number) for one in lists_before if one not in lists
                ]
            if type(at.state) is Handoff:
                # A handoff that was proposed before this batch has a row.
                if ALL_HANDOFFS in lists_before:
                    changes.handoff_updates.append(handoff_update(at.state))
                else:
                    new_handoffs.append(at.state)
        changes.new_handoffs = order_handoff_rows(new_handoffs)

    def _with_commit(self, event: Any) -> Event:
        """The event with the checked-out commit, unless it names one itself."""
        return event if event.commit else replace(event, commit=self._commit)

    def _bind_aliases(self, stream: str, names: Iterable[tuple[str, str]]) -> None:
        for name, kind in names:
            self.load_aliases((name,))
            self._aliases[name].append((kind, stream))
            self._new_aliases.append((name, kind, stream))

    def _stream_to_write(self, stream: str) -> CachedStream:
        """The stream with a number, remembered for an undo."""
        old = self._streams.get(stream) or self._stream(stream)
        if self._undo_point is not None:
            self._undo_point.streams_before.setdefault(stream, old)
        self.changed.setdefault(stream, old.state)
        self._requeued[stream] = None
        if old.number:
            return old
        numbered = CachedStream(self._session.new_stream_number(), stream)
        self._streams[stream] = numbered
        return numbered

    def _stream_row(self, at: CachedStream) -> StreamRow:
        state = b"" if at.state is None else encode_state(at.state)
        index = index_row(at.state, self._now)
        return StreamRow(
            at.number, at.name, at.version, at.hash, FOLD_VERSION, state, at.lease, index
        )


def _with_one_heartbeat(lease: Lease | None, before: Lease | None) -> Lease | None:
    """The lease after a request: one heartbeat, however many commands it has."""
    if lease is None:
        return None
    beats = 1 + (before.heartbeats if before is not None and before.fence == lease.fence else 0)
    return lease if lease.heartbeats <= beats else replace(lease, heartbeats=beats)

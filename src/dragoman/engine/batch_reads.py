"""Reads of a batch: streams, aliases, log rows and ready queues, loaded in bulk and cached.

It is the `Read` that deciders query, on behalf of the actor of the current request. What the batch
has changed is read as it is now, not as the store still has it.

Where hubs share a store, rows that were found are locked, but a row that was missing can be made by
another hub meanwhile. A batch that comes upon such a row later has mixed two moments: it is rerun.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, cast

from msgspec import Struct

from dragoman.core import ids
from dragoman.core.actor import Actor, ActorRecord
from dragoman.core.agent import AgentRecord, Reputation
from dragoman.core.attempt_state import Lease
from dragoman.core.base import Status
from dragoman.core.errors import LedgerError, Refusal, StoreConflict
from dragoman.core.handoff.state import Handoff
from dragoman.core.intent.state import Intent
from dragoman.core.mail import Mail
from dragoman.core.reservation import Reservations
from dragoman.core.task_state import FINAL_STATUSES, Task
from dragoman.core.trace import RecordedEntry, Trace, TurnLog
from dragoman.core.wave import OPEN_WAVES_LIST, Wave
from dragoman.core.work_queue import WorkItem
from dragoman.engine.idempotency import AnswerKey, IdempotencyAnswers
from dragoman.engine.ports import IdempotencyRecord, ReadyKey, StreamRow, Transaction
from dragoman.ledger import stream_state
from dragoman.ledger.entry import GENESIS

# --- cached streams ---------------------------------------------------------------------------

MAX_CACHED = 20_000
"""Limit of streams, and of stored answers, that are cached from batch to batch."""


class CachedStream(Struct, frozen=True, gc=False):
    """A stream at the point that the batch has reached."""

    number: int
    """0 while the store has no such stream."""
    name: str
    version: int = 0
    hash: bytes = GENESIS
    """The hash of its last entry before the batch, whose own entries are chained at its end."""
    state: Any = None
    """None while it has no entries; else a `State`, of the type that its name implies."""
    lease: Lease | None = None


class StreamCache:
    """Recently used streams and stored answers, kept from batch to batch.

    It is dropped when anything fails or another process writes.
    """

    def __init__(self) -> None:
        self.streams: dict[str, CachedStream] = {}
        self.answers: dict[AnswerKey, IdempotencyRecord] = {}

    def clear(self) -> None:
        """Drop everything."""
        self.streams.clear()
        self.answers.clear()

    def trim(self) -> None:
        """Drop the oldest ones over the limit."""
        _trim(self.streams)
        _trim(self.answers)


def _trim(cache: dict[Any, Any]) -> None:
    if len(cache) > MAX_CACHED:
        for oldest in list(islice(cache, len(cache) - MAX_CACHED * 3 // 4)):
            del cache[oldest]


# --- ready queues -----------------------------------------------------------------------------

_PROMOTION_LIMIT = 100

_NO_TASK = ReadyKey(0, 0, 0, "")


class ReadyQueues:
    """The ready queues within one transaction: the store's order, with the changes of the batch."""

    def __init__(self, session: Transaction, now: int) -> None:
        self._session = session
        self._now = now
        self.page_size = 1
        """Number of rows read at once: no more than needed, as a store may lock them."""
        self._stored: dict[str, _StoredQueue] = {}
        self._made_ready: dict[str, tuple[str, ReadyKey]] = {}
        self._promoted = False

    def update(self, stream: str, number: int, state: stream_state.State | None) -> None:
        """Update the queues for a stream that the batch has changed."""
        index = stream_state.index_row(state, self._now)
        if index.queue is None:
            self._made_ready.pop(stream, None)
        else:
            key = ReadyKey(index.rank, index.since, number, stream)
            self._made_ready[stream] = (index.queue, key)

    def first(
        self, names: Sequence[str], changed: Container[str], skipped: Container[str] = ()
    ) -> str | None:
        """The stream of the first task in these queues, except for skipped ones."""
        if not self._promoted:
            self._session.promote_due(self._now, _PROMOTION_LIMIT)
            self._promoted = True
        return min(self._candidates(names, changed, skipped), default=_NO_TASK).name or None

    def _candidates(
        self, names: Sequence[str], changed: Container[str], skipped: Container[str]
    ) -> Iterator[ReadyKey]:
        for name in names:
            queue = self._stored.setdefault(name, _StoredQueue(self._session, name, self.page_size))
            key = queue.first(changed, skipped)
            if key:
                yield key
        for queue_name, key in self._made_ready.values():
            if queue_name in names and key.name not in skipped:
                yield key


class _StoredQueue:
    """One stored queue, read page by page; streams that the batch changed are skipped for good."""

    def __init__(self, session: Transaction, name: str, size: int) -> None:
        self._session = session
        self._name = name
        self._size = size
        self._keys: list[ReadyKey] = []
        self._next = 0
        self._is_exhausted = False

    def first(self, changed: Container[str], skipped: Container[str]) -> ReadyKey | None:
        at = self._next
        while at < len(self._keys) or self._read_more():
            key = self._keys[at]
            if key.name not in changed and key.name not in skipped:
                return key
            at += 1
            if key.name in changed and at == self._next + 1:
                self._next = at
        return None

    def _read_more(self) -> bool:
        """Read the next page; False: there is none."""
        if self._is_exhausted:
            return False
        after = self._keys[-1] if self._keys else None
        page = self._session.ready_page(self._name, after, self._size)
        self._keys += page
        self._is_exhausted = len(page) < self._size
        return bool(page)


# --- reads ------------------------------------------------------------------------------------


class BatchReads:
    """Reads of one batch."""

    actor: Actor
    """The actor of the request."""
    cause: str
    """The id of the request."""

    def __init__(self, session: Transaction, cache: StreamCache, now: int, secret: bytes) -> None:
        if not session.is_fresh:
            cache.clear()
        self._session = session
        self._streams = cache.streams
        self.answers = IdempotencyAnswers(cache.answers, secret)
        self._now = now
        self._queues = ReadyQueues(session, now)
        self._aliases: dict[str, list[tuple[str, str]]] = {}
        """Name -> (kind, stream), stored or bound in this batch."""
        self.changed: dict[str, Any] = {}
        """Changed streams, with the states that they had before."""
        self._requeued: dict[str, None] = {}
        """Streams that have changed since the ready queues were last read."""
        self.leased: dict[str, None] = {}
        """The streams of tasks whose leases have changed."""
        self._daily_numbers: dict[str, int] = {}
        self._daily_numbers_read: dict[str, int] = {}
        self._log_positions: dict[str, RecordedEntry | None] = {}
        """Keys of turns and trace events -> their positions, stored or recorded in this batch."""
        self._held: dict[tuple[str, str], tuple[str, ...]] = {}

    # Loading in bulk

    def load_streams(self, names: Iterable[str]) -> None:
        """Load streams in bulk; those that do not exist are cached as absent."""
        missing = [name for name in dict.fromkeys(names) if name not in self._streams]
        if missing:
            self._streams.update({name: CachedStream(0, name) for name in missing})
            rows = self._session.streams(
                [name for name in missing if stream_state.is_storable_name(name)]
            )
            found = {row.name: self._cached_stream(row) for row in rows}
            self._streams.update(found)
            for task in found.values():
                self._check_handoff(task.state)

    def set_claim_count(self, count: int) -> None:
        """Set the number of requests that claim the next task."""
        self._queues.page_size = max(1, count)

    def load_aliases(self, names: Iterable[str]) -> None:
        """Load in bulk the tasks that have these names as aliases."""
        missing = [name for name in dict.fromkeys(names) if name not in self._aliases]
        if missing:
            self._aliases.update({name: [] for name in missing})
            storable = [name for name in missing if stream_state.is_storable_name(name)]
            for name, kind, stream in self._session.find_aliases(storable):
                self._aliases[name].append((kind, stream))

    def load_answers(self, answer_keys: Iterable[AnswerKey]) -> None:
        """Load the stored answers for these keys in bulk."""
        scopes = {(self._stream(scope).number, key): scope for scope, key in answer_keys}
        for answer in self._session.find_answers(list(scopes)):
            self.answers.add_stored((scopes[answer.scope, answer.key], answer.key), answer)

    def load_log_rows(self, keys: Iterable[str]) -> None:
        """Load in bulk the log rows of turns and trace events that are recorded already."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._log_positions]
        if missing:
            self._log_positions.update(dict.fromkeys(missing))
            for key, position, digest, masked in self._session.find_log_rows(missing):
                self._log_positions[key] = RecordedEntry(position, digest, masked)

    # Reads of deciders

    def task(self, name: str) -> Task | Refusal:
        known = self._streams.get("task:" + name) or self._stream("task:" + name)
        return self._task_by_alias(name) if known.state is None else known.state

    def version(self, stream: str) -> int:
        """The number of entries of this stream."""
        return self._stream(stream).version

    def task_at(self, task: Task, version: int) -> Task | None:
        lines = self._session.stream_lines("task:" + task.id)
        return (
            cast(Task, stream_state.replay(lines[:version])) if 1 <= version <= len(lines) else None
        )

    def before_end(self, task: Task) -> int:
        """The version of the last entry of its stream before a final task ended, or was reviewed
        if it is done."""
        after: set[Status] = {*FINAL_STATUSES}
        if task.status == "done":
            after.add("review")
        states = stream_state.replay_each(self._session.stream_lines("task:" + task.id))
        before = (
            version
            for version, state in enumerate(states, start=1)
            if cast(Task, state).status not in after
        )
        return max(before)

    def is_taken(self, name: str) -> bool:
        return self._stream("task:" + name).state is not None or bool(self._streams_of_alias(name))

    def lease(self, task: Task) -> Lease | None:
        return self._streams["task:" + task.id].lease

    def agent(self, name: str) -> AgentRecord | None:
        return self._stream(ids.agent_stream(name)).state

    def is_known(self, name: str) -> bool:
        streams = (ids.agent_stream(name), ids.actor_stream("agent", name))
        return any(self._stream(stream).number for stream in streams)

    def handoff(self, id: str) -> Handoff | None:
        return self._stream(ids.handoff_stream(id)).state

    def work_item(self, id: str) -> WorkItem | None:
        return self._stream(ids.workq_stream(id)).state

    def mail(self, id: str) -> Mail | None:
        return self._stream(ids.mail_stream(id)).state

    def wave(self, id: str) -> Wave | None:
        return self._stream(ids.wave_stream(id)).state

    def coordinators(self) -> tuple[str, ...]:
        streams = self._session.list_members("role:coordinator")
        return tuple(sorted(stream.partition(":")[2] for stream in streams))

    def open_waves(self) -> tuple[Wave, ...]:
        """Every open wave that can be read, oldest first; `verify` reports the others."""
        stored = self._session.list_members(OPEN_WAVES_LIST)
        begun = (stream for stream in self.changed if stream.startswith(ids.wave_stream("")))
        streams = list(dict.fromkeys((*stored, *begun)))
        waves: list[Wave] = []
        for stream in streams:
            with suppress(LedgerError):
                waves.append(self._existing_stream(stream).state)
        return tuple(wave for wave in waves if wave.ended_at is None)

    def reservations(self) -> Reservations:
        return self._stream(ids.RESERVATIONS_STREAM).state or Reservations()

    def intent(self, id: str) -> Intent | None:
        return self._stream(ids.intent_stream(id)).state

    def reputation(self, name: str) -> Reputation | None:
        return self._stream(ids.reputation_stream(name)).state

    def trace(self, session: str) -> Trace | None:
        return self._stream(ids.trace_stream(session)).state

    def turns(self, task: str) -> TurnLog | None:
        return self._stream(ids.turns_stream(task)).state

    def logged(self, key: str) -> RecordedEntry | None:
        if key not in self._log_positions:
            self.load_log_rows((key,))
        return self._log_positions[key]

    def held(self, session: str, holder: str) -> tuple[str, ...]:
        holding = session, holder
        if holding not in self._held:
            self._held[holding] = tuple(self._session.streams_held(session, holder))
        if not self._held[holding] and not self.leased:
            return ()
        # The stored answer is outdated for leases that this batch has changed.
        streams = dict.fromkeys((*self._held[holding], *self.leased))
        leases = {stream: self._existing_stream(stream).lease for stream in streams}
        inside = [stream for stream, lease in leases.items() if lease and lease.session == session]
        found = inside or [
            stream for stream, lease in leases.items() if lease and lease.holder == holder
        ]
        return tuple(stream.partition(":")[2] for stream in found)

    def next_ready(
        self, queues: tuple[str, ...], now: int, may_begin: Callable[[Task], bool]
    ) -> Task | None:
        del now
        for stream in self._requeued:
            self._queues.update(stream, self._streams[stream].number, self._streams[stream].state)
        self._requeued.clear()
        passed: set[str] = set()
        while stream := self._queues.first(queues, self.changed, passed):
            task: Task = self._existing_stream(stream).state
            if may_begin(task):
                return task
            passed.add(stream)
        return None

    def last_number(self, day: str) -> int:
        if day not in self._daily_numbers:
            self._daily_numbers[day] = self._daily_numbers_read[day] = self._session.last_number(
                day
            )
        return self._daily_numbers[day]

    def actor_record(self, stream: str) -> ActorRecord:
        """The remembered state of an actor."""
        return self._stream(stream).state or ActorRecord()

    def _stream(self, stream: str) -> CachedStream:
        if stream not in self._streams:
            self.load_streams((stream,))
        return self._streams[stream]

    def _existing_stream(self, stream: str) -> CachedStream:
        """A stream that the store has just named."""
        known = self._stream(stream)
        if known.state is None:
            raise StoreConflict(f"another writer created {stream} after it was looked up")
        return known

    def _check_handoff(self, state: Any) -> None:
        """Check that the handoff of a task is not cached as absent: both were written together."""
        if isinstance(state, Task) and state.handoff is not None:
            stream = ids.handoff_stream(state.handoff.id)
            if stream in self._streams:
                self._existing_stream(stream)

    def _cached_stream(self, row: StreamRow) -> CachedStream:
        lines = (
            ()
            if row.fold_version == stream_state.FOLD_VERSION
            else self._session.stream_lines(row.name)
        )
        state = stream_state.load_state(row.name, row.fold_version, row.state, lines)
        return CachedStream(row.number, row.name, row.version, row.hash, state, row.lease)

    def requested(self, request_id: str) -> str:
        self.load_aliases((request_id,))
        streams = (
            stream for kind, stream in self._aliases[request_id] if kind == stream_state.REQUEST_ID
        )
        return next(streams, "").partition(":")[2]

    def _task_by_alias(self, name: str) -> Task | Refusal:
        streams = self._streams_of_alias(name)
        if len(streams) == 1:
            return self._existing_stream(streams[0]).state
        return stream_state.unresolved_name(name, streams)

    def _streams_of_alias(self, name: str) -> Sequence[str]:
        bare, kind = stream_state.split_alias(name) if ":" in name else (name, "")
        if bare not in self._aliases:
            self.load_aliases((bare,))
        return stream_state.streams_named(kind, self._aliases[bare])

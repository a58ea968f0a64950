"""What a batch knows: streams, names, logs and queues, read in a few strokes where it can.

It is the `Read` that deciders ask, on behalf of the actor of the current request. What the batch
has changed is told as it stands now, and not as the store still has it.

Where hubs share a store, what was found is locked, but what was not there can be made by another
hub meanwhile. A view that comes upon such a thing later is of two moments: the batch is run again.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from dragoman.core.actors import Actor, ActorRecord
from dragoman.core.errors import Refusal, StoreConflict
from dragoman.core.ids import (
    RESERVATIONS_STREAM,
    agent_stream,
    handoff_stream,
    intent_stream,
    mail_stream,
    reputation_stream,
    trace_stream,
    turns_stream,
    wave_stream,
    workq_stream,
)
from dragoman.core.states.agent import AgentRecord
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.intent import Intent
from dragoman.core.states.lease import Lease
from dragoman.core.states.letter import Mail
from dragoman.core.states.reservations import Reservations
from dragoman.core.states.standing import Reputation
from dragoman.core.states.task import Task
from dragoman.core.states.trace import RecordedEntry, Trace, TurnLog
from dragoman.core.states.wave import OPEN_WAVES_LIST, Wave
from dragoman.core.states.work_item import WorkItem
from dragoman.engine.answers import IdempotencyAnswers
from dragoman.engine.names import is_storable_name, streams_named, unresolved_name
from dragoman.engine.ports import StreamRow, Transaction
from dragoman.engine.queue import ReadyQueues
from dragoman.engine.snapshots import AnswerKey, CachedStream, StreamCache
from dragoman.ledger.views import (
    FOLD_VERSION,
    REQUEST_ID,
    load_state,
    replay,
    split_alias,
)


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
            rows = self._session.streams([name for name in missing if is_storable_name(name)])
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
            storable = [name for name in missing if is_storable_name(name)]
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
        """The task with this id, alias (KIND:NAME) or bare alias name."""
        known = self._streams.get("task:" + name) or self._stream("task:" + name)
        return self._task_by_alias(name) if known.state is None else known.state

    def version(self, stream: str) -> int:
        """The number of entries of this stream."""
        return self._stream(stream).version

    def task_at(self, task: Task, version: int) -> Task | None:
        """The task as it was after this entry of its stream, if the store has it."""
        lines = self._session.stream_lines("task:" + task.id)
        return cast(Task, replay(lines[:version])) if 1 <= version <= len(lines) else None

    def is_taken(self, name: str) -> bool:
        """True if any task has this id, alias or bare alias name."""
        return self._stream("task:" + name).state is not None or bool(self._streams_of_alias(name))

    def lease(self, task: Task) -> Lease | None:
        """The task's lease, valid or expired."""
        return self._streams["task:" + task.id].lease

    def agent(self, name: str) -> AgentRecord | None:
        """The record of the agent or person with this name."""
        return self._stream(agent_stream(name)).state

    def handoff(self, id: str) -> Handoff | None:
        """The handoff with this id."""
        return self._stream(handoff_stream(id)).state

    def work_item(self, id: str) -> WorkItem | None:
        """The item of the work queue with this id."""
        return self._stream(workq_stream(id)).state

    def mail(self, id: str) -> Mail | None:
        """The letter with this id."""
        return self._stream(mail_stream(id)).state

    def wave(self, id: str) -> Wave | None:
        """The wave with this id."""
        return self._stream(wave_stream(id)).state

    def open_waves(self) -> tuple[Wave, ...]:
        """Every open wave, oldest first."""
        stored = self._session.list_members(OPEN_WAVES_LIST)
        begun = (stream for stream in self.changed if stream.startswith(wave_stream("")))
        streams = list(dict.fromkeys((*stored, *begun)))
        self.load_streams(streams)
        waves: list[Wave] = [self._existing_stream(stream).state for stream in streams]
        return tuple(wave for wave in waves if wave.ended_at is None)

    def reservations(self) -> Reservations:
        """All reservations of files."""
        return self._stream(RESERVATIONS_STREAM).state or Reservations()

    def intent(self, id: str) -> Intent | None:
        """The intent with this id."""
        return self._stream(intent_stream(id)).state

    def standing(self, name: str) -> Reputation | None:
        """The registry's record of an agent."""
        return self._stream(reputation_stream(name)).state

    def trace(self, session: str) -> Trace | None:
        """The remembered state of the trace of this session."""
        return self._stream(trace_stream(session)).state

    def turns(self, task: str) -> TurnLog | None:
        """The remembered state of the turns of the task with this id."""
        return self._stream(turns_stream(task)).state

    def logged(self, key: str) -> RecordedEntry | None:
        """The position of the turn or trace event with this key, if it is recorded."""
        if key not in self._log_positions:
            self.load_log_rows((key,))
        return self._log_positions[key]

    def held(self, session: str, holder: str) -> tuple[str, ...]:
        """The ids of the tasks that are held in this session; if none is, by this holder."""
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
        """The first task of these queues that may be started."""
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
        """The last AOF number given out on this day."""
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
            stream = handoff_stream(state.handoff.id)
            if stream in self._streams:
                self._existing_stream(stream)

    def _cached_stream(self, row: StreamRow) -> CachedStream:
        lines = () if row.fold_version == FOLD_VERSION else self._session.stream_lines(row.name)
        state = load_state(row.name, row.fold_version, row.state, lines)
        return CachedStream(row.number, row.name, row.version, row.hash, state, row.lease)

    def requested(self, request_id: str) -> str:
        """The intent that has used this request id; empty: none."""
        self.load_aliases((request_id,))
        streams = (stream for kind, stream in self._aliases[request_id] if kind == REQUEST_ID)
        return next(streams, "").partition(":")[2]

    def _task_by_alias(self, name: str) -> Task | Refusal:
        streams = self._streams_of_alias(name)
        if len(streams) == 1:
            return self._existing_stream(streams[0]).state
        return unresolved_name(name, streams)

    def _streams_of_alias(self, name: str) -> Sequence[str]:
        bare, kind = split_alias(name) if ":" in name else (name, "")
        if bare not in self._aliases:
            self.load_aliases((bare,))
        return streams_named(kind, self._aliases[bare])

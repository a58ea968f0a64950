"""A unit of work: what a batch of requests reads and will write, on top of one store transaction.

States are read once and evolve in memory; the store writes each table once, at the end. A refusal
leaves nothing behind: what a request changed is put back when one of its commands is refused.
"""

from collections.abc import Iterable, Sequence
from typing import cast

import msgspec
from msgspec import Struct

from dragoman.core.actors import ActorRecord
from dragoman.core.errors import Refusal
from dragoman.core.events import AnyEvent
from dragoman.core.ids import check_alias, check_task_id, task_stream
from dragoman.core.lease import Lease
from dragoman.core.reading import Decision, LeaseChange
from dragoman.core.task import Task
from dragoman.engine.ports import Answer, Changes, NewEntry, Row, Session
from dragoman.engine.queue import ReadyQueues
from dragoman.engine.request import Request
from dragoman.ledger.chain import GENESIS, link_hash
from dragoman.ledger.codec import WRITTEN
from dragoman.ledger.entry import Line, write_line
from dragoman.ledger.views import (
    FOLD,
    State,
    current_state,
    encode_state,
    fold,
    names_of,
    shelve,
    split_alias,
)


class Snapshot(Struct, frozen=True, gc=False):
    """A stream at the point that the batch has reached."""

    number: int
    """0 while the store has no such stream."""
    name: str
    version: int = 0
    hash: bytes = GENESIS
    state: State | None = None
    lease: Lease | None = None


Cache = dict[str, Snapshot]
"""Recent streams, kept from batch to batch; dropped when anything fails or anyone else writes."""


class Unit:
    """Reads and records for one batch. It is also the `Read` that deciders ask."""

    def __init__(self, session: Session, cache: Cache, now: int) -> None:
        if not session.is_fresh:
            cache.clear()
        self._session = session
        self._known = cache
        self._now = now
        self._queues = ReadyQueues(session, now)
        self._entries: list[NewEntry] = []
        self._names: list[tuple[str, str, str]] = []
        self._changed: dict[str, None] = {}
        self._unqueued: dict[str, Snapshot] = {}
        """Changed since the ready queues were last asked."""
        self._leased: dict[str, None] = {}
        self._answers: dict[tuple[str, str], Answer] = {}
        self._numbers: dict[str, int] = {}

    def prefetch(self, streams: Iterable[str]) -> None:
        """Load streams that the batch is about to need in one go."""
        missing = [name for name in dict.fromkeys(streams) if name not in self._known]
        if missing:
            for row in self._session.streams(missing):
                self._known[row.name] = self._snapshot(row)

    # What one request changes

    def begin(self, request: Request) -> None:
        """From here on the unit reads and records on behalf of this request."""
        self.actor = request.actor
        self.request_id = request.id
        self._said = request.said
        self._before: dict[str, Snapshot] = {}
        self._numbers_before = self._numbers
        self._mark = len(self._entries), len(self._names)

    def has_recorded(self) -> bool:
        """Whether the current request has added an entry."""
        return len(self._entries) > self._mark[0]

    def undo(self) -> None:
        """Take back everything since `begin`."""
        entries, names = self._mark
        del self._entries[entries:], self._names[names:]
        self._numbers = self._numbers_before
        self._known.update(self._before)
        self._unqueued.update(self._before)

    def apply(self, decision: Decision) -> None:
        """Record a yes."""
        for stream, event in decision.events:
            self._append(stream, event)
        if decision.lease is not None:
            self.renew(decision.lease)
        if decision.number is not None:
            day, number = decision.number
            self._numbers = {**self._numbers, day: number}

    def renew(self, change: LeaseChange) -> None:
        """Write or end a lease; no entry."""
        stream = task_stream(change.task)
        old = self._read(stream)
        self._before.setdefault(stream, old)
        self._leased[stream] = None
        self._known[stream] = Snapshot(
            old.number, stream, old.version, old.hash, old.state, change.lease
        )

    def record(self, stream: str, event: AnyEvent) -> None:
        """Record an event outside of any decision: a refusal in its actor's stream."""
        self._append(stream, event)

    # What deciders read

    def task(self, name: str) -> Task | Refusal:
        """The task with this id, alias (KIND:NAME) or bare alias name."""
        state = self._read(task_stream(name)).state
        return cast(Task, state) if state is not None else self._by_alias(name)

    def lease(self, task: Task) -> Lease | None:
        """The task's lease, living or dead."""
        return self._read(task_stream(task.id)).lease

    def next_ready(self, agent: str, now: int) -> Task | None:
        """The first task of the queue that this agent may claim."""
        del now
        for stream in self._unqueued:
            self._queues.changed(stream, self._known[stream].number, self._known[stream].state)
        self._unqueued.clear()
        stream = self._queues.first(agent, self._changed)
        return cast(Task, self._read(stream).state) if stream else None

    def last_number(self, day: str) -> int:
        """The last AOF number given out on this day."""
        if day not in self._numbers:
            self._numbers[day] = self._session.last_number(day)
        return self._numbers[day]

    def refusals(self, stream: str) -> ActorRecord:
        """What is remembered of an actor's refusals."""
        return cast(ActorRecord | None, self._read(stream).state) or ActorRecord()

    # Repeats

    def answered(self, scope: str, key: str) -> Answer | None:
        """What this key was answered in its scope, earlier or in this batch."""
        answer = self._answers.get((scope, key))
        if answer is None and (number := self._read(scope).number):
            answer = self._session.answered(number, key)
        return answer

    def remember(self, scope: str, key: str, fingerprint: bytes, answer: bytes) -> None:
        """Keep an answer for a repeat of its request."""
        number = self._existing(scope).number
        self._answers[scope, key] = Answer(number, key, fingerprint, answer)

    # The end of the batch

    def changes(self) -> Changes:
        """Everything to write, each table once."""
        return Changes(
            entries=self._entries,
            streams=[self._row(name) for name in self._changed if self._known[name].number],
            leases=[
                (snapshot.number, snapshot.lease)
                for snapshot in map(self._known.__getitem__, self._leased)
            ],
            names=[(name, kind, self._known[stream].number) for name, kind, stream in self._names],
            answers=list(self._answers.values()),
            numbers=self._numbers,
        )

    def _append(self, stream: str, event: AnyEvent) -> None:
        old = self._existing(stream)
        version = old.version + 1
        name, shape = WRITTEN[type(event)]
        line = write_line(
            Line(
                stream,
                version,
                name,
                shape,
                self._now,
                self.actor.label,
                self.request_id,
                event,
                self.actor.via,
                self._said,
            )
        )
        self._said = msgspec.UNSET
        digest = link_hash(old.hash, line)
        state = fold(old.state, event, self._now)
        self._entries.append(NewEntry(old.number, version, name, line, old.hash, digest))
        self._known[stream] = Snapshot(old.number, stream, version, digest, state, old.lease)
        self._unqueued[stream] = old
        self._names += [(bound, kind, stream) for bound, kind in names_of(event)]

    def _existing(self, stream: str) -> Snapshot:
        """The stream, about to be written: with a number, and remembered for an undo."""
        old = self._read(stream)
        self._before.setdefault(stream, old)
        self._changed[stream] = None
        if old.number:
            return old
        numbered = Snapshot(self._session.new_stream(), stream)
        self._known[stream] = numbered
        return numbered

    def _read(self, stream: str) -> Snapshot:
        known = self._known.get(stream)
        if known is None:
            rows = self._session.streams((stream,))
            known = self._snapshot(rows[0]) if rows else Snapshot(0, stream)
            self._known[stream] = known
        return known

    def _snapshot(self, row: Row) -> Snapshot:
        lines = () if row.fold == FOLD else self._session.history(row.name)
        state = current_state(row.name, row.fold, row.state, lines)
        return Snapshot(row.number, row.name, row.version, row.hash, state, row.lease)

    def _row(self, stream: str) -> Row:
        at = self._known[stream]
        state = b"" if at.state is None else encode_state(at.state)
        shelf = shelve(at.state, self._now)
        return Row(at.number, stream, at.version, at.hash, FOLD, state, at.lease, shelf)

    def _by_alias(self, name: str) -> Task | Refusal:
        streams = self._aliased(name)
        if len(streams) == 1:
            return cast(Task, self._read(streams[0]).state)
        return unresolved(name, streams)

    def _aliased(self, name: str) -> Sequence[str]:
        bare, kind = split_alias(name) if ":" in name else (name, "")
        staged = [(k, stream) for bound, k, stream in self._names if bound == bare]
        return pick(kind, [*self._session.named(bare), *staged])


def pick(kind: str, named: Iterable[tuple[str, str]]) -> Sequence[str]:
    """The streams that a name of this kind (or, empty, of any kind) stands for."""
    return tuple(dict.fromkeys(stream for k, stream in named if kind in ("", k)))


def unresolved(name: str, streams: Sequence[str]) -> Refusal:
    """Why a name does not lead to one task."""
    if streams:
        tasks = ", ".join(stream.partition(":")[2] for stream in streams)
        return Refusal("ambiguous_name", f"{name} names several tasks: {tasks}")
    malformed = check_alias(name) if ":" in name else check_task_id(name)
    return malformed or Refusal("task_not_found", f"no task has the name {name}")

"""A unit of work: what a batch of requests reads and will write, on top of one store transaction.

What the requests name is read in a few strokes at the start; states evolve in memory; the store
writes each table once, at the end. A refusal leaves nothing behind: what a request changed is put
back when one of its commands is refused.
"""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.actors import ActorRecord
from dragoman.core.agents import AgentRecord
from dragoman.core.errors import Refusal
from dragoman.core.events import AnyEvent
from dragoman.core.handoff import ALL_HANDOFFS, Handoff
from dragoman.core.ids import (
    RESERVATIONS,
    agent_stream,
    handoff_stream,
    intent_stream,
    mail_stream,
    standing_stream,
    trace_stream,
    turns_stream,
    wave_stream,
    workq_stream,
)
from dragoman.core.intent import Intent
from dragoman.core.lease import Lease
from dragoman.core.mail import Mail
from dragoman.core.moves import MOVES
from dragoman.core.reading import Decision, LeaseChange
from dragoman.core.reservations import Reservations
from dragoman.core.standing import Standing
from dragoman.core.task import Task
from dragoman.core.traces import Logged, Trace, TurnLog
from dragoman.core.wave import Wave
from dragoman.core.work_item import WorkItem
from dragoman.engine.answers import Answers, Told
from dragoman.engine.journal import Journal
from dragoman.engine.names import can_be_stored, pick, unresolved
from dragoman.engine.ports import Changes, NewLog, Row, Session
from dragoman.engine.queue import ReadyQueues
from dragoman.engine.request import Request
from dragoman.engine.snapshots import Cache, Place, Snapshot
from dragoman.ledger.codec import WRITTEN
from dragoman.ledger.entry import Line
from dragoman.ledger.logs import log_of
from dragoman.ledger.records import HandoffCourse, course_of, in_order
from dragoman.ledger.views import (
    EVOLVE,
    FOLD,
    NAMING,
    current_state,
    encode_state,
    lists_of,
    names_of,
    refold,
    shelve,
    split_alias,
)


class _Undo(Struct):
    """What a request of several commands has to put back when one of them is refused."""

    first: int
    bound: int
    numbers: dict[str, int]
    said: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    before: dict[str, Snapshot] = {}
    logs: int = 0


class Unit:
    """Reads and records for one batch. It is also the `Read` that deciders ask."""

    def __init__(
        self,
        session: Session,
        cache: Cache,
        now: int,
        secret: bytes = b"",
        commit: str = "",
    ) -> None:
        """`secret`: what the digests of answers are keyed with; `commit`: what the repository has
        checked out, which moves of tasks carry."""
        if not session.is_fresh:
            cache.clear()
        self._session = session
        self._known = cache.streams
        self.answers = Answers(cache.answers, secret)
        self._now = now
        self._queues = ReadyQueues(session, now)
        self._journal = Journal()
        self._aliases: dict[str, list[tuple[str, str]]] = {}
        """Name -> (kind, stream), stored or bound in this batch."""
        self._bound: list[tuple[str, str, str]] = []
        self.changed: dict[str, None] = {}
        """The streams that are written."""
        self._unqueued: dict[str, None] = {}
        """Changed since the ready queues were last asked."""
        self.leased: dict[str, None] = {}
        """The streams of tasks whose leases changed."""
        self._numbers: dict[str, int] = {}
        self._numbers_read: dict[str, int] = {}
        self._leases: dict[str, Lease | None] = {}
        """Leases that the current request has changed, as they were before it."""
        self._stood: dict[str, tuple[str, ...]] = {}
        """Changed streams and the lists that they stood on before."""
        self._commit = commit
        self._logs: list[NewLog] = []
        self._logged: dict[str, Logged | None] = {}
        """Keys of turns and events -> where they stand, stored or recorded in this batch."""
        self._held: dict[tuple[str, str], tuple[str, ...]] = {}

    # What is read before the first request

    def load_streams(self, names: Iterable[str]) -> None:
        """Read streams in one stroke; those that do not exist are known not to."""
        missing = [name for name in dict.fromkeys(names) if name not in self._known]
        if missing:
            self._known.update({name: Snapshot(0, name) for name in missing})
            rows = self._session.streams([name for name in missing if can_be_stored(name)])
            self._known.update({row.name: self._snapshot(row) for row in rows})

    def expect_claims(self, count: int) -> None:
        """So many requests ask for whatever is next."""
        self._queues.page = max(1, count)

    def load_names(self, names: Iterable[str]) -> None:
        """Read in one stroke which tasks have these names as aliases."""
        missing = [name for name in dict.fromkeys(names) if name not in self._aliases]
        if missing:
            self._aliases.update({name: [] for name in missing})
            asked = [name for name in missing if can_be_stored(name)]
            for name, kind, stream in self._session.named(asked):
                self._aliases[name].append((kind, stream))

    def load_answers(self, places: Iterable[Place]) -> None:
        """Read in one stroke what was answered there."""
        scopes = {(self._read(scope).number, key): scope for scope, key in places}
        for answer in self._session.answered(list(scopes)):
            self.answers.learn((scopes[answer.scope, answer.key], answer.key), answer)

    def load_logs(self, keys: Iterable[str]) -> None:
        """Read in one stroke which turns and events were recorded before."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._logged]
        if missing:
            self._logged.update(dict.fromkeys(missing))
            for key, position, digest, masked in self._session.logged(missing):
                self._logged[key] = Logged(position, digest, masked)

    # What one request changes

    def begin(self, request: Request) -> Place:
        """From here on the unit reads and records for this request; where its answer is kept."""
        actor = request.actor
        self.actor = actor
        self._label = actor.label
        self._via = actor.via
        self.cause = request.id
        self._said = msgspec.UNSET
        self._first = len(self._journal)
        self._leases.clear()
        # A single command that is refused has changed nothing, so there is nothing to put back.
        commands = request.commands
        self._undo = None
        if len(commands) > 1:
            self.mark()
        return self.answer_place(request)

    def mark(self) -> None:
        """From here on an undo takes back; what the request has done so far stays."""
        self._undo = _Undo(
            len(self._journal), len(self._bound), self._numbers, self._said, logs=len(self._logs)
        )

    def hear(self, said: msgspec.Raw | msgspec.UnsetType) -> Refusal | None:
        """Keep the original words for the first entry, on one line; None if they are JSON."""
        if said is msgspec.UNSET:
            return None
        try:
            msgspec.json.decode(said)
            self._said = msgspec.Raw(msgspec.json.format(bytes(said), indent=-1))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return Refusal("invalid_field", f"said is not JSON: {error}")
        if self._undo is not None:
            self._undo.said = self._said
        return None

    def answer_place(self, request: Request) -> Place:
        """The stream in which a request's key is unique (its target, or else its actor), and the
        key; a request without one has its own id."""
        key = request.key or request.id
        about = request.commands[0].about
        if about:
            task = self.task(about)
            if not isinstance(task, Refusal):
                place = "task:" + task.id
                return place, f"{key}.{task.attempts}" if request.per_attempt else key
        return request.actor.stream, key

    @property
    def has_logged(self) -> bool:
        """Whether the batch has recorded a turn or an event of a trace."""
        return bool(self._logs)

    def has_recorded(self) -> bool:
        """Whether the current request has added an entry."""
        return len(self._journal) > self._first

    def has_changed(self) -> bool:
        """Whether anything is different from what it was at the mark."""
        return self._undo is not None and bool(self._undo.before)

    def undo(self) -> None:
        """Take back everything since the mark."""
        undo = self._undo
        if undo is None:
            return
        for name, kind, stream in self._bound[undo.bound :]:
            self._aliases[name].remove((kind, stream))
        for new in self._logs[undo.logs :]:
            self._logged[new.log.key] = None
        self._journal.cut(undo.first)
        del self._bound[undo.bound :], self._logs[undo.logs :]
        self._numbers = undo.numbers
        self._said = undo.said
        self._known.update(undo.before)
        self._unqueued.update(dict.fromkeys(undo.before))

    def apply(self, decision: Decision) -> None:
        """Record a yes."""
        for stream, event in decision.events:
            self.record(stream, event)
        if decision.lease is not None:
            self.renew(decision.lease)
        if decision.number is not None:
            day, number = decision.number
            self._numbers = {**self._numbers, day: number}

    def renew(self, change: LeaseChange) -> None:
        """Write or end a lease; no entry."""
        stream = "task:" + change.task
        old, lease = self._known[stream], change.lease
        if self._undo is not None:
            self._undo.before.setdefault(stream, old)
        lease = _with_one_beat(lease, self._leases.setdefault(stream, old.lease))
        self.leased[stream] = None
        self._known[stream] = Snapshot(old.number, stream, old.version, old.hash, old.state, lease)

    def record(self, stream: str, event: AnyEvent) -> None:
        """Append an entry and let the stream's state follow."""
        old = self._to_be_written(stream)
        event_type = type(event)
        if event_type in MOVES:
            event = self._with_commit(event)
        version = old.version + 1
        name, shape = WRITTEN[event_type]
        self._journal.add(
            Line(
                stream,
                version,
                name,
                shape,
                self._now,
                self._label,
                self.cause,
                event,
                self._via,
                self._said,
            )
        )
        self._said = msgspec.UNSET
        state = EVOLVE[event_type](old.state, event, self._now)
        self._known[stream] = Snapshot(old.number, stream, version, old.hash, state, old.lease)
        log = log_of(event)
        if log is not None:
            self._logs.append(NewLog(old.number, version, log))
            self._logged[log.key] = Logged(-len(self._journal), log.digest, log.masked)
        if event_type in NAMING:
            self._bind(stream, names_of(event))

    # What deciders read

    def task(self, name: str) -> Task | Refusal:
        """The task with this id, alias (KIND:NAME) or bare alias name."""
        known = self._known.get("task:" + name) or self._read("task:" + name)
        return cast(Task, known.state) if known.state is not None else self._by_alias(name)

    def task_at(self, task: Task, version: int) -> Task | None:
        """The task as it was after this entry of its stream, if the store has it."""
        lines = self._session.history("task:" + task.id)
        return cast(Task, refold(lines[:version])) if 1 <= version <= len(lines) else None

    def is_taken(self, name: str) -> bool:
        """Whether any task has this id, alias or bare alias name."""
        return self._read("task:" + name).state is not None or bool(self._aliased(name))

    def lease(self, task: Task) -> Lease | None:
        """The task's lease, living or dead."""
        return self._known["task:" + task.id].lease

    def agent(self, name: str) -> AgentRecord | None:
        """What is known of the agent or person with this name."""
        return cast(AgentRecord | None, self._read(agent_stream(name)).state)

    def handoff(self, id: str) -> Handoff | None:
        """The handoff with this id."""
        return cast(Handoff | None, self._read(handoff_stream(id)).state)

    def work_item(self, id: str) -> WorkItem | None:
        """The item of the work queue with this id."""
        return cast(WorkItem | None, self._read(workq_stream(id)).state)

    def mail(self, id: str) -> Mail | None:
        """The letter with this id."""
        return cast(Mail | None, self._read(mail_stream(id)).state)

    def wave(self, id: str) -> Wave | None:
        """The wave with this id."""
        return cast(Wave | None, self._read(wave_stream(id)).state)

    def reservations(self) -> Reservations:
        """All files that are reserved."""
        return cast(Reservations | None, self._read(RESERVATIONS).state) or Reservations()

    def intent(self, id: str) -> Intent | None:
        """The intent with this id."""
        return cast(Intent | None, self._read(intent_stream(id)).state)

    def standing(self, name: str) -> Standing | None:
        """How an agent stands in the registry."""
        return cast(Standing | None, self._read(standing_stream(name)).state)

    def trace(self, session: str) -> Trace | None:
        """What is remembered of the trace of this session."""
        return cast(Trace | None, self._read(trace_stream(session)).state)

    def turns(self, task: str) -> TurnLog | None:
        """What is remembered of the turns of the task with this id."""
        return cast(TurnLog | None, self._read(turns_stream(task)).state)

    def logged(self, key: str) -> Logged | None:
        """Where the turn or the event with this key was recorded, if it was."""
        if key not in self._logged:
            self.load_logs((key,))
        return self._logged[key]

    def held(self, session: str, holder: str) -> tuple[str, ...]:
        """The ids of the tasks that are held in this session; if none is, by this holder."""
        asked = session, holder
        if asked not in self._held:
            self._held[asked] = tuple(self._session.held(session, holder))
        # Of leases that this batch has changed, only what it knows itself is true.
        streams = dict.fromkeys((*self._held[asked], *self.leased))
        leases = {stream: self._read(stream).lease for stream in streams}
        inside = [stream for stream, lease in leases.items() if lease and lease.session == session]
        found = inside or [
            stream for stream, lease in leases.items() if lease and lease.holder == holder
        ]
        return tuple(stream.partition(":")[2] for stream in found)

    def next_ready(self, queues: tuple[str, ...], now: int) -> Task | None:
        """The first task of these queues."""
        del now
        for stream in self._unqueued:
            self._queues.changed(stream, self._known[stream].number, self._known[stream].state)
        self._unqueued.clear()
        stream = self._queues.first(queues, self.changed)
        return cast(Task, self._read(stream).state) if stream else None

    def last_number(self, day: str) -> int:
        """The last AOF number given out on this day."""
        if day not in self._numbers:
            self._numbers[day] = self._numbers_read[day] = self._session.last_number(day)
        return self._numbers[day]

    def record_of(self, stream: str) -> ActorRecord:
        """What is remembered of an actor."""
        return cast(ActorRecord | None, self._read(stream).state) or ActorRecord()

    # Repeats

    def remember(self, place: Place, request: Request, told: Told) -> None:
        """Keep the answer to a request for its repeats."""
        scope = place[0]
        number = self._read(scope).number or self._to_be_written(scope).number
        self.answers.keep(place, number, request, told)

    # The end of the batch

    def changes(self) -> Changes:
        """Everything to write, each table once. Nothing may be asked of the unit after that."""
        known = self._known
        entries, hashes = self._journal.chained(known)
        for name, digest in hashes.items():
            at = known[name]
            known[name] = Snapshot(at.number, name, at.version, digest, at.state, at.lease)
        listed, unlisted = self._moved_on_lists()
        return Changes(
            entries=entries,
            streams=[self._row(known[name]) for name in self.changed if known[name].number],
            leases=[
                (known[name].number, known[name].lease)
                for name in self.leased
                if known[name].number
            ],
            names=[(name, kind, known[stream].number) for name, kind, stream in self._bound],
            answers=self.answers.written(),
            numbers=dict(self._numbers.items() - self._numbers_read.items()),
            listed=listed,
            unlisted=unlisted,
            logs=self._logs,
            courses=self._courses(),
            handoffs=in_order(
                known[name].state for name in self.changed if not self._had_row(name)
            ),
        )

    def _had_row(self, stream: str) -> bool:
        """Whether a handoff was offered before this batch."""
        return ALL_HANDOFFS in self._stood[stream]

    def _courses(self) -> list[HandoffCourse]:
        states = (self._known[name].state for name in self.changed if self._had_row(name))
        return [course_of(state) for state in states if isinstance(state, Handoff)]

    def _with_commit(self, event: Any) -> AnyEvent:
        """A move with what the repository has checked out, unless it says so itself."""
        if event.commit or not self._commit:
            return event
        return replace(event, commit=self._commit)

    def _moved_on_lists(self) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
        """Which streams stand on which lists anew, and which no longer."""
        listed, unlisted = list[tuple[str, int]](), list[tuple[str, int]]()
        for stream, before in self._stood.items():
            at = self._known[stream]
            after = lists_of(at.state)
            if after != before:
                listed += [(name, at.number) for name in after if name not in before]
                unlisted += [(name, at.number) for name in before if name not in after]
        return listed, unlisted

    def _bind(self, stream: str, names: Iterable[tuple[str, str]]) -> None:
        for name, kind in names:
            self.load_names((name,))
            self._aliases[name].append((kind, stream))
            self._bound.append((name, kind, stream))

    def _to_be_written(self, stream: str) -> Snapshot:
        """The stream with a number, remembered for an undo."""
        old = self._known.get(stream) or self._read(stream)
        if self._undo is not None:
            self._undo.before.setdefault(stream, old)
        if stream not in self.changed:
            self._stood[stream] = lists_of(old.state)
        self.changed[stream] = None
        self._unqueued[stream] = None
        if old.number:
            return old
        numbered = Snapshot(self._session.new_stream(), stream)
        self._known[stream] = numbered
        return numbered

    def _read(self, stream: str) -> Snapshot:
        if stream not in self._known:
            self.load_streams((stream,))
        return self._known[stream]

    def _snapshot(self, row: Row) -> Snapshot:
        lines = () if row.fold == FOLD else self._session.history(row.name)
        state = current_state(row.name, row.fold, row.state, lines)
        return Snapshot(row.number, row.name, row.version, row.hash, state, row.lease)

    def _row(self, at: Snapshot) -> Row:
        state = b"" if at.state is None else encode_state(at.state)
        shelf = shelve(at.state, self._now)
        return Row(at.number, at.name, at.version, at.hash, FOLD, state, at.lease, shelf)

    def _by_alias(self, name: str) -> Task | Refusal:
        streams = self._aliased(name)
        if len(streams) == 1:
            return cast(Task, self._read(streams[0]).state)
        return unresolved(name, streams)

    def _aliased(self, name: str) -> Sequence[str]:
        bare, kind = split_alias(name) if ":" in name else (name, "")
        if bare not in self._aliases:
            self.load_names((bare,))
        return pick(kind, self._aliases[bare])


def _with_one_beat(lease: Lease | None, before: Lease | None) -> Lease | None:
    """The lease after a request: one sign of life, however many commands it has."""
    if lease is None:
        return None
    beaten = before.beats if before is not None and before.fence == lease.fence else 0
    return replace(lease, beats=min(lease.beats, beaten + 1))

"""A unit of work: what a batch of requests will write, on top of one store transaction.

What the requests name is read in a few strokes at the start; states evolve in memory; the store
writes each table once, at the end. A refusal leaves nothing behind: what a request changed is put
back when one of its commands is refused.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.errors import Refusal
from dragoman.core.events import AnyEvent, TaskCreated
from dragoman.core.reading import Decision, LeaseChange
from dragoman.core.states.handoff import ALL_HANDOFFS, Handoff
from dragoman.core.states.lease import Lease
from dragoman.core.states.moves import MOVES
from dragoman.core.states.trace import Logged
from dragoman.core.states.wave import Happened
from dragoman.engine.journal import Journal
from dragoman.engine.ports import Answer, Changes, NewLog, Row, Session
from dragoman.engine.request import Accepted, Request
from dragoman.engine.snapshots import Cache, Place, Snapshot
from dragoman.engine.view import View
from dragoman.ledger.codec import CODEC, WRITTEN
from dragoman.ledger.entry import Line, read_line
from dragoman.ledger.logs import LOGS
from dragoman.ledger.records import course_of, in_order
from dragoman.ledger.views import (
    EVOLVE,
    FOLD,
    NAMING,
    encode_state,
    lists_of,
    shelve,
)


class _Undo(Struct):
    """The state to return to when one of several commands is refused."""

    first: int
    bound: int
    numbers: dict[str, int]
    said: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    before: dict[str, Snapshot] = {}
    logs: int = 0


class Earlier(Struct, frozen=True):
    """The answer that a message got in an earlier attempt."""

    attempt: int
    present: int
    answer: Answer


class Unit(View):
    """Reads and writes of one batch."""

    def __init__(
        self,
        session: Session,
        cache: Cache,
        now: int,
        secret: bytes = b"",
        commit: str = "",
    ) -> None:
        """`secret`: keys the fingerprints of answers; `commit`: what the repository has checked
        out, recorded with moves of tasks."""
        super().__init__(session, cache, now, secret)
        self._commit = commit
        self._journal = Journal()
        self._bound: list[tuple[str, str, str]] = []
        self._leases: dict[str, Lease | None] = {}
        """Leases that the current request has changed, as they were before it."""
        self._logs: list[NewLog] = []

    # History for deciders

    def history(self, stream: str) -> Iterator[Happened]:
        """All events of a stream, in order, including those of this batch."""
        for stored in map(read_line, self._session.history(stream)):
            yield CODEC.decode(stored.event, stored.v, stored.body), stored.at
        yield from ((line.body, line.at) for line in self._journal if line.stream == stream)

    # Changes of one request

    def begin(self, request: Request) -> Place:
        """Begin a request, for which the unit reads and records from now on; returns its answer
        key."""
        self.actor = request.actor
        self.cause = request.id
        self._said = msgspec.UNSET
        self._first = len(self._journal)
        self._leases.clear()
        # A single command that is refused has changed nothing, so there is nothing to undo.
        self._undo = None
        if len(request.commands) > 1:
            self.mark()
        return self.answer_place(request)

    def mark(self) -> None:
        """Set the point that an undo returns to; earlier changes of the request stay."""
        self._undo = _Undo(
            len(self._journal), len(self._bound), self._numbers, self._said, logs=len(self._logs)
        )

    def hear(self, said: msgspec.Raw) -> Refusal | None:
        """Keep the original text for the first entry, on one line; refused if it is not JSON."""
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
        key; a request without a key has its own id."""
        key = request.key or request.id
        about = request.commands[0].about
        if about:
            task = self.task(about)
            if not isinstance(task, Refusal):
                place = "task:" + task.id
                return place, f"{key}.{task.attempts}" if request.per_attempt else key
        return request.actor.stream, key

    def answered_earlier(self, request: Request, sent_at: int) -> Earlier | None:
        """The answer to the same message in an earlier attempt, if it is dated before the task last
        moved (which was the claim, while the task is held).

        The credential of an attempt says itself which attempt it speaks for.
        """
        about = request.commands[0].about
        if not about or request.actor.task:
            return None
        task = self.task(about)
        if isinstance(task, Refusal) or not task.attempts or sent_at >= task.moved_at:
            return None
        places = {n: ("task:" + task.id, f"{request.key}.{n}") for n in range(task.attempts)}
        self.load_answers(places.values())
        for attempt, place in places.items():
            answer = self.answers.find(place)
            if answer is not None and self.answers.fits(answer, request):
                return Earlier(attempt, task.attempts, answer)
        return None

    @property
    def has_logged(self) -> bool:
        """True if the batch has recorded a turn or a trace event."""
        return bool(self._logs)

    @property
    def recorded_in(self) -> Iterator[str]:
        """The stream of each entry of the batch, in order."""
        return (line.stream for line in self._journal)

    def has_recorded(self) -> bool:
        """True if the current request has added an entry."""
        return len(self._journal) > self._first

    def has_changed(self) -> bool:
        """True if anything has changed since the undo point."""
        return self._undo is not None and bool(self._undo.before)

    def undo(self) -> None:
        """Undo everything since the undo point."""
        undo = self._undo
        if undo is None:
            return
        for name, kind, stream in self._bound[undo.bound :]:
            self._aliases[name].remove((kind, stream))
        for new in self._logs[undo.logs :]:
            self._logged[new.log.key] = None
        del self._journal[undo.first :], self._bound[undo.bound :], self._logs[undo.logs :]
        self._numbers = undo.numbers
        self._said = undo.said
        self._known.update(undo.before)
        self._unqueued.update(dict.fromkeys(undo.before))

    def apply(self, decision: Decision) -> None:
        """Record a decision."""
        for stream, event in decision.events:
            self.record(stream, event)
        if decision.lease is not None:
            self.renew(decision.lease)
        if decision.number is not None:
            day, number = decision.number
            self._numbers = {**self._numbers, day: number}

    def renew(self, change: LeaseChange) -> None:
        """Write or end a lease, without an entry."""
        stream = "task:" + change.task
        old, lease = self._known[stream], change.lease
        if self._undo is not None:
            self._undo.before.setdefault(stream, old)
        lease = _with_one_beat(lease, self._leases.setdefault(stream, old.lease))
        self.leased[stream] = None
        self._known[stream] = Snapshot(old.number, stream, old.version, old.hash, old.state, lease)

    def record(self, stream: str, event: AnyEvent) -> None:
        """Append an entry and fold it into the stream's state."""
        old = self._to_be_written(stream)
        event_type = type(event)
        if self._commit and (event_type in MOVES or event_type is TaskCreated):
            event = self._with_commit(event)
        version = old.version + 1
        name, shape = WRITTEN[event_type]
        self._journal.append(
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
                self._said,
            )
        )
        self._said = msgspec.UNSET
        state = EVOLVE[event_type](old.state, event, self._now)
        self._known[stream] = Snapshot(old.number, stream, version, old.hash, state, old.lease)
        if event_type in LOGS:
            log = LOGS[event_type](event)
            self._logs.append(NewLog(old.number, version, log))
            self._logged[log.key] = Logged(-len(self._journal), log.digest, log.masked)
        if event_type in NAMING:
            self._bind(stream, NAMING[event_type](event))

    # Idempotency

    def remember(self, place: Place, request: Request, told: Accepted) -> None:
        """Store the answer to a request for its repeats."""
        scope = place[0]
        number = self._read(scope).number or self._to_be_written(scope).number
        self.answers.keep(place, number, request, told)

    # End of the batch

    def changes(self) -> Changes:
        """All changes to write, each table once. The unit must not be used after that."""
        known = self._known
        entries, hashes = self._journal.chained(known)
        for name, digest in hashes.items():
            at = known[name]
            known[name] = Snapshot(at.number, name, at.version, digest, at.state, at.lease)
        changes = Changes(
            entries=entries,
            leases=[
                (known[name].number, known[name].lease)
                for name in self.leased
                if known[name].number
            ],
            names=[(name, kind, known[stream].number) for name, kind, stream in self._bound],
            answers=self.answers.written(),
            numbers=dict(self._numbers.items() - self._numbers_read.items()),
            logs=self._logs,
        )
        self._add_streams(changes)
        return changes

    def _add_streams(self, changes: Changes) -> None:
        """Add the rows of changed streams, with their lists and tables."""
        offered: list[Handoff] = []
        for name, before in self.changed.items():
            at = self._known[name]
            if not at.number:
                continue
            changes.streams.append(self._row(at))
            lists, lists_before = lists_of(at.state), lists_of(before)
            if lists != lists_before:
                changes.listed += [(one, at.number) for one in lists if one not in lists_before]
                changes.unlisted += [(one, at.number) for one in lists_before if one not in lists]
            if type(at.state) is Handoff:
                # A handoff that was proposed before this batch has a row.
                if ALL_HANDOFFS in lists_before:
                    changes.courses.append(course_of(at.state))
                else:
                    offered.append(at.state)
        changes.handoffs = in_order(offered)

    def _with_commit(self, event: Any) -> AnyEvent:
        """The event with the checked-out commit, unless it names one itself."""
        return event if event.commit else replace(event, commit=self._commit)

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
        self.changed.setdefault(stream, old.state)
        self._unqueued[stream] = None
        if old.number:
            return old
        numbered = Snapshot(self._session.new_stream(), stream)
        self._known[stream] = numbered
        return numbered

    def _row(self, at: Snapshot) -> Row:
        state = b"" if at.state is None else encode_state(at.state)
        shelf = shelve(at.state, self._now)
        return Row(at.number, at.name, at.version, at.hash, FOLD, state, at.lease, shelf)


def _with_one_beat(lease: Lease | None, before: Lease | None) -> Lease | None:
    """The lease after a request: one heartbeat, however many commands it has."""
    if lease is None:
        return None
    beats = 1 + (before.beats if before is not None and before.fence == lease.fence else 0)
    return lease if lease.beats <= beats else replace(lease, beats=beats)

"""Entries of another store, appended verbatim to an empty one; its views are folded on the way."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from dragoman.core.events import TaskClaimed, TaskCreated
from dragoman.core.lease import Lease, granted
from dragoman.core.task import Task
from dragoman.engine.ports import Answer, Changes, NewEntry, NewLog, Row, Session, Store
from dragoman.ledger.chain import GENESIS, link_hash
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import read_line
from dragoman.ledger.logs import log_of
from dragoman.ledger.records import in_order
from dragoman.ledger.views import FOLD, State, encode_state, fold, lists_of, names_of, shelve


class _Head(Struct):
    number: int
    version: int = 0
    hash: bytes = GENESIS
    state: State | None = None
    lease: Lease | None = None
    lists: tuple[str, ...] = ()
    """Those that it stands on in the store."""


class Transplant:
    """Fills an empty store; the store gives every entry the position that it had."""

    def __init__(self, store: Store, now: int) -> None:
        self._store = store
        self._now = now
        self._heads: dict[str, _Head] = {}

    def add(self, lines: Sequence[bytes]) -> None:
        """Append these lines, which follow on those before, in one transaction."""
        self._store.transact(lambda session: session.write(self._changes(session, lines)))

    def lend(self, leases: Mapping[str, Lease]) -> None:
        """Give tasks in progress their leases; one that is not known anew, as it was claimed."""
        held = [
            (head.number, _fitting(head, leases.get(stream)))
            for stream, head in self._heads.items()
            if isinstance(head.state, Task) and head.state.status == "in-progress"
        ]
        if held:
            self._store.transact(lambda session: session.write(Changes(leases=[*held])))

    def remember(self, answers: Sequence[tuple[str, str, bytes, bytes]]) -> None:
        """What earlier requests were answered: stream, key, fingerprint and answer of each."""

        def work(session: Session) -> None:
            changes = Changes()
            for stream, key, fingerprint, answer in answers:
                if stream not in self._heads:
                    # Whoever was never refused has a stream that holds keys and nothing else.
                    head = self._heads[stream] = _Head(session.new_stream())
                    changes.streams.append(self._row(stream, head))
                number = self._heads[stream].number
                changes.answers.append(Answer(number, key, fingerprint, answer))
            session.write(changes)

        self._store.transact(work)

    def _changes(self, session: Session, lines: Sequence[bytes]) -> Changes:
        changed: dict[str, _Head] = {}
        changes = Changes()
        for data in lines:
            line = read_line(data)
            event = CODEC.decode(line.event, line.v, line.body)
            head = self._heads.get(line.stream)
            if head is None:
                head = self._heads[line.stream] = _Head(session.new_stream())
            previous, head.hash = head.hash, link_hash(head.hash, data)
            head.version += 1
            head.state = fold(head.state, event, line.at)
            if isinstance(event, TaskClaimed):
                head.lease = granted(event.agent, event.fence, event.session, event.ttl_ms, line.at)
            changed[line.stream] = head
            changes.entries.append(
                NewEntry(head.number, head.version, line.event, data, previous, head.hash)
            )
            log = log_of(event)
            if log is not None:
                changes.logs.append(NewLog(head.number, head.version, log))
            changes.names.extend((name, kind, head.number) for name, kind in names_of(event))
            if isinstance(event, TaskCreated):
                changes.numbers |= _number_of(event.aof_id, changes.numbers, session)
        changes.streams.extend(self._row(stream, head) for stream, head in changed.items())
        for head in changed.values():
            _move_on_lists(head, changes)
        changes.handoffs.extend(in_order(head.state for head in changed.values()))
        return changes

    def _row(self, stream: str, head: _Head) -> Row:
        state = b"" if head.state is None else encode_state(head.state)
        shelf = shelve(head.state, self._now)
        return Row(head.number, stream, head.version, head.hash, FOLD, state, None, shelf)


def _move_on_lists(head: _Head, changes: Changes) -> None:
    before, head.lists = head.lists, lists_of(head.state)
    changes.listed.extend((name, head.number) for name in head.lists if name not in before)
    changes.unlisted.extend((name, head.number) for name in before if name not in head.lists)


def _fitting(head: _Head, lease: Lease | None) -> Lease | None:
    """The lease if it is of the task's present attempt, else the one that the claim began."""
    claimed = head.lease
    if lease is None or claimed is None:
        return claimed
    same = (lease.holder, lease.fence, lease.session) == (
        claimed.holder,
        claimed.fence,
        claimed.session,
    )
    return lease if same else claimed


def _number_of(aof_id: str, known: Mapping[str, int], session: Session) -> dict[str, int]:
    """The day of an AOF id and the highest number that was given out on it."""
    day, _, tail = aof_id.removeprefix("TASK-").rpartition("-")
    if not tail.isdigit():
        return {}
    given = known[day] if day in known else session.last_number(day)
    return {day: max(given, int(tail))}


def check_chain(heads: dict[str, bytes], lines: Iterable[tuple[bytes, str]]) -> int | None:
    """The index of the first line whose hash does not fit its stream; None when all do.

    `heads` holds the last hash of every stream and is carried on.
    """
    for index, (line, claimed) in enumerate(lines):
        stream = read_line(line).stream
        heads[stream] = link_hash(heads.get(stream, GENESIS), line)
        if heads[stream].hex() != claimed:
            return index
    return None

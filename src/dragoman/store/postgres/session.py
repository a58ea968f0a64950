"""One transaction of the PostgreSQL store: reads under locks, writes everything with the COMMIT."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from msgspec.structs import astuple

from dragoman.core.errors import StoreConflict
from dragoman.core.states.lease import Lease
from dragoman.engine.ports import Answer, Changes, NewEntry, NewLog, ReadyKey, Row
from dragoman.ledger.logs import split_key
from dragoman.ledger.views import FOLD, Shelf, current_state, shelve
from dragoman.store.postgres.binary import (
    Scalar,
    blobs,
    numbers,
    scalar,
    some_numbers,
    some_texts,
    texts,
)
from dragoman.store.postgres.migrate import known_version
from dragoman.store.postgres.wire import Call, Wire

NUMBERS_AT_ONCE = 100
"""Number of stream numbers that one value of the sequence stands for."""

_MOST_QUEUES = 100
"""Limit of queues that are listed; when there are more, each is queried by itself."""

_BEFORE_ALL = (-(2**63), 0, 0)
_STAYS = {"list": True, "unlist": False}


class PostgresSession:
    """A transaction among other writing processes, so nothing is cached from before."""

    is_fresh = False

    def __init__(self, wire: Wire, free_numbers: list[int]) -> None:
        self._wire = wire
        self._free_numbers = free_numbers
        self._has_begun = False
        self._versions: dict[int, int] = {}
        self._queues: set[str] | None = None
        """The queues that are not empty, once they were read."""
        self._queued: dict[str, None] = {}
        """Streams that `ready_page` has returned and locked; they are likely to be read soon."""
        self._read_ahead: dict[str, Row] = {}
        self._look_ahead = 1
        self._staged: list[Call] = []
        self._entries: list[NewEntry] = []
        self._logs: list[NewLog] = []
        self.first = 0
        self._places: dict[tuple[str, int], bool] = {}
        """Lists and streams: True to add, False to remove."""

    # Reads

    def streams(self, names: Sequence[str]) -> list[Row]:
        """The rows of those streams that exist, locked until the end."""
        known = self._read_ahead
        unread = [name for name in names if name not in known]
        rows = self._read(self._with_next_in_queue(unread)) if unread else {}
        known.update(rows)
        return [known.pop(name) for name in names if name in known]

    def history(self, stream: str) -> list[bytes]:
        """The lines of one stream."""
        return [line for (line,) in self._ask("lines", stream)]

    def new_stream(self) -> int:
        """A stream number that is not in use."""
        if not self._free_numbers:
            ((first,),) = self._ask("reserve_numbers")
            self._free_numbers += range(first + NUMBERS_AT_ONCE - 1, first - 1, -1)
        number = self._free_numbers.pop()
        self._versions[number] = 0
        return number

    def named(self, names: Sequence[str]) -> list[tuple[str, str, str]]:
        """(name, kind, stream) of every task that has one of these names as an alias."""
        return self._run(Call("aliases", (texts(names),)))[0]

    def answered(self, keys: Sequence[tuple[int, str]]) -> list[Answer]:
        """The stored answers for these keys."""
        scopes, texts_ = zip(*keys, strict=True)
        found = self._run(Call("answered", (numbers(scopes), texts(texts_))))[0]
        return [Answer(*answer) for answer in found]

    def promote(self, now: int, limit: int) -> int:
        """Put tasks whose backoff is over into their queues, except those that another writer has
        locked."""
        due = self._ask("due", now, limit)
        if due:
            shelves = [self._shelf(name, fold, state, now) for _, name, fold, state in due]
            self._run(_shelving([number for number, *_ in due], shelves))
            self._read_ahead.clear()
            self._queues = None
        return len(due)

    def ready(self, queue: str, after: ReadyKey | None, limit: int) -> list[ReadyKey]:
        """A page of the queue, without what other writers have locked; locked until the end."""
        if self._is_empty(queue):
            return []
        place = _BEFORE_ALL if after is None else (after.rank, after.since, after.number)
        keys = [ReadyKey(*found) for found in self._ask("ready", queue, *place, limit)]
        self._queued.update((key.name, None) for key in keys)
        return keys

    def logged(self, keys: Sequence[str]) -> list[tuple[str, int, str, bool]]:
        """(Key, position, digest, masked) of those turns and events that are recorded already."""
        asked = list(map(split_key, keys))
        found: list[tuple[str, int, str, bool]] = []
        events = [one for one in asked if isinstance(one, str)]
        if events:
            (rows,) = self._run(Call("logged_events", (texts(events),)))
            found += [(f"event:{id}", *rest) for id, *rest in rows]
        turns = [one for one in asked if not isinstance(one, str)]
        if turns:
            tasks, attempts, indexes = zip(*turns, strict=True)
            columns = texts(tasks), numbers(attempts), numbers(indexes)
            (rows,) = self._run(Call("logged_turns", columns))
            found += [(f"turn:{task}/{attempt}/{at}", *rest) for task, attempt, at, *rest in rows]
        return found

    def held(self, session: str, holder: str) -> list[str]:
        """The streams of tasks held in this session; if there is none, of those held by this
        holder."""
        found = self._ask("held_in", session) or self._ask("held_by", holder)
        return [name for (name,) in found]

    def on_list(self, name: str) -> list[str]:
        """The streams on this list, oldest first."""
        return [stream for (stream,) in self._ask("on_list", name)]

    def last_number(self, day: str) -> int:
        """The last AOF number given out on this day; nobody else gets one before the end."""
        values = (scalar(day),)
        _, ((last,),) = self._run(Call("open_day", values), Call("last_number", values))
        return last

    # Writes

    def write(self, changes: Changes) -> None:
        """Stage the changes for the commit, if they fit the streams that they append to."""
        self._check_versions(changes.entries)
        self._entries += changes.entries
        self._logs += changes.logs
        self._staged += _writing(changes)
        self._places.update(dict.fromkeys(changes.unlisted, False))
        self._places.update(dict.fromkeys(changes.listed, True))

    def commit(self) -> None:
        """Send everything and the COMMIT in one piece; the lock on the ledger's head comes last."""
        if self._wire.has_failed:
            raise StoreConflict("a statement of this transaction failed; nothing was written")
        before = [*self._staged, *self._placing("unlist")]
        append = _appending(self._entries) if self._entries else []
        logs = [_logging(self._logs)] if self._logs else []
        calls = [*before, *append, *self._placing("list"), *logs]
        if self._has_begun or calls:
            answers = self._run(*calls, Call("commit"))
            self.first = answers[len(before)][0][0] if append else 0

    def undo(self) -> None:
        """Roll back."""
        if self._has_begun:
            self._run(Call("rollback"))

    # Helpers

    def _ask(self, query: str, *values: Scalar) -> list[Any]:
        return self._run(Call(query, tuple(map(scalar, values))))[0]

    def _run(self, *calls: Call) -> list[list[Any]]:
        if self._has_begun:
            return self._wire.run(calls)
        self._has_begun = True
        return self._wire.run((Call("begin"), checking_version(), *calls))[2:]

    def _is_empty(self, queue: str) -> bool:
        """True if the queue is empty. In a batch each agent asks for its own, and few have one."""
        if self._queues is None:
            self._queues = {name for (name,) in self._ask("queues", _MOST_QUEUES)}
        return queue not in self._queues and len(self._queues) < _MOST_QUEUES

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

    def _read(self, names: Sequence[str]) -> dict[str, Row]:
        asked = (texts(names),)
        found, leases = self._run(Call("lock_streams", asked), Call("leases_of", asked))
        by_stream = {stream: Lease(*lease) for stream, *lease in leases}
        self._versions.update((number, version) for number, _, version, *_ in found)
        return {row[1]: as_row(row, by_stream.get(row[0])) for row in found}

    def _placing(self, query: str) -> list[Call]:
        """Calls for list items to add or remove; in order, so that two writers cannot deadlock."""
        places = sorted(place for place, stays in self._places.items() if stays is _STAYS[query])
        if not places:
            return []
        lists, streams = zip(*places, strict=True)
        return [Call(query, (texts(lists), numbers(streams)))]

    def _shelf(self, name: str, fold: int, state: bytes, now: int) -> Shelf:
        lines = () if fold == FOLD else self.history(name)
        return shelve(current_state(name, fold, state, lines), now)

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


def checking_version() -> Call:
    """The first call of every exchange that writes: it fails if the schema version has changed."""
    return Call("check_version", (scalar(known_version()),))


def as_row(found: Any, lease: Lease | None) -> Row:
    """The contract's row from the columns of a stream."""
    number, name, version, digest, fold, state, *shelf = found
    return Row(number, name, version, digest, fold, state, lease, Shelf(*shelf))


def _shelving(streams: Sequence[int], shelves: Sequence[Shelf]) -> Call:
    return Call("shelve", (numbers(streams), *_shelf_columns(shelves)))


def _shelf_columns(shelves: Sequence[Shelf]) -> tuple[bytes, ...]:
    return (
        some_texts([shelf.status for shelf in shelves]),
        some_texts([shelf.queue for shelf in shelves]),
        numbers([shelf.rank for shelf in shelves]),
        numbers([shelf.since for shelf in shelves]),
        some_numbers([shelf.due for shelf in shelves]),
        some_texts([shelf.owner for shelf in shelves]),
        some_numbers([shelf.deadline for shelf in shelves]),
    )


def _writing(changes: Changes) -> list[Call]:
    """Calls that write each table once; keys in order, so that two writers cannot deadlock."""
    held = [(number, lease) for number, lease in changes.leases if lease is not None]
    ended = [number for number, lease in changes.leases if lease is None]
    calls: list[Call] = []
    if changes.streams:
        calls.append(_putting_streams(sorted(changes.streams, key=_name)))
    if held:
        calls.append(_putting_leases(held))
    if ended:
        calls.append(Call("end_leases", (numbers(ended),)))
    if changes.names:
        names, kinds, streams = zip(*sorted(changes.names), strict=True)
        calls.append(Call("bind_names", (texts(names), texts(kinds), numbers(streams))))
    if changes.answers:
        calls.append(_putting_answers(changes.answers))
    if changes.numbers:
        days, last = zip(*sorted(changes.numbers.items()), strict=True)
        calls.append(Call("put_numbers", (texts(days), numbers(last))))
    for query, rows in (("move_handoffs", changes.courses), ("put_handoffs", changes.handoffs)):
        if rows:
            columns = zip(*map(astuple, rows), strict=True)
            calls.append(Call(query, tuple(map(some_texts, columns))))
    return calls


def _name(row: Row) -> str:
    return row.name


def _putting_streams(rows: Sequence[Row]) -> Call:
    return Call(
        "put_streams",
        (
            numbers([row.number for row in rows]),
            texts([row.name for row in rows]),
            numbers([row.version for row in rows]),
            blobs([row.hash for row in rows]),
            numbers([row.fold for row in rows]),
            blobs([row.state for row in rows]),
            *_shelf_columns([row.shelf for row in rows]),
        ),
    )


def _putting_leases(held: Sequence[tuple[int, Lease]]) -> Call:
    leases = [lease for _, lease in held]
    return Call(
        "put_leases",
        (
            numbers([stream for stream, _ in held]),
            texts([lease.holder for lease in leases]),
            numbers([lease.fence for lease in leases]),
            numbers([lease.ttl_ms for lease in leases]),
            numbers([lease.beat_at for lease in leases]),
            numbers([lease.expires_at for lease in leases]),
            texts([lease.session for lease in leases]),
            numbers([lease.beats for lease in leases]),
        ),
    )


def _putting_answers(answers: Sequence[Answer]) -> Call:
    return Call(
        "put_answers",
        (
            numbers([answer.scope for answer in answers]),
            texts([answer.key for answer in answers]),
            blobs([answer.fingerprint for answer in answers]),
            blobs([answer.answer for answer in answers]),
        ),
    )


def _logging(new: Sequence[NewLog]) -> Call:
    logs = [one.log for one in new]
    return Call(
        "put_logs",
        (
            numbers([one.stream for one in new]),
            numbers([one.version for one in new]),
            texts([log.task for log in logs]),
            numbers([log.attempt for log in logs]),
            some_numbers([log.turn_index for log in logs]),
            some_texts([log.event_id for log in logs]),
            texts([log.digest for log in logs]),
            numbers([log.masked for log in logs]),
        ),
    )


def _appending(entries: Sequence[NewEntry]) -> list[Call]:
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

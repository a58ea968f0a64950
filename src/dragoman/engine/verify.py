"""Proof that nothing was lost or changed: hashes, order, checkpoints, views against a replay."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from dragoman.core.errors import LedgerError
from dragoman.core.ids import handoff_stream
from dragoman.core.task import Task
from dragoman.engine.ask import entries, history
from dragoman.engine.ports import Row, Store
from dragoman.engine.verify_logs import wrong_logs
from dragoman.ledger.chain import GENESIS, link_hash
from dragoman.ledger.checkpoint import Checkpoint
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import Entry, read_line
from dragoman.ledger.records import HandoffRecord, record_of
from dragoman.ledger.tree import EMPTY, extend, root
from dragoman.ledger.views import FOLD, State, encode_state, fold, lists_of, names_of, shelve

_PAGE = 1_000

Progress = Callable[[int], None]
"""Told the number of entries (or streams) that were checked since the last call."""


class Finding(Struct, frozen=True):
    """Something that is not as it was written."""

    problem: str
    position: int = 0
    """Where in the ledger; 0 when it concerns a view and not an entry."""
    stream: str = ""


class _Head(Struct, frozen=True):
    version: int
    hash: bytes


def check_ledger(
    store: Store, checkpoints: Sequence[Checkpoint], progress: Progress
) -> Iterator[Finding]:
    """Every hash, every version, every position, and the roots that checkpoints have fixed."""
    heads: dict[str, _Head] = {}
    roots = _Roots(store.ledger_id(), checkpoints)
    expected = 1
    for entry in entries(store):
        if entry.position != expected:
            yield _missing(expected)
        yield from _check_entry(entry, heads)
        yield from roots.leaf(entry.hash)
        expected = entry.position + 1
        progress(1)
    yield from roots.end(expected - 1)
    yield from _check_heads(store, heads, expected)


def check_tail(store: Store, checkpoint: Checkpoint) -> Iterator[Finding]:
    """Only what came after a checkpoint: what a start looks at."""
    head = store.head()
    if head < checkpoint.size:
        yield _cut_tail(head, checkpoint.size)
    if checkpoint.ledger != store.ledger_id():
        yield _foreign(checkpoint)
    heads: dict[str, _Head] = {}
    expected = checkpoint.size + 1
    for entry in entries(store, checkpoint.size):
        if entry.position != expected:
            yield _missing(expected)
        expected = entry.position + 1
        if entry.stream not in heads and entry.version > 1:
            for before in store.history(entry.stream, entry.version - 2, 1):
                heads[entry.stream] = _Head(before.version, before.hash)
        yield from _check_entry(entry, heads)


def check_views(store: Store, progress: Progress) -> Iterator[Finding]:
    """Every stored state, index row, alias and place against a fresh replay of its stream."""
    after = 0
    while page := store.rows(after, _PAGE):
        for row in page:
            yield from (Finding(problem, stream=row.name) for problem in _problems(store, row))
            progress(1)
        after = page[-1].number
    for name, kind, stream in _all_names(store):
        if (name, kind) not in _replay(store, stream).names:
            yield Finding(f"nothing in the ledger gave it the alias {kind}:{name}", stream=stream)
    for name, position, stream in _all_places(store):
        if _is_misplaced(store, name, position, stream):
            yield Finding(
                f"nothing in the ledger gave it place {position} on the list {name}", stream=stream
            )
    for record in _all_records(store):
        if _is_foreign(store, record):
            yield Finding(
                "nothing in the ledger gave it a row in the table handoffs",
                stream=handoff_stream(record.id),
            )
    yield from (Finding(problem, position) for position, problem in wrong_logs(store))


def _problems(store: Store, row: Row) -> Sequence[str]:
    """What is wrong with a row; if it changed while it was looked at, it is looked at again."""
    while True:
        replayed = _replay(store, row.name)
        problems = (replayed.broken,) if replayed.broken else (*_compare(store, row, replayed),)
        again = store.stream(row.name) if problems else row
        if again is None or again == row:
            return problems
        row = again


def _is_misplaced(store: Store, name: str, position: int, stream: str) -> bool:
    """Whether a stream stands where it must not; if it changed meanwhile, look again."""
    while True:
        row = store.stream(stream)
        replayed = _replay(store, stream)
        if position == replayed.first and name in lists_of(replayed.state):
            return False
        is_there = _stands(store, name, position, stream)
        if store.stream(stream) == row:
            return is_there


def _check_entry(entry: Entry, heads: dict[str, _Head]) -> Iterator[Finding]:
    at, problems = entry.position, list[str]()
    try:
        line = read_line(entry.line)
        CODEC.decode(line.event, line.v, line.body)
    except LedgerError as error:
        yield Finding(error.detail, at, entry.stream)
        return
    if (line.stream, line.version, line.event) != (entry.stream, entry.version, entry.event):
        problems.append("the columns of the entry disagree with its line")
    head = heads.get(line.stream, _Head(0, GENESIS))
    if line.version != head.version + 1:
        problems.append(f"version {line.version} follows version {head.version} of its stream")
    if entry.previous != head.hash:
        problems.append("the previous hash is not the hash of the entry before it")
    if entry.hash != link_hash(entry.previous, entry.line):
        problems.append("the hash does not fit the line")
    heads[line.stream] = _Head(line.version, entry.hash)
    yield from (Finding(problem, at, line.stream) for problem in problems)


class _Roots:
    """Grows the tree leaf by leaf and compares it with each checkpoint on the way."""

    def __init__(self, ledger: str, checkpoints: Sequence[Checkpoint]) -> None:
        self._ledger = ledger
        self._ahead = sorted(checkpoints, key=lambda checkpoint: checkpoint.size, reverse=True)
        self._tree = EMPTY
        self._leaves: list[bytes] = []

    def leaf(self, leaf: bytes) -> Iterator[Finding]:
        self._leaves.append(leaf)
        size = self._tree.size + len(self._leaves)
        if self._ahead and self._ahead[-1].size == size:
            self._tree = extend(self._tree, self._leaves)
            self._leaves.clear()
            reached = root(self._tree).hex()
            while self._ahead and self._ahead[-1].size == size:
                yield from self._compare(self._ahead.pop(), reached)

    def end(self, head: int) -> Iterator[Finding]:
        if self._ahead:
            yield _cut_tail(head, self._ahead[0].size)

    def _compare(self, checkpoint: Checkpoint, reached: str) -> Iterator[Finding]:
        if checkpoint.ledger != self._ledger:
            yield _foreign(checkpoint)
        elif checkpoint.root != reached:
            yield Finding(
                "the entries up to here are not those that the checkpoint signed: "
                "one was changed, swapped or replaced",
                checkpoint.size,
            )


def _missing(position: int) -> Finding:
    return Finding(f"entry {position} is missing", position)


def _foreign(checkpoint: Checkpoint) -> Finding:
    return Finding(f"a checkpoint is of another ledger, {checkpoint.ledger}", checkpoint.size)


def _cut_tail(head: int, size: int) -> Finding:
    return Finding(
        f"the ledger ends at {head}, but a checkpoint has signed {size} entries: its tail was cut",
        head + 1,
    )


def _check_heads(store: Store, heads: dict[str, _Head], end: int) -> Iterator[Finding]:
    """The streams' own rows know how far each stream went, so a cut stream shows."""
    after = 0
    while page := store.rows(after, _PAGE):
        for row in page:
            head = heads.pop(row.name, _Head(0, GENESIS))
            if (row.version, row.hash) == (head.version, head.hash):
                continue
            if not _has_grown(store, row, head, end):
                yield Finding(
                    f"the stream is at version {row.version}, its entries end at {head.version}",
                    end if row.version > head.version else 0,
                    row.name,
                )
        after = page[-1].number
    for stream in heads:
        yield Finding("the stream has entries but no row", stream=stream)


def _has_grown(store: Store, row: Row, head: _Head, end: int) -> bool:
    """Whether a row is ahead only by entries that somebody has appended since the last look."""
    for entry in store.history(row.name, head.version, _PAGE):
        if entry.position < end or entry.previous != head.hash:
            return False
        head = _Head(entry.version, entry.hash)
        if head.version == row.version:
            return head.hash == row.hash == link_hash(entry.previous, entry.line)
    return False


class _Replayed(Struct):
    state: State | None = None
    names: set[tuple[str, str]] = set()
    first: int = 0
    """The position of the first entry, which is the stream's place on every list."""
    broken: str = ""


def _replay(store: Store, stream: str) -> _Replayed:
    replayed = _Replayed()
    try:
        for entry in history(store, stream):
            replayed.first = replayed.first or entry.position
            line = read_line(entry.line)
            event = CODEC.decode(line.event, line.v, line.body)
            replayed.state = fold(replayed.state, event, line.at)
            replayed.names.update(names_of(event))
    except LedgerError as error:
        replayed.broken = f"the stream cannot be replayed: {error.detail}"
    return replayed


def _compare(store: Store, row: Row, replayed: _Replayed) -> Iterable[str]:
    state = replayed.state
    expected = b"" if state is None else encode_state(state)
    # What older rules folded may differ from today's fold, but it cannot be missing.
    if row.state != expected if row.fold == FOLD else bool(row.state) != bool(expected):
        yield "the stored state differs from the replay"
    due = state.not_before if isinstance(state, Task) else 0
    if row.shelf not in (shelve(state, due), shelve(state, max(due - 1, 0))):
        yield "the indexes differ from the replay"
    lease = row.lease
    held = None if lease is None else (lease.holder, lease.fence, lease.session)
    if held != _holder(state):
        yield "the lease does not belong to the attempt"
    for name, kind in replayed.names:
        if (kind, row.name) not in store.named(name):
            yield f"the alias {kind}:{name} is missing"
    for name in lists_of(state):
        if not _stands(store, name, replayed.first, row.name):
            yield f"its place {replayed.first} on the list {name} is missing"
    record = record_of(state)
    if record is not None and not is_kept(store, record):
        yield "its row in the table handoffs is missing or differs from the replay"


def _stands(store: Store, name: str, position: int, stream: str) -> bool:
    """Whether this place of a list is this stream's."""
    return (name, position, stream) in store.places((name, position - 1), 1)


def is_kept(store: Store, record: HandoffRecord) -> bool:
    """Whether the table of handoffs has just this row."""
    # No id has a tilde, so that none stands between this text and the record's own id.
    just_before = f"{record.id[:-1]}{chr(ord(record.id[-1]) - 1)}~"
    return store.handoffs(just_before, 1) == [record]


def _is_foreign(store: Store, record: HandoffRecord) -> bool:
    """Whether no handoff left this row; one that differs from its own was found with its stream."""
    return record_of(_replay(store, handoff_stream(record.id)).state) is None


def _holder(state: State | None) -> tuple[str, int, str] | None:
    """Whose lease there must be, under which fencing token, in which session."""
    if not isinstance(state, Task) or state.status != "in-progress":
        return None
    return state.assignee, state.fence, state.session


def _all_names(store: Store) -> Iterator[tuple[str, str, str]]:
    after = ("", "")
    while page := store.names(after, _PAGE):
        yield from page
        after = page[-1][:2]


def _all_places(store: Store) -> Iterator[tuple[str, int, str]]:
    after = ("", 0)
    while page := store.places(after, _PAGE):
        yield from page
        after = page[-1][:2]


def _all_records(store: Store) -> Iterator[HandoffRecord]:
    after = ""
    while page := store.handoffs(after, _PAGE):
        yield from page
        after = page[-1].id

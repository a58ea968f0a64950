"""Proof that nothing was lost or changed: hashes, order, checkpoints, views against a replay."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TypeVar

from msgspec import Struct

from dragoman.core.errors import LedgerError, StoreCorrupt
from dragoman.core.ids import handoff_stream
from dragoman.core.states.task import Task
from dragoman.engine.ports import Row, Store, StreamHead
from dragoman.engine.reads.ask import entries, history
from dragoman.engine.verifying.logs import wrong_logs
from dragoman.engine.verifying.slices import (
    SLICE,
    START,
    Finding,
    Head,
    Slice,
    Slices,
    Span,
    check_slice,
    fits,
    read_entry,
    spans,
    unfit,
)
from dragoman.ledger.chain import link_hash
from dragoman.ledger.checkpoint import Checkpoint
from dragoman.ledger.records import HandoffRecord, record_of
from dragoman.ledger.tree import EMPTY, Tree, extend, join, root
from dragoman.ledger.views import (
    FOLD,
    State,
    encode_state,
    fold,
    is_same_state,
    lists_of,
    names_of,
    shelve,
)

_PAGE = 1_000
_KINDS = (int, str, int, bytes)
"""Types of the columns of a stream head."""

Place = TypeVar("Place")
One = TypeVar("One")

Progress = Callable[[int], None]
"""Called with the number of entries (or streams) that were checked since the last call."""


def check_ledger(
    store: Store,
    checkpoints: Sequence[Checkpoint],
    progress: Progress,
    check: Slices | None = None,
    size: int = SLICE,
) -> Generator[Finding, None, int]:
    """Check every hash, version and position, and the roots that checkpoints have signed.

    Whether lines can be decoded is left to the replay. Returns the number of streams; 0 if their
    rows cannot be read.
    """
    heads: dict[str, Head] = {}
    roots = Roots(store.ledger_id(), checkpoints)
    head = store.head()
    parts = spans(head, (checkpoint.size for checkpoint in checkpoints), size)
    for part in check(parts) if check else map(partial(check_slice, store), parts):
        yield from _found(part, heads)
        if not part.is_readable:
            with suppress(StoreCorrupt):
                return sum(1 for _ in _all_heads(store))
            return 0
        heads.update(part.heads)
        yield from roots.grow(part)
        progress(part.span.until - part.span.after)
    yield from roots.end(head)
    try:
        return (yield from _check_heads(store, heads, head + 1))
    except StoreCorrupt as error:
        yield Finding(error.detail)
        return 0


def check_tail(store: Store, checkpoint: Checkpoint) -> Iterator[Finding]:
    """Check only the entries after a checkpoint, as at every start."""
    head = store.head()
    if checkpoint.ledger != store.ledger_id():
        yield _foreign(checkpoint)
    elif head < checkpoint.size:
        yield _cut_tail(head, checkpoint.size)
    behind = check_slice(store, Span(checkpoint.size, max(head, checkpoint.size)))
    signed: dict[str, Head] = {}
    for stream, (_, follows) in behind.begins.items():
        for entry in store.history(stream, follows.version - 1, 1) if follows.version > 0 else ():
            signed[stream] = Head(entry.version, entry.hash)
    yield from _found(behind, signed)
    if not behind.is_readable:
        return
    for entry in entries(store, checkpoint.size, until=head):
        try:
            read_entry(entry)
        except LedgerError as error:
            yield Finding(error.detail, entry.position, entry.stream)


def _found(part: Slice, heads: Mapping[str, Head]) -> list[Finding]:
    """The findings of a slice, and where it does not continue what came before it."""
    seams = (
        unfit(position, stream, before, follows)
        for stream, (position, follows) in part.begins.items()
        if (before := heads.get(stream, START)) != follows
    )
    return sorted((*part.findings, *chain.from_iterable(seams)), key=lambda one: one.position)


def check_views(store: Store, progress: Progress) -> Iterator[Finding]:
    """Check every stored state, index row, alias and list item against a fresh replay of its
    stream."""
    try:
        yield from _check_views(store, progress)
    except StoreCorrupt as error:
        yield Finding(error.detail)


def _check_views(store: Store, progress: Progress) -> Iterator[Finding]:
    for row in _paged("streams", store.rows, 0, lambda row: row.number):
        yield from _problems(store, row)
        progress(1)
    for name, kind, stream in _all_names(store):
        if (name, kind) not in _replay(store, stream).names:
            yield Finding(f"nothing in the ledger gave it the alias {kind}:{name}", stream=stream)
    for name, position, stream in _all_places(store):
        if _is_misplaced(store, name, position, stream):
            yield Finding(
                f"nothing in the ledger put it on the list {name} at {position}", stream=stream
            )
    for record in _all_records(store):
        if _is_foreign(store, record):
            yield Finding(
                "nothing in the ledger gave it a row in the table handoffs",
                stream=handoff_stream(record.id),
            )
    yield from (Finding(problem, position) for position, problem in wrong_logs(store))


def _problems(store: Store, row: Row) -> Sequence[Finding]:
    """The findings about a row; one that changed meanwhile is checked again."""
    while True:
        replayed = _replay(store, row.name)
        problems = (
            [replayed.broken]
            if replayed.broken
            else [Finding(what, stream=row.name) for what in _compare(store, row, replayed)]
        )
        again = store.stream(row.name) if problems else row
        if again is None or again == row:
            return problems
        row = again


def _is_misplaced(store: Store, name: str, position: int, stream: str) -> bool:
    """True if a list item does not belong there; if its stream changed meanwhile, check again."""
    while True:
        row = store.stream(stream)
        replayed = _replay(store, stream)
        if position == replayed.first and name in lists_of(replayed.state):
            return False
        is_there = _stands(store, name, position, stream)
        if store.stream(stream) == row:
            return is_there


class Roots:
    """Grows the tree, and compares its root with each checkpoint on the way."""

    def __init__(self, ledger: str, checkpoints: Sequence[Checkpoint]) -> None:
        self._ledger = ledger
        self._ahead = sorted(checkpoints, key=lambda checkpoint: checkpoint.size, reverse=True)
        self._tree: Tree | None = EMPTY
        """None after a slice that lacks an entry."""

    def append(self, leaves: Sequence[bytes]) -> Iterator[Finding]:
        """Add the hashes of the next entries, of which none is missing."""
        tree = self._tree or EMPTY
        at = tree.size
        for checkpoint in self._passed(at + len(leaves)):
            tree = extend(tree, leaves[tree.size - at : checkpoint.size - at])
            yield from self._compare(checkpoint, tree)
        self._tree = extend(tree, leaves[tree.size - at :])

    def grow(self, part: Slice) -> Iterator[Finding]:
        """Add the next slice."""
        for checkpoint in self._passed(part.span.until):
            yield from self._compare(checkpoint, self._joined(part, checkpoint.size))
        self._tree = self._joined(part, part.span.until)

    def _passed(self, size: int) -> Iterator[Checkpoint]:
        while self._ahead and self._ahead[-1].size <= size:
            yield self._ahead.pop()

    def end(self, head: int) -> Iterator[Finding]:
        """Report checkpoints beyond the end."""
        for checkpoint in self._ahead[:1]:
            is_ours = checkpoint.ledger == self._ledger
            yield _cut_tail(head, checkpoint.size) if is_ours else _foreign(checkpoint)

    def _joined(self, part: Slice, size: int) -> Tree | None:
        inside = part.trees.get(size)
        return None if self._tree is None or inside is None else join(self._tree, inside)

    def _compare(self, checkpoint: Checkpoint, reached: Tree | None) -> Iterator[Finding]:
        if checkpoint.ledger != self._ledger:
            yield _foreign(checkpoint)
        elif reached is None or checkpoint.root != root(reached).hex():
            yield Finding(
                "the entries up to here are not those that the checkpoint signed: "
                "one was changed, swapped or replaced",
                checkpoint.size,
            )


def _foreign(checkpoint: Checkpoint) -> Finding:
    return Finding(
        f"a checkpoint is of another ledger, {checkpoint.ledger}: this data directory belongs to "
        "another store",
        checkpoint.size,
    )


def _cut_tail(head: int, size: int) -> Finding:
    return Finding(
        f"the ledger ends at {head}, but a checkpoint has signed {size} entries: its tail was cut",
        head + 1,
    )


def _check_heads(store: Store, heads: dict[str, Head], end: int) -> Generator[Finding, None, int]:
    """Compare the heads in the streams' own rows, which reveal a truncated stream."""
    streams = 0
    for row in _all_heads(store):
        streams += 1
        _, stream, version, link = row
        head, told = heads.pop(stream, START), Head(version, link)
        if told != head and not fits(row, _KINDS):
            yield Finding(f"the row of a stream is damaged: it holds {row}")
            return 0
        if told != head and not _has_grown(store, stream, told, head, end):
            yield Finding(
                f"the stream is at version {version}, its entries end at {head.version}",
                end if version > head.version else 0,
                stream,
            )
    for stream in heads:
        yield Finding("the stream has entries but no row", stream=stream)
    return streams


def _all_heads(store: Store) -> Iterator[StreamHead]:
    """The head of each stream, from its own row."""
    return _paged("streams", store.heads, 0, lambda head: head[0])


def _paged(
    what: str,
    read: Callable[[Place, int], Sequence[One]],
    start: Place,
    place_of: Callable[[One], Place],
) -> Iterator[One]:
    """All rows of one kind, page by page; StoreCorrupt names what cannot be read."""
    after, many = start, _PAGE
    while True:
        try:
            page = read(after, many)
        except StoreCorrupt as error:
            if many == 1:
                raise StoreCorrupt(
                    f"the row after {after} of the {what} cannot be read: {error.detail}"
                ) from error
            many = 1
            continue
        if not page:
            return
        yield from page
        after = place_of(page[-1])


def _has_grown(store: Store, stream: str, told: Head, head: Head, end: int) -> bool:
    """True if a row is ahead only by entries that were appended during the check."""
    for entry in store.history(stream, head.version, _PAGE):
        if entry.position < end or entry.previous != head.hash:
            return False
        head = Head(entry.version, entry.hash)
        if head.version == told.version:
            return head.hash == told.hash == link_hash(entry.previous, entry.line)
    return False


class _Replayed(Struct):
    state: State | None = None
    names: set[tuple[str, str]] = set()
    first: int = 0
    """The position of the first entry, which is the stream's position on every list."""
    broken: Finding | None = None


def _replay(store: Store, stream: str) -> _Replayed:
    replayed, at = _Replayed(), 0
    try:
        for entry in history(store, stream):
            at = entry.position
            replayed.first = replayed.first or at
            event, when = read_entry(entry)
            replayed.state = fold(replayed.state, event, when)
            replayed.names.update(names_of(event))
    except LedgerError as error:
        replayed.broken = Finding(f"the stream cannot be replayed: {error.detail}", at, stream)
    return replayed


def _compare(store: Store, row: Row, replayed: _Replayed) -> Iterable[str]:
    state = replayed.state
    expected = b"" if state is None else encode_state(state)
    if not 0 < row.fold <= FOLD:
        yield f"the stored state has fold version {row.fold}; known are 1 to {FOLD}"
    if not _is_as_replayed(row, expected):
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
            yield f"it is missing on the list {name} at {replayed.first}"
    record = record_of(state)
    if record is not None and not is_kept(store, record):
        yield "its row in the table handoffs is missing or differs from the replay"


def _is_as_replayed(row: Row, expected: bytes) -> bool:
    if row.fold == FOLD:
        return is_same_state(row.name, row.state, expected)
    # A state from older folds may differ from today's, but it cannot be missing.
    return bool(row.state) == bool(expected)


def _stands(store: Store, name: str, position: int, stream: str) -> bool:
    """True if this list item is this stream's."""
    return (name, position, stream) in store.places((name, position - 1), 1)


def is_kept(store: Store, record: HandoffRecord) -> bool:
    """True if the table of handoffs has just this row."""
    # No id has a tilde, so that none sorts between this text and the record's own id.
    just_before = f"{record.id[:-1]}{chr(ord(record.id[-1]) - 1)}~"
    return store.handoffs(just_before, 1) == [record]


def _is_foreign(store: Store, record: HandoffRecord) -> bool:
    """True if no handoff left this row; one that differs was found with its stream."""
    return record_of(_replay(store, handoff_stream(record.id)).state) is None


def _holder(state: State | None) -> tuple[str, int, str] | None:
    """Holder, fence and session of the lease that the task must have."""
    if not isinstance(state, Task) or state.status != "in-progress":
        return None
    return state.assignee, state.fence, state.session


def _all_names(store: Store) -> Iterator[tuple[str, str, str]]:
    return _paged("aliases", store.names, ("", ""), lambda name: name[:2])


def _all_places(store: Store) -> Iterator[tuple[str, int, str]]:
    return _paged("list items", store.places, ("", 0), lambda place: place[:2])


def _all_records(store: Store) -> Iterator[HandoffRecord]:
    return _paged("handoffs", store.handoffs, "", lambda record: record.id)

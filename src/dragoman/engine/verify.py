"""Verification of the ledger and the store: hashes, order, checkpoints, and derived rows.

Stored states, index rows, aliases, lists, and the tables of handoffs and agent logs are compared
with a fresh replay.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Final, TypeVar

from msgspec import Struct

from dragoman.core.errors import LedgerError, StoreCorrupt
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.ids import handoff_stream
from dragoman.core.task_state import Task
from dragoman.engine.ports import Store, StreamHead, StreamRow
from dragoman.engine.queries.streams import all_entries, stream_entries
from dragoman.engine.verify_slice import (
    CHAIN_START,
    SLICE_SIZE,
    ChainHead,
    CheckedSlice,
    Finding,
    SliceChecker,
    SliceSpan,
    check_slice,
    decode_entry,
    discontinuities,
    has_types,
    slice_spans,
)
from dragoman.ledger.checkpoint import Checkpoint
from dragoman.ledger.entry import CODEC, Entry, link_hash, read_line
from dragoman.ledger.indexes import (
    LOG_ROWS,
    HandoffRow,
    LogRow,
    aliases_bound_by,
    handoff_row,
    index_row,
    lists_of,
    log_row,
)
from dragoman.ledger.stream_state import FOLD_VERSION, State, encode_state, fold, is_same_state
from dragoman.ledger.tree import EMPTY_TREE, Tree, extend_tree, join_trees, tree_root

# --- ledger and checkpoints -------------------------------------------------------------------

_PAGE = 1_000

_HEAD_COLUMN_TYPES = (int, str, int, bytes)
"""Types of the columns of a stream head."""

Cursor = TypeVar("Cursor")

Item = TypeVar("Item")

Progress = Callable[[int], None]
"""Called with the number of entries (or streams) that were checked since the last call."""


def check_ledger(
    store: Store,
    checkpoints: Sequence[Checkpoint],
    progress: Progress,
    check: SliceChecker | None = None,
    size: int = SLICE_SIZE,
) -> Generator[Finding, None, int]:
    """Check every hash, version and position, and the roots that checkpoints have signed.

    Whether lines can be decoded is left to the replay. Returns the number of streams; 0 if their
    rows cannot be read.
    """
    heads: dict[str, ChainHead] = {}
    roots = CheckpointRoots(store.ledger_id(), checkpoints)
    head = store.head()
    parts = slice_spans(head, (checkpoint.size for checkpoint in checkpoints), size)
    for part in check(parts) if check else map(partial(check_slice, store), parts):
        yield from _slice_findings(part, heads)
        if not part.is_readable:
            with suppress(StoreCorrupt):
                return sum(1 for _ in _all_stream_heads(store))
            return 0
        heads.update(part.heads)
        yield from roots.add_slice(part)
        progress(part.span.until - part.span.after)
    yield from roots.finish(head)
    try:
        return (yield from _check_stream_rows(store, heads, head + 1))
    except StoreCorrupt as error:
        yield Finding(error.detail)
        return 0


def check_tail(store: Store, checkpoint: Checkpoint) -> Iterator[Finding]:
    """Check only the entries after a checkpoint, as at every start."""
    head = store.head()
    if checkpoint.ledger != store.ledger_id():
        yield _foreign_checkpoint(checkpoint)
    elif head < checkpoint.size:
        yield _cut_tail(head, checkpoint.size)
    tail = check_slice(store, SliceSpan(checkpoint.size, max(head, checkpoint.size)))
    heads: dict[str, ChainHead] = {}
    for stream, (_, follows) in tail.stream_starts.items():
        for entry in store.history(stream, follows.version - 1, 1) if follows.version > 0 else ():
            heads[stream] = ChainHead(entry.version, entry.hash)
    yield from _slice_findings(tail, heads)
    if not tail.is_readable:
        return
    for entry in all_entries(store, checkpoint.size, until=head):
        try:
            decode_entry(entry)
        except LedgerError as error:
            yield Finding(error.detail, entry.position, entry.stream)


def _slice_findings(part: CheckedSlice, heads: Mapping[str, ChainHead]) -> list[Finding]:
    """The findings of a slice, and where it does not continue what came before it."""
    seams = (
        discontinuities(position, stream, before, follows)
        for stream, (position, follows) in part.stream_starts.items()
        if (before := heads.get(stream, CHAIN_START)) != follows
    )
    return sorted((*part.findings, *chain.from_iterable(seams)), key=lambda one: one.position)


class CheckpointRoots:
    """Grows the tree, and compares its root with each checkpoint on the way."""

    def __init__(self, ledger: str, checkpoints: Sequence[Checkpoint]) -> None:
        self._ledger = ledger
        self._remaining = sorted(checkpoints, key=lambda checkpoint: checkpoint.size, reverse=True)
        self._tree: Tree | None = EMPTY_TREE
        """None after a slice that lacks an entry."""

    def append(self, leaves: Sequence[bytes]) -> Iterator[Finding]:
        """Add the hashes of the next entries, of which none is missing."""
        tree = self._tree or EMPTY_TREE
        at = tree.size
        for checkpoint in self._reached(at + len(leaves)):
            tree = extend_tree(tree, leaves[tree.size - at : checkpoint.size - at])
            yield from self._compare(checkpoint, tree)
        self._tree = extend_tree(tree, leaves[tree.size - at :])

    def add_slice(self, part: CheckedSlice) -> Iterator[Finding]:
        """Add the next slice."""
        for checkpoint in self._reached(part.span.until):
            yield from self._compare(checkpoint, self._joined_tree(part, checkpoint.size))
        self._tree = self._joined_tree(part, part.span.until)

    def _reached(self, size: int) -> Iterator[Checkpoint]:
        while self._remaining and self._remaining[-1].size <= size:
            yield self._remaining.pop()

    def finish(self, head: int) -> Iterator[Finding]:
        """Report checkpoints beyond the end."""
        for checkpoint in self._remaining[:1]:
            is_ours = checkpoint.ledger == self._ledger
            yield _cut_tail(head, checkpoint.size) if is_ours else _foreign_checkpoint(checkpoint)

    def _joined_tree(self, part: CheckedSlice, size: int) -> Tree | None:
        inside = part.trees.get(size)
        return None if self._tree is None or inside is None else join_trees(self._tree, inside)

    def _compare(self, checkpoint: Checkpoint, tree: Tree | None) -> Iterator[Finding]:
        if checkpoint.ledger != self._ledger:
            yield _foreign_checkpoint(checkpoint)
        elif tree is None or checkpoint.root != tree_root(tree).hex():
            yield Finding(
                "the entries up to here are not those that the checkpoint signed: "
                "one was changed, swapped or replaced",
                checkpoint.size,
            )


def _foreign_checkpoint(checkpoint: Checkpoint) -> Finding:
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


def _check_stream_rows(
    store: Store, heads: dict[str, ChainHead], end: int
) -> Generator[Finding, None, int]:
    """Compare the heads in the streams' own rows, which reveal a truncated stream."""
    streams = 0
    for row in _all_stream_heads(store):
        streams += 1
        _, stream, version, link = row
        head, row_head = heads.pop(stream, CHAIN_START), ChainHead(version, link)
        if row_head != head and not has_types(row, _HEAD_COLUMN_TYPES):
            yield Finding(f"the row of a stream is damaged: it holds {row}")
            return 0
        if row_head != head and not _has_grown(store, stream, row_head, head, end):
            yield Finding(
                f"the stream is at version {version}, its entries end at {head.version}",
                end if version > head.version else 0,
                stream,
            )
    for stream in heads:
        yield Finding("the stream has entries but no row", stream=stream)
    return streams


def _has_grown(store: Store, stream: str, row_head: ChainHead, head: ChainHead, end: int) -> bool:
    """True if a row is ahead only by entries that were appended during the check."""
    for entry in store.history(stream, head.version, _PAGE):
        if entry.position < end or entry.previous != head.hash:
            return False
        head = ChainHead(entry.version, entry.hash)
        if head.version == row_head.version:
            return head.hash == row_head.hash == link_hash(entry.previous, entry.line)
    return False


# --- stored states against a replay -----------------------------------------------------------


def check_stored_states(store: Store, progress: Progress) -> Iterator[Finding]:
    """Check every stored state, index row, alias and list item against a fresh replay of its
    stream."""
    try:
        yield from _check_stored_states(store, progress)
    except StoreCorrupt as error:
        yield Finding(error.detail)


def _check_stored_states(store: Store, progress: Progress) -> Iterator[Finding]:
    for row in _paged("streams", store.rows, 0, lambda row: row.number):
        yield from _row_findings(store, row)
        progress(1)
    for name, kind, stream in _all_aliases(store):
        if (name, kind) not in _replay(store, stream).names:
            yield Finding(f"nothing in the ledger gave it the alias {kind}:{name}", stream=stream)
    for name, position, stream in _all_list_items(store):
        if _is_wrong_list_item(store, name, position, stream):
            yield Finding(
                f"nothing in the ledger put it on the list {name} at {position}", stream=stream
            )
    for record in _all_handoff_rows(store):
        if _is_foreign_handoff_row(store, record):
            yield Finding(
                "nothing in the ledger gave it a row in the table handoffs",
                stream=handoff_stream(record.id),
            )
    yield from (Finding(problem, position) for position, problem in wrong_log_rows(store))


def _row_findings(store: Store, row: StreamRow) -> Sequence[Finding]:
    """The findings about a row; one that changed meanwhile is checked again."""
    while True:
        replayed = _replay(store, row.name)
        problems = (
            [replayed.broken]
            if replayed.broken
            else [Finding(what, stream=row.name) for what in _row_differences(store, row, replayed)]
        )
        again = store.stream(row.name) if problems else row
        if again is None or again == row:
            return problems
        row = again


def _is_wrong_list_item(store: Store, name: str, position: int, stream: str) -> bool:
    """True if a list item does not belong there; if its stream changed meanwhile, check again."""
    while True:
        row = store.stream(stream)
        replayed = _replay(store, stream)
        if position == replayed.first and name in lists_of(replayed.state):
            return False
        is_there = _is_on_list(store, name, position, stream)
        if store.stream(stream) == row:
            return is_there


class _Replayed(Struct):
    state: State | None = None
    names: set[tuple[str, str]] = set()
    first: int = 0
    """The position of the first entry, which is the stream's position on every list."""
    broken: Finding | None = None


def _replay(store: Store, stream: str) -> _Replayed:
    replayed, at = _Replayed(), 0
    try:
        for entry in stream_entries(store, stream):
            at = entry.position
            replayed.first = replayed.first or at
            event, when = decode_entry(entry)
            replayed.state = fold(replayed.state, event, when)
            replayed.names.update(aliases_bound_by(event))
    except LedgerError as error:
        replayed.broken = Finding(f"the stream cannot be replayed: {error.detail}", at, stream)
    return replayed


def _row_differences(store: Store, row: StreamRow, replayed: _Replayed) -> Iterable[str]:
    state = replayed.state
    expected = b"" if state is None else encode_state(state)
    if not 0 < row.fold_version <= FOLD_VERSION:
        yield f"the stored state has fold version {row.fold_version}; known are 1 to {FOLD_VERSION}"
    if not _is_state_as_replayed(row, expected):
        yield "the stored state differs from the replay"
    due = state.not_before if isinstance(state, Task) else 0
    if row.index not in (index_row(state, due), index_row(state, max(due - 1, 0))):
        yield "the indexes differ from the replay"
    lease = row.lease
    held = None if lease is None else (lease.holder, lease.fence, lease.session)
    if held != _expected_lease(state):
        yield "the lease does not belong to the attempt"
    for name, kind in replayed.names:
        if (kind, row.name) not in store.find_aliases(name):
            yield f"the alias {kind}:{name} is missing"
    for name in lists_of(state):
        if not _is_on_list(store, name, replayed.first, row.name):
            yield f"it is missing on the list {name} at {replayed.first}"
    record = handoff_row(state)
    if record is not None and not has_handoff_row(store, record):
        yield "its row in the table handoffs is missing or differs from the replay"


def _is_state_as_replayed(row: StreamRow, expected: bytes) -> bool:
    if row.fold_version == FOLD_VERSION:
        return is_same_state(row.name, row.state, expected)
    # A state from older folds may differ from today's, but it cannot be missing.
    return bool(row.state) == bool(expected)


def _is_on_list(store: Store, name: str, position: int, stream: str) -> bool:
    """True if this list item is this stream's."""
    return (name, position, stream) in store.list_items((name, position - 1), 1)


def has_handoff_row(store: Store, record: HandoffRow) -> bool:
    """True if the table of handoffs has just this row."""
    # No id has a tilde, so that none sorts between this text and the record's own id.
    just_before = f"{record.id[:-1]}{chr(ord(record.id[-1]) - 1)}~"
    return store.handoffs(just_before, 1) == [record]


def _is_foreign_handoff_row(store: Store, record: HandoffRow) -> bool:
    """True if no handoff left this row; one that differs was found with its stream."""
    return handoff_row(_replay(store, handoff_stream(record.id)).state) is None


def _expected_lease(state: State | None) -> tuple[str, int, str] | None:
    """Holder, fence and session of the lease that the task must have."""
    if not isinstance(state, Task) or state.status != "in-progress":
        return None
    return state.assignee, state.fence, state.session


# --- rows of the logs -------------------------------------------------------------------------

_LOG_PAGE: Final = 1_000

_LAST_POSITION: Final = 2**53

_LOGGED_EVENTS: Final = frozenset(EVENT_NAMES[event] for event in LOG_ROWS)


def wrong_log_rows(store: Store) -> Iterator[tuple[int, str]]:
    """Positions at which a log row differs from its entry, and how."""
    after = 0
    while page := store.entries(after, _LOG_PAGE):
        end = page[-1].position
        rows = dict(store.log_rows(after, end))
        for entry in page:
            expected, stored = _expected_log_row(entry), rows.get(entry.position)
            if expected != stored:
                yield entry.position, _difference(expected, stored)
        after = end
    yield from (
        (at, "a row of the logs has no entry") for at, _ in store.log_rows(after, _LAST_POSITION)
    )


def _expected_log_row(entry: Entry) -> LogRow | None:
    if entry.event not in _LOGGED_EVENTS:
        return None
    try:
        line = read_line(entry.line)
        return log_row(CODEC.decode(line.event, line.v, line.body))
    except LedgerError:
        return None  # the check of the entries reports it


def _difference(expected: LogRow | None, stored: LogRow | None) -> str:
    if stored is None:
        return "its row in the logs is missing"
    return (
        "it has an unexpected row in the logs"
        if expected is None
        else "its row in the logs differs"
    )


# --- paging -----------------------------------------------------------------------------------


def _all_stream_heads(store: Store) -> Iterator[StreamHead]:
    """The head of each stream, from its own row."""
    return _paged("streams", store.heads, 0, lambda head: head[0])


def _paged(
    what: str,
    read: Callable[[Cursor, int], Sequence[Item]],
    start: Cursor,
    cursor_of: Callable[[Item], Cursor],
) -> Iterator[Item]:
    """All rows of one kind, page by page; StoreCorrupt names what cannot be read."""
    after, page_size = start, _PAGE
    while True:
        try:
            page = read(after, page_size)
        except StoreCorrupt as error:
            if page_size == 1:
                raise StoreCorrupt(
                    f"the row after {after} of the {what} cannot be read: {error.detail}"
                ) from error
            page_size = 1
            continue
        if not page:
            return
        yield from page
        after = cursor_of(page[-1])


def _all_aliases(store: Store) -> Iterator[tuple[str, str, str]]:
    return _paged("aliases", store.aliases, ("", ""), lambda name: name[:2])


def _all_list_items(store: Store) -> Iterator[tuple[str, int, str]]:
    return _paged("list items", store.list_items, ("", 0), lambda place: place[:2])


def _all_handoff_rows(store: Store) -> Iterator[HandoffRow]:
    return _paged("handoffs", store.handoffs, "", lambda record: record.id)

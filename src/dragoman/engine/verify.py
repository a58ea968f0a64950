"""Verification of the ledger and the store: hashes, order, checkpoints, and derived rows.

Stored states, index rows, aliases, lists, and the tables of handoffs and agent logs are compared
with a fresh replay.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from msgspec import Raw, Struct

from dragoman.core.base import Event
from dragoman.core.errors import LedgerError, StoreCorrupt
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.ids import handoff_stream
from dragoman.core.task_state import Task
from dragoman.engine.ports import EntryColumns, Store, StreamHead, StreamRow
from dragoman.engine.queries.entries import all_entries, stream_entries
from dragoman.ledger import stream_state
from dragoman.ledger.checkpoint import (
    EMPTY_TREE,
    Checkpoint,
    Tree,
    extend_tree,
    tree_root,
)
from dragoman.ledger.entry import CODEC, GENESIS, Entry, Line, line_prefix, link_hash, read_line

_PAGE = 1_000

_ENTRY_PAGE = 512

_ENTRY_COLUMN_TYPES: Final = (int, str, int, str, bytes, bytes, bytes)

_HEAD_COLUMN_TYPES: Final = (int, str, int, bytes)

_DISAGREE: Final = "the columns of the entry disagree with its line"

_ChainHead = tuple[int, bytes]
"""Version and hash of a stream's last entry."""

_CHAIN_START: Final[_ChainHead] = (0, GENESIS)

Cursor = TypeVar("Cursor")

Item = TypeVar("Item")

Progress = Callable[[int], None]
"""Called with the number of entries (or streams) that were checked since the last call."""


class Finding(Struct, frozen=True):
    """Something that differs from what was written."""

    problem: str
    position: int = 0
    """The position in the ledger; 0 when it is about a derived row and not an entry."""
    stream: str = ""


# --- ledger and checkpoints -------------------------------------------------------------------


def check_ledger(
    store: Store, checkpoints: Sequence[Checkpoint], progress: Progress
) -> Generator[Finding, None, int]:
    """Check every hash, version and position, and the roots that checkpoints have signed.

    Whether lines can be decoded is left to the replay. Returns the number of streams; 0 if their
    rows cannot be read.
    """
    roots = CheckpointRoots(store.ledger_id(), checkpoints)
    head = store.head()
    scan = _EntryScan(store)
    for page in scan.pages(0, head):
        yield from page.findings
        if not page.is_readable:
            with suppress(StoreCorrupt):
                return sum(1 for _ in _all_stream_heads(store))
            return 0
        yield from roots.append(page.hashes, page.until)
        progress(page.until - page.after)
    yield from roots.finish(head)
    try:
        return (yield from _check_stream_rows(store, scan.heads, head + 1))
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

    def find_before(stream: str, version: int) -> _ChainHead:
        before = store.history(stream, version - 2, 1) if version > 1 else ()
        return next(((entry.version, entry.hash) for entry in before), _CHAIN_START)

    for page in _EntryScan(store, find_before).pages(checkpoint.size, head):
        yield from page.findings
        if not page.is_readable:
            return
    for entry in all_entries(store, checkpoint.size, until=head):
        try:
            _decode_entry(entry)
        except LedgerError as error:
            yield Finding(error.detail, entry.position, entry.stream)


class CheckpointRoots:
    """Grows the tree, and compares its root with each checkpoint on the way."""

    def __init__(self, ledger: str, checkpoints: Sequence[Checkpoint]) -> None:
        self._ledger = ledger
        self._remaining = sorted(checkpoints, key=lambda checkpoint: checkpoint.size, reverse=True)
        self._tree: Tree | None = EMPTY_TREE
        """None after a missing entry."""
        self._size = 0

    def append(self, hashes: Sequence[bytes], size: int) -> Iterator[Finding]:
        """Add the hashes of the entries up to this size of the ledger; fewer when one is
        missing."""
        while self._remaining and self._remaining[-1].size <= size:
            checkpoint = self._remaining.pop()
            self._grow(hashes, checkpoint.size)
            yield from self._compare(checkpoint)
        if self._remaining:
            self._grow(hashes, size)
        self._size = size

    def _grow(self, hashes: Sequence[bytes], size: int) -> None:
        if self._tree is None or self._size + len(hashes) < size:
            self._tree = None
        else:
            added = hashes[self._tree.size - self._size : size - self._size]
            self._tree = extend_tree(self._tree, added)

    def finish(self, head: int) -> Iterator[Finding]:
        """Report checkpoints beyond the end."""
        for checkpoint in self._remaining[:1]:
            is_ours = checkpoint.ledger == self._ledger
            yield _cut_tail(head, checkpoint.size) if is_ours else _foreign_checkpoint(checkpoint)

    def _compare(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        if checkpoint.ledger != self._ledger:
            yield _foreign_checkpoint(checkpoint)
        elif self._tree is None or checkpoint.root != tree_root(self._tree).hex():
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
    store: Store, heads: dict[str, _ChainHead], end: int
) -> Generator[Finding, None, int]:
    """Compare the heads in the streams' own rows, which reveal a truncated stream."""
    streams = 0
    for row in _all_stream_heads(store):
        streams += 1
        _, stream, version, link = row
        head, row_head = heads.pop(stream, _CHAIN_START), (version, link)
        if row_head != head and not _has_types(row, _HEAD_COLUMN_TYPES):
            yield Finding(f"the row of a stream is damaged: it holds {row}")
            return 0
        if row_head != head and not _has_grown(store, stream, row_head, head, end):
            yield Finding(
                f"the stream is at version {version}, its entries end at {head[0]}",
                end if version > head[0] else 0,
                stream,
            )
    for stream in heads:
        yield Finding("the stream has entries but no row", stream=stream)
    return streams


def _has_grown(store: Store, stream: str, row_head: _ChainHead, head: _ChainHead, end: int) -> bool:
    """True if a row is ahead only by entries that were appended during the check."""
    for entry in store.history(stream, head[0], _PAGE):
        if entry.position < end or entry.previous != head[1]:
            return False
        head = entry.version, entry.hash
        if entry.version == row_head[0]:
            return head == row_head and entry.hash == link_hash(entry.previous, entry.line)
    return False


# --- entries in order -------------------------------------------------------------------------


class _CheckedPage(Struct):
    """The result of checking the entries after a position, up to another."""

    after: int
    until: int
    findings: list[Finding] = []
    hashes: list[bytes] = []
    """Hashes of the entries, up to the first that is missing."""
    is_readable: bool = True
    """False if part of it could not be read; then nothing is known after the last finding."""


class _EntryScan:
    """Checks entries in order, and remembers the head of each stream."""

    def __init__(
        self,
        store: Store,
        find_before: Callable[[str, int], _ChainHead] = lambda _stream, _version: _CHAIN_START,
    ) -> None:
        """`find_before` finds the head before the first entry of a stream in the scan."""
        self.heads: dict[str, _ChainHead] = {}
        self._store = store
        self._find_before = find_before

    def pages(self, after: int, until: int) -> Iterator[_CheckedPage]:
        for start in range(after, until, _ENTRY_PAGE):
            page = _CheckedPage(start, min(start + _ENTRY_PAGE, until))
            try:
                is_sound = self._check_sound_page(page)
            except (StoreCorrupt, TypeError):
                # A page of the database is damaged: it cannot be read, or returns what was never
                # written.
                is_sound = False
            if not is_sound:
                self._examine_page(page)
            yield page

    def _check_sound_page(self, page: _CheckedPage) -> bool:
        """Check a page as a whole; False as soon as there may be a finding.

        That is the case for nearly all pages. Each is dropped before the next one is read, so that
        little memory is touched, which dominates the run time.
        """
        after, until = page.after, page.until
        rows = self._store.entry_columns(after, until, until - after)
        hashes = [columns[-1] for columns in rows]
        if (
            [columns[0] for columns in rows] != list(range(after + 1, until + 1))
            or hashes != _expected_hashes(rows)
            or (heads := self._continue_streams(rows)) is None
        ):
            return False
        self.heads.update(heads)
        page.hashes = hashes
        return True

    def _continue_streams(self, rows: Sequence[EntryColumns]) -> dict[str, _ChainHead] | None:
        """The new heads if each entry is the next one of its stream and agrees with its line."""
        heads: dict[str, _ChainHead] = {}
        in_page, known = heads.get, self.heads.get
        for _, stream, version, event, line, previous, link in rows:
            if not line.startswith(line_prefix(stream, version, event)):
                return None
            before = in_page(stream) or known(stream) or self._find_before(stream, version)
            if before != (version - 1, previous):
                return None
            heads[stream] = version, link
        return heads

    def _examine_page(self, page: _CheckedPage) -> None:
        """Check the same entry by entry, with the findings of each."""
        found, at = page.findings, page.after
        for entry in _readable_entries(self._store, page):
            stream = entry.stream
            if entry.position != at + 1:
                found.append(_missing_entry(at + 1))
            at = entry.position
            if at == page.after + len(page.hashes) + 1:
                page.hashes.append(entry.hash)
            expected = line_prefix(stream, entry.version, entry.event)
            if not (entry.line.startswith(expected) or _is_readable_line(entry, found)):
                continue
            before = self.heads.get(stream) or self._find_before(stream, entry.version)
            found += _discontinuities(entry, before)
            if entry.hash != link_hash(entry.previous, entry.line):
                found.append(Finding("the hash does not match the line", at, stream))
            self.heads[stream] = entry.version, entry.hash
        if at < page.until and page.is_readable:
            found.append(_missing_entry(at + 1))


def _expected_hashes(page: Sequence[EntryColumns]) -> list[bytes]:
    """The hashes as they have to be."""
    # Nothing else is done in this loop: combined with other work it is slower.
    return [link_hash(previous, line) for _, _, _, _, line, previous, _ in page]


def _readable_entries(store: Store, page: _CheckedPage) -> Iterator[Entry]:
    """The entries of a page, up to the first that the database cannot return as it was written."""
    at, page_size = page.after, page.until - page.after
    while True:
        try:
            rows = store.entry_columns(at, page.until, page_size)
        except StoreCorrupt as error:
            if page_size > 1:
                page_size = 1
                continue
            _mark_unreadable(page, at + 1, f"the entry cannot be read: {error.detail}")
            return
        if not rows:
            return
        for columns in rows:
            at = columns[0]
            if not _has_types(columns, _ENTRY_COLUMN_TYPES):
                _mark_unreadable(
                    page, at, "the entry is damaged: a column holds a value of a wrong type"
                )
                return
            yield Entry(*columns)


def _mark_unreadable(page: _CheckedPage, position: int, problem: str) -> None:
    page.findings.append(Finding(problem, position))
    page.is_readable = False


def _has_types(columns: tuple[Any, ...], kinds: tuple[type, ...]) -> bool:
    """True if each column has its type: a damaged database returns anything."""
    return all(map(isinstance, columns, kinds))


def _is_readable_line(entry: Entry, found: list[Finding]) -> bool:
    """True if a line that does not begin as expected is an entry at all; adds a finding."""
    try:
        line = read_line(entry.line)
    except LedgerError as error:
        found.append(Finding(error.detail, entry.position, entry.stream))
        return False
    if _disagrees(line, entry):
        found.append(Finding(_DISAGREE, entry.position, entry.stream))
    return True


def _decode_entry(entry: Entry) -> tuple[Event, int]:
    """The event of an entry and its time; LedgerError if it is unreadable or contradicts its
    columns.

    A line may begin as it should and still name another stream later: the last value counts.
    """
    line = read_line(entry.line)
    if _disagrees(line, entry):
        raise LedgerError(_DISAGREE)
    return CODEC.decode(line.event, line.v, line.body), line.at


def _disagrees(line: Line[Raw], entry: Entry) -> bool:
    return (line.stream, line.version, line.event) != (entry.stream, entry.version, entry.event)


def _discontinuities(entry: Entry, before: _ChainHead) -> Iterator[Finding]:
    """Findings if an entry does not follow the head before it."""
    if before[0] + 1 != entry.version:
        problem = f"version {entry.version} follows version {before[0]} of its stream"
        yield Finding(problem, entry.position, entry.stream)
    if before[1] != entry.previous:
        problem = "the previous hash is not the hash of the entry before it"
        yield Finding(problem, entry.position, entry.stream)


def _missing_entry(position: int) -> Finding:
    return Finding(f"entry {position} is missing", position)


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
        if position == replayed.first and name in stream_state.lists_of(replayed.state):
            return False
        is_there = _is_on_list(store, name, position, stream)
        if store.stream(stream) == row:
            return is_there


class _Replayed(Struct):
    state: stream_state.State | None = None
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
            event, when = _decode_entry(entry)
            replayed.state = stream_state.fold(replayed.state, event, when)
            replayed.names.update(stream_state.aliases_bound_by(event))
    except LedgerError as error:
        replayed.broken = Finding(f"the stream cannot be replayed: {error.detail}", at, stream)
    return replayed


def _row_differences(store: Store, row: StreamRow, replayed: _Replayed) -> Iterable[str]:
    state = replayed.state
    expected = b"" if state is None else stream_state.encode_state(state)
    newest = stream_state.FOLD_VERSION
    if not 0 < row.fold_version <= newest:
        yield f"the stored state has fold version {row.fold_version}; known are 1 to {newest}"
    if not _is_state_as_replayed(row, expected):
        yield "the stored state differs from the replay"
    due = state.not_before if isinstance(state, Task) else 0
    if row.index not in (
        stream_state.index_row(state, due),
        stream_state.index_row(state, max(due - 1, 0)),
    ):
        yield "the indexes differ from the replay"
    lease = row.lease
    held = None if lease is None else (lease.holder, lease.fence, lease.session)
    if held != _expected_lease(state):
        yield "the lease does not belong to the attempt"
    for name, kind in replayed.names:
        if (kind, row.name) not in store.find_aliases(name):
            yield f"the alias {kind}:{name} is missing"
    for name in stream_state.lists_of(state):
        if not _is_on_list(store, name, replayed.first, row.name):
            yield f"it is missing on the list {name} at {replayed.first}"
    record = stream_state.handoff_row(state)
    if record is not None and not has_handoff_row(store, record):
        yield "its row in the table handoffs is missing or differs from the replay"


def _is_state_as_replayed(row: StreamRow, expected: bytes) -> bool:
    if row.fold_version == stream_state.FOLD_VERSION:
        return stream_state.is_same_state(row.name, row.state, expected)
    # A state from older folds may differ from today's, but it cannot be missing.
    return bool(row.state) == bool(expected)


def _is_on_list(store: Store, name: str, position: int, stream: str) -> bool:
    """True if this list item is this stream's."""
    return (name, position, stream) in store.list_items((name, position - 1), 1)


def has_handoff_row(store: Store, record: stream_state.HandoffRow) -> bool:
    """True if the table of handoffs has just this row."""
    # No id has a tilde, so that none sorts between this text and the record's own id.
    just_before = f"{record.id[:-1]}{chr(ord(record.id[-1]) - 1)}~"
    return store.handoffs(just_before, 1) == [record]


def _is_foreign_handoff_row(store: Store, record: stream_state.HandoffRow) -> bool:
    """True if no handoff left this row; one that differs was found with its stream."""
    return stream_state.handoff_row(_replay(store, handoff_stream(record.id)).state) is None


def _expected_lease(state: stream_state.State | None) -> tuple[str, int, str] | None:
    """Holder, fence and session of the lease that the task must have."""
    if not isinstance(state, Task) or state.status != "in-progress":
        return None
    return state.assignee, state.fence, state.session


# --- rows of the logs -------------------------------------------------------------------------

_LOG_PAGE: Final = 1_000

_LAST_POSITION: Final = 2**53

_LOGGED_EVENTS: Final = frozenset(EVENT_NAMES[event] for event in stream_state.LOG_ROWS)


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


def _expected_log_row(entry: Entry) -> stream_state.LogRow | None:
    if entry.event not in _LOGGED_EVENTS:
        return None
    try:
        line = read_line(entry.line)
        return stream_state.log_row(CODEC.decode(line.event, line.v, line.body))
    except LedgerError:
        return None  # the check of the entries reports it


def _difference(expected: stream_state.LogRow | None, stored: stream_state.LogRow | None) -> str:
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


def _all_handoff_rows(store: Store) -> Iterator[stream_state.HandoffRow]:
    return _paged("handoffs", store.handoffs, "", lambda record: record.id)

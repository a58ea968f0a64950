"""A slice of the ledger, verified by itself: its findings, and what must fit its neighbours.

Slices can be checked in any order and by several processes; `verify` puts them together. Each is as
large as a complete subtree of the ledger's tree, so that the trees of slices can be joined.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Raw, Struct

from dragoman.core.errors import LedgerError, StoreCorrupt
from dragoman.core.event_table import AnyEvent
from dragoman.engine.ports import EntryColumns, Store
from dragoman.ledger.entry import CODEC, GENESIS, Entry, Line, line_prefix, link_hash, read_line
from dragoman.ledger.tree import EMPTY_TREE, Tree, extend_tree

SLICE_SIZE = 1 << 14
"""Number of entries of a slice; a power of two."""
_ENTRY_PAGE = 512
_ENTRY_COLUMN_TYPES = (int, str, int, str, bytes, bytes, bytes)
"""Types of the columns of an entry."""
_DISAGREE = "the columns of the entry disagree with its line"


class Finding(Struct, frozen=True):
    """Something that differs from what was written."""

    problem: str
    position: int = 0
    """The position in the ledger; 0 when it is about a derived row and not an entry."""
    stream: str = ""


class ChainHead(Struct, frozen=True, gc=False):
    """Version and hash of a stream's last entry."""

    version: int
    hash: bytes


CHAIN_START = ChainHead(0, GENESIS)


class SliceSpan(Struct, frozen=True):
    """The entries of a slice, and the ledger sizes in it at which the tree is needed."""

    after: int
    until: int
    sizes: tuple[int, ...] = ()


class CheckedSlice(Struct):
    """The result of checking a slice."""

    span: SliceSpan
    findings: list[Finding] = []
    stream_starts: dict[str, tuple[int, ChainHead]] = {}
    """Stream -> the position of its first entry here, and the head that it follows."""
    heads: dict[str, ChainHead] = {}
    """Stream -> its head after the slice."""
    trees: dict[int, Tree] = {}
    """Trees of the slice alone, by the size of the whole ledger; none after a missing entry."""
    is_readable: bool = True
    """False if part of it could not be read; then nothing is known after the last finding."""


SliceChecker = Callable[[Sequence[SliceSpan]], Iterable[CheckedSlice]]
"""Checks slices, and returns them in order."""


def slice_spans(head: int, sizes: Iterable[int], size: int = SLICE_SIZE) -> list[SliceSpan]:
    """The slices of a ledger of so many entries; only those before the last size have a tree."""
    tree_sizes = set(sizes)
    last = max(tree_sizes, default=0)
    return [
        SliceSpan(after, until, tuple(sorted(one for one in known if after < one <= until)))
        for after in range(0, head, size)
        for until in (min(after + size, head),)
        for known in (tree_sizes | {until} if until < last else tree_sizes,)
    ]


def check_slice(store: Store, span: SliceSpan) -> CheckedSlice:
    """Check hashes, versions and positions of a slice, as far as possible without neighbours."""
    try:
        sound = _check_sound_slice(store, span)
    except (StoreCorrupt, TypeError):
        # A page of the database is damaged: it cannot be read, or returns what was never written.
        sound = None
    return sound or _examine_slice(store, span)


def _check_sound_slice(store: Store, span: SliceSpan) -> CheckedSlice | None:
    """The result for a slice without findings; None as soon as there may be one.

    That is the case for nearly all slices. Each page is dropped before the next one is read, so
    that little memory is touched, which dominates the run time.
    """
    follows: dict[str, tuple[int, bytes]] = {}
    begins: dict[str, tuple[int, ChainHead]] = {}
    trees: dict[int, Tree] = {}
    at, tree = span.after, EMPTY_TREE
    for end in _page_ends(span):
        page = store.entry_columns(at, end, end - at)
        positions = [columns[0] for columns in page]
        links = [columns[-1] for columns in page]
        if (
            positions != list(range(at + 1, end + 1))
            or links != _expected_hashes(page)
            or not _entries_continue(page, follows, begins)
        ):
            return None
        at = end
        if span.sizes and end <= span.sizes[-1]:
            tree = extend_tree(tree, links)
            trees[end] = tree
    heads = {stream: ChainHead(version - 1, link) for stream, (version, link) in follows.items()}
    trees = {size: trees[size] for size in span.sizes}
    return CheckedSlice(span, stream_starts=begins, heads=heads, trees=trees)


def _expected_hashes(page: Sequence[EntryColumns]) -> list[bytes]:
    """The hashes as they have to be."""
    # Nothing else is done in this loop: combined with other work it is slower.
    return [link_hash(previous, line) for _, _, _, _, line, previous, _ in page]


def _entries_continue(
    page: Sequence[EntryColumns],
    follows: dict[str, tuple[int, bytes]],
    begins: dict[str, tuple[int, ChainHead]],
) -> bool:
    """True if each entry is the next one of its stream, and its columns agree with its line."""
    expected = follows.get
    for at, stream, version, event, line, previous, link in page:
        if not line.startswith(line_prefix(stream, version, event)):
            return False
        if expected(stream) != (version, previous):
            if stream in follows:
                return False
            begins[stream] = at, ChainHead(version - 1, previous)
        follows[stream] = version + 1, link
    return True


def _page_ends(span: SliceSpan) -> list[int]:
    """The ends of the pages of a slice, which include every size at which the tree is needed."""
    return sorted(
        {*range(span.after + _ENTRY_PAGE, span.until, _ENTRY_PAGE), *span.sizes, span.until}
    )


def _examine_slice(store: Store, span: SliceSpan) -> CheckedSlice:
    """The same entry by entry, with the findings of each."""
    checked = CheckedSlice(span)
    heads, begins, found = checked.heads, checked.stream_starts, checked.findings
    leaves: list[bytes] = []
    at = span.after
    for entry in _readable_entries(store, checked):
        stream = entry.stream
        if entry.position != at + 1:
            found.append(_missing_entry(at + 1))
        at = entry.position
        if at == span.after + len(leaves) + 1:
            leaves.append(entry.hash)
        expected = line_prefix(stream, entry.version, entry.event)
        if not (entry.line.startswith(expected) or _is_readable_line(entry, found)):
            continue
        before = heads.get(stream)
        if before is None:
            begins[stream] = at, ChainHead(entry.version - 1, entry.previous)
        elif before.version + 1 != entry.version or before.hash != entry.previous:
            found += discontinuities(
                at, stream, before, ChainHead(entry.version - 1, entry.previous)
            )
        if entry.hash != link_hash(entry.previous, entry.line):
            found.append(Finding("the hash does not match the line", at, stream))
        heads[stream] = ChainHead(entry.version, entry.hash)
    if at < span.until and checked.is_readable:
        found.append(_missing_entry(at + 1))
    checked.trees = _slice_trees(span, leaves)
    return checked


def _readable_entries(store: Store, checked: CheckedSlice) -> Iterator[Entry]:
    """The entries of a slice, up to the first that the database cannot return as it was written."""
    at, page_size = checked.span.after, _ENTRY_PAGE
    while True:
        try:
            page = store.entry_columns(at, checked.span.until, page_size)
        except StoreCorrupt as error:
            if page_size > 1:
                page_size = 1
                continue
            _mark_unreadable(checked, at + 1, f"the entry cannot be read: {error.detail}")
            return
        if not page:
            return
        for columns in page:
            at = columns[0]
            if not has_types(columns, _ENTRY_COLUMN_TYPES):
                _mark_unreadable(
                    checked, at, "the entry is damaged: a column holds a value of a wrong type"
                )
                return
            yield Entry(*columns)


def _mark_unreadable(checked: CheckedSlice, position: int, problem: str) -> None:
    checked.findings.append(Finding(problem, position))
    checked.is_readable = False


def has_types(columns: tuple[Any, ...], kinds: tuple[type, ...]) -> bool:
    """True if each column has its type: a damaged database returns anything."""
    return all(map(isinstance, columns, kinds))


def _slice_trees(span: SliceSpan, leaves: list[bytes]) -> dict[int, Tree]:
    trees: dict[int, Tree] = {}
    tree = EMPTY_TREE
    for size in span.sizes:
        if size > span.after + len(leaves):
            break
        tree = extend_tree(tree, leaves[tree.size : size - span.after])
        trees[size] = tree
    return trees


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


def decode_entry(entry: Entry) -> tuple[AnyEvent, int]:
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


def discontinuities(
    position: int, stream: str, before: ChainHead, follows: ChainHead
) -> Iterator[Finding]:
    """Findings if an entry does not follow the head before it, which it names itself."""
    if before.version != follows.version:
        yield Finding(
            f"version {follows.version + 1} follows version {before.version} of its stream",
            position,
            stream,
        )
    if before.hash != follows.hash:
        problem = "the previous hash is not the hash of the entry before it"
        yield Finding(problem, position, stream)


def _missing_entry(position: int) -> Finding:
    return Finding(f"entry {position} is missing", position)

"""A slice of the ledger, checked by itself: what is wrong in it, and what must fit its neighbours.

Slices can be checked in any order and by several processes; `verify` puts them together. Each is as
large as a complete subtree of the ledger's tree, so that the trees of slices can be joined.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Raw, Struct

from dragoman.core.errors import LedgerError, StoreCorrupt
from dragoman.core.events import AnyEvent
from dragoman.engine.ports import Columns, Store
from dragoman.ledger.chain import GENESIS, link_hash
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import Entry, Line, head_of_line, read_line
from dragoman.ledger.tree import EMPTY, Tree, extend

SLICE = 1 << 14
"""Number of entries of a slice; a power of two."""
_PAGE = 512
_KINDS = (int, str, int, str, bytes, bytes, bytes)
"""Types of the columns of an entry."""
_DISAGREE = "the columns of the entry disagree with its line"


class Finding(Struct, frozen=True):
    """Something that differs from what was written."""

    problem: str
    position: int = 0
    """The position in the ledger; 0 when it is about a derived row and not an entry."""
    stream: str = ""


class Head(Struct, frozen=True, gc=False):
    """Version and hash of a stream's last entry."""

    version: int
    hash: bytes


START = Head(0, GENESIS)


class Span(Struct, frozen=True):
    """The entries of a slice, and the ledger sizes in it at which the tree is needed."""

    after: int
    until: int
    sizes: tuple[int, ...] = ()


class Slice(Struct):
    """The result of checking a slice."""

    span: Span
    findings: list[Finding] = []
    begins: dict[str, tuple[int, Head]] = {}
    """Stream -> the position of its first entry here, and the head that it follows."""
    heads: dict[str, Head] = {}
    """Stream -> its head after the slice."""
    trees: dict[int, Tree] = {}
    """Trees of the slice alone, by the size of the whole ledger; none after a missing entry."""
    is_readable: bool = True
    """False if part of it could not be read; then nothing is known after the last finding."""


Slices = Callable[[Sequence[Span]], Iterable[Slice]]
"""Checks slices, and returns them in order."""


def spans(head: int, sizes: Iterable[int], size: int = SLICE) -> list[Span]:
    """The slices of a ledger of so many entries; only those before the last size have a tree."""
    wanted = set(sizes)
    last = max(wanted, default=0)
    return [
        Span(after, until, tuple(sorted(one for one in known if after < one <= until)))
        for after in range(0, head, size)
        for until in (min(after + size, head),)
        for known in (wanted | {until} if until < last else wanted,)
    ]


def check_slice(store: Store, span: Span) -> Slice:
    """Check hashes, versions and positions of a slice, as far as possible without neighbours."""
    try:
        sound = _sound(store, span)
    except (StoreCorrupt, TypeError):
        # A page of the database is damaged: it cannot be read, or returns what was never written.
        sound = None
    return sound or _looked_into(store, span)


def _sound(store: Store, span: Span) -> Slice | None:
    """The result for a slice without findings; None as soon as there may be one.

    That is the case for nearly all slices. Each page is dropped before the next one is read, so
    that little memory is touched, which dominates the run time.
    """
    follows: dict[str, tuple[int, bytes]] = {}
    begins: dict[str, tuple[int, Head]] = {}
    trees: dict[int, Tree] = {}
    at, tree = span.after, EMPTY
    for end in _stops(span):
        page = store.columns(at, end, end - at)
        positions = [columns[0] for columns in page]
        links = [columns[-1] for columns in page]
        if (
            positions != list(range(at + 1, end + 1))
            or links != _links(page)
            or not _go_on(page, follows, begins)
        ):
            return None
        at = end
        if span.sizes and end <= span.sizes[-1]:
            tree = extend(tree, links)
            trees[end] = tree
    heads = {stream: Head(version - 1, link) for stream, (version, link) in follows.items()}
    trees = {size: trees[size] for size in span.sizes}
    return Slice(span, begins=begins, heads=heads, trees=trees)


def _links(page: Sequence[Columns]) -> list[bytes]:
    """The hashes as they have to be."""
    # Nothing else is done in this loop: combined with other work it is slower.
    return [link_hash(previous, line) for _, _, _, _, line, previous, _ in page]


def _go_on(
    page: Sequence[Columns],
    follows: dict[str, tuple[int, bytes]],
    begins: dict[str, tuple[int, Head]],
) -> bool:
    """True if each entry is the next one of its stream, and its columns agree with its line."""
    expected = follows.get
    for at, stream, version, event, line, previous, link in page:
        if not line.startswith(head_of_line(stream, version, event)):
            return False
        if expected(stream) != (version, previous):
            if stream in follows:
                return False
            begins[stream] = at, Head(version - 1, previous)
        follows[stream] = version + 1, link
    return True


def _stops(span: Span) -> list[int]:
    """The ends of the pages of a slice, which include every size at which the tree is needed."""
    return sorted({*range(span.after + _PAGE, span.until, _PAGE), *span.sizes, span.until})


def _looked_into(store: Store, span: Span) -> Slice:
    """The same entry by entry, with the findings of each."""
    seen = Slice(span)
    heads, begins, found = seen.heads, seen.begins, seen.findings
    leaves: list[bytes] = []
    at = span.after
    for entry in _readable(store, seen):
        stream = entry.stream
        if entry.position != at + 1:
            found.append(_missing(at + 1))
        at = entry.position
        if at == span.after + len(leaves) + 1:
            leaves.append(entry.hash)
        expected = head_of_line(stream, entry.version, entry.event)
        if not (entry.line.startswith(expected) or _is_readable(entry, found)):
            continue
        before = heads.get(stream)
        if before is None:
            begins[stream] = at, Head(entry.version - 1, entry.previous)
        elif before.version + 1 != entry.version or before.hash != entry.previous:
            found += unfit(at, stream, before, Head(entry.version - 1, entry.previous))
        if entry.hash != link_hash(entry.previous, entry.line):
            found.append(Finding("the hash does not match the line", at, stream))
        heads[stream] = Head(entry.version, entry.hash)
    if at < span.until and seen.is_readable:
        found.append(_missing(at + 1))
    seen.trees = _trees(span, leaves)
    return seen


def _readable(store: Store, seen: Slice) -> Iterator[Entry]:
    """The entries of a slice, up to the first that the database cannot return as it was written."""
    at, many = seen.span.after, _PAGE
    while True:
        try:
            page = store.columns(at, seen.span.until, many)
        except StoreCorrupt as error:
            if many > 1:
                many = 1
                continue
            _stop(seen, at + 1, f"the entry cannot be read: {error.detail}")
            return
        if not page:
            return
        for columns in page:
            at = columns[0]
            if not fits(columns, _KINDS):
                _stop(seen, at, "the entry is damaged: a column holds a value of a wrong type")
                return
            yield Entry(*columns)


def _stop(seen: Slice, position: int, problem: str) -> None:
    seen.findings.append(Finding(problem, position))
    seen.is_readable = False


def fits(columns: tuple[Any, ...], kinds: tuple[type, ...]) -> bool:
    """True if each column has its type: a damaged database returns anything."""
    return all(map(isinstance, columns, kinds))


def _trees(span: Span, leaves: list[bytes]) -> dict[int, Tree]:
    trees: dict[int, Tree] = {}
    tree = EMPTY
    for size in span.sizes:
        if size > span.after + len(leaves):
            break
        tree = extend(tree, leaves[tree.size : size - span.after])
        trees[size] = tree
    return trees


def _is_readable(entry: Entry, found: list[Finding]) -> bool:
    """True if a line that does not begin as expected is an entry at all; adds a finding."""
    try:
        line = read_line(entry.line)
    except LedgerError as error:
        found.append(Finding(error.detail, entry.position, entry.stream))
        return False
    if _disagree(line, entry):
        found.append(Finding(_DISAGREE, entry.position, entry.stream))
    return True


def read_entry(entry: Entry) -> tuple[AnyEvent, int]:
    """The event of an entry and its time; LedgerError if it is unreadable or contradicts its
    columns.

    A line may begin as it should and still name another stream later: the last value counts.
    """
    line = read_line(entry.line)
    if _disagree(line, entry):
        raise LedgerError(_DISAGREE)
    return CODEC.decode(line.event, line.v, line.body), line.at


def _disagree(line: Line[Raw], entry: Entry) -> bool:
    return (line.stream, line.version, line.event) != (entry.stream, entry.version, entry.event)


def unfit(position: int, stream: str, before: Head, follows: Head) -> Iterator[Finding]:
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


def _missing(position: int) -> Finding:
    return Finding(f"entry {position} is missing", position)

"""Export: a whole data directory in one file that says of every part what it must be."""

import io
import os
import tarfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Final

import msgspec

from dragoman.core.errors import LedgerError
from dragoman.core.moments import to_rfc3339
from dragoman.engine.ports import BoardQuery, Store
from dragoman.files.archive_format import (
    BYTES_IN_ONE_MEMBER,
    CHECKPOINTS,
    ENTRIES,
    FILES,
    FORMAT,
    IN_ONE_MEMBER,
    LEASES,
    MANIFEST,
    MOST_AT_ONCE,
    PIECE,
    PUBLIC_KEY,
    SETTINGS,
    SIGNED,
    TREES,
    Manifest,
    Member,
    StoredEntry,
    StoredLease,
    stays_behind,
)
from dragoman.files.disk import Disk
from dragoman.files.layout import staged
from dragoman.files.settings_copy import travelling
from dragoman.files.transplant import check_chain
from dragoman.ledger.entry import Entry

_PAGE: Final = 1_000

_encode = msgspec.json.Encoder().encode


def export_archive(
    store: Store, data: Disk, target: Path, beside: Disk, now: int, progress: Callable[[int], None]
) -> Manifest:
    """Write the archive; `data` is the data directory, `beside` the folder that it goes into.

    Raises LedgerError, and writes nothing, when the ledger does not hold.
    """
    temporary = target.with_name(staged(target.name))
    try:
        with temporary.open("wb") as file:
            with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
                manifest = _Writer(tar, now).write(store, data, progress)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(temporary.name, target.name)
        beside.settle()
    finally:
        temporary.unlink(missing_ok=True)
    return manifest


class _Writer:
    """Adds members and keeps account of them."""

    def __init__(self, tar: tarfile.TarFile, now: int) -> None:
        self._tar = tar
        self._now = now
        self._members: list[Member] = []
        self._left_out: list[str] = []

    def write(self, store: Store, data: Disk, progress: Callable[[int], None]) -> Manifest:
        # The checkpoints first: whatever they sign is then among the entries.
        signed = [(name, data.read(name, MOST_AT_ONCE)) for name in (CHECKPOINTS, PUBLIC_KEY)]
        head = store.head()
        for name, content in _ledger_parts(store, head, progress):
            self._add(name, content)
        self._add(LEASES, b"".join(_encode(lease) + b"\n" for lease in _leases(store)))
        for name, content in signed:
            if content is not None:
                self._add(SIGNED + name.rpartition("/")[2], content)
        settings = travelling(data.read(SETTINGS, MOST_AT_ONCE) or b"")
        if settings:
            self._add(FILES + SETTINGS, settings)
        for tree in TREES:
            self._add_tree(data, tree)
        manifest = Manifest(
            FORMAT,
            store.ledger_id(),
            head,
            to_rfc3339(self._now),
            tuple(self._members),
            tuple(self._left_out),
        )
        self._add(MANIFEST, msgspec.json.format(_encode(manifest), indent=1))
        return manifest

    def _add_tree(self, data: Disk, folder: str) -> None:
        for look in data.list(folder):
            path = f"{folder}/{look.name}"
            if look.kind == "folder":
                if not stays_behind(path):
                    self._add_tree(data, path)
            elif look.kind != "file" or not _is_text(path):
                self._left_out.append(ascii(path)[1:-1])
            else:
                self._add_file(data, path)

    def _add_file(self, data: Disk, path: str) -> None:
        """A file as it is read, though somebody goes on writing into it."""
        with SpooledTemporaryFile[bytes](PIECE) as copy:
            digest = sha256()
            while piece := data.piece(path, copy.tell(), PIECE):
                copy.write(piece)
                digest.update(piece)
            size = copy.tell()
            copy.seek(0)
            self._add_member(Member(FILES + path, size, digest.hexdigest()), copy)

    def _add(self, name: str, content: bytes) -> None:
        member = Member(name, len(content), sha256(content).hexdigest())
        self._add_member(member, io.BytesIO(content))

    def _add_member(self, member: Member, content: IO[bytes]) -> None:
        info = tarfile.TarInfo(member.name)
        info.size = member.size
        self._tar.addfile(info, content)
        self._members.append(member)


def _ledger_parts(
    store: Store, head: int, progress: Callable[[int], None]
) -> Iterator[tuple[str, bytes]]:
    heads: dict[str, bytes] = {}
    after = 0
    while page := store.entries(after, IN_ONE_MEMBER, until=head):
        wrong = check_chain(heads, ((entry.line, entry.hash.hex()) for entry in page))
        if wrong is not None or page[-1].position != after + len(page):
            raise LedgerError(
                f"the ledger does not hold near position {after + (wrong or 0) + 1}: "
                "nothing was exported; run `dragoman verify`"
            )
        yield from _parts(page)
        after = page[-1].position
        progress(len(page))
    if after != head:
        raise LedgerError(f"entry {after + 1} is missing: run `dragoman verify`")


def _parts(page: list[Entry]) -> Iterator[tuple[str, bytes]]:
    """Entries as members, none of which is long."""
    first, size, lines = page[0].position, 0, list[bytes]()
    for entry in page:
        line = _stored(entry)
        if lines and size + len(line) > BYTES_IN_ONE_MEMBER:
            yield f"{ENTRIES}{first:012d}.jsonl", b"".join(lines)
            first, size, lines = entry.position, 0, []
        size += len(line)
        lines.append(line)
    yield f"{ENTRIES}{first:012d}.jsonl", b"".join(lines)


def _stored(entry: Entry) -> bytes:
    line = StoredEntry(entry.position, entry.hash.hex(), entry.line.decode())
    return _encode(line) + b"\n"


def _leases(store: Store) -> Iterator[StoredLease]:
    before = None
    while rows := store.board(BoardQuery("in-progress", before=before, limit=_PAGE)):
        yield from (StoredLease(row.name, row.lease) for row in rows if row.lease is not None)
        before = rows[-1].number


def _is_text(path: str) -> bool:
    """Whether a name can be written down."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True

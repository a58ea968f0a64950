"""Export: a whole data directory in one file that says of every part what it must be."""

import io
import os
import tarfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from dragoman.core.errors import LedgerError
from dragoman.core.moments import to_rfc3339
from dragoman.engine.ports import BoardQuery, Store
from dragoman.files.archive_format import (
    CHECKPOINTS,
    ENTRIES,
    FILES,
    FORMAT,
    IN_ONE_MEMBER,
    LEASES,
    MANIFEST,
    MOST_BYTES,
    PUBLIC_KEY,
    SETTINGS,
    SIGNED,
    TREES,
    Manifest,
    Member,
    StoredEntry,
    StoredLease,
)
from dragoman.files.disk import Disk
from dragoman.files.layout import staged
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
        signed = [(name, data.read(name, MOST_BYTES)) for name in (CHECKPOINTS, PUBLIC_KEY)]
        head = store.head()
        for name, content in _ledger_parts(store, head, progress):
            self._add(name, content)
        self._add(LEASES, b"".join(_encode(lease) + b"\n" for lease in _leases(store)))
        for name, content in signed:
            if content is not None:
                self._add(SIGNED + name.rpartition("/")[2], content)
        settings = data.read(SETTINGS, MOST_BYTES)
        if settings is not None:
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
            content = data.read(path, MOST_BYTES) if look.kind == "file" else None
            if look.kind == "folder":
                self._add_tree(data, path)
            elif content is None or not _is_text(path):
                self._left_out.append(ascii(path))
            else:
                self._add(FILES + path, content)

    def _add(self, name: str, content: bytes) -> None:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        self._tar.addfile(info, io.BytesIO(content))
        self._members.append(Member(name, len(content), sha256(content).hexdigest()))


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
        yield f"{ENTRIES}{after + 1:012d}.jsonl", b"".join(map(_stored, page))
        after = page[-1].position
        progress(len(page))
    if after != head:
        raise LedgerError(f"entry {after + 1} is missing: run `dragoman verify`")


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

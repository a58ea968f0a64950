"""Export: a whole data directory in one file that says of every part what it must be."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from dragoman.core.moments import to_rfc3339
from dragoman.engine.ports import BoardQuery, Store
from dragoman.files.archives.archive_format import (
    CHECKPOINTS,
    FILES,
    FORMAT,
    MOST_AT_ONCE,
    PUBLIC_KEY,
    SETTINGS,
    SIGNED,
    TREES,
    Manifest,
    StoredLease,
)
from dragoman.files.archives.packing import Packer, open_tar
from dragoman.files.archives.settings_copy import travelling
from dragoman.files.disk import Disk
from dragoman.files.layout import staged

_PAGE: Final = 1_000
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def export_archive(
    store: Store, data: Disk, target: Path, beside: Disk, now: int, progress: Callable[[int], None]
) -> Manifest:
    """Write the archive; `data` is the data directory, `target_folder` the folder it goes into.

    Raises LedgerError, and writes nothing, when the ledger is damaged.
    """
    temporary = target.with_name(staged(target.name))
    # left by an export that was killed
    temporary.unlink(missing_ok=True)
    try:
        # It holds the words of everybody: only its owner can read it, as a backup.
        with os.fdopen(os.open(temporary, _NEW, 0o600), "wb") as file:
            with open_tar(file) as tar:
                manifest = _pack(Packer(tar), store, data, now, progress)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(temporary.name, target.name)
        beside.settle()
    finally:
        temporary.unlink(missing_ok=True)
    return manifest


def _pack(
    packer: Packer, store: Store, data: Disk, now: int, progress: Callable[[int], None]
) -> Manifest:
    # The checkpoints first: whatever they sign is then among the entries.
    signed = [(name, data.read(name, MOST_AT_ONCE)) for name in (CHECKPOINTS, PUBLIC_KEY)]
    head = store.head()
    packer.add_entries(store, head, progress)
    packer.add_leases(_leases(store))
    for name, content in signed:
        if content is not None:
            packer.add(SIGNED + name.rpartition("/")[2], content)
    settings = travelling(data.read(SETTINGS, MOST_AT_ONCE) or b"")
    if settings:
        packer.add(FILES + SETTINGS, settings)
    packer.add_trees(data, TREES)
    manifest = Manifest(
        FORMAT,
        store.ledger_id(),
        head,
        to_rfc3339(now),
        tuple(packer.members),
        tuple(packer.left_out),
    )
    packer.seal(manifest)
    return manifest


def _leases(store: Store) -> Iterator[StoredLease]:
    before = None
    while rows := store.board(BoardQuery("in-progress", before=before, limit=_PAGE)):
        yield from (StoredLease(row.name, row.lease) for row in rows if row.lease is not None)
        before = rows[-1].number

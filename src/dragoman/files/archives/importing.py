"""Import: an archive becomes a data directory, or nothing does.

The archive is read twice: once to compare every member with the manifest and every entry with its
chain, and once to build the directory beside its place, which it takes when it is complete.
"""

import shutil
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from dragoman.engine.ports import Store
from dragoman.engine.verifying.verify import check_ledger
from dragoman.files.archives.archive_format import (
    ARCHIVE,
    CHECKPOINTS,
    ENTRIES,
    FILES,
    LEASES,
    SETTINGS,
    SIGNED,
    Manifest,
)
from dragoman.files.archives.backup_format import LABEL
from dragoman.files.archives.transplant import Transplant
from dragoman.files.archives.unpacking import (
    Progress,
    check_archive,
    copy_file,
    lines_of,
    parts,
    read_checkpoints,
    read_leases,
)
from dragoman.files.disk import Disk
from dragoman.files.problems import BadArchive, PlaceTaken

IMPORTED: Final = "imported"
"""Folder for the checkpoints, the public key and the settings of the installation that was
exported. None of them is used: settings of a stranger name a store and commands."""

OpenStore = Callable[[Path, str], Store]
"""Opens the (empty) store of a data directory, for a ledger with this id."""
OpenDisk = Callable[[Path], Disk]


class Tools(Struct, frozen=True):
    """Outside dependencies of an import."""

    open_store: OpenStore
    open_disk: OpenDisk
    now: int
    progress: Progress


def import_archive(archive: Path, data: Path, tools: Tools) -> Manifest:
    """Create a data directory from an export; an error leaves nothing behind.

    New keys are made when the directory is first opened; signatures of the old key are checked here
    and kept under `imported/`.
    """
    data = data.resolve()
    if data.exists() and (not data.is_dir() or any(data.iterdir())):
        raise PlaceTaken(f"{data} is not empty: an import goes into a new data directory")
    if data == Path.cwd():
        raise PlaceTaken(f"{data} is the current directory: run the import from another one")
    _check_no_backup(archive)
    manifest = check_archive(archive, tools.progress)
    data.parent.mkdir(parents=True, exist_ok=True)
    building = data.with_name(f".{data.name}.importing")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(mode=0o700)
    try:
        _build(archive, building, manifest, tools)
        beside = tools.open_disk(data.parent)
        if not beside.move(building.name, data.name):
            raise PlaceTaken(f"{data} is not empty any more: nothing was imported")
        beside.settle()
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return manifest


def _check_no_backup(archive: Path) -> None:
    with suppress(tarfile.TarError), tarfile.open(archive, mode="r:") as tar:
        first = tar.next()
        if first is not None and first.name == LABEL:
            raise BadArchive(f"{archive} is a backup of dragoman's: use `dragoman restore`")


def _build(archive: Path, building: Path, manifest: Manifest, tools: Tools) -> None:
    disk = tools.open_disk(building)
    store = tools.open_store(building, manifest.ledger)
    try:
        if store.head():
            raise PlaceTaken("the store is not empty: an import needs one of its own")
        kept = _fill(archive, store, disk, tools)
        signed = read_checkpoints(SIGNED, kept.get(CHECKPOINTS, b""), kept.get("ledger.pub", b""))
        for finding in check_ledger(store, signed, tools.progress):
            raise BadArchive(f"entry {finding.position}: {finding.problem}")
        for name, content in kept.items():
            disk.make_folder(IMPORTED)
            disk.write(f"{IMPORTED}/{name}", content)
        disk.settle()
    finally:
        store.close()


def _fill(archive: Path, store: Store, disk: Disk, tools: Tools) -> dict[str, bytes]:
    """Load all members; returns those that are only kept."""
    transplant, kept, leases = Transplant(store, tools.now), dict[str, bytes](), b""
    for part in parts(archive):
        if part.name.startswith(ENTRIES):
            lines = lines_of(part)
            transplant.add(lines)
            tools.progress(len(lines))
        elif part.name == LEASES:
            leases = part.whole()
        elif part.name.startswith(SIGNED):
            kept[part.name.removeprefix(SIGNED)] = part.whole()
        elif ARCHIVE.is_long(part.name):
            copy_file(part, disk)
        elif part.name == FILES + SETTINGS:
            kept[SETTINGS] = part.whole()
    transplant.lend(read_leases(leases))
    return kept

"""Import: an export becomes a data directory, or nothing does.

The file is read twice: once to compare every member with the manifest and every entry with its
hash chain, and once to build the directory beside its place. It is moved into place when it is
complete.
"""

import shutil
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from dragoman.engine.ports import Store
from dragoman.engine.verify import check_ledger
from dragoman.files.archives.archive_format import (
    CHECKPOINTS,
    ENTRIES,
    EXPORT_FORMAT,
    FILES,
    LABEL,
    LEASES,
    SETTINGS,
    SIGNED,
    Manifest,
)
from dragoman.files.archives.ledger_loader import LedgerLoader
from dragoman.files.archives.tar_archive import (
    Progress,
    check_archive,
    entry_lines,
    extract_file,
    read_checkpoints,
    read_leases,
    read_members,
)
from dragoman.files.disk import Disk
from dragoman.files.errors import BadArchive, TargetTaken

IMPORTED_FOLDER: Final = "imported"
"""Folder for the checkpoints, the public key and the settings of the installation that was
exported. None of them is used: settings of a stranger name a store and commands."""

OpenStore = Callable[[Path, str], Store]
"""Opens the (empty) store of a data directory, for a ledger with this id."""
OpenDisk = Callable[[Path], Disk]


class ImportTools(Struct, frozen=True):
    """Outside dependencies of an import."""

    open_store: OpenStore
    open_disk: OpenDisk
    now: int
    progress: Progress


def import_archive(archive: Path, data: Path, tools: ImportTools) -> Manifest:
    """Create a data directory from an export; an error leaves nothing behind.

    New keys are made when the directory is first opened; signatures of the old key are checked here
    and kept under `imported/`.
    """
    data = data.resolve()
    if data.exists() and (not data.is_dir() or any(data.iterdir())):
        raise TargetTaken(f"{data} is not empty: an import goes into a new data directory")
    if data == Path.cwd():
        raise TargetTaken(f"{data} is the current directory: run the import from another one")
    _check_not_a_backup(archive)
    manifest = check_archive(archive, tools.progress)
    data.parent.mkdir(parents=True, exist_ok=True)
    building = data.with_name(f".{data.name}.importing")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(mode=0o700)
    try:
        _build(archive, building, manifest, tools)
        parent_disk = tools.open_disk(data.parent)
        if not parent_disk.move(building.name, data.name):
            raise TargetTaken(f"{data} is not empty any more: nothing was imported")
        parent_disk.sync()
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return manifest


def _check_not_a_backup(archive: Path) -> None:
    with suppress(tarfile.TarError), tarfile.open(archive, mode="r:") as tar:
        first = tar.next()
        if first is not None and first.name == LABEL:
            raise BadArchive(f"{archive} is a backup of dragoman's: use `dragoman restore`")


def _build(archive: Path, building: Path, manifest: Manifest, tools: ImportTools) -> None:
    disk = tools.open_disk(building)
    store = tools.open_store(building, manifest.ledger)
    try:
        if store.head():
            raise TargetTaken("the store is not empty: an import needs one of its own")
        kept = _load_members(archive, store, disk, tools)
        signed = read_checkpoints(SIGNED, kept.get(CHECKPOINTS, b""), kept.get("ledger.pub", b""))
        for finding in check_ledger(store, signed, tools.progress):
            raise BadArchive(f"entry {finding.position}: {finding.problem}")
        for name, content in kept.items():
            disk.make_folder(IMPORTED_FOLDER)
            disk.write(f"{IMPORTED_FOLDER}/{name}", content)
        disk.sync()
    finally:
        store.close()


def _load_members(archive: Path, store: Store, disk: Disk, tools: ImportTools) -> dict[str, bytes]:
    """Load all members; returns those that are only kept."""
    loader, kept, leases = LedgerLoader(store, tools.now), dict[str, bytes](), b""
    for part in read_members(archive):
        if part.name.startswith(ENTRIES):
            lines = entry_lines(part)
            loader.append(lines)
            tools.progress(len(lines))
        elif part.name == LEASES:
            leases = part.read_all()
        elif part.name.startswith(SIGNED):
            kept[part.name.removeprefix(SIGNED)] = part.read_all()
        elif EXPORT_FORMAT.is_streamed(part.name):
            extract_file(part, disk)
        elif part.name == FILES + SETTINGS:
            kept[SETTINGS] = part.read_all()
    loader.restore_leases(read_leases(leases))
    return kept

"""Restore: a backup becomes a data directory and its store, or nothing does.

Everything is built beside its place, in `.NAME.restoring` and in a store under another name,
and moved into place when it is complete: the store first, then the directory. A restore that
was killed before that is started over by the next one; after the first of the two moves, the
next one does the second.
"""

import fcntl
import os
import shutil
import tarfile
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from io import FileIO
from pathlib import Path
from shlex import quote
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from dragoman.core.errors import DragomanError
from dragoman.engine.ports import Store
from dragoman.engine.verify import check_ledger
from dragoman.files.archives.archive_format import (
    ANSWERS,
    BACKUP_FORMAT,
    BACKUP_FORMAT_PREFIX,
    CHECKPOINTS,
    ENTRIES,
    FILES,
    KEYS_FOLDER,
    LABEL,
    LEASES,
    MAX_WHOLE_BYTES,
    PRIVATE_FILES,
    PUBLIC_KEY,
    SETTINGS,
    BackupLabel,
    Manifest,
    StoredAnswer,
)
from dragoman.files.archives.backup import CheckedBackup, ProgressBars, check_backup, parse_label
from dragoman.files.archives.ledger_loader import LedgerLoader
from dragoman.files.archives.tar_archive import (
    ArchiveMember,
    Progress,
    entry_lines,
    extract_file,
    read_checkpoints,
    read_leases,
    read_members,
)
from dragoman.files.disk import Disk
from dragoman.files.errors import BadArchive, TargetTaken, explain_no_space
from dragoman.files.layout import ARTIFACTS, CURSOR_FILE, GITIGNORE, IGNORE_ALL

_answer_decoder: Final = msgspec.json.Decoder(StoredAnswer)


RECORD_FILE: Final = "restored.json"
"""Written when all else is complete. It stays, and says which backup the directory was made
from."""


class RestoreTarget(Protocol):
    """Store of a restored directory: built beside its final place, and moved there when
    complete."""

    def has_ledger(self, ledger: str, head: int) -> bool:
        """True when the place is taken by just this ledger; TargetTaken when it is taken by
        another."""
        ...

    def open(self, building: Path, ledger: str) -> Store:
        """Open an empty store beside the final place, for a ledger with this id."""
        ...

    def commit(self) -> None:
        """Move the closed store into its place."""
        ...

    def discard(self) -> None:
        """Remove the closed store from beside its place."""
        ...


class RestoreDisk(Disk, Protocol):
    """Disk that can create files readable by their owner only."""

    def create(self, path: str) -> AbstractContextManager[FileIO]:
        """Create a file that only its owner can read; durable when the context ends."""
        ...


class RestoreTools(Struct, frozen=True):
    """Outside dependencies of a restore."""

    open_target: Callable[[bytes], RestoreTarget]
    """Opens the target store that the backup's settings name."""
    adapt_settings: Callable[[bytes], bytes]
    """Adapts the settings to the new installation."""
    open_disk: Callable[[Path], RestoreDisk]
    now: int
    bars: ProgressBars


def restore_backup(backup: Path, data: Path, tools: RestoreTools) -> Manifest:
    """Create a data directory from a backup, where there is none."""
    data = data.resolve()
    if data.exists() and (not data.is_dir() or any(data.iterdir())):
        raise TargetTaken(f"{data} is not empty: {_not_empty_remedy(data)}")
    if data == Path.cwd():
        raise TargetTaken(f"{data} is the current directory: run the restore from another one")
    label = read_backup_label(backup)
    with tools.bars("checked", label.about) as progress:
        checked = _check_or_explain(backup, progress)
    manifest, target = checked.manifest, tools.open_target(checked.settings)
    data.parent.mkdir(parents=True, exist_ok=True)
    building = data.with_name(f".{data.name}.restoring")
    is_complete = target.has_ledger(manifest.ledger, manifest.entries)
    if is_complete and not _is_built(building, manifest):
        raise TargetTaken(
            "the target store already has this ledger: a restore needs an empty one. Name another "
            "with --store"
        )
    with _lock_building(building):
        if not is_complete:
            is_committing = False
            try:
                _clear_leftovers(building)
                with tools.bars("entries", 2 * manifest.entries) as progress:
                    _build(backup, building, checked, target, tools, progress)
                is_committing = True
                target.commit()
            except BaseException as error:
                if is_committing and _may_be_committed(target, manifest):
                    raise  # the next restore completes it, from what was built
                shutil.rmtree(building, ignore_errors=True)
                with suppress(OSError, DragomanError):
                    # If this fails too, the next restore does it.
                    target.discard()
                raise explain_no_space(error, data) from error
        parent_disk = tools.open_disk(data.parent)
        if not parent_disk.move(building.name, data.name):
            raise TargetTaken(f"{data} is not empty any more: nothing was restored")
        parent_disk.sync()
    return manifest


def _not_empty_remedy(data: Path) -> str:
    if (data / RECORD_FILE).exists() and not (data / CURSOR_FILE).exists():
        return (
            "a restore was completed there, except for the files that show the ledger. "
            f"`dragoman --data {quote(str(data))} rebuild-files` writes them"
        )
    return (
        "a restore goes into a new data directory. Name another one with --data, or move what is "
        "there away"
    )


def _check_or_explain(backup: Path, progress: Progress) -> CheckedBackup:
    try:
        return check_backup(backup, progress)
    except BadArchive as error:
        found = error.detail.removeprefix(f"{backup}: ")
        raise BadArchive(
            f"{backup} is damaged, and nothing was restored: {found}. Take another backup"
        ) from None


def _may_be_committed(target: RestoreTarget, manifest: Manifest) -> bool:
    """True when the store is in its place by now, or cannot be checked."""
    try:
        return target.has_ledger(manifest.ledger, manifest.entries)
    except TargetTaken:
        return False  # it belongs to another ledger
    except (OSError, DragomanError):
        return True


def read_backup_label(backup: Path) -> BackupLabel:
    """Read the label of a backup; BadArchive for another kind of file, or a newer format."""
    try:
        with tarfile.open(backup, mode="r:") as tar:
            first = tar.next()
            if first is None or first.name != LABEL or first.size > MAX_WHOLE_BYTES:
                raise BadArchive(
                    f"{backup} is a tar, but no backup of dragoman's; if it was made by "
                    "`dragoman export`, use `dragoman import`"
                )
            label = parse_label(ArchiveMember(tar, first).read_all())
    except tarfile.TarError as error:
        raise BadArchive(f"{backup} is no backup, or its beginning is lost: {error}") from None
    if label.format != BACKUP_FORMAT.format:
        raise BadArchive(
            f"{backup} is a {label.format!a}, made by dragoman {label.dragoman}; this one reads "
            f"{BACKUP_FORMAT.format!a}. Upgrade dragoman"
            if label.format.startswith(BACKUP_FORMAT_PREFIX)
            else f"{backup} is a {label.format!a}, and no backup of dragoman's"
        )
    return label


@contextmanager
def _lock_building(building: Path) -> Generator[None]:
    """Lock the unfinished directory against other restores."""
    building.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(building, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise TargetTaken(
                f"{building} belongs to another user, who could read or change what is restored "
                "there; nothing was restored. Remove it, or name another directory with --data"
            )
        os.fchmod(descriptor, 0o700)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TargetTaken(f"another process is restoring to {building}") from None
        yield
    finally:
        os.close(descriptor)


def _clear_leftovers(building: Path) -> None:
    """Remove the leftovers of a restore that was killed."""
    for path in building.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _build(
    backup: Path,
    building: Path,
    checked: CheckedBackup,
    target: RestoreTarget,
    tools: RestoreTools,
    progress: Progress,
) -> None:
    disk = tools.open_disk(building)
    disk.write(GITIGNORE, IGNORE_ALL)
    disk.sync_later(GITIGNORE)
    (building / KEYS_FOLDER).mkdir(mode=0o700)
    store = target.open(building, checked.manifest.ledger)
    try:
        _restore_members(backup, LedgerLoader(store, tools.now), disk, progress)
        _restore_settings(tools.adapt_settings(checked.settings), disk)
        signed = disk.read(CHECKPOINTS, MAX_WHOLE_BYTES) or b""
        key = disk.read(PUBLIC_KEY, MAX_WHOLE_BYTES) or b""
        for finding in check_ledger(store, read_checkpoints(FILES, signed, key), progress):
            raise BadArchive(f"entry {finding.position}: {finding.problem}")
        disk.sync()
    finally:
        store.close()
    disk.write(RECORD_FILE, _format_record(checked.manifest))
    disk.sync_later(RECORD_FILE)
    disk.sync()


def _is_built(building: Path, manifest: Manifest) -> bool:
    """True when a restore of this very backup got as far as moving things into their places."""
    try:
        return (building / RECORD_FILE).read_bytes() == _format_record(manifest)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _format_record(manifest: Manifest) -> bytes:
    made_of = (manifest.ledger, manifest.entries, manifest.exported_at)
    fields = dict(zip(("ledger", "entries", "madeAt"), made_of, strict=True))
    return msgspec.json.encode(fields) + b"\n"


def _restore_members(
    backup: Path,
    loader: LedgerLoader,
    disk: RestoreDisk,
    progress: Progress,
) -> None:
    for part in read_members(backup, BACKUP_FORMAT):
        name = part.name
        if name.startswith(ENTRIES):
            lines = entry_lines(part)
            loader.append(lines)
            progress(len(lines))
        elif name == LEASES:
            # They stand after the last entry.
            loader.restore_leases(read_leases(part.read_all()))
        elif name.startswith(ANSWERS):
            loader.restore_answers(_read_answers(part))
        elif name.startswith(FILES):
            _restore_file(part, disk)


def _restore_file(part: ArchiveMember, disk: RestoreDisk) -> None:
    path = part.name.removeprefix(FILES)
    if path == SETTINGS:
        return  # they are adapted to the new installation
    if path not in PRIVATE_FILES and not path.startswith((f"{KEYS_FOLDER}/", f"{ARTIFACTS}/")):
        extract_file(part, disk)
        return
    folder = path.rpartition("/")[0]
    if folder:
        disk.make_folder(folder)
    with disk.create(path) as file:
        for chunk in part.chunks():
            _write_all(file, chunk)


def _restore_settings(settings: bytes, disk: RestoreDisk) -> None:
    if settings:
        with disk.create(SETTINGS) as file:
            _write_all(file, settings)


def _write_all(file: FileIO, data: bytes) -> None:
    """Write every byte, however few the system takes at a time."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[file.write(remaining) :]


def _read_answers(part: ArchiveMember) -> list[tuple[str, str, bytes, bytes]]:
    try:
        stored = [_answer_decoder.decode(line) for line in part.read_all().splitlines()]
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadArchive(f"{part.name}: an answer cannot be read: {error}") from None
    return [msgspec.structs.astuple(one) for one in stored]

"""Restore and import: an archive becomes a data directory and its store, or nothing does.

Everything is built beside its place, in `.NAME.restoring` and in a store under another name,
and moved into place when it is complete: the store first, then the directory. A restore that
was killed before that is started over by the next one; after the first of the two moves, the
next one does the second.
"""

import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from dragoman.core.errors import DragomanError
from dragoman.engine.ports import Store
from dragoman.engine.verify import check_ledger
from dragoman.files.archive import (
    ANSWERS,
    ENTRIES,
    FILES,
    IMPORTED_FOLDER,
    KEYS_FOLDER,
    LEASES,
    PRIVATE_FILES,
    SETTINGS,
    ArchiveMember,
    CheckedArchive,
    Manifest,
    Profile,
    Progress,
    ProgressBars,
    check_archive,
    read_answers,
    read_entry_lines,
    read_label,
    read_leases,
    read_members,
)
from dragoman.files.errors import BadArchive, TargetTaken, explain_no_space
from dragoman.files.layout import ARTIFACTS, CURSOR_FILE, GITIGNORE, IGNORE_ALL
from dragoman.files.ledger_loader import LedgerLoader
from dragoman.system.safe_fs import SafeDisk

RECORD_FILE: Final = "restored.json"
"""Written when all else is complete. It stays, and says which archive the directory was made
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


class RestoreTools(Struct, frozen=True):
    """Outside dependencies of a restore."""

    open_target: Callable[[bytes], RestoreTarget]
    """Opens the target store that these settings name."""
    adapt_settings: Callable[[bytes], bytes]
    """Adapts the settings to the new installation."""
    open_disk: Callable[[Path], SafeDisk]
    now: int
    bars: ProgressBars


def restore_archive(archive: Path, profile: Profile, data: Path, tools: RestoreTools) -> Manifest:
    """Create a data directory from an archive, where there is none.

    That of an export gets new keys when it is first opened; signatures of the old key are checked
    here and kept.
    """
    data = data.resolve()
    if data.exists() and (not data.is_dir() or any(data.iterdir())):
        raise TargetTaken(f"{data} is not empty: {_not_empty_remedy(data, profile)}")
    if data == Path.cwd():
        raise TargetTaken(
            f"{data} is the current directory: run the {profile.reader} from another one"
        )
    label = read_label(archive, profile)
    with tools.bars("checked", label.about) as progress:
        checked = _check_or_explain(archive, profile, progress)
    settings = checked.kept.get(SETTINGS, b"") if profile.has_secrets else b""
    manifest, target = checked.manifest, tools.open_target(settings)
    data.parent.mkdir(parents=True, exist_ok=True)
    building = data.with_name(f".{data.name}.restoring")
    is_complete = target.has_ledger(manifest.ledger, manifest.entries)
    if is_complete and not _is_built(building, manifest):
        raise TargetTaken(
            f"the target store already has this ledger: {profile.reader} needs an empty one. Name "
            "another with --store"
        )
    with _lock_building(building):
        if not is_complete:
            is_committing = False
            try:
                _clear_leftovers(building)
                with tools.bars("entries", 2 * manifest.entries) as progress:
                    _build(checked, building, target, tools, progress)
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
            if not _may_be_committed(target, manifest):
                shutil.rmtree(building, ignore_errors=True)
            raise TargetTaken(f"{data} is not empty any more: nothing was restored")
        parent_disk.sync()
    return manifest


def _not_empty_remedy(data: Path, profile: Profile) -> str:
    if (data / RECORD_FILE).exists() and not (data / CURSOR_FILE).exists():
        return (
            "a restore was completed there, except for the files that show the ledger. "
            f"`dragoman --data {quote(str(data))} rebuild-files` writes them"
        )
    return (
        f"{profile.reader} makes a new data directory. Name another one with --data, or move what "
        "is there away"
    )


def _check_or_explain(archive: Path, profile: Profile, progress: Progress) -> CheckedArchive:
    try:
        return check_archive(archive, profile, progress)
    except BadArchive as error:
        found = error.detail.removeprefix(f"{archive}: ")
        raise BadArchive(
            f"{archive} is damaged, and nothing was restored: {found}. Take another {profile.name}"
        ) from None


def _may_be_committed(target: RestoreTarget, manifest: Manifest) -> bool:
    """True when the store is in its place by now, or cannot be checked."""
    try:
        return target.has_ledger(manifest.ledger, manifest.entries)
    except TargetTaken:
        return False  # it belongs to another ledger
    except (OSError, DragomanError):
        return True


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
    checked: CheckedArchive,
    building: Path,
    target: RestoreTarget,
    tools: RestoreTools,
    progress: Progress,
) -> None:
    disk = tools.open_disk(building)
    disk.write(GITIGNORE, IGNORE_ALL)
    disk.sync_later(GITIGNORE)
    store = target.open(building, checked.manifest.ledger)
    try:
        if checked.profile.has_secrets:
            (building / KEYS_FOLDER).mkdir(mode=0o700)
            settings = tools.adapt_settings(checked.kept.get(SETTINGS, b""))
            kept = {**checked.kept, SETTINGS: settings}
        else:
            names = {path: path.rpartition("/")[2] for path in checked.kept}
            kept = {f"{IMPORTED_FOLDER}/{names[path]}": checked.kept[path] for path in names}
        for path, content in kept.items():
            if content:
                _create_file(disk, path, [content])
        loader = LedgerLoader(store, tools.now)
        for part in read_members(checked.path, checked.profile):
            _restore_member(part, loader, disk, progress)
        for finding in check_ledger(store, checked.checkpoints, progress):
            raise BadArchive(f"entry {finding.position}: {finding.problem}")
        disk.sync()
    finally:
        store.close()
    disk.write(RECORD_FILE, _format_record(checked.manifest))
    disk.sync_later(RECORD_FILE)
    disk.sync()


def _is_built(building: Path, manifest: Manifest) -> bool:
    """True when a restore of this very archive got as far as moving things into their places."""
    try:
        return (building / RECORD_FILE).read_bytes() == _format_record(manifest)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _format_record(manifest: Manifest) -> bytes:
    fields = {
        "ledger": manifest.ledger,
        "entries": manifest.entries,
        "madeAt": manifest.made_at,
    }
    return msgspec.json.encode(fields) + b"\n"


def _restore_member(
    part: ArchiveMember, loader: LedgerLoader, disk: SafeDisk, progress: Progress
) -> None:
    if part.name.startswith(ENTRIES):
        lines = read_entry_lines(part)
        loader.append(lines)
        progress(len(lines))
    elif part.name == LEASES:
        # They stand after the last entry.
        loader.restore_leases(read_leases(part))
    elif part.name.startswith(ANSWERS):
        loader.restore_answers(read_answers(part))
    elif part.is_streamed:
        path = part.name.removeprefix(FILES)
        if path in PRIVATE_FILES or path.startswith((f"{KEYS_FOLDER}/", f"{ARTIFACTS}/")):
            _create_file(disk, path, part.chunks())
        else:
            _extract_file(part, path, disk)


def _create_file(disk: SafeDisk, path: str, chunks: Iterable[bytes]) -> None:
    """Create a file that only its owner can read."""
    if folder := path.rpartition("/")[0]:
        disk.make_folder(folder)
    with disk.create(path) as file:
        for chunk in chunks:
            remaining = memoryview(chunk)
            while remaining:
                remaining = remaining[file.write(remaining) :]


def _extract_file(part: ArchiveMember, path: str, disk: SafeDisk) -> None:
    """Extract a file of any length."""
    if folder := path.rpartition("/")[0]:
        disk.make_folder(folder)
    chunks = part.chunks()
    first = next(chunks, b"")
    disk.write(path, first)
    size = len(first)
    for chunk in chunks:
        disk.append(path, size, chunk)
        size += len(chunk)
    disk.sync_later(path)
    if part.executable:
        _restore_execute_bits(disk, path, part.executable)


def _restore_execute_bits(disk: SafeDisk, path: str, bits: int) -> None:
    """Restore execute bits, for those who may read the file; no other right is granted."""
    with disk.open(path) as opened:
        if opened is not None:
            descriptor = opened[0].fileno()
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            os.fchmod(descriptor, mode | (bits & (mode >> 2)))
            os.fsync(descriptor)

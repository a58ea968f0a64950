"""Restore and import: an archive becomes a data directory and its store, or nothing does.

The directory is built beside its place, in `.NAME.restoring`, and moved there when it is complete.
A restore that was killed before that is started over by the next one, except for a store on a
server: what was written there is named, and dropped by a person.
"""

import fcntl
import io
import os
import shutil
import stat
import tarfile
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Protocol, TypeVar

from msgspec import Struct

from dragoman.core.attempt_state import Lease
from dragoman.core.errors import DragomanError
from dragoman.engine.ports import Store
from dragoman.engine.verify import check_ledger
from dragoman.files.archive import (
    ANSWERS,
    ENTRIES,
    EXECUTE_BITS,
    FILES,
    IMPORTED_FOLDER,
    KEYS_FOLDER,
    LEASES,
    PRIVATE_FILES,
    SETTINGS,
    UNREADABLE,
    CheckedArchive,
    Manifest,
    Profile,
    Progress,
    ProgressBars,
    check_archive,
    is_streamed,
    read_answers,
    read_leases,
    read_members,
    read_whole,
)
from dragoman.files.errors import BadArchive, TargetTaken, explain_no_space
from dragoman.files.layout import ARTIFACTS, GITIGNORE, IGNORE_ALL
from dragoman.files.ledger_loader import LedgerLoader
from dragoman.system.safe_fs import OWNER_ONLY, SafeDisk, write_all

T = TypeVar("T")


class RestoreTarget(Protocol):
    """Store of a restored directory."""

    def open(self, building: Path, ledger: str) -> Store:
        """Open a new store for a ledger with this id; TargetTaken when there is one."""
        ...

    def discard(self) -> None:
        """Remove the closed store, if this restore has made it."""
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
        raise TargetTaken(
            f"{data} is not empty: {profile.reader} makes a new data directory. Name another one "
            "with --data, or move what is there away"
        )
    if data == Path.cwd():
        raise TargetTaken(
            f"{data} is the current directory: run the {profile.reader} from another one"
        )
    checked = _explain_damage(archive, profile, lambda: check_archive(archive, profile))
    settings = checked.kept.get(SETTINGS, b"") if profile.has_secrets else b""
    manifest, target = checked.manifest, tools.open_target(settings)
    data.parent.mkdir(parents=True, exist_ok=True)
    building = data.with_name(f".{data.name}.restoring")
    with _lock_building(building):
        try:
            _clear_leftovers(building)
            with tools.bars("entries", 2 * manifest.entries) as progress:
                build = partial(_build, checked, building, target, tools, progress)
                _explain_damage(archive, profile, build)
            parent_disk = tools.open_disk(data.parent)
            if not parent_disk.move(building.name, data.name):
                raise TargetTaken(f"{data} is not empty any more: nothing was restored")
        except BaseException as error:
            shutil.rmtree(building, ignore_errors=True)
            with suppress(OSError, DragomanError):
                target.discard()
            raise explain_no_space(error, data) from error
        parent_disk.sync()
    return manifest


def _explain_damage(archive: Path, profile: Profile, work: Callable[[], T]) -> T:
    """Do the work; the first thing that is wrong with the archive is raised in one form."""
    try:
        return work()
    except BadArchive as error:
        if error.detail.startswith(f"{archive}"):  # it is no archive of ours
            raise
        raise BadArchive(
            f"{archive} is damaged, and nothing was restored: {error.detail}. Take another "
            f"{profile.name}"
        ) from None


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
            kept = {
                f"{IMPORTED_FOLDER}/{path.rpartition('/')[2]}": content
                for path, content in checked.kept.items()
            }
        for path, content in kept.items():
            if content:
                with _create_file(disk, path, OWNER_ONLY) as file:
                    write_all(file.fileno(), content)
        try:
            _load_members(checked, LedgerLoader(store, tools.now), disk, progress)
        except UNREADABLE as error:
            raise BadArchive(f"its ledger cannot be read: {error}") from None
        if store.head() != checked.manifest.entries:
            raise BadArchive(f"{checked.manifest.entries} entries were written, not {store.head()}")
        for finding in check_ledger(store, checked.checkpoints, progress):
            raise BadArchive(f"entry {finding.position}: {finding.problem}")
        disk.sync()
    finally:
        store.close()


def _load_members(
    checked: CheckedArchive, loader: LedgerLoader, disk: SafeDisk, progress: Progress
) -> None:
    leases: dict[str, Lease] = {}
    for tar, info in read_members(checked.path, checked.profile):
        if info.name.startswith(ENTRIES):
            lines = read_whole(tar, info).splitlines()
            loader.append(lines)
            progress(len(lines))
        elif info.name == LEASES:
            leases = read_leases(read_whole(tar, info))
        elif info.name.startswith(ANSWERS):
            loader.restore_answers(read_answers(read_whole(tar, info)))
        elif is_streamed(info.name):
            _extract_file(tar, info, disk)
    loader.restore_leases(leases)


def _extract_file(tar: tarfile.TarFile, info: tarfile.TarInfo, disk: SafeDisk) -> None:
    """Extract a file. Those who may read it get its execute bits; no other right is granted."""
    path = info.name.removeprefix(FILES)
    is_private = path in PRIVATE_FILES or path.startswith((f"{KEYS_FOLDER}/", f"{ARTIFACTS}/"))
    with (
        tar.extractfile(info) or io.BytesIO() as content,
        _create_file(disk, path, OWNER_ONLY if is_private else 0o644) as file,
    ):
        copy = io.BufferedWriter(file)
        shutil.copyfileobj(content, copy)
        copy.detach()
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        os.fchmod(file.fileno(), mode | (info.mode & EXECUTE_BITS & (mode >> 2)))


def _create_file(disk: SafeDisk, path: str, mode: int) -> AbstractContextManager[FileIO]:
    if folder := path.rpartition("/")[0]:
        disk.make_folder(folder)
    return disk.create(path, mode)

"""Restore: a backup becomes a data directory and its store, or nothing does.

Everything is built beside its place, in `.NAME.restoring` and in a store under another name, and
takes its place when it is complete: the store first, then the directory. A restore that was killed
before that is begun anew by the next one; after the first of the two, the next one does the second.
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
from dragoman.engine.verifying.verify import check_ledger
from dragoman.files.archives.archive_format import (
    CHECKPOINTS,
    ENTRIES,
    FILES,
    LEASES,
    MOST_AT_ONCE,
    PUBLIC_KEY,
    SETTINGS,
    Manifest,
)
from dragoman.files.archives.backup import Bars, Checked, check_backup, read_label
from dragoman.files.archives.backup_format import (
    ANSWERS,
    FAMILY,
    FORM,
    KEYS,
    LABEL,
    PRIVATE,
    Label,
    StoredAnswer,
)
from dragoman.files.archives.transplant import Transplant
from dragoman.files.archives.unpacking import (
    Part,
    Progress,
    copy_file,
    lines_of,
    parts,
    read_checkpoints,
    read_leases,
)
from dragoman.files.disk import Disk
from dragoman.files.layout import ALL_OF_IT, ARTIFACTS, CURSOR, GITIGNORE
from dragoman.files.problems import BadArchive, PlaceTaken, explained

_answers: Final = msgspec.json.Decoder(StoredAnswer)


RECORD: Final = "restored.json"
"""Written when all else is complete. It stays, and says which backup the directory was made
from."""


class Nest(Protocol):
    """Store of a restored directory: built beside its final place, and moved there when
    complete."""

    def holds(self, ledger: str, head: int) -> bool:
        """True when the place is taken by just this ledger; TargetTaken when it is taken by
        another."""
        ...

    def open(self, building: Path, ledger: str) -> Store:
        """Open an empty store beside the final place, for a ledger with this id."""
        ...

    def settle(self) -> None:
        """Move the closed store into its place."""
        ...

    def discard(self) -> None:
        """Remove the closed store from beside its place."""
        ...


class RestoreDisk(Disk, Protocol):
    """Disk that can create files readable by their owner only."""

    def created(self, path: str) -> AbstractContextManager[FileIO]:
        """Create a file that only its owner can read; durable when the context ends."""
        ...


class RestoreTools(Struct, frozen=True):
    """Outside dependencies of a restore."""

    open_nest: Callable[[bytes], Nest]
    """Opens the target store that the backup's settings name."""
    settle_settings: Callable[[bytes], bytes]
    """Adapts the settings to the new installation."""
    open_disk: Callable[[Path], RestoreDisk]
    now: int
    bars: Bars


def restore_backup(backup: Path, data: Path, tools: RestoreTools) -> Manifest:
    """Create a data directory from a backup, where there is none."""
    data = data.resolve()
    if data.exists() and (not data.is_dir() or any(data.iterdir())):
        raise PlaceTaken(f"{data} is not empty: {_what_to_do(data)}")
    if data == Path.cwd():
        raise PlaceTaken(f"{data} is the current directory: run the restore from another one")
    label = look_at(backup)
    with tools.bars("checked", label.about) as progress:
        checked = _checked(backup, progress)
    manifest, nest = checked.manifest, tools.open_nest(checked.settings)
    data.parent.mkdir(parents=True, exist_ok=True)
    building = data.with_name(f".{data.name}.restoring")
    is_complete = nest.holds(manifest.ledger, manifest.head)
    if is_complete and not _was_built(building, manifest):
        raise PlaceTaken(
            "the target store already has this ledger: a restore needs an empty one. Name another "
            "with --store"
        )
    with _alone(building):
        if not is_complete:
            is_settling = False
            try:
                _clear(building)
                with tools.bars("entries", 2 * manifest.head) as progress:
                    _build(backup, building, checked, nest, tools, progress)
                is_settling = True
                nest.settle()
            except BaseException as error:
                if is_settling and _may_be_settled(nest, manifest):
                    raise  # the next restore completes it, from what was built
                shutil.rmtree(building, ignore_errors=True)
                with suppress(OSError, DragomanError):
                    # If this fails too, the next restore does it.
                    nest.discard()
                raise explained(error, data) from error
        beside = tools.open_disk(data.parent)
        if not beside.move(building.name, data.name):
            raise PlaceTaken(f"{data} is not empty any more: nothing was restored")
        beside.settle()
    return manifest


def _what_to_do(data: Path) -> str:
    if (data / RECORD).exists() and not (data / CURSOR).exists():
        return (
            "a restore was completed there, except for the files that show the ledger. "
            f"`dragoman --data {quote(str(data))} rebuild-files` writes them"
        )
    return (
        "a restore goes into a new data directory. Name another one with --data, or move what is "
        "there away"
    )


def _checked(backup: Path, progress: Progress) -> Checked:
    try:
        return check_backup(backup, progress)
    except BadArchive as error:
        found = error.detail.removeprefix(f"{backup}: ")
        raise BadArchive(
            f"{backup} is damaged, and nothing was restored: {found}. Take another backup"
        ) from None


def _may_be_settled(nest: Nest, manifest: Manifest) -> bool:
    """True when the store is in its place by now, or cannot be checked."""
    try:
        return nest.holds(manifest.ledger, manifest.head)
    except PlaceTaken:
        return False  # it belongs to another ledger
    except (OSError, DragomanError):
        return True


def look_at(backup: Path) -> Label:
    """Read the label of a backup; BadArchive for another kind of file, or a newer format."""
    try:
        with tarfile.open(backup, mode="r:") as tar:
            first = tar.next()
            if first is None or first.name != LABEL or first.size > MOST_AT_ONCE:
                raise BadArchive(
                    f"{backup} is a tar, but no backup of dragoman's; if it was made by "
                    "`dragoman export`, use `dragoman import`"
                )
            label = read_label(Part(tar, first).whole())
    except tarfile.TarError as error:
        raise BadArchive(f"{backup} is no backup, or its beginning is lost: {error}") from None
    if label.format != FORM.format:
        raise BadArchive(
            f"{backup} is a {label.format!a}, made by dragoman {label.dragoman}; this one reads "
            f"{FORM.format!a}. Upgrade dragoman"
            if label.format.startswith(FAMILY)
            else f"{backup} is a {label.format!a}, and no backup of dragoman's"
        )
    return label


@contextmanager
def _alone(building: Path) -> Generator[None]:
    """Lock the unfinished directory against other restores."""
    building.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(building, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PlaceTaken(
                f"{building} belongs to another user, who could read or change what is restored "
                "there; nothing was restored. Remove it, or name another directory with --data"
            )
        os.fchmod(descriptor, 0o700)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PlaceTaken(f"another process is restoring to {building}") from None
        yield
    finally:
        os.close(descriptor)


def _clear(building: Path) -> None:
    """Remove the leftovers of a restore that was killed."""
    for path in building.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _build(
    backup: Path,
    building: Path,
    checked: Checked,
    nest: Nest,
    tools: RestoreTools,
    progress: Progress,
) -> None:
    disk = tools.open_disk(building)
    disk.write(GITIGNORE, ALL_OF_IT)
    disk.keep(GITIGNORE)
    (building / KEYS).mkdir(mode=0o700)
    store = nest.open(building, checked.manifest.ledger)
    try:
        _fill(backup, Transplant(store, tools.now), disk, progress)
        _place_settings(tools.settle_settings(checked.settings), disk)
        signed = disk.read(CHECKPOINTS, MOST_AT_ONCE) or b""
        key = disk.read(PUBLIC_KEY, MOST_AT_ONCE) or b""
        for finding in check_ledger(store, read_checkpoints(FILES, signed, key), progress):
            raise BadArchive(f"entry {finding.position}: {finding.problem}")
        disk.settle()
    finally:
        store.close()
    disk.write(RECORD, _record(checked.manifest))
    disk.keep(RECORD)
    disk.settle()


def _was_built(building: Path, manifest: Manifest) -> bool:
    """True when a restore of this very backup got as far as moving things into their places."""
    try:
        return (building / RECORD).read_bytes() == _record(manifest)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _record(manifest: Manifest) -> bytes:
    made_of = (manifest.ledger, manifest.head, manifest.exported_at)
    told = dict(zip(("ledger", "entries", "madeAt"), made_of, strict=True))
    return msgspec.json.encode(told) + b"\n"


def _fill(
    backup: Path,
    transplant: Transplant,
    disk: RestoreDisk,
    progress: Progress,
) -> None:
    for part in parts(backup, FORM):
        name = part.name
        if name.startswith(ENTRIES):
            lines = lines_of(part)
            transplant.add(lines)
            progress(len(lines))
        elif name == LEASES:
            # They stand after the last entry.
            transplant.lend(read_leases(part.whole()))
        elif name.startswith(ANSWERS):
            transplant.remember(_read_answers(part))
        elif name.startswith(FILES):
            _place(part, disk)


def _place(part: Part, disk: RestoreDisk) -> None:
    path = part.name.removeprefix(FILES)
    if path == SETTINGS:
        return  # they are adapted to the new installation
    if path not in PRIVATE and not path.startswith((f"{KEYS}/", f"{ARTIFACTS}/")):
        copy_file(part, disk)
        return
    folder = path.rpartition("/")[0]
    if folder:
        disk.make_folder(folder)
    with disk.created(path) as file:
        for piece in part.pieces():
            _write(file, piece)


def _place_settings(settings: bytes, disk: RestoreDisk) -> None:
    if settings:
        with disk.created(SETTINGS) as file:
            _write(file, settings)


def _write(file: FileIO, data: bytes) -> None:
    """Write every byte, however few the system takes at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _read_answers(part: Part) -> list[tuple[str, str, bytes, bytes]]:
    try:
        stored = [_answers.decode(line) for line in part.whole().splitlines()]
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadArchive(f"{part.name}: an answer cannot be read: {error}") from None
    return [msgspec.structs.astuple(one) for one in stored]

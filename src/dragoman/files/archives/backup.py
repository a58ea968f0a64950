"""Backup: all that a hub needs to go on elsewhere, in one file, while the hub works.

The file gets its name when it is complete, was read back and checked. Until then it is
`.NAME.next` beside it, which the next backup of that name overwrites.
"""

import fcntl
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Final

import msgspec
from msgspec import Struct

from dragoman.core.errors import LedgerError
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import DurableStore, StoreSnapshot
from dragoman.engine.verify import CheckpointRoots, Finding
from dragoman.files.archives.archive_format import (
    ANSWERS,
    BACKUP_FILES,
    BACKUP_FORMAT,
    BACKUP_TREES,
    CHECKPOINTS,
    ENTRIES,
    FILES,
    LABEL,
    PUBLIC_KEY,
    SETTINGS,
    BackupLabel,
    Manifest,
    StoredAnswer,
    StoredEntry,
    StoredLease,
    is_not_backed_up,
)
from dragoman.files.archives.tar_archive import (
    ArchiveObserver,
    ArchiveWriter,
    Progress,
    check_archive,
    open_tar,
    read_checkpoints,
)
from dragoman.files.disk import Disk
from dragoman.files.errors import BadArchive, TargetTaken, explain_no_space
from dragoman.files.layout import INBOX, INBOX_LOCK, staged_path

_PAGE: Final = 1_000

ProgressBars = Callable[[str, int], AbstractContextManager[Progress]]
"""Opens a progress bar for so many things of a kind."""


class BackupSource(Struct, frozen=True):
    """The store and data directory to back up."""

    store: DurableStore
    data: Disk
    version: str
    """Version of this dragoman."""
    now: int


def make_backup(
    source: BackupSource, target: Path, target_folder: Disk, bars: ProgressBars
) -> Manifest:
    """Write the backup into the folder `target_folder`. Nothing is ever replaced."""
    temporary = target.with_name(staged_path(target.name))
    try:
        with _open_temporary(temporary, target) as file:
            manifest = _write_archive(source, file, bars)
            with bars("checked", manifest.entries) as progress:
                _verify_written(temporary, progress)
            if not target_folder.move(temporary.name, target.name):
                raise TargetTaken(f"{target} exists by now; a backup overwrites nothing")
            target_folder.sync()
    except OSError as error:
        raise explain_no_space(error, target) from error
    return manifest


def _verify_written(temporary: Path, progress: Progress) -> None:
    try:
        check_backup(temporary, progress)
    except BadArchive as error:
        raise LedgerError(
            "the copy failed verification, so no backup was made: "
            f"{error.detail.removesuffix('.')}. Run `dragoman verify`; if it finds nothing, check "
            "the disk that the backup goes to"
        ) from None


@contextmanager
def _open_temporary(temporary: Path, target: Path) -> Generator[IO[bytes]]:
    """Temporary file, emptied and locked; removed at the end unless it was renamed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, 0o600), "r+b") as file:
        found = os.fstat(file.fileno())
        if found.st_uid != os.geteuid() or found.st_nlink > 1:
            raise TargetTaken(
                f"{temporary} belongs to another user, or has a second hard link under which "
                "others could read the backup; nothing was written. Remove it, or choose another "
                "path"
            )
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TargetTaken(f"another process is writing a backup to {target}") from None
        if not _has_name(file, temporary):
            raise TargetTaken(f"another process has just written a backup to {target}")
        os.fchmod(file.fileno(), 0o600)
        file.truncate()
        try:
            yield file
        finally:
            temporary.unlink(missing_ok=True)


def _has_name(file: IO[bytes], path: Path) -> bool:
    """True when the open file still has this name: the backup before this one may have renamed
    it."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.lstat(path))
    except FileNotFoundError:
        return False


def _write_archive(source: BackupSource, file: IO[bytes], bars: ProgressBars) -> Manifest:
    with open_tar(file) as tar:
        writer = ArchiveWriter(tar)
        estimate = source.store.head()
        label = BackupLabel(
            BACKUP_FORMAT.format, source.version, source.store.ledger_id(), estimate
        )
        writer.add_bytes(LABEL, msgspec.json.encode(label))
        # No message is being processed meanwhile: it is in the inbox, or in the ledger that is read
        # later.
        with source.data.lock_to_read(INBOX_LOCK):
            writer.add_tree(source.data, INBOX)
        # The checkpoints come before the ledger, too: whatever they sign is then in it.
        for name in BACKUP_FILES:
            writer.add_file(source.data, name)
        with source.store.snapshot() as frozen:
            head = frozen.head()
            with bars("entries", head) as progress:
                writer.add_entries(frozen, head, progress)
            writer.add_leases(_leases(frozen))
            _add_answers(writer, frozen)
        writer.add_trees(source.data, BACKUP_TREES, is_not_backed_up)
        made_at = to_rfc3339(source.now)
        members, left_out = tuple(writer.members), tuple(writer.omitted)
        manifest = Manifest(BACKUP_FORMAT.format, label.ledger, head, made_at, members, left_out)
        writer.write_manifest(manifest)
    file.flush()
    os.fsync(file.fileno())
    return manifest


def _leases(frozen: StoreSnapshot) -> Iterator[StoredLease]:
    after = 0
    while rows := frozen.held_streams(after, _PAGE):
        yield from (StoredLease(row.name, row.lease) for row in rows if row.lease is not None)
        after = rows[-1].number


def _add_answers(writer: ArchiveWriter, frozen: StoreSnapshot) -> None:
    first, after = 1, (0, "")
    while page := frozen.answers(after, _PAGE):
        writer.add_lines(
            ANSWERS,
            first,
            (
                StoredAnswer(one.stream, one.record.key, one.record.fingerprint, one.record.answer)
                for one in page
            ),
        )
        first += len(page)
        after = page[-1].record.scope, page[-1].record.key


class CheckedBackup(Struct, frozen=True):
    """A backup that was checked."""

    manifest: Manifest
    settings: bytes
    """Settings file; empty when there was none."""


def check_backup(path: Path, progress: Progress) -> CheckedBackup:
    """Check a backup against its manifest, its hash chains and its signed checkpoints."""
    auditor = _CheckpointObserver()
    manifest = check_archive(path, progress, BACKUP_FORMAT, auditor)
    auditor.end(manifest.entries)
    return CheckedBackup(manifest, auditor.kept.get(SETTINGS, b""))


class _CheckpointObserver(ArchiveObserver):
    """Compares the ledger with the checkpoints, which stand before it in the archive."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self._label: BackupLabel | None = None
        self._roots: CheckpointRoots | None = None

    @property
    def label(self) -> BackupLabel:
        if self._label is None:
            raise BadArchive(f"{LABEL}: it is missing, or not the first member")
        return self._label

    def on_member(self, name: str, content: bytes) -> None:
        if name == LABEL:
            self._label = parse_label(content)
        if name.startswith(FILES):
            self.kept[name.removeprefix(FILES)] = content

    def on_entries(self, name: str, stored: Sequence[StoredEntry]) -> None:
        hashes = [bytes.fromhex(entry.hash) for entry in stored]
        _raise_finding(self._tree().append(hashes, stored[-1].position), name)

    def end(self, head: int) -> None:
        _raise_finding(self._tree().finish(head), ENTRIES)

    def _tree(self) -> CheckpointRoots:
        if self._roots is None:
            signed, key = self.kept.get(CHECKPOINTS, b""), self.kept.get(PUBLIC_KEY, b"")
            checkpoints = read_checkpoints(FILES, signed, key)
            self._roots = CheckpointRoots(self.label.ledger, checkpoints)
        return self._roots


def _raise_finding(findings: Iterator[Finding], where: str) -> None:
    for finding in findings:
        raise BadArchive(f"{where}: entry {finding.position}: {finding.problem}")


def parse_label(content: bytes) -> BackupLabel:
    """Decode the label of a backup."""
    try:
        return msgspec.json.decode(content, type=BackupLabel)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadArchive(f"{LABEL}: it cannot be read: {error}") from None

"""Backup: all that a hub needs to go on elsewhere, in one file, while it works on.

The file gets its name when it is whole, was read back and was found good. Until then it is
`.NAME.next` beside it, which the next backup of that name begins anew.
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
from dragoman.core.moments import to_rfc3339
from dragoman.engine.ports import Frozen, KeptStore
from dragoman.engine.verifying.verify import Finding, Roots
from dragoman.files.archives.archive_format import (
    CHECKPOINTS,
    ENTRIES,
    FILES,
    PUBLIC_KEY,
    SETTINGS,
    Manifest,
    StoredEntry,
    StoredLease,
)
from dragoman.files.archives.backup_format import (
    ANSWERS,
    FORM,
    LABEL,
    SINGLE,
    TREES,
    Label,
    StoredAnswer,
    stays_behind,
)
from dragoman.files.archives.packing import Packer, open_tar
from dragoman.files.archives.unpacking import Inspector, Progress, check_archive, read_checkpoints
from dragoman.files.disk import Disk
from dragoman.files.layout import INBOX, TAKING, staged
from dragoman.files.problems import BadArchive, PlaceTaken, explained

_PAGE: Final = 1_000

Bars = Callable[[str, int], AbstractContextManager[Progress]]
"""Opens a progress bar for so many things of a kind."""


class Source(Struct, frozen=True):
    """The store and data directory to back up."""

    store: KeptStore
    data: Disk
    version: str
    """Version of this dragoman."""
    now: int


def make_backup(source: Source, target: Path, beside: Disk, bars: Bars) -> Manifest:
    """Write the backup into the folder `target_folder`. Nothing is ever replaced."""
    temporary = target.with_name(staged(target.name))
    try:
        with _alone(temporary, target) as file:
            manifest = _write(source, file, bars)
            with bars("checked", manifest.head) as progress:
                _read_back(temporary, progress)
            if not beside.move(temporary.name, target.name):
                raise PlaceTaken(f"{target} exists by now; a backup overwrites nothing")
            beside.settle()
    except OSError as error:
        raise explained(error, target) from error
    return manifest


def _read_back(temporary: Path, progress: Progress) -> None:
    try:
        check_backup(temporary, progress)
    except BadArchive as error:
        raise LedgerError(
            "the copy failed verification, so no backup was made: "
            f"{error.detail.removesuffix('.')}. Run `dragoman verify`; if it finds nothing, check "
            "the disk that the backup goes to"
        ) from None


@contextmanager
def _alone(temporary: Path, target: Path) -> Generator[IO[bytes]]:
    """Temporary file, emptied and locked; removed at the end unless it was renamed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, 0o600), "r+b") as file:
        found = os.fstat(file.fileno())
        if found.st_uid != os.geteuid() or found.st_nlink > 1:
            raise PlaceTaken(
                f"{temporary} belongs to another user, or has a second hard link under which "
                "others could read the backup; nothing was written. Remove it, or choose another "
                "path"
            )
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PlaceTaken(f"another process is writing a backup to {target}") from None
        if not _is_named(file, temporary):
            raise PlaceTaken(f"another process has just written a backup to {target}")
        os.fchmod(file.fileno(), 0o600)
        file.truncate()
        try:
            yield file
        finally:
            temporary.unlink(missing_ok=True)


def _is_named(file: IO[bytes], path: Path) -> bool:
    """True when the open file still has this name: the backup before this one may have renamed
    it."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.lstat(path))
    except FileNotFoundError:
        return False


def _write(source: Source, file: IO[bytes], bars: Bars) -> Manifest:
    with open_tar(file) as tar:
        packer = Packer(tar)
        about = source.store.head()
        label = Label(FORM.format, source.version, source.store.ledger_id(), about)
        packer.add(LABEL, msgspec.json.encode(label))
        # No message is being processed meanwhile: it is in the inbox, or in the ledger that is read
        # later.
        with source.data.still(TAKING):
            packer.add_tree(source.data, INBOX)
        # The checkpoints come before the ledger, too: whatever they sign is then in it.
        for name in SINGLE:
            packer.add_file(source.data, name)
        with source.store.snapshot() as frozen:
            head = frozen.head()
            with bars("entries", head) as progress:
                packer.add_entries(frozen, head, progress)
            packer.add_leases(_leases(frozen))
            _add_answers(packer, frozen)
        packer.add_trees(source.data, TREES, stays_behind)
        made_at = to_rfc3339(source.now)
        members, left_out = tuple(packer.members), tuple(packer.left_out)
        manifest = Manifest(FORM.format, label.ledger, head, made_at, members, left_out)
        packer.seal(manifest)
    file.flush()
    os.fsync(file.fileno())
    return manifest


def _leases(frozen: Frozen) -> Iterator[StoredLease]:
    after = 0
    while rows := frozen.held(after, _PAGE):
        yield from (StoredLease(row.name, row.lease) for row in rows if row.lease is not None)
        after = rows[-1].number


def _add_answers(packer: Packer, frozen: Frozen) -> None:
    first, after = 1, (0, "")
    while page := frozen.answers(after, _PAGE):
        packer.add_lines(
            ANSWERS,
            first,
            (
                StoredAnswer(one.stream, one.answer.key, one.answer.fingerprint, one.answer.answer)
                for one in page
            ),
        )
        first += len(page)
        after = page[-1].answer.scope, page[-1].answer.key


class Checked(Struct, frozen=True):
    """A backup that was checked."""

    manifest: Manifest
    settings: bytes
    """Settings file; empty when there was none."""


def check_backup(path: Path, progress: Progress) -> Checked:
    """Check a backup against its manifest, its hash chains and its signed checkpoints."""
    auditor = _Auditor()
    manifest = check_archive(path, progress, FORM, auditor)
    auditor.end(manifest.head)
    return Checked(manifest, auditor.kept.get(SETTINGS, b""))


class _Auditor(Inspector):
    """Compares the ledger with the checkpoints, which stand before it in the archive."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self._label: Label | None = None
        self._roots: Roots | None = None

    @property
    def label(self) -> Label:
        if self._label is None:
            raise BadArchive(f"{LABEL}: it is missing, or not the first member")
        return self._label

    def part(self, name: str, content: bytes) -> None:
        if name == LABEL:
            self._label = read_label(content)
        if name.startswith(FILES):
            self.kept[name.removeprefix(FILES)] = content

    def entries(self, name: str, stored: Sequence[StoredEntry]) -> None:
        _refuse(self._tree().append([bytes.fromhex(entry.hash) for entry in stored]), name)

    def end(self, head: int) -> None:
        _refuse(self._tree().end(head), ENTRIES)

    def _tree(self) -> Roots:
        if self._roots is None:
            signed, key = self.kept.get(CHECKPOINTS, b""), self.kept.get(PUBLIC_KEY, b"")
            checkpoints = read_checkpoints(FILES, signed, key)
            self._roots = Roots(self.label.ledger, checkpoints)
        return self._roots


def _refuse(findings: Iterator[Finding], where: str) -> None:
    for finding in findings:
        raise BadArchive(f"{where}: entry {finding.position}: {finding.problem}")


def read_label(content: bytes) -> Label:
    """Decode the label of a backup."""
    try:
        return msgspec.json.decode(content, type=Label)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadArchive(f"{LABEL}: it cannot be read: {error}") from None

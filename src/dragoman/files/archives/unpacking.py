"""Unpacking: members of an archive are compared with its manifest, entries with their chain."""

import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from dragoman.core.errors import LedgerError
from dragoman.core.states.lease import Lease
from dragoman.files.archives.archive_format import (
    ARCHIVE,
    ENTRIES,
    EXECUTE,
    FILES,
    LEASES,
    MANIFEST,
    MOST_AT_ONCE,
    NOT_TEXT,
    PIECE,
    Form,
    Manifest,
    Member,
    StoredEntry,
    StoredLease,
    is_kept_folder,
    member,
)
from dragoman.files.archives.transplant import check_chain
from dragoman.files.disk import Disk
from dragoman.files.problems import BadArchive
from dragoman.ledger.checkpoint import Checkpoint, read_lines

Progress = Callable[[int], None]

_manifests: Final = msgspec.json.Decoder(Manifest)
_entries: Final = msgspec.json.Decoder(StoredEntry)
_leases: Final = msgspec.json.Decoder(StoredLease)


_END_MARKS: Final = 2 * tarfile.BLOCKSIZE


class Inspector:
    """Observer of the members while an archive is checked; this one does nothing."""

    def part(self, name: str, content: bytes) -> None:
        """A member that was read as a whole."""

    def entries(self, name: str, stored: Sequence[StoredEntry]) -> None:
        """Entries of the ledger, in order, whose chain is intact."""


def check_archive(
    archive: Path,
    progress: Progress,
    form: Form = ARCHIVE,
    inspector: Inspector | None = None,
) -> Manifest:
    """Check all members of an archive; returns its manifest."""
    seen: dict[str, Member] = {}
    heads: dict[str, bytes] = {}
    position, end, manifest = 0, 0, None
    inspector = inspector or Inspector()
    for part in parts(archive, form):
        name = part.name
        if manifest is not None:
            raise BadArchive(f"{name}: it follows the manifest, which must be the last member")
        if name in seen:
            raise BadArchive(f"{name}: it occurs twice")
        if form.is_long(name):
            seen[name] = part.member()
            continue
        content = part.whole()
        if name == MANIFEST:
            manifest, end = _read_manifest(content, form), part.end
            continue
        if name.startswith(ENTRIES):
            stored = _check_entries(name, content, position, heads)
            inspector.entries(name, stored)
            position += len(stored)
            progress(len(stored))
        inspector.part(name, content)
        seen[name] = member(name, len(content), sha256(content).hexdigest())
    if manifest is None:
        raise BadArchive(f"{archive}: the archive ends before its manifest; it was cut off")
    _check_members(manifest, seen)
    _check_end(archive, end)
    if position != manifest.head:
        raise BadArchive(f"the ledger ends at {position}; the manifest says {manifest.head}")
    return manifest


def _check_members(manifest: Manifest, seen: dict[str, Member]) -> None:
    for part in manifest.members:
        there = seen.pop(part.path, None)
        if there is None:
            raise BadArchive(f"{part.name}: it is missing")
        if there != part:
            raise BadArchive(f"{part.name}: its content does not match the manifest")
    for part in seen.values():
        raise BadArchive(f"{part.name}: it is not in the manifest")


def _check_end(archive: Path, end: int) -> None:
    """Check that the last member is followed by zeros that fill the last record, and nothing
    else."""
    whole = -(-(end + _END_MARKS) // tarfile.RECORDSIZE) * tarfile.RECORDSIZE
    if archive.stat().st_size < whole:
        raise BadArchive("its last bytes are missing: it was cut off after the manifest")
    with archive.open("rb") as file:
        file.seek(end)
        if file.read(whole - end).strip(b"\0") or file.read(1):
            raise BadArchive("data was appended after its end")


def _check_entries(
    name: str, content: bytes, position: int, heads: dict[str, bytes]
) -> Sequence[StoredEntry]:
    try:
        stored = [_entries.decode(line) for line in content.splitlines()]
        wrong = check_chain(heads, ((entry.line.encode(), entry.hash) for entry in stored))
    except (msgspec.MsgspecError, UnicodeError, LedgerError) as error:
        raise BadArchive(f"{name}: an entry cannot be read: {error}") from None
    for index, entry in enumerate(stored):
        if entry.position != position + index + 1 or index == wrong:
            raise BadArchive(f"{name}: entry {position + index + 1} does not match its hash")
    return stored


class Part:
    """Member of the tar, read as a whole or in chunks."""

    def __init__(self, tar: tarfile.TarFile, info: tarfile.TarInfo) -> None:
        self.name = info.name
        self._tar = tar
        self._info = info
        self.is_folder = info.isdir()
        self.executable = 0 if self.is_folder else info.mode & EXECUTE

    @property
    def end(self) -> int:
        """Offset of the next member, or of the end marks."""
        blocks = -(-self._info.size // tarfile.BLOCKSIZE)
        return self._info.offset_data + blocks * tarfile.BLOCKSIZE

    def pieces(self) -> Iterator[bytes]:
        """The content in chunks; BadArchive when it ends too soon."""
        left = self._info.size
        try:
            with self._tar.extractfile(self._info) or io.BytesIO() as file:
                while left and (piece := file.read(min(PIECE, left))):
                    left -= len(piece)
                    yield piece
        except tarfile.ReadError:
            pass  # missing data is reported below
        if left:
            raise BadArchive(f"{self._tar.name}: the archive was cut off within {self.name}")

    def whole(self) -> bytes:
        """The content of a member that cannot be long."""
        if self._info.size > MOST_AT_ONCE:
            raise BadArchive(f"{self.name}: it is longer than {MOST_AT_ONCE} bytes")
        return b"".join(self.pieces())

    def member(self) -> Member:
        """Entry that the manifest should have for it."""
        digest = sha256()
        for piece in self.pieces():
            digest.update(piece)
        return member(
            self.name,
            self._info.size,
            digest.hexdigest(),
            executable=self.executable,
            is_folder=self.is_folder,
        )


def parts(archive: Path, form: Form = ARCHIVE) -> Iterator[Part]:
    """Read the members of the tar; only plain files and folders with names that the format
    allows."""
    try:
        with tarfile.open(archive, mode="r:", encoding="utf-8", errors=NOT_TEXT) as tar:
            for info in tar:
                _check_place(info, form)
                yield Part(tar, info)
    except (tarfile.TarError, EOFError, UnicodeError) as error:
        raise BadArchive(f"{archive}: this is not a whole archive: {error}") from None


def _check_place(info: tarfile.TarInfo, form: Form) -> None:
    names = info.name.split("/")
    is_plain = info.isfile() and not info.issparse()
    is_folder = info.isdir() and not info.size and is_kept_folder(info.name.removeprefix(FILES))
    if not (is_plain or is_folder) or any(
        part in ("", ".", "..") or "\0" in part for part in names
    ):
        raise BadArchive(f"{info.name!a}: an archive holds plain files with relative names only")
    if not form.has_place(info.name):
        raise BadArchive(f"{info.name!a}: an archive has no such part; dragoman did not write it")


def _read_manifest(content: bytes, form: Form) -> Manifest:
    try:
        manifest = _manifests.decode(content)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadArchive(f"{MANIFEST}: it cannot be read: {error}") from None
    if manifest.format != form.format:
        raise BadArchive(f"{MANIFEST}: {manifest.format!a} is not a format that is known here")
    return manifest


def lines_of(part: Part) -> list[bytes]:
    """Ledger lines of a member that holds entries."""
    return [_entries.decode(line).line.encode() for line in part.whole().splitlines()]


def copy_file(part: Part, disk: Disk) -> None:
    """Extract a file of any length, or an empty folder."""
    path, size = part.name.removeprefix(FILES), 0
    if part.is_folder:
        disk.make_folder(path)
        return
    folder = path.rpartition("/")[0]
    if folder:
        disk.make_folder(folder)
    for piece in part.pieces():
        if size:
            disk.append(path, size, piece)
        else:
            disk.write(path, piece)
        size += len(piece)
    if not size:
        disk.write(path, b"")
    disk.keep(path)
    if part.executable:
        _let_execute(disk, path, part.executable)


def _let_execute(disk: Disk, path: str, bits: int) -> None:
    """Restore execute bits, for those who may read the file; no other right is granted."""
    with disk.opened(path) as opened:
        if opened is not None:
            descriptor = opened[0].fileno()
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            os.fchmod(descriptor, mode | (bits & (mode >> 2)))
            os.fsync(descriptor)


def read_leases(content: bytes) -> dict[str, Lease]:
    """Decode leases; stream -> lease."""
    try:
        stored = [_leases.decode(line) for line in content.splitlines()]
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadArchive(f"{LEASES}: a lease cannot be read: {error}") from None
    return {lease.stream: lease.lease for lease in stored}


def read_checkpoints(where: str, content: bytes, public_key: bytes) -> list[Checkpoint]:
    """Checkpoints that were signed by that key; BadArchive when there are lines and none is valid.

    A line that was damaged before it was copied proves nothing, and invalidates no other line.
    """
    lines = content.splitlines()
    if not lines:
        return []
    try:
        public = load_pem_public_key(public_key)
        if not isinstance(public, Ed25519PublicKey):
            raise BadArchive(f"{where}ledger.pub: it is not an Ed25519 key")
    except (ValueError, UnsupportedAlgorithm):
        raise BadArchive(f"{where}ledger.pub: the public key cannot be read") from None
    holding, spoiled = read_lines(lines, public)
    if not holding:
        raise BadArchive(f"{where}checkpoints.jsonl, line {spoiled[0].line}: {spoiled[0].why}")
    return holding

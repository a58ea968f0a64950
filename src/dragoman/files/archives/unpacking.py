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
    CHUNK_BYTES,
    ENTRIES,
    EXECUTE_BITS,
    EXPORT_FORMAT,
    FILES,
    LEASES,
    MANIFEST,
    MAX_WHOLE_BYTES,
    NAME_ERRORS,
    ArchiveFormat,
    Manifest,
    ManifestMember,
    StoredEntry,
    StoredLease,
    is_kept_empty_folder,
    make_member,
)
from dragoman.files.archives.transplant import find_broken_link
from dragoman.files.disk import Disk
from dragoman.files.problems import BadArchive
from dragoman.ledger.checkpoint import Checkpoint, read_checkpoint_lines

Progress = Callable[[int], None]

_manifest_decoder: Final = msgspec.json.Decoder(Manifest)
_entry_decoder: Final = msgspec.json.Decoder(StoredEntry)
_lease_decoder: Final = msgspec.json.Decoder(StoredLease)


_END_MARK_BYTES: Final = 2 * tarfile.BLOCKSIZE


class ArchiveObserver:
    """Observer of the members while an archive is checked; this one does nothing."""

    def on_member(self, name: str, content: bytes) -> None:
        """A member that was read as a whole."""

    def on_entries(self, name: str, stored: Sequence[StoredEntry]) -> None:
        """Entries of the ledger, in order, whose chain is intact."""


def check_archive(
    archive: Path,
    progress: Progress,
    archive_format: ArchiveFormat = EXPORT_FORMAT,
    observer: ArchiveObserver | None = None,
) -> Manifest:
    """Check all members of an archive; returns its manifest."""
    seen: dict[str, ManifestMember] = {}
    heads: dict[str, bytes] = {}
    position, end, manifest = 0, 0, None
    observer = observer or ArchiveObserver()
    for part in read_members(archive, archive_format):
        name = part.name
        if manifest is not None:
            raise BadArchive(f"{name}: it follows the manifest, which must be the last member")
        if name in seen:
            raise BadArchive(f"{name}: it occurs twice")
        if archive_format.is_streamed(name):
            seen[name] = part.describe()
            continue
        content = part.read_all()
        if name == MANIFEST:
            manifest, end = _read_manifest(content, archive_format), part.end
            continue
        if name.startswith(ENTRIES):
            stored = _check_entries(name, content, position, heads)
            observer.on_entries(name, stored)
            position += len(stored)
            progress(len(stored))
        observer.on_member(name, content)
        seen[name] = make_member(name, len(content), sha256(content).hexdigest())
    if manifest is None:
        raise BadArchive(f"{archive}: the archive ends before its manifest; it was cut off")
    _check_members(manifest, seen)
    _check_end(archive, end)
    if position != manifest.head:
        raise BadArchive(f"the ledger ends at {position}; the manifest says {manifest.head}")
    return manifest


def _check_members(manifest: Manifest, seen: dict[str, ManifestMember]) -> None:
    for part in manifest.members:
        actual = seen.pop(part.path, None)
        if actual is None:
            raise BadArchive(f"{part.name}: it is missing")
        if actual != part:
            raise BadArchive(f"{part.name}: its content does not match the manifest")
    for part in seen.values():
        raise BadArchive(f"{part.name}: it is not in the manifest")


def _check_end(archive: Path, end: int) -> None:
    """Check that the last member is followed by zeros that fill the last record, and nothing
    else."""
    padded_size = -(-(end + _END_MARK_BYTES) // tarfile.RECORDSIZE) * tarfile.RECORDSIZE
    if archive.stat().st_size < padded_size:
        raise BadArchive("its last bytes are missing: it was cut off after the manifest")
    with archive.open("rb") as file:
        file.seek(end)
        if file.read(padded_size - end).strip(b"\0") or file.read(1):
            raise BadArchive("data was appended after its end")


def _check_entries(
    name: str, content: bytes, position: int, heads: dict[str, bytes]
) -> Sequence[StoredEntry]:
    try:
        stored = [_entry_decoder.decode(line) for line in content.splitlines()]
        wrong = find_broken_link(heads, ((entry.line.encode(), entry.hash) for entry in stored))
    except (msgspec.MsgspecError, UnicodeError, LedgerError) as error:
        raise BadArchive(f"{name}: an entry cannot be read: {error}") from None
    for index, entry in enumerate(stored):
        if entry.position != position + index + 1 or index == wrong:
            raise BadArchive(f"{name}: entry {position + index + 1} does not match its hash")
    return stored


class ArchiveMember:
    """Member of the tar, read as a whole or in chunks."""

    def __init__(self, tar: tarfile.TarFile, info: tarfile.TarInfo) -> None:
        self.name = info.name
        self._tar = tar
        self._info = info
        self.is_folder = info.isdir()
        self.executable = 0 if self.is_folder else info.mode & EXECUTE_BITS

    @property
    def end(self) -> int:
        """Offset of the next member, or of the end marks."""
        blocks = -(-self._info.size // tarfile.BLOCKSIZE)
        return self._info.offset_data + blocks * tarfile.BLOCKSIZE

    def chunks(self) -> Iterator[bytes]:
        """The content in chunks; BadArchive when it ends too soon."""
        remaining = self._info.size
        try:
            with self._tar.extractfile(self._info) or io.BytesIO() as file:
                while remaining and (chunk := file.read(min(CHUNK_BYTES, remaining))):
                    remaining -= len(chunk)
                    yield chunk
        except tarfile.ReadError:
            pass  # missing data is reported below
        if remaining:
            raise BadArchive(f"{self._tar.name}: the archive was cut off within {self.name}")

    def read_all(self) -> bytes:
        """The content of a member that cannot be long."""
        if self._info.size > MAX_WHOLE_BYTES:
            raise BadArchive(f"{self.name}: it is longer than {MAX_WHOLE_BYTES} bytes")
        return b"".join(self.chunks())

    def describe(self) -> ManifestMember:
        """Entry that the manifest should have for it."""
        digest = sha256()
        for chunk in self.chunks():
            digest.update(chunk)
        return make_member(
            self.name,
            self._info.size,
            digest.hexdigest(),
            executable=self.executable,
            is_folder=self.is_folder,
        )


def read_members(
    archive: Path, archive_format: ArchiveFormat = EXPORT_FORMAT
) -> Iterator[ArchiveMember]:
    """Read the members of the tar; only plain files and folders with names that the format
    allows."""
    try:
        with tarfile.open(archive, mode="r:", encoding="utf-8", errors=NAME_ERRORS) as tar:
            for info in tar:
                _check_name(info, archive_format)
                yield ArchiveMember(tar, info)
    except (tarfile.TarError, EOFError, UnicodeError) as error:
        raise BadArchive(f"{archive}: this is not a whole archive: {error}") from None


def _check_name(info: tarfile.TarInfo, archive_format: ArchiveFormat) -> None:
    names = info.name.split("/")
    is_plain = info.isfile() and not info.issparse()
    is_folder = (
        info.isdir() and not info.size and is_kept_empty_folder(info.name.removeprefix(FILES))
    )
    if not (is_plain or is_folder) or any(
        part in ("", ".", "..") or "\0" in part for part in names
    ):
        raise BadArchive(f"{info.name!a}: an archive holds plain files with relative names only")
    if not archive_format.allows(info.name):
        raise BadArchive(f"{info.name!a}: an archive has no such part; dragoman did not write it")


def _read_manifest(content: bytes, archive_format: ArchiveFormat) -> Manifest:
    try:
        manifest = _manifest_decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadArchive(f"{MANIFEST}: it cannot be read: {error}") from None
    if manifest.format != archive_format.format:
        raise BadArchive(f"{MANIFEST}: {manifest.format!a} is not a format that is known here")
    return manifest


def entry_lines(part: ArchiveMember) -> list[bytes]:
    """Ledger lines of a member that holds entries."""
    return [_entry_decoder.decode(line).line.encode() for line in part.read_all().splitlines()]


def extract_file(part: ArchiveMember, disk: Disk) -> None:
    """Extract a file of any length, or an empty folder."""
    path, size = part.name.removeprefix(FILES), 0
    if part.is_folder:
        disk.make_folder(path)
        return
    folder = path.rpartition("/")[0]
    if folder:
        disk.make_folder(folder)
    for chunk in part.chunks():
        if size:
            disk.append(path, size, chunk)
        else:
            disk.write(path, chunk)
        size += len(chunk)
    if not size:
        disk.write(path, b"")
    disk.sync_later(path)
    if part.executable:
        _restore_execute_bits(disk, path, part.executable)


def _restore_execute_bits(disk: Disk, path: str, bits: int) -> None:
    """Restore execute bits, for those who may read the file; no other right is granted."""
    with disk.open(path) as opened:
        if opened is not None:
            descriptor = opened[0].fileno()
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            os.fchmod(descriptor, mode | (bits & (mode >> 2)))
            os.fsync(descriptor)


def read_leases(content: bytes) -> dict[str, Lease]:
    """Decode leases; stream -> lease."""
    try:
        stored = [_lease_decoder.decode(line) for line in content.splitlines()]
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
    valid, invalid = read_checkpoint_lines(lines, public)
    if not valid:
        raise BadArchive(f"{where}checkpoints.jsonl, line {invalid[0].line}: {invalid[0].reason}")
    return valid

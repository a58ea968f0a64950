"""Archive reader and writer: members are checked by the manifest, entries by their hash chain."""

import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from dragoman.core.attempt_state import Lease
from dragoman.core.errors import LedgerError
from dragoman.engine.ports import Store, StoreSnapshot
from dragoman.files.archives.archive_format import (
    BYTES_PER_MEMBER,
    CHUNK_BYTES,
    ENTRIES,
    ENTRIES_PER_MEMBER,
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
    is_not_exported,
    make_member,
)
from dragoman.files.archives.ledger_loader import find_broken_link
from dragoman.files.disk import Disk, FileInfo
from dragoman.files.errors import BadArchive
from dragoman.files.layout import FOLDERS_LOCK, TASKS
from dragoman.ledger.checkpoint import Checkpoint, read_checkpoint_lines

# --- writing ----------------------------------------------------------------------------------

_encode_json: Final = msgspec.json.Encoder().encode


def open_tar(file: IO[bytes]) -> tarfile.TarFile:
    """Open a tar for writing, whose names come back as they were."""
    return tarfile.open(
        fileobj=file, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8", errors=NAME_ERRORS
    )


class ArchiveWriter:
    """Adds members to a tar and lists them for the manifest."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self.members: list[ManifestMember] = []
        self.omitted: list[str] = []

    def add_bytes(self, name: str, content: bytes) -> None:
        """Add a member from memory."""
        part = make_member(name, len(content), sha256(content).hexdigest())
        self._add_member(part, io.BytesIO(content))

    def add_trees(
        self,
        data: Disk,
        folders: Iterable[str],
        is_excluded: Callable[[str], bool] = is_not_exported,
    ) -> None:
        """Add folders of the data directory."""
        for folder in folders:
            if folder == TASKS:
                self._add_tasks(data, is_excluded)
            else:
                self.add_tree(data, folder, is_excluded)

    def _add_tasks(self, data: Disk, is_excluded: Callable[[str], bool]) -> None:
        """Add each task's own folder once, under a lock held per task: none moves while it is
        copied."""
        self._omit_if_irregular(data, TASKS)
        packed = set[str]()
        while unpacked := _unpacked_paths(data, packed, is_excluded):
            for path in unpacked:
                with data.lock_to_read(FOLDERS_LOCK):
                    info = data.stat(path)
                    if info is not None:  # otherwise it has moved, and the next round finds it
                        packed.add(path)
                        self._add_path(data, path, info, is_excluded)

    def add_tree(
        self, data: Disk, folder: str, is_excluded: Callable[[str], bool] = is_not_exported
    ) -> None:
        """Add a folder with everything in it that is not excluded."""
        found = data.list(folder)
        for info in found:
            self._add_path(data, f"{folder}/{info.name}", info, is_excluded)
        if not found:
            self._omit_if_irregular(data, folder)
            self._add_empty_folder(data, folder)

    def _add_path(
        self, data: Disk, path: str, info: FileInfo, is_excluded: Callable[[str], bool]
    ) -> None:
        if is_excluded(path):
            return
        if info.kind == "folder":
            self.add_tree(data, path, is_excluded)
        elif info.kind != "file":
            self._omit(path)
        else:
            self.add_file(data, path)

    def add_file(self, data: Disk, path: str) -> None:
        """Add a file as it is read, even if somebody goes on writing to it; skipped when it is
        gone."""
        with data.open(path) as opened, SpooledTemporaryFile[bytes](CHUNK_BYTES) as copy:
            if opened is None:
                self._omit_if_irregular(data, path)
                return
            digest = sha256()
            while chunk := opened[0].read(CHUNK_BYTES):
                copy.write(chunk)
                digest.update(chunk)
            size, mode = copy.tell(), os.fstat(opened[0].fileno()).st_mode
            copy.seek(0)
            part = make_member(
                FILES + path, size, digest.hexdigest(), executable=mode & EXECUTE_BITS
            )
            self._add_member(part, copy)

    def _add_empty_folder(self, data: Disk, path: str) -> None:
        """Add an empty folder, if it would not be created anew."""
        info = data.stat(path)
        if info is not None and info.kind == "folder" and is_kept_empty_folder(path):
            part = make_member(FILES + path, 0, sha256().hexdigest(), is_folder=True)
            self._add_member(part, io.BytesIO())

    def _omit_if_irregular(self, data: Disk, path: str) -> None:
        """List a path as omitted if it, or a parent, is no plain file or folder; a missing one is
        not listed."""
        parts = path.split("/")
        for end in range(1, len(parts) + 1):
            info = data.stat("/".join(parts[:end]))
            if info is not None and info.kind not in ("file", "folder"):
                self._omit("/".join(parts[:end]))
                return

    def _omit(self, path: str) -> None:
        name = ascii(path)[1:-1]
        if name not in self.omitted:
            self.omitted.append(name)

    def add_entries(
        self, store: Store | StoreSnapshot, head: int, progress: Callable[[int], None]
    ) -> None:
        """Add the ledger up to a position; LedgerError when its hash chain is broken."""
        heads: dict[str, bytes] = {}
        after = 0
        while page := store.entries(after, ENTRIES_PER_MEMBER, until=head):
            wrong = find_broken_link(heads, ((entry.line, entry.hash.hex()) for entry in page))
            expected = range(after + 1, after + len(page) + 1)
            gaps = (at for at, entry in zip(expected, page, strict=True) if entry.position != at)
            bad = min((*islice(gaps, 1), *(() if wrong is None else (expected[wrong],))), default=0)
            if bad:
                raise LedgerError(
                    f"the ledger is damaged near position {bad}: nothing was written; run "
                    "`dragoman verify`"
                )
            stored = (StoredEntry(e.position, e.hash.hex(), e.line.decode()) for e in page)
            self.add_lines(ENTRIES, after + 1, stored)
            after = page[-1].position
            progress(len(page))
        if after != head:
            raise LedgerError(f"entry {after + 1} is missing: run `dragoman verify`")

    def add_leases(self, leases: Iterable[StoredLease]) -> None:
        """Add the leases of tasks in progress."""
        self.add_bytes(LEASES, b"".join(_encode_json(lease) + b"\n" for lease in leases))

    def add_lines(self, folder: str, first: int, stored: Iterable[Any]) -> None:
        """Add lines, numbered from `first`, as members of limited size."""
        for start, lines in _split_lines([_encode_json(one) + b"\n" for one in stored]):
            self.add_bytes(f"{folder}{first + start:012d}.jsonl", b"".join(lines))

    def write_manifest(self, manifest: Manifest) -> None:
        """Write the manifest; nothing comes after it."""
        self.add_bytes(MANIFEST, msgspec.json.format(_encode_json(manifest), indent=1))

    def _add_member(self, part: ManifestMember, content: IO[bytes]) -> None:
        info = tarfile.TarInfo(part.path)
        info.size = part.size
        info.mode = 0o700 if part.is_folder else 0o600 | part.executable
        info.type = tarfile.DIRTYPE if part.is_folder else tarfile.REGTYPE
        self._tar.addfile(info, content)
        self.members.append(part)


def _unpacked_paths(data: Disk, packed: set[str], is_excluded: Callable[[str], bool]) -> list[str]:
    """Paths in `tasks/` and its folders that were not packed yet, neither there nor before they
    moved."""
    with data.lock_to_read(FOLDERS_LOCK):
        present = [
            path
            for status in data.list(TASKS)
            for path in _children(data, f"{TASKS}/{status.name}", status)
            if not is_excluded(path)
        ]
    moved = {path.rpartition("/")[2] for path in packed.difference(present)}
    return [path for path in present if path not in packed and path.rpartition("/")[2] not in moved]


def _children(data: Disk, path: str, info: FileInfo) -> list[str]:
    if info.kind != "folder":
        return [path]
    return [f"{path}/{inner.name}" for inner in data.list(path)]


def _split_lines(lines: Sequence[bytes]) -> Iterator[tuple[int, Sequence[bytes]]]:
    """Split lines into members of limited size; each with the index of its first line."""
    start, size = 0, 0
    for index, line in enumerate(lines):
        if index > start and size + len(line) > BYTES_PER_MEMBER:
            yield start, lines[start:index]
            start, size = index, 0
        size += len(line)
    if lines:
        yield start, lines[start:]


# --- reading ----------------------------------------------------------------------------------

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
    if position != manifest.entries:
        raise BadArchive(f"the ledger ends at {position}; the manifest says {manifest.entries}")
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

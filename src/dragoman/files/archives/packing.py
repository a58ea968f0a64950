"""Packing: members of an archive, one after the other, and an account of each."""

import io
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final

import msgspec

from dragoman.core.errors import LedgerError
from dragoman.engine.ports import Store, StoreSnapshot
from dragoman.files.archives.archive_format import (
    BYTES_PER_MEMBER,
    CHUNK_BYTES,
    ENTRIES,
    ENTRIES_PER_MEMBER,
    EXECUTE_BITS,
    FILES,
    LEASES,
    MANIFEST,
    NAME_ERRORS,
    Manifest,
    ManifestMember,
    StoredEntry,
    StoredLease,
    is_kept_empty_folder,
    is_not_exported,
    make_member,
)
from dragoman.files.archives.transplant import find_broken_link
from dragoman.files.disk import Disk, FileInfo
from dragoman.files.layout import FOLDERS_LOCK, TASKS

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

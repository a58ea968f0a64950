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
from dragoman.engine.ports import Frozen, Store
from dragoman.files.archives.archive_format import (
    BYTES_IN_ONE_MEMBER,
    ENTRIES,
    EXECUTE,
    FILES,
    IN_ONE_MEMBER,
    LEASES,
    MANIFEST,
    NOT_TEXT,
    PIECE,
    Manifest,
    Member,
    StoredEntry,
    StoredLease,
    is_kept_folder,
    member,
    stays_behind,
)
from dragoman.files.archives.transplant import check_chain
from dragoman.files.disk import Disk, Look
from dragoman.files.layout import MOVING, TASKS

_encode: Final = msgspec.json.Encoder().encode


def open_tar(file: IO[bytes]) -> tarfile.TarFile:
    """Open a tar for writing, whose names come back as they were."""
    return tarfile.open(
        fileobj=file, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8", errors=NOT_TEXT
    )


class Packer:
    """Adds members to a tar and lists them for the manifest."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self.members: list[Member] = []
        self.left_out: list[str] = []

    def add(self, name: str, content: bytes) -> None:
        """Add a member from memory."""
        part = member(name, len(content), sha256(content).hexdigest())
        self._add_member(part, io.BytesIO(content))

    def add_trees(
        self, data: Disk, folders: Iterable[str], stays: Callable[[str], bool] = stays_behind
    ) -> None:
        """Add folders of the data directory."""
        for folder in folders:
            if folder == TASKS:
                self._add_tasks(data, stays)
            else:
                self.add_tree(data, folder, stays)

    def _add_tasks(self, data: Disk, stays: Callable[[str], bool]) -> None:
        """Add each task's own folder once, under a lock held per task: none moves while it is
        copied."""
        self._leave_out(data, TASKS)
        packed = set[str]()
        while left := _left(data, packed, stays):
            for path in left:
                with data.still(MOVING):
                    look = data.look(path)
                    if look is not None:  # otherwise it has moved, and the next round finds it
                        packed.add(path)
                        self._add(data, path, look, stays)

    def add_tree(
        self, data: Disk, folder: str, stays: Callable[[str], bool] = stays_behind
    ) -> None:
        """Add a folder with everything in it that is not excluded."""
        found = data.list(folder)
        for look in found:
            self._add(data, f"{folder}/{look.name}", look, stays)
        if not found:
            self._leave_out(data, folder)
            self._add_folder(data, folder)

    def _add(self, data: Disk, path: str, look: Look, stays: Callable[[str], bool]) -> None:
        if stays(path):
            return
        if look.kind == "folder":
            self.add_tree(data, path, stays)
        elif look.kind != "file":
            self._name_left_out(path)
        else:
            self.add_file(data, path)

    def add_file(self, data: Disk, path: str) -> None:
        """Add a file as it is read, even if somebody goes on writing to it; skipped when it is
        gone."""
        with data.opened(path) as opened, SpooledTemporaryFile[bytes](PIECE) as copy:
            if opened is None:
                self._leave_out(data, path)
                return
            digest = sha256()
            while piece := opened[0].read(PIECE):
                copy.write(piece)
                digest.update(piece)
            size, mode = copy.tell(), os.fstat(opened[0].fileno()).st_mode
            copy.seek(0)
            part = member(FILES + path, size, digest.hexdigest(), executable=mode & EXECUTE)
            self._add_member(part, copy)

    def _add_folder(self, data: Disk, path: str) -> None:
        """Add an empty folder, if it would not be created anew."""
        look = data.look(path)
        if look is not None and look.kind == "folder" and is_kept_folder(path):
            part = member(FILES + path, 0, sha256().hexdigest(), is_folder=True)
            self._add_member(part, io.BytesIO())

    def _leave_out(self, data: Disk, path: str) -> None:
        """List a path as omitted if it, or a parent, is no plain file or folder; a missing one is
        not listed."""
        parts = path.split("/")
        for end in range(1, len(parts) + 1):
            look = data.look("/".join(parts[:end]))
            if look is not None and look.kind not in ("file", "folder"):
                self._name_left_out("/".join(parts[:end]))
                return

    def _name_left_out(self, path: str) -> None:
        name = ascii(path)[1:-1]
        if name not in self.left_out:
            self.left_out.append(name)

    def add_entries(
        self, store: Store | Frozen, head: int, progress: Callable[[int], None]
    ) -> None:
        """Add the ledger up to a position; LedgerError when its hash chain is broken."""
        heads: dict[str, bytes] = {}
        after = 0
        while page := store.entries(after, IN_ONE_MEMBER, until=head):
            wrong = check_chain(heads, ((entry.line, entry.hash.hex()) for entry in page))
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
        self.add(LEASES, b"".join(_encode(lease) + b"\n" for lease in leases))

    def add_lines(self, folder: str, first: int, stored: Iterable[Any]) -> None:
        """Add lines, numbered from `first`, as members of limited size."""
        for start, lines in _parts([_encode(one) + b"\n" for one in stored]):
            self.add(f"{folder}{first + start:012d}.jsonl", b"".join(lines))

    def seal(self, manifest: Manifest) -> None:
        """Write the manifest; nothing comes after it."""
        self.add(MANIFEST, msgspec.json.format(_encode(manifest), indent=1))

    def _add_member(self, part: Member, content: IO[bytes]) -> None:
        info = tarfile.TarInfo(part.path)
        info.size = part.size
        info.mode = 0o700 if part.is_folder else 0o600 | part.executable
        info.type = tarfile.DIRTYPE if part.is_folder else tarfile.REGTYPE
        self._tar.addfile(info, content)
        self.members.append(part)


def _left(data: Disk, packed: set[str], stays: Callable[[str], bool]) -> list[str]:
    """Paths in `tasks/` and its folders that were not packed yet, neither there nor before they
    moved."""
    with data.still(MOVING):
        present = [
            path
            for status in data.list(TASKS)
            for path in _within(data, f"{TASKS}/{status.name}", status)
            if not stays(path)
        ]
    moved = {path.rpartition("/")[2] for path in packed.difference(present)}
    return [path for path in present if path not in packed and path.rpartition("/")[2] not in moved]


def _within(data: Disk, path: str, look: Look) -> list[str]:
    if look.kind != "folder":
        return [path]
    return [f"{path}/{inner.name}" for inner in data.list(path)]


def _parts(lines: Sequence[bytes]) -> Iterator[tuple[int, Sequence[bytes]]]:
    """Split lines into members of limited size; each with the index of its first line."""
    start, size = 0, 0
    for index, line in enumerate(lines):
        if index > start and size + len(line) > BYTES_IN_ONE_MEMBER:
            yield start, lines[start:index]
            start, size = index, 0
        size += len(line)
    if lines:
        yield start, lines[start:]

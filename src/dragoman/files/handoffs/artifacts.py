"""Artifacts of handoffs: looked at where they lie, and kept under the hash of their content.

A file is opened once and without following a link; what is hashed is what is copied, byte for byte.
So what was verified is what is used, whoever swaps or changes the file afterwards (S-ACP-8).
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from hashlib import sha256
from io import FileIO
from itertools import cycle
from pathlib import Path
from typing import Final, Protocol, TypeVar

from dragoman.engine.artifacts import Expected, Kept, NotKept
from dragoman.files.disk import Disk, Kind, Look
from dragoman.files.layout import (
    ARTIFACTS,
    COPIES,
    artifact_path,
    artifact_root,
    incoming_artifact,
)
from dragoman.files.putting import have_folder
from dragoman.text.safe_path import why_unsafe

_T = TypeVar("_T")

MOST_BYTES: Final = 1 << 30
_BLOCK: Final = 1 << 20
_PIECES: Final = 2
_MOST_SETTLED: Final = 10_000
_STALE_MS: Final = 3_600_000
"""A copy that was not written to for so long is abandoned."""
_MILLION: Final = 1_000_000
_NO_FILE: Final[Mapping[Kind, str]] = {
    "folder": "it is a folder, and only files are taken",
    "link": "it is a link, and no link is followed: put the file itself there",
    "other": "it is a pipe, a socket or a device, and only files are taken",
}
"""Kind of file -> reason why it is no artifact."""


class ArtifactDisk(Disk, Protocol):
    """Disk that reads and writes large files in chunks."""

    def created(self, path: str) -> AbstractContextManager[FileIO]:
        """Create a file; durable when the context ends."""
        ...

    def touch(self, path: str) -> bool:
        """Set the modification time of a regular file to now; False when there is none."""
        ...

    def close(self) -> None:
        """Release open files and folders."""
        ...


class ArtifactShelf:
    """Keeps verified copies of artifacts in `artifacts/sha256` of the data directory."""

    def __init__(
        self,
        data: Path,
        open_disk: Callable[[Path], ArtifactDisk],
        new_id: Callable[[], str],
        roots: Sequence[Path] = (),
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """`roots`: folders that may hold artifacts besides `teamspaces/ID/artifacts`."""
        self._data = data.absolute()
        self._open_disk = open_disk
        self._new_id = new_id
        self._roots = tuple(root.absolute() for root in roots)
        self._most_bytes = most_bytes
        self._settled: set[str] = set()
        """Copies whose names this process has made durable."""

    def size(self, teamspace: str, path: str) -> int | NotKept:
        """Size of a file beneath the roots of a teamspace, without reading it."""
        return self._with_file(teamspace, path, lambda _, size: size)

    def look(self, teamspace: str, path: str, expected: Expected) -> NotKept | None:
        """Verify a file without copying it; None when it is as expected."""

        def read(file: FileIO, size: int) -> Kept | NotKept:
            return _sized(size, expected) or _judged(*_read_through(file, size), size, expected)

        found = self._with_file(teamspace, path, read)
        return found if isinstance(found, NotKept) else None

    def take(self, teamspace: str, path: str, expected: Expected) -> Kept | NotKept:
        """Verify a file beneath the roots of a teamspace, and keep a copy of it."""

        def keep(file: FileIO, size: int) -> Kept | NotKept:
            return _sized(size, expected) or self._keep(file, size, expected)

        return self._with_file(teamspace, path, keep)

    def sweep(self, now: int) -> int:
        """Remove incomplete copies that a crash has left; returns their number."""
        with ExitStack() as stack:
            disk = self._disk(self._data, stack)
            folder = incoming_artifact("x").rpartition("/")[0]
            stale = [
                one.name
                for one in disk.list(folder)
                if one.kind == "file" and one.mtime_ns // _MILLION < now - _STALE_MS
            ]
            for name in stale:
                disk.remove(incoming_artifact(name))
        return len(stale)

    def _with_file(
        self, teamspace: str, path: str, use: Callable[[FileIO, int], _T]
    ) -> _T | NotKept:
        """Open an artifact and use it; NotKept when it cannot be used."""
        absent = NotKept(
            "missing", f"there is no file {path[:200]!a} beneath the roots of artifacts"
        )
        if why_unsafe(path.removeprefix("/")):
            return absent
        try:
            for folder, below in self._places(teamspace, path):
                with ExitStack() as stack:
                    disk = self._disk(folder, stack)
                    opened = stack.enter_context(disk.opened(below))
                    if opened is not None:
                        file, seen = opened
                        return self._why_not(seen) or use(file, seen.size)
                    there = disk.look(below)
                    if there is not None and there.kind in _NO_FILE:
                        absent = NotKept("missing", f"{path[:200]!a}: {_NO_FILE[there.kind]}")
        except OSError as error:
            detail = f"it cannot be read or copied to {self._data / ARTIFACTS} at the moment: "
            return NotKept("passing", detail + (error.strerror or str(error)))
        return absent

    def _why_not(self, seen: Look) -> NotKept | None:
        """Check that a file may be read; None when it may."""
        if seen.links > 1:
            # The creator of a link need not be able to read the file: the hub is.
            detail = f"it has {seen.links} names (hard links): put a copy of it there"
            return NotKept("missing", detail)
        if seen.size > self._most_bytes:
            detail = f"it has {seen.size} bytes, and at most {self._most_bytes} are taken"
            return NotKept("too_large", detail)
        return None

    def check(self, sha256: str) -> NotKept | None:
        """Verify a kept copy; None when it is intact."""
        try:
            with ExitStack() as stack:
                disk = self._disk(self._data, stack)
                opened = stack.enter_context(disk.opened(artifact_path(sha256)))
                if opened is None:
                    return NotKept("missing", f"the verified copy {sha256} is not here")
                actual, _ = _read_through(opened[0], opened[1].size)
        except OSError as error:
            return NotKept("passing", f"its copy cannot be read: {error.strerror or error}")
        if actual == sha256:
            return None
        return NotKept("different", f"the verified copy {sha256} was changed")

    def _places(self, teamspace: str, path: str) -> Iterator[tuple[Path, str]]:
        """Folders that may hold an artifact, each with the path below it.

        The default root is writable by agents: the way to it is walked without following links,
        too.
        """
        usual = artifact_root(teamspace)
        for folder, prefix in ((self._data, f"{usual}/"), *((root, "") for root in self._roots)):
            below = _below(folder, prefix, path)
            if below:
                yield folder, prefix + below

    def _keep(self, file: FileIO, size: int, expected: Expected) -> Kept | NotKept:
        with ExitStack() as stack:
            disk = self._disk(self._data, stack)
            if size > _BLOCK:
                return self._keep_large(disk, file, size, expected)
            data = bytearray(size + 1)
            length = _fill(file, memoryview(data))
            content = bytes(data[:length])
            found = _judged(sha256(content).hexdigest(), length, size, expected)
            if isinstance(found, Kept):
                kept = artifact_path(found.sha256)
                if disk.read(kept, size) != content or not _is_renewed(disk, kept):
                    with self._incoming(disk, kept) as copy:
                        _write_all(copy, memoryview(content))
                self._settle(disk, found.sha256)
            return found

    def _keep_large(
        self, disk: ArtifactDisk, file: FileIO, size: int, expected: Expected
    ) -> Kept | NotKept:
        """Verify and copy a file that does not fit into memory: it is hashed while it is copied."""
        stated = expected.sha256
        is_there = bool(stated) and _is_kept(disk, file, size, stated)
        if is_there and _is_renewed(disk, artifact_path(stated)):
            found: Kept | NotKept = Kept(stated, size)
        else:
            file.seek(0)
            incoming = self._stage(disk)
            try:
                with disk.created(incoming) as copy:
                    found = _judged(*_copy_through(file, size, copy), size, expected)
                if isinstance(found, Kept):
                    self._name(disk, incoming, artifact_path(found.sha256))
            finally:
                disk.remove(incoming)
        if isinstance(found, Kept):
            self._settle(disk, found.sha256)
        return found

    @contextmanager
    def _incoming(self, disk: ArtifactDisk, kept: str) -> Generator[FileIO]:
        """Write a new copy, which gets its name when it is complete."""
        incoming = self._stage(disk)
        try:
            with disk.created(incoming) as copy:
                yield copy
            self._name(disk, incoming, kept)
        finally:
            disk.remove(incoming)

    def _stage(self, disk: ArtifactDisk) -> str:
        incoming = incoming_artifact(self._new_id())
        have_folder(disk, incoming.rpartition("/")[0])
        return incoming

    def _name(self, disk: ArtifactDisk, incoming: str, kept: str) -> None:
        have_folder(disk, kept.rpartition("/")[0])
        disk.replace(incoming, kept)

    def _settle(self, disk: ArtifactDisk, sha256: str) -> None:
        """Make the name of a copy durable: a handoff may refer to it then."""
        if sha256 in self._settled:
            return
        disk.keep(artifact_path(sha256))
        disk.settle()
        if len(self._settled) >= _MOST_SETTLED:
            self._settled.clear()
        self._settled.add(sha256)

    def _disk(self, folder: Path, stack: ExitStack) -> ArtifactDisk:
        """Open a disk per call: several threads may verify at once."""
        disk = self._open_disk(folder)
        stack.callback(disk.close)
        return disk


def _below(folder: Path, prefix: str, path: str) -> str:
    """Path below a root, without redundant parts; empty when it is not below it."""
    if path.startswith("/"):
        root = folder / prefix
        for form in dict.fromkeys((f"{root}/", f"{root.resolve()}/")):
            if path.startswith(form):
                path = path[len(form) :]
                break
        else:
            return ""
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def _is_kept(disk: ArtifactDisk, file: FileIO, size: int, stated: str) -> bool:
    """True when a file has the stated SHA-256, and its copy equals it byte for byte."""
    with disk.opened(artifact_path(stated)) as opened:
        if opened is None or opened[1].size != size:
            return False
        copy, digest, left = opened[0], sha256(), size + 1
        ours, theirs = bytearray(_BLOCK), bytearray(_BLOCK)
        while left and (count := _fill(file, memoryview(ours)[:left])):
            if count < len(ours):
                ours, theirs = ours[:count], theirs[:count]
            # Comparing bytes is much faster than comparing views, and nearly always a whole block.
            if _fill(copy, memoryview(theirs)) < count or ours != theirs:
                return False
            digest.update(ours)
            left -= count
        return left == 1 and digest.hexdigest() == stated


def _is_renewed(disk: ArtifactDisk, kept: str) -> bool:
    """Mark an existing copy as used now, so that the cleanup keeps it; False when it is gone."""
    with disk.hold(COPIES):
        return disk.touch(kept)


def _read_through(file: FileIO, size: int) -> tuple[str, int]:
    """SHA-256 and length of a file.

    Reads at most one byte more than the size it was found to have, even if somebody goes on writing
    to it.
    """
    digest, length = sha256(), 0
    view = memoryview(bytearray(min(_BLOCK, size + 1)))
    while count := file.readinto(view[: size + 1 - length]):
        digest.update(view[:count])
        length += count
    return digest.hexdigest(), length


def _copy_through(file: FileIO, size: int, copy: FileIO) -> tuple[str, int]:
    """Copy a file; one thread writes each block while another one hashes it.

    There are two buffers, so that neither thread waits for the other one's slowest block.
    """
    digest, length = sha256(), 0
    views = [memoryview(bytearray(min(_BLOCK, size + 1))) for _ in range(_PIECES)]
    written = deque[Future[None]]()
    with ThreadPoolExecutor(1) as writer:
        for view in cycle(views):
            if len(written) == _PIECES:
                written.popleft().result()
            count = file.readinto(view[: size + 1 - length])
            if not count:
                break
            written.append(writer.submit(_write_all, copy, view[:count]))
            digest.update(view[:count])
            length += count
        for one in written:
            one.result()
    return digest.hexdigest(), length


def _fill(file: FileIO, view: memoryview) -> int:
    """Read until the buffer is full or the file ends; returns the length."""
    length = 0
    while length < len(view) and (count := file.readinto(view[length:])):
        length += count
    return length


def _write_all(file: FileIO, data: memoryview) -> None:
    while data:
        data = data[file.write(data) :]


def _sized(size: int, expected: Expected) -> NotKept | None:
    if expected.size in (None, size):
        return None
    return NotKept("different", f"it has {size} bytes, and not {expected.size} as stated")


def _judged(actual: str, length: int, size: int, expected: Expected) -> Kept | NotKept:
    if length != size:
        return NotKept("passing", "it changed while it was read: try again when it is complete")
    if expected.sha256 not in ("", actual):
        return NotKept("different", f"it has the SHA-256 {actual}, and not {expected.sha256}")
    return Kept(actual, size)

"""Artifact store: files of handoffs are verified, and copied under their SHA-256.

A file is opened once and without following a link; what is hashed is what is copied, byte for
byte. So what was verified is what is used, even if the file is swapped or changed afterwards
(S-ACP-8).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import Final, TypeVar

from dragoman.engine.ports import ArtifactMismatch, ExpectedArtifact, StoredArtifact
from dragoman.files.atomic_write import ensure_folder
from dragoman.files.layout import (
    ARTIFACTS,
    artifact_path,
    artifacts_folder_path,
    incoming_artifact_path,
)
from dragoman.system.safe_fs import FileKind, FileStat, SafeDisk
from dragoman.text.repository_paths import check_path

# --- store ------------------------------------------------------------------------------------

_T = TypeVar("_T")

MAX_ARTIFACT_BYTES: Final = 1 << 30

_BLOCK_BYTES: Final = 1 << 20

_STALE_MS: Final = 3_600_000
"""A copy that was not written to for so long is abandoned."""

_NS_PER_MS: Final = 1_000_000

_NOT_A_FILE: Final[Mapping[FileKind, str]] = {
    "folder": "it is a folder, and only files are taken",
    "link": "it is a link, and no link is followed: put the file itself there",
    "other": "it is a pipe, a socket or a device, and only files are taken",
}
"""Kind of file -> reason why it is no artifact."""


class FileArtifactStore:
    """Keeps verified copies of artifacts in `artifacts/sha256` of the data directory."""

    def __init__(
        self,
        data: Path,
        open_disk: Callable[[Path], SafeDisk],
        new_id: Callable[[], str],
        roots: Sequence[Path] = (),
        max_bytes: int = MAX_ARTIFACT_BYTES,
    ) -> None:
        """`roots`: folders that may hold artifacts besides `teamspaces/ID/artifacts`."""
        self._data = data.absolute()
        self._open_disk = open_disk
        self._new_id = new_id
        self._roots = tuple(root.absolute() for root in roots)
        self._max_bytes = max_bytes

    def file_size(self, teamspace: str, path: str) -> int | ArtifactMismatch:
        return self._with_file(teamspace, path, lambda _, size: size)

    def store_file(
        self, teamspace: str, path: str, expected: ExpectedArtifact
    ) -> StoredArtifact | ArtifactMismatch:
        """Verify a file beneath the roots of a teamspace, and keep a copy of it."""

        def keep(file: FileIO, size: int) -> StoredArtifact | ArtifactMismatch:
            return _check_size(size, expected) or self._store(file, size, expected)

        return self._with_file(teamspace, path, keep)

    def remove_stale_incoming(self, now: int) -> int:
        """Remove incomplete copies that a crash has left; returns their number."""
        with ExitStack() as stack:
            disk = self._open_disk_in(self._data, stack)
            folder = incoming_artifact_path("x").rpartition("/")[0]
            stale = [
                one.name
                for one in disk.list(folder)
                if one.kind == "file" and one.mtime_ns // _NS_PER_MS < now - _STALE_MS
            ]
            for name in stale:
                disk.remove(incoming_artifact_path(name))
        return len(stale)

    def _with_file(
        self, teamspace: str, path: str, use: Callable[[FileIO, int], _T]
    ) -> _T | ArtifactMismatch:
        """Open an artifact and use it; NotKept when it cannot be used."""
        missing = ArtifactMismatch(
            "missing", f"there is no file {path[:200]!a} beneath the roots of artifacts"
        )
        if check_path(path.removeprefix("/")):
            return missing
        try:
            for folder, below in self._candidate_paths(teamspace, path):
                with ExitStack() as stack:
                    disk = self._open_disk_in(folder, stack)
                    opened = stack.enter_context(disk.open(below))
                    if opened is not None:
                        file, info = opened
                        return self._check_readable(info) or use(file, info.size)
                    found = disk.stat(below)
                    if found is not None and found.kind in _NOT_A_FILE:
                        missing = ArtifactMismatch(
                            "missing", f"{path[:200]!a}: {_NOT_A_FILE[found.kind]}"
                        )
        except OSError as error:
            detail = f"it cannot be read or copied to {self._data / ARTIFACTS} at the moment: "
            return ArtifactMismatch("passing", detail + (error.strerror or str(error)))
        return missing

    def _check_readable(self, info: FileStat) -> ArtifactMismatch | None:
        """Check that a file may be read; None when it may."""
        if info.links > 1:
            # The creator of a link need not be able to read the file: the hub is.
            detail = f"it has {info.links} names (hard links): put a copy of it there"
            return ArtifactMismatch("missing", detail)
        if info.size > self._max_bytes:
            detail = f"it has {info.size} bytes, and at most {self._max_bytes} are taken"
            return ArtifactMismatch("too_large", detail)
        return None

    def verify_copy(self, sha256: str) -> ArtifactMismatch | None:
        """Verify a kept copy; None when it is intact."""
        try:
            with ExitStack() as stack:
                disk = self._open_disk_in(self._data, stack)
                opened = stack.enter_context(disk.open(artifact_path(sha256)))
                if opened is None:
                    return ArtifactMismatch("missing", f"the verified copy {sha256} is not here")
                actual, _ = _hash_file(opened[0], opened[1].size)
        except OSError as error:
            return ArtifactMismatch(
                "passing", f"its copy cannot be read: {error.strerror or error}"
            )
        if actual == sha256:
            return None
        return ArtifactMismatch("different", f"the verified copy {sha256} was changed")

    def _candidate_paths(self, teamspace: str, path: str) -> Iterator[tuple[Path, str]]:
        """Folders that may hold an artifact, each with the path below it.

        The default root is writable by agents: the way to it is walked without following links,
        too.
        """
        default = artifacts_folder_path(teamspace)
        for folder, prefix in ((self._data, f"{default}/"), *((root, "") for root in self._roots)):
            below = _relative_to_root(folder, prefix, path)
            if below:
                yield folder, prefix + below

    def _store(
        self, file: FileIO, size: int, expected: ExpectedArtifact
    ) -> StoredArtifact | ArtifactMismatch:
        """Verify and copy a file: it is hashed while it is copied.

        A copy that is there is replaced by this one, so that a damaged one is mended.
        """
        with ExitStack() as stack:
            disk = self._open_disk_in(self._data, stack)
            incoming = incoming_artifact_path(self._new_id())
            ensure_folder(disk, incoming.rpartition("/")[0])
            try:
                with disk.create(incoming) as copy:
                    found = _check_content(*_hash_file(file, size, copy), size, expected)
                if isinstance(found, StoredArtifact):
                    copy_path = artifact_path(found.sha256)
                    ensure_folder(disk, copy_path.rpartition("/")[0])
                    disk.replace(incoming, copy_path)
                    disk.sync()
            finally:
                disk.remove(incoming)
            return found

    def _open_disk_in(self, folder: Path, stack: ExitStack) -> SafeDisk:
        """Open a disk per call: several threads may verify at once."""
        disk = self._open_disk(folder)
        stack.callback(disk.close)
        return disk


def _relative_to_root(folder: Path, prefix: str, path: str) -> str:
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


def _hash_file(file: FileIO, size: int, copy: FileIO | None = None) -> tuple[str, int]:
    """SHA-256 and length of a file, which is copied on the way.

    Reads at most one byte more than the size it was found to have, even if somebody goes on writing
    to it.
    """
    digest, length = sha256(), 0
    view = memoryview(bytearray(min(_BLOCK_BYTES, size + 1)))
    while count := file.readinto(view[: size + 1 - length]):
        block = view[:count]
        digest.update(block)
        while copy is not None and block:
            block = block[copy.write(block) :]
        length += count
    return digest.hexdigest(), length


def _check_size(size: int, expected: ExpectedArtifact) -> ArtifactMismatch | None:
    if expected.size in (None, size):
        return None
    return ArtifactMismatch("different", f"it has {size} bytes, and not {expected.size} as stated")


def _check_content(
    actual: str, length: int, size: int, expected: ExpectedArtifact
) -> StoredArtifact | ArtifactMismatch:
    if length != size:
        return ArtifactMismatch(
            "passing", "it changed while it was read: try again when it is complete"
        )
    if expected.sha256 not in ("", actual):
        return ArtifactMismatch(
            "different", f"it has the SHA-256 {actual}, and not {expected.sha256}"
        )
    return StoredArtifact(actual, size)

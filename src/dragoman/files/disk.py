"""Disk port: the file operations that the projection needs, beneath one root.

Every path is relative, of plain parts separated by `/`; no link on the way is followed. An
operation raises OSError when the disk cannot do it.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from io import FileIO
from typing import Literal, Protocol

FileKind = Literal["file", "folder", "link", "other"]


class FileInfo(Protocol):
    """Metadata of a path, without having been opened."""

    @property
    def name(self) -> str:
        """Last part of the path."""
        ...

    @property
    def kind(self) -> FileKind:
        """Kind of file; a link is never followed."""
        ...

    @property
    def size(self) -> int:
        """Size in bytes."""
        ...

    @property
    def mtime_ns(self) -> int:
        """Modification time."""
        ...

    @property
    def links(self) -> int:
        """Number of hard links."""
        ...


class Tail(Protocol):
    """End of a file of lines."""

    @property
    def end(self) -> int:
        """Offset of the end of the last whole line; a torn line may follow."""
        ...

    @property
    def line(self) -> bytes:
        """The last whole line, without its newline."""
        ...


class Disk(Protocol):
    """File operations. A content is durable before `replace` gives it its name, a name after
    `sync`."""

    def stat(self, path: str) -> FileInfo | None:
        """Metadata of a path; None when there is nothing."""
        ...

    def list(self, folder: str) -> Sequence[FileInfo]:
        """Entries of a folder by name; empty when there is no such folder."""
        ...

    def read(self, path: str, max_bytes: int) -> bytes | None:
        """Content of a regular file; None when there is none, or when it is longer than
        `max_bytes`."""
        ...

    def read_at(self, path: str, start: int, max_bytes: int) -> bytes:
        """At most `max_bytes` of a regular file from an offset; empty when there is no such
        file."""
        ...

    def open(self, path: str) -> AbstractContextManager[tuple[FileIO, FileInfo] | None]:
        """Open a regular file for reading, with its metadata; None when there is none."""
        ...

    def tail(self, path: str) -> Tail:
        """Find the last whole line of a file."""
        ...

    def write(self, path: str, data: bytes, mtime_ns: int | None = None) -> None:
        """Create a file, replacing one of that name; its content is durable before the next
        `replace`."""
        ...

    def append(self, path: str, offset: int, data: bytes, mtime_ns: int | None = None) -> None:
        """Append to a file after its first `offset` bytes; what followed them is cut off."""
        ...

    def replace(self, old: str, new: str) -> None:
        """Rename a file, replacing one of the new name."""
        ...

    def replace_if_unchanged(self, old: str, new: str, expected: FileInfo | None) -> bool:
        """Rename a file to a name that is free, or under which there still is what was `expected`.

        False, with nothing changed, when somebody else was faster.
        """
        ...

    def move(self, old: str, new: str) -> bool:
        """Rename a file or folder; False when the new name is taken (by more than an empty
        folder)."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file or a link; nothing happens when there is none."""
        ...

    def remove_if_unchanged(self, path: str, temporary: str, expected: FileInfo) -> bool:
        """Remove a file that still is as `expected`; it is checked once more under a temporary
        name.

        False, and the file stays, when somebody else was faster: what they wrote is not lost.
        """
        ...

    def remove_folder(self, path: str) -> bool:
        """Remove a folder; False when it is not empty."""
        ...

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents; nothing happens when it exists."""
        ...

    def make_folders(self, path: str, names: Iterable[str]) -> None:
        """Create folders within one that exists, unless they exist."""
        ...

    def sync_later(self, path: str) -> None:
        """Make a name durable at the next `sync`, although it was not changed."""
        ...

    def sync(self) -> None:
        """Make every name durable that was changed since the last time."""
        ...

    def lock(self, path: str) -> AbstractContextManager[None]:
        """Hold an exclusive lock, waiting for it."""
        ...

    def lock_nested(self, path: str) -> AbstractContextManager[None]:
        """Hold a lock for a moment within a longer operation."""
        ...

    def lock_to_read(self, path: str) -> AbstractContextManager[None]:
        """Like `lock`, for readers: it needs no lock file where none can be created, and raises
        StoreUnavailable at its end if a writer has begun meanwhile."""
        ...

"""What the files face needs of a disk: small operations beneath one root, handed in.

Every path is relative, of plain parts separated by `/`; no link on the way is followed. An
operation raises OSError when the disk cannot do it.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from io import FileIO
from typing import Literal, Protocol

Kind = Literal["file", "folder", "link", "other"]


class Look(Protocol):
    """What stands under a name, without having been opened."""

    @property
    def name(self) -> str:
        """The last part of its path."""
        ...

    @property
    def kind(self) -> Kind:
        """What it is; a link is never followed."""
        ...

    @property
    def size(self) -> int:
        """How many bytes."""
        ...

    @property
    def mtime_ns(self) -> int:
        """When it was last written."""
        ...

    @property
    def links(self) -> int:
        """Under how many names the file is known."""
        ...


class Tail(Protocol):
    """How a file of lines ends."""

    @property
    def end(self) -> int:
        """Where its last whole line ends; what follows was torn off."""
        ...

    @property
    def line(self) -> bytes:
        """The last whole line, without its newline."""
        ...


class Disk(Protocol):
    """The operations. A content is durable before `replace` gives it its name, a name after
    `settle`."""

    def look(self, path: str) -> Look | None:
        """What stands there."""
        ...

    def list(self, folder: str) -> Sequence[Look]:
        """What stands in a folder, by name; nothing when there is no such folder."""
        ...

    def read(self, path: str, most: int) -> bytes | None:
        """A regular file's content; None when there is none, or when it is longer than `most`."""
        ...

    def piece(self, path: str, start: int, most: int) -> bytes:
        """At most so many bytes of a regular file; none where there is no such file."""
        ...

    def opened(self, path: str) -> AbstractContextManager[tuple[FileIO, Look] | None]:
        """A regular file, open for reading, and what it is; None when there is none."""
        ...

    def tail(self, path: str) -> Tail:
        """How a file of lines ends."""
        ...

    def write(self, path: str, data: bytes, mtime_ns: int | None = None) -> None:
        """A new file in the place of whatever had that name; its content is durable in time."""
        ...

    def append(self, path: str, keep: int, data: bytes, mtime_ns: int | None = None) -> None:
        """Add to a file after its first `keep` bytes; what followed them is gone."""
        ...

    def replace(self, old: str, new: str) -> None:
        """Rename a file over whatever has the new name."""
        ...

    def swap(self, old: str, new: str, seen: Look | None) -> bool:
        """Rename a file to a name under which nothing else stands than was seen there.

        False, and everything is as it was, when something else does: somebody was faster.
        """
        ...

    def move(self, old: str, new: str) -> bool:
        """Rename a file or folder; False when the new name is taken (an empty folder is not)."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file or a link; nothing happens when there is none."""
        ...

    def discard(self, path: str, aside: str, seen: Look) -> bool:
        """Remove a file that still is what was seen; it is looked at once more under a free name.

        False, and it stays, when it is not: somebody was faster, and what he wrote is not lost.
        """
        ...

    def remove_folder(self, path: str) -> bool:
        """Remove a folder; False when it is not empty."""
        ...

    def make_folder(self, path: str) -> None:
        """A folder, and those above it; nothing happens when it is there."""
        ...

    def make_folders(self, path: str, names: Iterable[str]) -> None:
        """Folders within one that exists, if they are not there."""
        ...

    def keep(self, path: str) -> None:
        """A name is as it should be: make it durable with the others."""
        ...

    def settle(self) -> None:
        """Make every name durable that was changed or kept since the last time."""
        ...

    def lock(self, path: str) -> AbstractContextManager[None]:
        """Wait until nobody else has this lock, and hold it."""
        ...

    def hold(self, path: str) -> AbstractContextManager[None]:
        """The same for a moment within a longer piece of work."""
        ...

    def still(self, path: str) -> AbstractContextManager[None]:
        """As `lock`, for whoever only reads: it needs no file where none can be made, and raises
        StoreUnavailable at its end if somebody else has begun meanwhile."""
        ...

"""Safe files: durable, whole or not there, and beneath a root without following links.

A file is on the disk before a call returns that says so. A pipe or a device in place of a file is
refused instead of blocking the hub. Agents write beneath the data directory too: a link that one
of them puts there leads `SafeDisk` nowhere, because each folder on the way is opened on its own,
relative to the one before it, and must be a folder.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from glob import escape
from io import FileIO
from pathlib import Path
from shlex import quote
from typing import IO, Final, Literal

from msgspec import Struct

from dragoman.core.errors import DragomanError

# --- regular files ----------------------------------------------------------------------------


class NotRegularFile(OSError):
    """There is no regular file at this path."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(errno.EINVAL, "it is not a regular file", str(path))


def file_remedy(error: OSError) -> str:
    """Advice for the person who looks after the directory."""
    if isinstance(error, NotRegularFile | IsADirectoryError):
        return "move it out of the way, and put the file back that was there, if there was one"
    return "check its permissions and the disk"


def open_regular(path: Path, flags: int, mode: int = 0o640) -> int:
    """Open a regular file; OSError when it is none, or cannot be opened."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise NotRegularFile(path)


def read_regular(path: Path, *, follow_links: bool = True) -> bytes:
    """Content of a regular file."""
    flags = os.O_RDONLY if follow_links else os.O_RDONLY | os.O_NOFOLLOW
    with os.fdopen(open_regular(path, flags), "rb") as file:
        return file.read()


# --- atomic writes and lines ------------------------------------------------------------------

_NEWLINE: Final = b"\n"

_BLOCK: Final = 65_536


def write_atomically(path: Path, data: bytes, *, mode: int = 0o640) -> None:
    """Replace a file by this content; a reader or a crash sees the old or the new, never a mix."""
    with open_temporary(path, mode) as (temporary, file):
        _write_durably(file, data)
        temporary.replace(path)
    sync_folder(path.parent)


def create_atomically(path: Path, data: bytes, *, mode: int = 0o640) -> bool:
    """Create a file with this content; False when somebody else was faster."""
    with open_temporary(path, mode) as (temporary, file):
        _write_durably(file, data)
        # A rename would replace what another process has just made; a link refuses.
        try:
            os.link(temporary, path, follow_symlinks=False)
        except FileExistsError:
            created = False
        else:
            created = True
    # The slower one syncs too: it goes on with a file that the faster may not have synced yet.
    sync_folder(path.parent)
    return created


def append_line(path: Path, line: bytes, *, follow_links: bool = True) -> None:
    """Append a line under a lock; a torn line that a crash has left is cut off first.

    `follow_links`: the path may be a link.
    """
    if _NEWLINE in line:
        raise ValueError("A line cannot hold a newline: write it as several lines.")
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    descriptor = open_regular(path, flags if follow_links else flags | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _cut_torn_line(descriptor)
        write_all(descriptor, line + _NEWLINE)
        os.fsync(descriptor)
    sync_folder(path.parent)


@contextmanager
def _open_lines(path: Path) -> Generator[IO[bytes] | None]:
    """Open a file of lines; None when it is missing.

    Without the lock a reader could see a torn line and then what was written over it.
    """
    try:
        descriptor = open_regular(path, os.O_RDONLY)
    except FileNotFoundError:
        yield None
        return
    with os.fdopen(descriptor, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield file


def read_lines(path: Path) -> list[bytes]:
    """All whole lines without their newlines; a torn last line is skipped, a missing file is
    empty."""
    with _open_lines(path) as file:
        return [] if file is None else file.read().split(_NEWLINE)[:-1]


def read_lines_reversed(path: Path) -> Generator[bytes]:
    """All whole lines without their newlines, last first, read lazily."""
    with _open_lines(path) as file:
        end = 0 if file is None else end_of_last_line(file.fileno())
        while file is not None and end > 0:
            start = end_of_last_line(file.fileno(), end - 1)
            yield os.pread(file.fileno(), end - 1 - start, start)
            end = start


class LinesExtent(Struct, frozen=True):
    """Extent of the whole lines of a file: the first and the last one, and where that ends."""

    first: bytes
    last: bytes
    size: int


def find_lines(path: Path, until: int | None = None) -> LinesExtent | None:
    """Find the first and the last whole line, of the file or of so many bytes; None when there is
    no line."""
    with _open_lines(path) as file:
        end = 0 if file is None else end_of_last_line(file.fileno(), until)
        if file is None or not end:
            return None
        start = end_of_last_line(file.fileno(), end - 1)
        last = os.pread(file.fileno(), end - 1 - start, start)
        return LinesExtent(file.readline().removesuffix(_NEWLINE), last, end)


def count_lines(path: Path, start: int, end: int) -> int:
    """Number of lines that end between two offsets."""
    count = 0
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        file.seek(start)
        while start < end and (block := file.read(min(_BLOCK, end - start))):
            count += block.count(_NEWLINE)
            start += len(block)
    return count


def sync_folder(folder: Path) -> None:
    """Sync a folder, to make names in it durable: a file's own sync does not cover its name."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def open_temporary(path: Path, mode: int = 0o640) -> Generator[tuple[Path, IO[bytes]]]:
    """Open a new file beside `path`, locked, and removed at the end unless it was renamed."""
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, mode), "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield temporary, file
        finally:
            temporary.unlink(missing_ok=True)


def remove_temporaries(path: Path) -> None:
    """Remove the temporary files beside `path` that killed processes have left."""
    for leftover in path.parent.glob(f".{escape(path.name)}.*.tmp"):
        with suppress(OSError), leftover.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            leftover.unlink()


def _write_durably(file: IO[bytes], data: bytes) -> None:
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, however few the system takes at a time."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def _cut_torn_line(descriptor: int) -> None:
    whole_lines_end = end_of_last_line(descriptor)
    if whole_lines_end < os.fstat(descriptor).st_size:
        os.ftruncate(descriptor, whole_lines_end)
        os.fsync(descriptor)


def end_of_last_line(descriptor: int, until: int | None = None) -> int:
    """Offset at which the last whole line of a file, or of so many bytes, ends; 0 when there is
    none."""
    size = os.fstat(descriptor).st_size
    end = size if until is None else min(size, until)
    while end > 0:
        start = max(0, end - _BLOCK)
        newline = os.pread(descriptor, end - start, start).rfind(_NEWLINE)
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


# --- files that hold a secret ------------------------------------------------------------------

OWNER_ONLY: Final = 0o600
_MAX_KEY_BYTES: Final = 65_536


class BadKey(DragomanError):
    """A key file that cannot be used; the detail says why and what to do."""

    code = "bad_key"


def read_private_file(path: Path, remedy: str) -> bytes:
    """Read the file; BadKey when others can access it, or (with the remedy) when it is not
    regular."""
    # Non-blocking, so that a pipe in place of the file cannot hang the hub.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise BadKey(f"The file {path} is not a regular file. {remedy}")
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise BadKey(
                f"The file {path} can be used by others on this machine (its mode is "
                f"{stat.S_IMODE(mode):03o}). Make it yours alone with: chmod 600 {quote(str(path))}"
            )
        return os.read(descriptor, _MAX_KEY_BYTES)
    finally:
        os.close(descriptor)


# --- renameat2 --------------------------------------------------------------------------------

_RENAME_NOREPLACE: Final = 1

_RENAME_EXCHANGE: Final = 2

_UNSUPPORTED: Final = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)

_RenameCall = Callable[[int, bytes, int, bytes, int], int]


def try_rename(old: str, new: str, source: int, target: int, flags: int) -> bool:
    """Rename within open folders: FileExistsError when the new name is taken (_RENAME_NOREPLACE),
    or exchange two names that exist (_RENAME_EXCHANGE).

    False: this system cannot do it in one step, and nothing was done.
    """
    call = _renameat2()
    if call is None:
        return False
    error_number = call(source, os.fsencode(old), target, os.fsencode(new), flags)
    if error_number in _UNSUPPORTED:
        return False
    if error_number:
        raise OSError(error_number, os.strerror(error_number), old, None, new)
    return True


@cache
def _renameat2() -> _RenameCall | None:
    """The system call, which returns an error number (0 for success); None without it."""
    import ctypes  # noqa: PLC0415  seldom needed

    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        return None
    renameat2 = library.renameat2
    renameat2.argtypes = (
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint,
    )

    def call(source: int, old: bytes, target: int, new: bytes, how: int) -> int:
        return ctypes.get_errno() if renameat2(source, old, target, new, how) else 0

    return call


# --- fsync ------------------------------------------------------------------------------------

_MAX_SEQUENTIAL: Final = 2

_THREADS: Final = 8


def fsync_all(descriptors: Sequence[int]) -> None:
    """Sync all files; many are synced in parallel."""
    if len(descriptors) <= _MAX_SEQUENTIAL:
        for descriptor in descriptors:
            os.fsync(descriptor)
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  most commands sync few files

    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(os.fsync, descriptors))


# --- operations in an open folder -------------------------------------------------------------

FileKind = Literal["file", "folder", "link", "other"]

FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileStat(Struct, frozen=True):
    """Metadata of a name, without following a link."""

    name: str
    kind: FileKind
    size: int
    mtime_ns: int
    links: int
    inode: int
    """Identifies the file, whatever its name."""


class Tail(Struct, frozen=True):
    """End of the last whole line of a file, and that line."""

    end: int = 0
    line: bytes = b""


def open_folder(name: str, folder: int, parts: tuple[str, ...]) -> int:
    """Open a folder by name; `parts` is its whole path, for the error."""
    try:
        return os.open(name, FOLDER_FLAGS, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise NotADirectoryError(
                errno.ENOTDIR, "it is a link or a file where a folder must be", "/".join(parts)
            ) from None
        raise


def create_file(name: str, folder: int, mode: int = 0o640) -> int:
    """Create a file, replacing one of that name."""
    try:
        return os.open(name, _CREATE_FLAGS, mode, dir_fd=folder)
    except FileExistsError:
        os.unlink(name, dir_fd=folder)
        return os.open(name, _CREATE_FLAGS, mode, dir_fd=folder)


def rename_noreplace(old: str, new: str, source: int, target: int) -> None:
    """Rename unless the new name is taken; processes that have the file open keep writing to it."""
    if try_rename(old, new, source, target, _RENAME_NOREPLACE):
        return
    if stat_or_none(new, target) is not None:
        raise FileExistsError(errno.EEXIST, "the name is taken", new)
    os.rename(old, new, src_dir_fd=source, dst_dir_fd=target)


def replace_if_unchanged(old: str, new: str, source: int, target: int, expected: object) -> bool:
    """Replace a file, if it still is as expected."""
    current = stat_or_none(new, target)
    if current is None or to_file_stat(new, current) != expected:
        return False
    if not try_rename(old, new, source, target, _RENAME_EXCHANGE):
        os.replace(old, new, src_dir_fd=source, dst_dir_fd=target)
        return True
    # The displaced file is checked once more under its new name, where nobody writes: no edit is
    # lost.
    displaced = stat_or_none(old, source)
    if displaced is not None and to_file_stat(new, displaced) != expected:
        try_rename(old, new, source, target, _RENAME_EXCHANGE)
        return False
    os.unlink(old, dir_fd=source)
    return True


def remove_if_unchanged(name: str, temporary: str, folder: int, expected: object) -> bool:
    """Remove a file, if it still is as expected."""
    rename_noreplace(name, temporary, folder, folder)
    # Checked under a temporary name: whatever is saved from here on is another file.
    moved = stat_or_none(temporary, folder)
    if moved is None or to_file_stat(name, moved) != expected:
        rename_noreplace(temporary, name, folder, folder)
        return False
    os.unlink(temporary, dir_fd=folder)
    return True


def stat_or_none(name: str, folder: int) -> os.stat_result | None:
    """Stat a name without following a link; None when there is nothing."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def stat_entries(entries: Iterator[os.DirEntry[str]]) -> Iterator[FileStat]:
    """Metadata of folder entries, except those that vanish meanwhile."""
    for entry in entries:
        try:
            yield to_file_stat(entry.name, entry.stat(follow_symlinks=False))
        except FileNotFoundError:
            continue


_KINDS: Final[dict[int, FileKind]] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
}


def to_file_stat(name: str, found: os.stat_result) -> FileStat:
    """Convert a stat result."""
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "other")
    return FileStat(name, kind, found.st_size, found.st_mtime_ns, found.st_nlink, found.st_ino)


def read_up_to(descriptor: int, max_bytes: int) -> bytes:
    """Read the next bytes, at most `max_bytes`."""
    blocks, remaining = list[bytes](), max_bytes
    while remaining and (block := os.read(descriptor, min(remaining, 1 << 20))):
        blocks.append(block)
        remaining -= len(block)
    return b"".join(blocks)


# --- paths ------------------------------------------------------------------------------------

_UNSAFE_PARTS: Final = frozenset({"", ".", ".."})

_CACHED_DEPTH: Final = 2
"""Folders at most this deep below the root stay open for a while: they are never moved."""

_MAX_CACHED: Final = 32
"""Limit of cached folders; the least recently used is closed first."""


class FolderWalker:
    """Opens folders beneath a root that exists, one path component at a time."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._cached: dict[tuple[str, ...], int] = {}

    def stat(self, parents: tuple[str, ...], name: str) -> os.stat_result:
        """Stat a name in a folder, without following a link."""
        if len(parents) <= _CACHED_DEPTH:
            return os.stat(name, dir_fd=self._open_cached(parents), follow_symlinks=False)
        with self.folder(parents) as folder:
            return os.stat(name, dir_fd=folder, follow_symlinks=False)

    @contextmanager
    def parent(self, path: str) -> Generator[tuple[int, str]]:
        """Open the parent folder of a path; yields it and the last part of the path."""
        parts = split_path(path)
        with self.folder(parts[:-1]) as folder:
            yield folder, parts[-1]

    @contextmanager
    def folder(self, parts: tuple[str, ...]) -> Generator[int]:
        """Open a folder."""
        cached_depth = min(len(parts), _CACHED_DEPTH)
        start = self._open_cached(parts[:cached_depth])
        current = start
        try:
            for depth, part in enumerate(parts[cached_depth:], cached_depth):
                inner = open_folder(part, current, parts[: depth + 1])
                if current != start:
                    os.close(current)
                current = inner
            yield current
        finally:
            if current != start:
                os.close(current)

    def _open_cached(self, parts: tuple[str, ...]) -> int:
        """Open a folder near the root, and cache it until `close` or until many others were
        used."""
        descriptor = self._cached.pop(parts, None)
        if descriptor is None:
            if parts:
                descriptor = open_folder(parts[-1], self._open_cached(parts[:-1]), parts)
            else:
                descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            if len(self._cached) >= _MAX_CACHED:
                os.close(self._cached.pop(next(iter(self._cached))))
        self._cached[parts] = descriptor
        return descriptor

    def close(self) -> None:
        """Close cached folders."""
        while self._cached:
            os.close(self._cached.popitem()[1])


def split_path(path: str) -> tuple[str, ...]:
    """Split a path into parts; ValueError when one of them could lead out of the root."""
    if not path:
        return ()
    parts = tuple(path.split("/"))
    if not _UNSAFE_PARTS.isdisjoint(parts) or "\0" in path:
        raise ValueError(f"{path!a} is not a path beneath the root.")
    return parts


# --- files ------------------------------------------------------------------------------------

_FILE_FLAGS: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_NAME_TAKEN: Final = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR)

_MAX_UNSYNCED: Final = 128

_NOT_FOUND: Final = (FileNotFoundError, NotADirectoryError)
"""A path behind a symlink counts as missing, too."""


class SafeDisk:
    """Implementation of the disk port, beneath a folder that exists."""

    def __init__(self, root: Path) -> None:
        self._walk = FolderWalker(root)
        self._unsynced_folders: dict[tuple[str, ...], None] = {}
        self._unsynced_files: list[int] = []

    def stat(self, path: str) -> FileStat | None:
        """Kind, size and times of a path, without following a link; None when there is nothing."""
        *parents, name = split_path(path)
        try:
            found = self._walk.stat(tuple(parents), name)
        except _NOT_FOUND:
            return None
        return to_file_stat(name, found)

    def list(self, folder: str) -> list[FileStat]:
        """Entries of a folder, sorted by name."""
        try:
            with (
                self._walk.folder(split_path(folder)) as descriptor,
                os.scandir(descriptor) as entries,
            ):
                return sorted(stat_entries(entries), key=lambda seen: seen.name)
        except _NOT_FOUND:
            return []

    def read(self, path: str, max_bytes: int) -> bytes | None:
        """Content of a regular file; None when there is none, or when it is longer than
        `max_bytes`."""
        with self._open_regular(path, os.O_RDONLY) as descriptor:
            if descriptor is None:
                return None
            data = read_up_to(descriptor, max_bytes + 1)
            return data if len(data) <= max_bytes else None

    def read_at(self, path: str, start: int, max_bytes: int) -> bytes:
        """At most `max_bytes` of a regular file from an offset; empty when there is no such
        file."""
        with self._open_regular(path, os.O_RDONLY) as descriptor:
            if descriptor is None:
                return b""
            os.lseek(descriptor, start, os.SEEK_SET)
            return read_up_to(descriptor, max_bytes)

    @contextmanager
    def open(self, path: str) -> Generator[tuple[FileIO, FileStat] | None]:
        """Open a regular file for reading, with its FileStat; None when there is none."""
        with self._open_regular(path, os.O_RDONLY) as descriptor:
            if descriptor is None:
                yield None
                return
            with FileIO(descriptor, "rb", closefd=False) as file:
                yield file, to_file_stat(split_path(path)[-1], os.fstat(descriptor))

    @contextmanager
    def create(self, path: str, mode: int = OWNER_ONLY) -> Generator[FileIO]:
        """Create a file, replacing one of that name; durable when the context ends.

        By default only its owner can read it: the original may not have been readable by everybody.
        """
        with self._walk.parent(path) as (folder, name):
            descriptor = create_file(name, folder, mode)
        with FileIO(descriptor, "wb") as file:
            yield file
            os.fsync(descriptor)
        self.sync_later(path)

    def tail(self, path: str) -> Tail:
        """Find the last whole line of a file of lines."""
        with self._open_regular(path, os.O_RDONLY) as descriptor:
            if descriptor is None:
                return Tail()
            end = end_of_last_line(descriptor)
            start = end_of_last_line(descriptor, end - 1) if end else 0
            return Tail(end, os.pread(descriptor, max(end - 1 - start, 0), start))

    def write(self, path: str, data: bytes, mtime_ns: int | None = None) -> None:
        """Create a file, replacing one of that name; its content is durable before the next
        `replace`."""
        with self._walk.parent(path) as (folder, name):
            descriptor = create_file(name, folder)
        # Many files are synced together, which takes a disk little longer than one.
        self._unsynced_files.append(descriptor)
        write_all(descriptor, data)
        if mtime_ns is not None:
            os.utime(descriptor, ns=(mtime_ns, mtime_ns))
        if len(self._unsynced_files) >= _MAX_UNSYNCED:
            self._sync_contents()

    def append(self, path: str, offset: int, data: bytes, mtime_ns: int | None = None) -> None:
        """Append to a file after its first `offset` bytes, durably."""
        with self._walk.parent(path) as (folder, name):
            flags = _FILE_FLAGS | os.O_WRONLY | os.O_CREAT
            descriptor = os.open(name, flags, 0o640, dir_fd=folder)
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise NotRegularFile(path)
                os.ftruncate(descriptor, offset)
                os.lseek(descriptor, offset, os.SEEK_SET)
                write_all(descriptor, data)
                if mtime_ns is not None:
                    os.utime(descriptor, ns=(mtime_ns, mtime_ns))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        self.sync_later(path)

    def open_append(self, path: str) -> FileIO:
        """Open a regular file for appending; created when there is none."""
        with self._walk.parent(path) as (folder, name):
            flags = _FILE_FLAGS | os.O_WRONLY | os.O_APPEND | os.O_CREAT
            descriptor = os.open(name, flags, 0o640, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise NotRegularFile(path)
        return FileIO(descriptor, "a")

    def replace(self, old: str, new: str) -> None:
        """Rename a file, replacing one of the new name; all contents are durable by then."""
        self._sync_contents()
        with (
            self._walk.parent(old) as (source, old_name),
            self._walk.parent(new) as (target, new_name),
        ):
            os.replace(old_name, new_name, src_dir_fd=source, dst_dir_fd=target)
        self.sync_later(old)
        self.sync_later(new)

    def replace_if_unchanged(self, old: str, new: str, expected: object) -> bool:
        """Rename a file to a name that is free, or under which there still is what was `expected`.

        False, with nothing changed, when somebody else was faster: what they wrote is not lost.
        """
        self._sync_contents()
        with (
            self._walk.parent(old) as (source, old_name),
            self._walk.parent(new) as (target, new_name),
        ):
            try:
                if expected is None:
                    rename_noreplace(old_name, new_name, source, target)
                elif not replace_if_unchanged(old_name, new_name, source, target, expected):
                    return False
            except (FileExistsError, FileNotFoundError):
                return False
        self.sync_later(old)
        self.sync_later(new)
        return True

    def move(self, old: str, new: str) -> bool:
        """Rename a file or folder; False when the new name is taken."""
        with (
            self._walk.parent(old) as (source, old_name),
            self._walk.parent(new) as (target, new_name),
        ):
            found = os.stat(old_name, dir_fd=source, follow_symlinks=False)
            try:
                if stat.S_ISDIR(found.st_mode):
                    os.rename(old_name, new_name, src_dir_fd=source, dst_dir_fd=target)
                else:
                    rename_noreplace(old_name, new_name, source, target)
            except OSError as error:
                if error.errno in _NAME_TAKEN:
                    return False
                raise
        self.sync_later(old)
        self.sync_later(new)
        return True

    def remove(self, path: str) -> None:
        """Remove a file or a link."""
        try:
            with self._walk.parent(path) as (folder, name):
                os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            return
        self.sync_later(path)

    def remove_if_unchanged(self, path: str, temporary: str, expected: object) -> bool:
        """Remove a file that still is as `expected`; it is checked once more under a temporary
        name.

        False, and the file stays, when somebody else was faster: what they wrote is not lost.
        """
        with self._walk.parent(path) as (folder, name):
            try:
                is_removed = remove_if_unchanged(name, split_path(temporary)[-1], folder, expected)
            except (FileExistsError, FileNotFoundError):
                return False
        self.sync_later(path)
        return is_removed

    def remove_folder(self, path: str) -> bool:
        try:
            with self._walk.parent(path) as (folder, name):
                os.rmdir(name, dir_fd=folder)
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno in _NAME_TAKEN:
                return False
            raise
        self.sync_later(path)
        return True

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents."""
        try:
            self._make_folder(path)
        except FileNotFoundError:
            self.make_folder(path.rpartition("/")[0])
            self._make_folder(path)

    def _make_folder(self, path: str) -> None:
        with self._walk.parent(path) as (folder, name):
            try:
                os.mkdir(name, 0o750, dir_fd=folder)
            except FileExistsError:
                os.close(open_folder(name, folder, split_path(path)))
                return
        self.sync_later(path)

    def make_folders(self, path: str, names: Iterable[str]) -> None:
        """Create folders within one; their names need not survive a power cut."""
        with self._walk.folder(split_path(path)) as folder:
            for name in names:
                try:
                    os.mkdir(name, 0o750, dir_fd=folder)
                except FileExistsError:
                    os.close(open_folder(name, folder, (*split_path(path), name)))

    def sync_later(self, path: str) -> None:
        """Make this name durable at the next `sync`."""
        self._unsynced_folders[split_path(path)[:-1]] = None

    def sync(self) -> None:
        """Make every changed name durable, and close cached folders."""
        try:
            self._sync_contents()
            pending = list(self._unsynced_folders)
            for start in range(0, len(pending), _MAX_UNSYNCED):
                self._sync_folders(pending[start : start + _MAX_UNSYNCED])
            self._unsynced_folders.clear()
        finally:
            self.close()

    def close(self) -> None:
        """Close cached folders, and files whose sync is pending but not needed any more."""
        self._walk.close()
        while self._unsynced_files:
            os.close(self._unsynced_files.pop())

    def _sync_contents(self) -> None:
        if self._unsynced_files:
            fsync_all(self._unsynced_files)
            while self._unsynced_files:
                os.close(self._unsynced_files.pop())

    def _sync_folders(self, folders: Iterable[tuple[str, ...]]) -> None:
        with ExitStack() as opened:
            descriptors = list[int]()
            for parts in folders:
                try:
                    with self._walk.folder(parts) as folder:
                        descriptors.append(os.dup(folder))
                except _NOT_FOUND:
                    continue  # moved or removed since: its parent is synced too
                opened.callback(os.close, descriptors[-1])
            fsync_all(descriptors)

    @contextmanager
    def lock(self, path: str) -> Generator[None]:
        """Hold an exclusive lock, waiting for it; the lock file is never removed.

        Cached folders are closed at the end: later these names may belong to other folders.
        """
        try:
            with self.lock_nested(path):
                yield
        finally:
            self.close()

    @contextmanager
    def lock_nested(self, path: str) -> Generator[None]:
        """Hold a lock for a moment within a longer operation: cached folders stay open."""
        with self._walk.parent(path) as (folder, name):
            flags = _FILE_FLAGS | os.O_RDWR | os.O_CREAT
            descriptor = os.open(name, flags, 0o640, dir_fd=folder)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _open_regular(self, path: str, flags: int) -> Generator[int | None]:
        """Open a regular file; None when there is none."""
        descriptor: int | None = None
        try:
            with self._walk.parent(path) as (folder, name):
                descriptor = os.open(name, _FILE_FLAGS | flags, dir_fd=folder)
        except _NOT_FOUND:
            pass
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENXIO):
                raise
        try:
            regular = descriptor is not None and stat.S_ISREG(os.fstat(descriptor).st_mode)
            yield descriptor if regular else None
        finally:
            if descriptor is not None:
                os.close(descriptor)

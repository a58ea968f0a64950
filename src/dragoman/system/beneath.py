"""Files beneath one root: every step of a path is taken without following a link.

Agents write beneath the data directory too. A link that one of them puts there leads nowhere: each
folder on the way is opened on its own, relative to the one before it, and must be a folder.
"""

import errno
import os
import stat
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from io import FileIO
from pathlib import Path
from typing import Final

from dragoman.system.eager_file import EarlyWritebackFile
from dragoman.system.files import end_of_last_line, write_all
from dragoman.system.lock_file import changed_while_read, hold_flock, open_lock
from dragoman.system.openat import (
    Appender,
    FileStat,
    Tail,
    create_file,
    open_folder,
    read_up_to,
    remove_if_unchanged,
    rename_noreplace,
    replace_if_unchanged,
    stat_entries,
    to_file_stat,
)
from dragoman.system.plain_file import NotRegularFile
from dragoman.system.syncing import fsync_all
from dragoman.system.walk import FolderWalker, split_path

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
    def create(self, path: str) -> Generator[FileIO]:
        """Create a file, replacing one of that name; durable when the context ends.

        Only its owner can read it: the original may not have been readable by everybody.
        """
        with self._walk.parent(path) as (folder, name):
            descriptor = create_file(name, folder, 0o600)
        with EarlyWritebackFile(descriptor, "wb") as file:
            yield file
            os.fsync(descriptor)
        self.sync_later(path)

    def touch(self, path: str) -> bool:
        """Set the modification time of a regular file to now; False when there is none."""
        with self._open_regular(path, os.O_RDONLY) as descriptor:
            if descriptor is not None:
                os.utime(descriptor)
            return descriptor is not None

    def tail(self, path: str) -> Tail:
        """Find the last whole line of a file of lines."""
        with self._open_regular(path, os.O_RDONLY) as descriptor:
            if descriptor is None:
                return Tail()
            end = end_of_last_line(descriptor, os.fstat(descriptor).st_size)
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
            descriptor = os.open(name, flags, 0o644, dir_fd=folder)
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

    def open_append(self, path: str) -> Appender:
        """Open a regular file for appending; created when there is none."""
        with self._walk.parent(path) as (folder, name):
            flags = _FILE_FLAGS | os.O_WRONLY | os.O_APPEND | os.O_CREAT
            descriptor = os.open(name, flags, 0o644, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise NotRegularFile(path)
        return Appender(descriptor)

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
        """Remove a folder; False when it is not empty."""
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
                os.mkdir(name, 0o755, dir_fd=folder)
            except FileExistsError:
                os.close(open_folder(name, folder, split_path(path)))
                return
        self.sync_later(path)

    def make_folders(self, path: str, names: Iterable[str]) -> None:
        """Create folders within one; their names need not survive a power cut."""
        with self._walk.folder(split_path(path)) as folder:
            for name in names:
                try:
                    os.mkdir(name, 0o755, dir_fd=folder)
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
            descriptor = open_lock(name, folder)
        with hold_flock(descriptor):
            yield

    @contextmanager
    def lock_to_read(self, path: str) -> Generator[None]:
        """Like `lock`, for readers: on a read-only disk it goes without a lock file."""
        with self._walk.parent(path) as (folder, name):
            descriptor = open_lock(name, folder, reads_only=True)
        try:
            with hold_flock(descriptor):
                yield
            if descriptor is None and self.stat(path) is not None:
                raise changed_while_read(path)
        finally:
            self.close()

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

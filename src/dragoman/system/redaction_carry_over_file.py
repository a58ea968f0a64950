"""Carry-over of chunked redaction, kept in an encrypted file between chunks.

Every chunk of a text may come in a process of its own, and a hub may be killed at any moment.
The unflushed end of a chunk may be the beginning of a secret, so it is in no ledger entry and
encrypted with the hub's secret: it stays here until the next or last chunk comes, or until it
is too old.

It is written before its event is, together with the carry-over it replaces: the ledger says
later which of the two holds. The file is append-only, so that all chunks of a batch are one
write and one sync; it is compacted when most of it is outdated, and removed when all of it is.
"""

import fcntl
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal, TypeGuard

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import Struct

from dragoman.engine.redaction_carry_over import CarryOverNotStored, IsRecorded, StoredCarryOver
from dragoman.system.durable_files import sync_folder, write_all, write_atomically
from dragoman.system.private_file import OWNER_ONLY
from dragoman.text.keyed_digest import keyed_digest

MAX_AGE_SECONDS: Final = 7 * 86_400
"""After so many seconds a carry-over is dropped: no further chunk is expected."""
STALE_SECONDS: Final = 600
"""After so many seconds without another chunk, a text counts as ended and its carry-over is
flushed."""
MAX_OUTDATED_BYTES: Final = 1024 * 1024
"""Limit of outdated bytes in the file, unless the live ones are more."""
_TOUCH_SECONDS: Final = 60
"""A carry-over untouched for so many seconds is touched on disk when a chunk reads it."""
_NONCE_BYTES: Final = 12
_LENGTH_BYTES: Final = 4
"""Length of the prefix that holds a frame's length."""


class _CarryOver(Struct, array_like=True):
    """A carry-over under its key. (Texts are bytes: they may end in half of a character.)"""

    state: Literal["waiting", "flushing", "flushed"]
    """`waiting`: for the next chunk; `flushing`: set aside, to be flushed; `flushed`."""
    key: bytes
    touched_at: float
    """Time of the last chunk that used it."""
    text: bytes = b""
    event: str = ""
    """Event that must be recorded for `text` to hold; empty when it holds already."""
    previous: bytes = b""
    """Carry-over that holds until then."""

    def resolve(self, is_recorded: IsRecorded) -> bytes:
        """The carry-over that holds, depending on whether its event is recorded."""
        return self.text if not self.event or is_recorded(self.event) else self.previous


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_CarryOver]).decode


class CarryOverFile:
    """Encrypted store of carry-overs. Safe for several threads, and for several processes."""

    def __init__(self, folder: Path, secret: bytes, now: Callable[[], float]) -> None:
        self._folder = folder
        self._path = folder / keyed_digest(secret, b"the name of what is held back").hex()
        self._cipher = AESGCM(keyed_digest(secret, b"what is held back, of all chunks"))
        self._now = now
        self._lock = threading.Lock()
        self._name = self._path.name.encode()
        self._has_swept = False
        self._reset()

    def get(self, key: str, is_recorded: IsRecorded) -> str:
        """Carry-over of the last recorded chunk; empty when there is none."""
        name = _to_bytes(key)
        with self._lock, self._explain_errors():
            self._reload()
            carry_over = self._held.get(name)
            if carry_over is None:
                return ""
            self._touch(carry_over)
            held = carry_over.resolve(is_recorded)
        return _to_text(held)

    def put(self, updates: Sequence[StoredCarryOver]) -> None:
        """Store carry-overs for the next chunks, each valid once its event is recorded."""
        now = self._now()
        carry_overs = [
            _CarryOver(
                "waiting",
                _to_bytes(one.key),
                now,
                _to_bytes(one.after),
                one.event,
                _to_bytes(one.before),
            )
            for one in updates
        ]
        with self._lock, self._explain_errors():
            self._make_folder()
            self._remove_old_files()
            with self._locked():
                self._reload()
                self._append(carry_overs)

    def settle(self, updates: Sequence[StoredCarryOver]) -> None:
        """The events of these are recorded: drop carry-overs that are empty now."""
        with self._lock:
            for one in updates:
                carry_over = self._held.get(_to_bytes(one.key))
                if carry_over is not None and carry_over.event == one.event:
                    self._confirm(carry_over, carry_over.text)
            self._compact()

    def find_stale(self, is_recorded: IsRecorded) -> Iterator[tuple[str, str]]:
        """Carry-overs that no chunk has used for minutes: key and text.

        They are set aside, so that a chunk that comes now does not flush them a second time. They
        stay set aside, and are returned again, until they are dropped.
        """
        with self._lock:
            with suppress(OSError):
                self._reload()
            names = sorted({*self._held, *self._ending})
        for name in names:
            stale = self._set_aside(name, is_recorded)
            if stale is not None:
                yield _to_text(name), _to_text(stale.text)
        with self._lock:
            self._compact()

    def drop(self, key: str) -> None:
        """Remove a carry-over that was set aside and is recorded; what a chunk has left since
        stays."""
        with self._lock:
            with suppress(OSError), self._locked():
                self._reload()
                self._append([_CarryOver("flushed", _to_bytes(key), self._now())], synced=False)
            self._compact()

    def _set_aside(self, name: bytes, is_recorded: IsRecorded) -> _CarryOver | None:
        """Set a stale carry-over aside; None when there is nothing to flush, or a chunk may go on
        with it."""
        carry_over = self._held.get(name)
        # Not under the lock: somebody who has locked the ledger may be waiting for it.
        held = carry_over.resolve(is_recorded) if self._is_stale(carry_over) else b""
        with self._lock, suppress(OSError), self._locked():
            self._reload()
            is_the_same = carry_over is not None and carry_over is self._held.get(name)
            if is_the_same and self._is_stale(carry_over) and name not in self._ending:
                # Final, because its event may still be recorded: once set aside it does not change
                # any more.
                self._confirm(carry_over, held)
                if held:
                    self._append([_CarryOver("flushing", name, carry_over.touched_at, held)])
            return self._ending.get(name)

    def _is_stale(self, carry_over: _CarryOver | None) -> TypeGuard[_CarryOver]:
        return carry_over is not None and carry_over.touched_at < self._now() - STALE_SECONDS

    def _touch(self, carry_over: _CarryOver) -> None:
        """Mark as used, so that no other process ends this text meanwhile."""
        is_stale, carry_over.touched_at = (
            carry_over.touched_at < self._now() - _TOUCH_SECONDS,
            self._now(),
        )
        if is_stale:
            with self._locked():
                self._append([carry_over], synced=False)

    def _confirm(self, carry_over: _CarryOver, text: bytes) -> None:
        """Fix the text, whatever becomes of its event."""
        carry_over.text, carry_over.event, carry_over.previous = text, "", b""
        if not text:
            del self._held[carry_over.key]

    # The file

    def _reload(self) -> None:
        """Read the file again, if somebody else has written to it."""
        try:
            if _file_identity(self._path.stat()) == self._identity:
                return
        except FileNotFoundError:
            self._reset()
            return
        self._reset()
        with self._path.open("rb") as file:
            self._identity, data = _file_identity(os.fstat(file.fileno())), file.read()
        for carry_over in self._decrypt_frames(data):
            self._apply(carry_over)
        oldest = self._now() - MAX_AGE_SECONDS
        for table in (self._held, self._ending):
            for one in [one for one in table.values() if one.touched_at < oldest]:
                del table[one.key]

    def _reset(self) -> None:
        self._held: dict[bytes, _CarryOver] = {}
        self._ending: dict[bytes, _CarryOver] = {}
        self._identity: tuple[int, ...] = ()
        """Identity of the file when it was last read or written here; empty when there was none."""
        self._size = self._compacted_size = 0
        """End of the readable part of the file, and its size when it was last compacted."""

    def _decrypt_frames(self, data: bytes) -> Iterator[_CarryOver]:
        """Decrypt frames in order; a frame that cannot be decrypted is skipped."""
        while frame := _frame_at(data, self._size):
            self._size += _LENGTH_BYTES + len(frame)
            with suppress(InvalidTag, ValueError):
                plain = self._cipher.decrypt(frame[:_NONCE_BYTES], frame[_NONCE_BYTES:], self._name)
                yield from _decode(plain)

    def _encrypt_frame(self, carry_overs: Sequence[_CarryOver]) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, _encode(carry_overs), self._name)
        return (_NONCE_BYTES + len(sealed)).to_bytes(_LENGTH_BYTES) + nonce + sealed

    def _apply(self, carry_over: _CarryOver) -> None:
        if carry_over.state == "waiting":
            self._held[carry_over.key] = carry_over
        elif carry_over.state == "flushing":
            self._held.pop(carry_over.key, None)
            self._ending[carry_over.key] = carry_over
        else:
            self._ending.pop(carry_over.key, None)

    def _append(self, carry_overs: Sequence[_CarryOver], *, synced: bool = True) -> None:
        """Append a frame; a torn frame that a crash has left is cut off."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, OWNER_ONLY)
        try:
            if os.fstat(descriptor).st_size > self._size:
                os.ftruncate(descriptor, self._size)
            frame = self._encrypt_frame(carry_overs)
            write_all(descriptor, frame)
            if synced:
                os.fdatasync(descriptor)
            if not self._size:
                sync_folder(self._folder)
            self._size += len(frame)
            self._identity = _file_identity(os.fstat(descriptor))
        finally:
            os.close(descriptor)
        for one in carry_overs:
            self._apply(one)

    def _compact(self) -> None:
        """Remove the file when nothing is held back, compact it when most of it is outdated."""
        is_empty = not self._held and not self._ending
        is_much = self._size - self._compacted_size > max(self._compacted_size, MAX_OUTDATED_BYTES)
        if not self._identity or not (is_empty or is_much):
            return
        with suppress(OSError), self._locked():
            self._reload()
            carry_overs = [*self._held.values(), *self._ending.values()]
            if not carry_overs:
                self._path.unlink(missing_ok=True)
                self._reset()
                return
            frame = self._encrypt_frame(carry_overs)
            write_atomically(self._path, frame, mode=OWNER_ONLY)
            self._size = self._compacted_size = len(frame)
            self._identity = _file_identity(self._path.stat())

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Hold an exclusive lock against other processes."""
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _make_folder(self) -> None:
        if not self._folder.is_dir():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_folder(self._folder.parent)

    def _remove_old_files(self) -> None:
        """Once per process, remove files that are too old, left by hubs with another secret."""
        if self._has_swept:
            return
        self._has_swept = True
        oldest = time.time() - MAX_AGE_SECONDS
        for path in self._folder.iterdir():
            with suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()

    @contextmanager
    def _explain_errors(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise CarryOverNotStored(
                f"{self._folder}, which keeps the end of a text until its next chunk, cannot be "
                f"used ({error.strerror}); nothing was written: repair it, and send again"
            ) from error


def _file_identity(file: os.stat_result) -> tuple[int, ...]:
    """Inode, size and time, which change when somebody else writes to the file."""
    return file.st_ino, file.st_size, file.st_mtime_ns


def _frame_at(data: bytes, start: int) -> bytes:
    """Frame at an offset; empty when there is none, or not all of it."""
    start += _LENGTH_BYTES
    end = start + int.from_bytes(data[start - _LENGTH_BYTES : start])
    return data[start:end] if end <= len(data) else b""


def _to_bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _to_text(data: bytes) -> str:
    return data.decode(errors="surrogatepass")

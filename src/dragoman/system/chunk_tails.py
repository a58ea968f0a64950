"""What chunks of thoughts have held back for the next ones, in a file that needs the hub's secret.

Every chunk may come in a process of its own, and a hub may be killed at any moment. What is held
back may be the beginning of a secret, so it is no part of any record, and nobody can read it who
has not the secret: it lies here until the next chunk, or the last, comes, or until it is too old.

It is written before its event is, together with what was held back until then: which of the two
holds is for the record to say. The file grows at its end, so that what all chunks of a batch hold
back is one write and one sync; it is written anew when most of it is past, and goes when all is.
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

from dragoman.engine.rests import Left, Recorded, RestsUnkept
from dragoman.system.files import sync_folder, write_all, write_atomically
from dragoman.system.private_file import OURS_ALONE
from dragoman.text.digest import keyed_digest

MOST_AGE: Final = 7 * 86_400
"""After so many seconds a carry-over is dropped: no further chunk is expected."""
PATIENCE: Final = 600
"""After so many seconds without another chunk, a text counts as ended and its carry-over is
flushed."""
MOST_PAST: Final = 1024 * 1024
"""Limit of outdated bytes in the file, unless the live ones are more."""
_STALE: Final = 60
"""A carry-over untouched for so many seconds is touched on disk when a chunk reads it."""
_NONCE: Final = 12
_HEAD: Final = 4
"""Length of the prefix that holds a frame's length."""


class _Kept(Struct, array_like=True):
    """A carry-over under its key. (Texts are bytes: they may end in half of a character.)"""

    what: Literal["held", "ending", "ended"]
    """`held`: waiting for the next chunk; `ending`: set aside, to be flushed; `ended`: flushed."""
    key: bytes
    at: float
    """Time of the last chunk that used it."""
    after: bytes = b""
    event: str = ""
    """Event that must be recorded for `text` to hold; empty when it holds already."""
    before: bytes = b""
    """Carry-over that holds until then."""

    def settled(self, is_recorded: Recorded) -> bytes:
        """The carry-over that holds, depending on whether its event is recorded."""
        return self.after if not self.event or is_recorded(self.event) else self.before


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Kept]).decode


class ChunkTails:
    """Encrypted store of carry-overs. Safe for several threads, and for several processes."""

    def __init__(self, folder: Path, secret: bytes, now: Callable[[], float]) -> None:
        self._folder = folder
        self._path = folder / keyed_digest(secret, b"the name of what is held back").hex()
        self._seal = AESGCM(keyed_digest(secret, b"what is held back, of all chunks"))
        self._now = now
        self._lock = threading.Lock()
        self._name = self._path.name.encode()
        self._is_swept = False
        self._forget()

    def get(self, key: str, is_recorded: Recorded) -> str:
        """Carry-over of the last recorded chunk; empty when there is none."""
        name = _bytes(key)
        with self._lock, self._told():
            self._look()
            kept = self._held.get(name)
            if kept is None:
                return ""
            self._come_to(kept)
            held = kept.settled(is_recorded)
        return _text(held)

    def put(self, left: Sequence[Left]) -> None:
        """Store carry-overs for the next chunks, each valid once its event is recorded."""
        now = self._now()
        kept = [
            _Kept("held", _bytes(one.key), now, _bytes(one.after), one.event, _bytes(one.before))
            for one in left
        ]
        with self._lock, self._told():
            self._make_folder()
            self._sweep()
            with self._alone():
                self._look()
                self._append(kept)

    def settle(self, left: Sequence[Left]) -> None:
        """The events of these are recorded: drop carry-overs that are empty now."""
        with self._lock:
            for one in left:
                kept = self._held.get(_bytes(one.key))
                if kept is not None and kept.event == one.event:
                    self._hold(kept, kept.after)
            self._tidy()

    def left(self, is_recorded: Recorded) -> Iterator[tuple[str, str]]:
        """Carry-overs that no chunk has used for minutes: key and text.

        They are set aside, so that a chunk that comes now does not flush them a second time. They
        stay set aside, and are returned again, until they are dropped.
        """
        with self._lock:
            with suppress(OSError):
                self._look()
            names = sorted({*self._held, *self._ending})
        for name in names:
            told = self._end(name, is_recorded)
            if told is not None:
                yield _text(name), _text(told.after)
        with self._lock:
            self._tidy()

    def drop(self, key: str) -> None:
        """Remove a carry-over that was set aside and is recorded; what a chunk has left since
        stays."""
        with self._lock:
            with suppress(OSError), self._alone():
                self._look()
                self._append([_Kept("ended", _bytes(key), self._now())], synced=False)
            self._tidy()

    def _end(self, name: bytes, is_recorded: Recorded) -> _Kept | None:
        """Set a stale carry-over aside; None when there is nothing to flush, or a chunk may go on
        with it."""
        kept = self._held.get(name)
        # Not under the lock: somebody who has locked the ledger may be waiting for it.
        held = kept.settled(is_recorded) if self._is_left(kept) else b""
        with self._lock, suppress(OSError), self._alone():
            self._look()
            is_the_same = kept is not None and kept is self._held.get(name)
            if is_the_same and self._is_left(kept) and name not in self._ending:
                # Final, because its event may still be recorded: once set aside it does not change
                # any more.
                self._hold(kept, held)
                if held:
                    self._append([_Kept("ending", name, kept.at, held)])
            return self._ending.get(name)

    def _is_left(self, kept: _Kept | None) -> TypeGuard[_Kept]:
        return kept is not None and kept.at < self._now() - PATIENCE

    def _come_to(self, kept: _Kept) -> None:
        """Mark as used, so that no other process ends this text meanwhile."""
        is_stale, kept.at = kept.at < self._now() - _STALE, self._now()
        if is_stale:
            with self._alone():
                self._append([kept], synced=False)

    def _hold(self, kept: _Kept, held: bytes) -> None:
        """Fix the text, whatever becomes of its event."""
        kept.after, kept.event, kept.before = held, "", b""
        if not held:
            del self._held[kept.key]

    # The file

    def _look(self) -> None:
        """Read the file again, if somebody else has written to it."""
        try:
            if _seen(self._path.stat()) == self._seen:
                return
        except FileNotFoundError:
            self._forget()
            return
        self._forget()
        with self._path.open("rb") as file:
            self._seen, data = _seen(os.fstat(file.fileno())), file.read()
        for kept in self._opened(data):
            self._fold(kept)
        oldest = self._now() - MOST_AGE
        for place in (self._held, self._ending):
            for one in [one for one in place.values() if one.at < oldest]:
                del place[one.key]

    def _forget(self) -> None:
        self._held: dict[bytes, _Kept] = {}
        self._ending: dict[bytes, _Kept] = {}
        self._seen: tuple[int, ...] = ()
        """Identity of the file when it was last read or written here; empty when there was none."""
        self._size = self._least = 0
        """End of the readable part of the file, and its size when it was last compacted."""

    def _opened(self, data: bytes) -> Iterator[_Kept]:
        """Decrypt frames in order; a frame that cannot be decrypted is skipped."""
        while frame := _frame_at(data, self._size):
            self._size += _HEAD + len(frame)
            with suppress(InvalidTag, ValueError):
                sealed = self._seal.decrypt(frame[:_NONCE], frame[_NONCE:], self._name)
                yield from _decode(sealed)

    def _frame(self, kept: Sequence[_Kept]) -> bytes:
        nonce = os.urandom(_NONCE)
        sealed = self._seal.encrypt(nonce, _encode(kept), self._name)
        return (_NONCE + len(sealed)).to_bytes(_HEAD) + nonce + sealed

    def _fold(self, kept: _Kept) -> None:
        if kept.what == "held":
            self._held[kept.key] = kept
        elif kept.what == "ending":
            self._held.pop(kept.key, None)
            self._ending[kept.key] = kept
        else:
            self._ending.pop(kept.key, None)

    def _append(self, kept: Sequence[_Kept], *, synced: bool = True) -> None:
        """Append a frame; a torn frame that a crash has left is cut off."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, OURS_ALONE)
        try:
            if os.fstat(descriptor).st_size > self._size:
                os.ftruncate(descriptor, self._size)
            frame = self._frame(kept)
            write_all(descriptor, frame)
            if synced:
                os.fdatasync(descriptor)
            if not self._size:
                sync_folder(self._folder)
            self._size += len(frame)
            self._seen = _seen(os.fstat(descriptor))
        finally:
            os.close(descriptor)
        for one in kept:
            self._fold(one)

    def _tidy(self) -> None:
        """Remove the file when nothing is held back, compact it when most of it is outdated."""
        is_empty = not self._held and not self._ending
        is_much = self._size - self._least > max(self._least, MOST_PAST)
        if not self._seen or not (is_empty or is_much):
            return
        with suppress(OSError), self._alone():
            self._look()
            kept = [*self._held.values(), *self._ending.values()]
            if not kept:
                self._path.unlink(missing_ok=True)
                self._forget()
                return
            frame = self._frame(kept)
            write_atomically(self._path, frame, mode=OURS_ALONE)
            self._size = self._least = len(frame)
            self._seen = _seen(self._path.stat())

    @contextmanager
    def _alone(self) -> Generator[None]:
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

    def _sweep(self) -> None:
        """Once per process, remove files that are too old, left by hubs with another secret."""
        if self._is_swept:
            return
        self._is_swept = True
        oldest = time.time() - MOST_AGE
        for path in self._folder.iterdir():
            with suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()

    @contextmanager
    def _told(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise RestsUnkept(
                f"{self._folder}, which keeps the end of a text until its next chunk, cannot be "
                f"used ({error.strerror}); nothing was written: repair it, and send again"
            ) from error


def _seen(file: os.stat_result) -> tuple[int, ...]:
    """Inode, size and time, which change when somebody else writes to the file."""
    return file.st_ino, file.st_size, file.st_mtime_ns


def _frame_at(data: bytes, start: int) -> bytes:
    """Frame at an offset; empty when there is none, or not all of it."""
    start += _HEAD
    end = start + int.from_bytes(data[start - _HEAD : start])
    return data[start:end] if end <= len(data) else b""


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _text(data: bytes) -> str:
    return data.decode(errors="surrogatepass")

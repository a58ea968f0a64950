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
"""After so many seconds nobody waits for the rest of a thought any more."""
PATIENCE: Final = 600
"""After so many seconds without another chunk, a thought has no other end than what it has."""
MOST_PAST: Final = 1024 * 1024
"""So many bytes of what is past lie there at most, or as many as of what is not."""
_STALE: Final = 60
"""What nobody has come to for so many seconds is marked when somebody does."""
_NONCE: Final = 12
_HEAD: Final = 4
"""So many bytes say how long a frame is."""


class _Kept(Struct, array_like=True):
    """What is held back under a key. (Texts as bytes: they may hold half of a character.)"""

    what: Literal["held", "ending", "ended"]
    """`ending`: no chunk goes on with it any more, it is to be told; `ended`: it was."""
    key: bytes
    at: float
    """When a chunk came to it last."""
    after: bytes = b""
    event: str = ""
    """What has to be on record for it to hold; empty: it does."""
    before: bytes = b""
    """What holds until then."""

    def settled(self, is_recorded: Recorded) -> bytes:
        """What is held back, by the record."""
        return self.after if not self.event or is_recorded(self.event) else self.before


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Kept]).decode


class ChunkTails:
    """Keeps them sealed. Several threads may use it, and several processes the same folder."""

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
        """What the last chunk that is on record has left."""
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
        """Keep these for the next chunks, each if its event is on record then."""
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
        """The events of these are on record: what is not held back any more goes."""
        with self._lock:
            for one in left:
                kept = self._held.get(_bytes(one.key))
                if kept is not None and kept.event == one.event:
                    self._hold(kept, kept.after)
            self._tidy()

    def left(self, is_recorded: Recorded) -> Iterator[tuple[str, str]]:
        """What no chunk has come to for minutes: its key, and the text.

        It is put aside, so that a chunk that comes now does not tell it as well; there it stays,
        and is told again, until it is dropped.
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
        """What was put aside is on record; what a chunk has left since stays."""
        with self._lock:
            with suppress(OSError), self._alone():
                self._look()
                self._append([_Kept("ended", _bytes(key), self._now())], synced=False)
            self._tidy()

    def _end(self, name: bytes, is_recorded: Recorded) -> _Kept | None:
        """What is to be told under a key; None: nothing, or a chunk may go on with it."""
        kept = self._held.get(name)
        # Not under the lock, for which somebody may wait who has locked the record.
        held = kept.settled(is_recorded) if self._is_left(kept) else b""
        with self._lock, suppress(OSError), self._alone():
            self._look()
            is_the_same = kept is not None and kept is self._held.get(name)
            if is_the_same and self._is_left(kept) and name not in self._ending:
                # For good, because its event may still come: aside it does not change any more.
                self._hold(kept, held)
                if held:
                    self._append([_Kept("ending", name, kept.at, held)])
            return self._ending.get(name)

    def _is_left(self, kept: _Kept | None) -> TypeGuard[_Kept]:
        return kept is not None and kept.at < self._now() - PATIENCE

    def _come_to(self, kept: _Kept) -> None:
        """A chunk has come: nobody else ends this thought meanwhile, in whatever process."""
        is_stale, kept.at = kept.at < self._now() - _STALE, self._now()
        if is_stale:
            with self._alone():
                self._append([kept], synced=False)

    def _hold(self, kept: _Kept, held: bytes) -> None:
        """This holds, whatever becomes of an event."""
        kept.after, kept.event, kept.before = held, "", b""
        if not held:
            del self._held[kept.key]

    # The file

    def _look(self) -> None:
        """Read it, if somebody else has written to it."""
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
        """The file as it was when it was read, or written by us; empty: there was none."""
        self._size = self._least = 0
        """So far it can be read, and so much was in it when it was last written anew."""

    def _opened(self, data: bytes) -> Iterator[_Kept]:
        """What it says, in its order; a frame that is not ours is passed over."""
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
        """Write more; what a crash has left of an earlier write is cut off."""
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
        """What is past goes: all of it where nothing is held back, else when it is much."""
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
        """Nobody else writes while this lasts, in whatever process."""
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
        """Once in a process, what is too old goes, which only others could read."""
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
                f"{self._folder} cannot be used, where the end of a thought waits for its next "
                f"part ({error.strerror}); nothing was written: mend that, and send it again"
            ) from error


def _seen(file: os.stat_result) -> tuple[int, ...]:
    """What tells a file that somebody has written to from the same as it was."""
    return file.st_ino, file.st_size, file.st_mtime_ns


def _frame_at(data: bytes, start: int) -> bytes:
    """The frame that begins here; empty: there is none, or not all of it."""
    start += _HEAD
    end = start + int.from_bytes(data[start - _HEAD : start])
    return data[start:end] if end <= len(data) else b""


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _text(data: bytes) -> str:
    return data.decode(errors="surrogatepass")

"""Carry-over of chunked redaction, kept in an encrypted file between chunks.

Every chunk of a text may come in a process of its own, and a hub may be killed at any moment.
The unflushed end of a chunk may be the beginning of a secret, so it is in no ledger entry and
encrypted with the hub's secret: it stays here until the next or last chunk comes, or until it
is too old.

It is written before its event is, together with the carry-over it replaces: the ledger says
later which of the two holds. The file holds what is open, and is replaced as a whole.
"""

import fcntl
import json
import os
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec.structs import astuple

from dragoman.engine.redaction_carry_over import CarryOverNotStored, IsRecorded, StoredCarryOver
from dragoman.system.safe_fs import OWNER_ONLY, write_atomically
from dragoman.text.keyed_digest import keyed_digest

MAX_AGE_SECONDS: Final = 7 * 86_400
"""After so many seconds a carry-over is dropped: no further chunk is expected."""
STALE_SECONDS: Final = 600
"""After so many seconds without another chunk, a text counts as ended and its carry-over is
flushed."""
_NONCE_BYTES: Final = 12

_Open = dict[str, tuple[StoredCarryOver, float]]
"""Key -> its carry-over, and the time of its last chunk."""


class CarryOverFile:
    """Encrypted store of carry-overs. Safe for several threads, and for several processes."""

    def __init__(self, folder: Path, secret: bytes, now: Callable[[], float]) -> None:
        self._folder = folder
        self._path = folder / keyed_digest(secret, b"the name of what is held back").hex()
        self._cipher = AESGCM(keyed_digest(secret, b"what is held back, of all chunks"))
        self._now = now
        self._lock = threading.Lock()
        self._cached: tuple[tuple[int, ...], _Open] = ((), {})
        """Identity of the file when it was last read, and its content."""

    def get(self, key: str, is_recorded: IsRecorded) -> str:
        """Carry-over of the last recorded chunk; empty when there is none."""
        with self._explain_errors(), self._lock:
            held = self._load().get(key)
        return held[0].resolve(is_recorded) if held else ""

    def put(self, updates: Sequence[StoredCarryOver]) -> None:
        """Store carry-overs for the next chunks, each valid once its event is recorded."""
        now = self._now()
        with self._explain_errors():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._locked():
                self._store(self._load() | {one.key: (one, now) for one in updates})

    def find_stale(self, is_recorded: IsRecorded) -> list[tuple[str, str]]:
        """Key and text of each carry-over that no chunk has followed for some time."""
        with self._lock:
            found = [one for one, touched_at in self._load().values() if self._is_stale(touched_at)]
        return [(one.key, one.resolve(is_recorded)) for one in found]

    def drop(self, key: str) -> None:
        """Remove a stale carry-over; what a chunk has left since stays."""
        with self._locked():
            held = self._load()
            if key in held and self._is_stale(held[key][1]):
                self._store({name: one for name, one in held.items() if name != key})

    def _is_stale(self, touched_at: float) -> bool:
        return touched_at < self._now() - STALE_SECONDS

    def _load(self) -> _Open:
        """Content of the file; nothing when it cannot be decrypted."""
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                identity = status.st_ino, status.st_size, status.st_mtime_ns
                if identity == self._cached[0]:
                    return self._cached[1]
                data = file.read()
        except FileNotFoundError:
            return {}
        held: _Open = {}
        try:
            plain = self._cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], None)
        except (InvalidTag, ValueError):
            plain = b"[]"
        for *parts, touched_at in json.loads(plain):
            if touched_at >= self._now() - MAX_AGE_SECONDS:
                one = StoredCarryOver(*parts)
                held[one.key] = one, touched_at
        self._cached = identity, held
        return held

    def _store(self, held: _Open) -> None:
        if not held:
            self._path.unlink(missing_ok=True)
            return
        # Texts may end in half of a character: JSON in ASCII keeps that.
        plain = json.dumps([(*astuple(one), touched_at) for one, touched_at in held.values()])
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, plain.encode(), None)
        write_atomically(self._path, sealed, mode=OWNER_ONLY)

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Hold an exclusive lock against other threads and processes."""
        with self._lock:
            descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield
            finally:
                os.close(descriptor)

    @contextmanager
    def _explain_errors(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise CarryOverNotStored(
                f"{self._folder}, which keeps the end of a text until its next chunk, cannot be "
                f"used ({error.strerror}); nothing was written: repair it, and send again"
            ) from error

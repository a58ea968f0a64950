"""What a chunk of a thought has held back for the next one, in files that need the hub's secret.

Every chunk may come in a process of its own, and a hub may be killed between two. What is held back
may be the beginning of a secret, so it is no part of any record, and nobody can read it who has not
the secret: it lies here until the next chunk, or the last, comes, or until it is too old.
"""

import fcntl
import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dragoman.system.private_file import OURS_ALONE
from dragoman.text.digest import keyed_digest

MOST_AGE: Final = 7 * 86_400
"""After so many seconds nobody waits for the rest of a thought any more."""
PATIENCE: Final = 600
"""After so many seconds without another chunk, a thought has no other end than what it has."""
_NONCE: Final = 12
_END_OF_KEY: Final = "\0"
_ASIDE: Final = ".ending"
"""Behind the name of what no chunk goes on with any more, until it is on record."""


class ChunkTails:
    """Keeps them sealed, each in a file."""

    def __init__(self, folder: Path, secret: bytes) -> None:
        self._folder = folder
        self._names = keyed_digest(secret, b"names of what is held back")
        self._seal = AESGCM(keyed_digest(secret, b"what is held back"))
        self._is_swept = False

    def get(self, key: str) -> str:
        """What the last chunk has left; a file of an earlier version has no key before it."""
        path = self._path(key)
        with suppress(OSError), self._alone():
            os.utime(path)  # a chunk has come: nobody else ends this thought meanwhile
            return self._opened(path).removeprefix(f"{key}{_END_OF_KEY}")
        return ""

    def left(self) -> Iterator[tuple[str, str]]:
        """What no chunk has come to for minutes: its key, and the text.

        It is put aside, so that a chunk that comes now does not tell it as well; there it stays,
        to be told again after a crash, until it is dropped.
        """
        for path in sorted(self._folder.iterdir()) if self._folder.is_dir() else ():
            if path.suffix == _ASIDE or self._put_aside(path):
                key, _, text = self._opened(path.with_suffix(_ASIDE)).partition(_END_OF_KEY)
                # What cannot be opened (other keys were made, it was damaged) waits to be swept.
                if self._path(key) == path.with_suffix(""):
                    yield key, text

    def _put_aside(self, path: Path) -> bool:
        """Whether nobody goes on with this one; not while one of the same thought is aside yet."""
        aside = path.with_suffix(_ASIDE)
        with suppress(OSError), self._alone():
            is_left = path.stat().st_mtime < time.time() - PATIENCE and not aside.exists()
            # Whose thought it is cannot be told of what an earlier version has kept.
            if is_left and self._path(self._opened(path).partition(_END_OF_KEY)[0]) == path:
                path.rename(aside)
                return True
        return False

    def drop(self, key: str) -> None:
        """What was put aside is on record; what a chunk has left since stays."""
        with suppress(OSError):
            self._path(key).with_suffix(_ASIDE).unlink()

    def _opened(self, path: Path) -> str:
        """What a file says; empty: there is none, or it is not ours."""
        try:
            sealed = path.read_bytes()
            held = self._seal.decrypt(sealed[:_NONCE], sealed[_NONCE:], path.stem.encode())
        except (OSError, InvalidTag, ValueError):
            return ""
        return held.decode(errors="surrogatepass")

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Nobody else changes what is kept while this lasts, in whatever thread or process."""
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def put(self, key: str, held: str) -> None:
        """Keep this for the next one; nothing, and what was kept is gone."""
        path = self._path(key)
        if not held:
            with suppress(OSError), self._alone():
                path.unlink()
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._sweep()
        nonce = os.urandom(_NONCE)
        data = f"{key}{_END_OF_KEY}{held}".encode(errors="surrogatepass")
        sealed = nonce + self._seal.encrypt(nonce, data, path.name.encode())
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        with self._alone(), os.fdopen(os.open(path, flags, OURS_ALONE), "wb") as file:
            file.write(sealed)

    def _sweep(self) -> None:
        """Once in a process, what is too old goes."""
        if self._is_swept:
            return
        self._is_swept = True
        oldest = time.time() - MOST_AGE
        for path in self._folder.iterdir():
            with suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()

    def _path(self, key: str) -> Path:
        return self._folder / keyed_digest(self._names, key.encode(errors="surrogatepass")).hex()

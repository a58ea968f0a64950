"""What a chunk of a thought has held back for the next one, in files that need the hub's secret.

Every chunk may come in a process of its own, and a hub may be killed at any moment. What is held
back may be the beginning of a secret, so it is no part of any record, and nobody can read it who
has not the secret: it lies here until the next chunk, or the last, comes, or until it is too old.

It is written before its event is, together with what was held back until then: which of the two
holds is for the record to say.
"""

import fcntl
import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import Struct

from dragoman.core.errors import StoreUnavailable
from dragoman.system.files import sync_folder, write_atomically
from dragoman.system.private_file import OURS_ALONE
from dragoman.text.digest import keyed_digest

MOST_AGE: Final = 7 * 86_400
"""After so many seconds nobody waits for the rest of a thought any more."""
PATIENCE: Final = 600
"""After so many seconds without another chunk, a thought has no other end than what it has."""
_NONCE: Final = 12
_END: Final = "\0"
"""Behind every field but the texts, which may hold anything."""
_ASIDE: Final = ".ending"
"""Behind the name of what no chunk goes on with any more, until it is on record."""


class _Kept(Struct, frozen=True):
    """What a file says."""

    key: str
    held: str
    event: str = ""
    """What has to be on record for it to hold; empty: it does."""
    before: str = ""
    """What holds until then."""

    def settled(self, is_recorded: Callable[[str], bool]) -> str:
        """What is held back, by the record."""
        return self.held if not self.event or is_recorded(self.event) else self.before

    def encode(self) -> bytes:
        """As bytes."""
        fields = self.key, self.event, str(len(self.before)), self.before + self.held
        return _END.join(fields).encode(errors="surrogatepass")

    @classmethod
    def decode(cls, data: bytes) -> "_Kept":
        """The same from its bytes."""
        key, event, size, texts = data.decode(errors="surrogatepass").split(_END, 3)
        return cls(key, texts[int(size) :], event, texts[: int(size)])


class ChunkTails:
    """Keeps them sealed, each in a file."""

    def __init__(self, folder: Path, secret: bytes) -> None:
        self._folder = folder
        self._names = keyed_digest(secret, b"names of what is held back")
        self._seal = AESGCM(keyed_digest(secret, b"what is held back, and by which event"))
        self._is_swept = False

    def get(self, key: str, is_recorded: Callable[[str], bool]) -> str:
        """What the last chunk that is on record has left."""
        path = self._path(key)
        try:
            with self._alone():
                os.utime(path)  # a chunk has come: nobody else ends this thought meanwhile
                kept = self._opened(path)
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise self._trouble(error) from error
        return "" if kept is None else kept.settled(is_recorded)

    def put(self, key: str, held: str, *, event: str, before: str) -> None:
        """Keep this for the next one, if this event is on record then; else what was `before`."""
        try:
            self._make_folder()
            self._sweep()
            self._write(self._path(key), _Kept(key, held, event, before))
        except OSError as error:
            raise self._trouble(error) from error

    def clear(self, key: str) -> None:
        """The event with which nothing is held back any more is on record."""
        with suppress(OSError):
            self._path(key).unlink()

    def left(self, is_recorded: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
        """What no chunk has come to for minutes: its key, and the text.

        It is put aside, so that a chunk that comes now does not tell it as well; there it stays,
        and is told again, until it is dropped.
        """
        for path in sorted(self._folder.iterdir()) if self._folder.is_dir() else ():
            ending = self._ending(path, is_recorded)
            if ending is not None:
                yield ending.key, ending.held

    def _ending(self, path: Path, is_recorded: Callable[[str], bool]) -> _Kept | None:
        """What a file comes to; None: to nothing, or a chunk may go on with it."""
        aside = path.with_suffix(_ASIDE)
        with suppress(OSError), self._alone():
            if path == aside or self._put_aside(path, aside, is_recorded):
                return self._opened(aside)
        return None

    def _put_aside(self, path: Path, aside: Path, is_recorded: Callable[[str], bool]) -> bool:
        """Whether nobody goes on with this one; not while one of the same thought is aside yet."""
        is_left = path.stat().st_mtime < time.time() - PATIENCE and not aside.exists()
        # What cannot be opened (other keys were made, it was damaged) waits to be swept.
        kept = self._opened(path) if is_left else None
        if kept is None:
            return False
        held = kept.settled(is_recorded)
        if not held:
            path.unlink()
            return False
        # First, because its event may still come: aside it does not change any more.
        self._write(path, _Kept(kept.key, held))
        path.rename(aside)
        return True

    def drop(self, key: str) -> None:
        """What was put aside is on record; what a chunk has left since stays."""
        with suppress(OSError):
            self._path(key).with_suffix(_ASIDE).unlink()

    def _opened(self, path: Path) -> _Kept | None:
        """What a file says; None: it is not ours."""
        sealed = path.read_bytes()
        try:
            data = self._seal.decrypt(sealed[:_NONCE], sealed[_NONCE:], path.stem.encode())
        except (InvalidTag, ValueError):
            return None
        return _Kept.decode(data)

    def _write(self, path: Path, kept: _Kept) -> None:
        nonce = os.urandom(_NONCE)
        sealed = nonce + self._seal.encrypt(nonce, kept.encode(), path.name.encode())
        write_atomically(path, sealed, mode=OURS_ALONE)

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Nobody else takes what is kept while this lasts, in whatever thread or process."""
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
        """Once in a process, what is too old goes."""
        if self._is_swept:
            return
        self._is_swept = True
        oldest = time.time() - MOST_AGE
        for path in self._folder.iterdir():
            with suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()

    def _trouble(self, error: OSError) -> StoreUnavailable:
        return StoreUnavailable(
            f"{self._folder} cannot be used, where the end of a thought waits for its next part "
            f"({error.strerror}); nothing was written: mend that, and send it again"
        )

    def _path(self, key: str) -> Path:
        return self._folder / keyed_digest(self._names, key.encode(errors="surrogatepass")).hex()

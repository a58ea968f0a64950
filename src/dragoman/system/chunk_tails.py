"""What a chunk of a thought has held back for the next one, in files that only the owner reads.

Without a hub every chunk may come in a process of its own. What is held back may be the beginning
of a secret, so it is no part of any record: it lies here until the next chunk, or the last, comes.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from dragoman.system.private_file import OURS_ALONE

T = TypeVar("T")

MOST_KEPT = 1_024


class ChunkTails(Generic[T]):
    """Keeps them in memory, and in files where another process may need them."""

    def __init__(
        self,
        folder: Path,
        shape: type[T],
        is_held: Callable[[T], bool],
        *,
        is_shared: bool = True,
    ) -> None:
        """`is_held`: whether one still holds something that the next one needs; `is_shared`:
        whether another process may take the next chunk."""
        self._folder = folder
        self._decode = msgspec.json.Decoder(shape).decode
        self._is_held = is_held
        self._tails: dict[str, T] = {}
        self._is_shared = is_shared

    def get(self, key: str) -> T | None:
        """What the last chunk has left."""
        if key in self._tails and not self._is_shared:
            return self._tails[key]
        try:
            return self._decode(self._path(key).read_bytes())
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return self._tails.get(key)

    def put(self, key: str, tail: T) -> None:
        """Keep this for the next one; the oldest makes room."""
        self._tails.pop(key, None)
        self._tails[key] = tail
        if len(self._tails) > MOST_KEPT:
            self._write(oldest := next(iter(self._tails)), self._tails.pop(oldest))
        if self._is_shared:
            self._write(key, tail)

    def close(self) -> None:
        """Leave everything to the processes that come after this one."""
        for key, tail in self._tails.items():
            self._write(key, tail)

    def _write(self, key: str, tail: T) -> None:
        path = self._path(key)
        if self._is_held(tail):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
            with os.fdopen(os.open(path, flags, OURS_ALONE), "wb") as file:
                file.write(msgspec.json.encode(tail))
        else:
            with suppress(OSError):
                path.unlink()

    def _path(self, key: str) -> Path:
        return self._folder / sha256(key.encode()).hexdigest()[:32]

"""Pieces of URLs in URLs, as they are meant: with the signs that were written as numbers."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from dragoman.text.linear import Linear

ANY_ESCAPED: Final = rb"%(?:25)?(?:3[AaDd]|2[Ff]|40)"
"""A colon, an equals sign, a slash or an at sign, in one URL or in one within another: one of them
stands before a secret, or in it."""
_WORD: Final = Linear(rb"[^\s\"'<>%]*" + ANY_ESCAPED + rb"[^\s\"'<>]*", captures=False)
_ESCAPE: Final = Linear(rb"%[0-9A-Fa-f]{2}", captures=False)
_SPARED: Final = 2
"""So many bytes less has a sign than its number."""


class Meant:
    """A word as it is meant, and where in the text each of its bytes stands."""

    def __init__(self, data: bytes, start: int, end: int) -> None:
        word = data[start:end]
        starts = [found.start() for found in _ESCAPE.finditer(word)]
        self.data = b"".join(_signs(word, starts))
        self._at = [start - _SPARED * number for number, start in enumerate(starts)]
        self._start = start

    def place(self, at: int) -> int:
        """Where the byte begins that is meant here, or what follows the last one."""
        return self._start + at + _SPARED * bisect_left(self._at, at)


def _signs(word: bytes, escapes: list[int]) -> Iterator[bytes]:
    """The pieces of a word between its escapes, and what these stand for."""
    at = 0
    for start in escapes:
        yield word[at:start]
        at = start + 1 + _SPARED
        yield bytes.fromhex(word[start + 1 : at].decode())
    yield word[at:]


def meant(data: bytes) -> Iterator[Meant]:
    """The words of a text in which something is written so."""
    if b"%" in data:
        for found in _WORD.finditer(data):
            yield Meant(data, *found.span())

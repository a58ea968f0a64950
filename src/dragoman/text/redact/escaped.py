"""Pieces of URLs in URLs, as they are meant: with the signs that were written as numbers."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from dragoman.text.linear import Linear

ANY_ESCAPED: Final = rb"%(?:25)?(?:3[AaDd]|2[Ff]|40)"
"""A colon, an equals sign, a slash or an at sign, in one URL or in one within another: one of them
stands before a secret, or in it."""
_WORD: Final = Linear(rb"[^\s\"'<>%]*" + ANY_ESCAPED + rb"[^\s\"'<>]*", captures=False)
_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_SPARED: Final = 2
"""So many bytes less has a sign than its number."""


class Meant:
    """A word as it is meant, and where in the text each of its bytes stands."""

    def __init__(self, data: bytes, start: int, end: int) -> None:
        pieces, at = list[bytes](), start
        self._start = start
        self._at = list[int]()
        for number, found in enumerate(_ESCAPE.finditer(data, start, end)):
            pieces += (data[at : found.start()], bytes.fromhex(found[1].decode()))
            at = found.end()
            self._at.append(found.start() - start - _SPARED * number)
        self.data = b"".join((*pieces, data[at:end]))

    def place(self, at: int) -> int:
        """Where the byte begins that is meant here, or what follows the last one."""
        return self._start + at + _SPARED * bisect_left(self._at, at)


def meant(data: bytes) -> Iterator[Meant]:
    """The words of a text in which something is written so."""
    if b"%" in data:
        for found in _WORD.finditer(data):
            yield Meant(data, *found.span())

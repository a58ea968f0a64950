"""A text read otherwise than it stands there: a place in what is read is a place in the text."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from dragoman.text.linear import Linear

Piece = tuple[int, int, bytes]
"""Where something stands in a text, and what is read in its place."""
_PASSED: Final = b";\n"
"""What is read in the place of lines that are passed over."""


class Reading:
    """A text as it is read, and where in the text each of its bytes stands."""

    def __init__(self, data: bytes, pieces: Iterable[Piece]) -> None:
        kept: list[bytes] = []
        pieces_read: list[tuple[int, int, int]] = [(0, 0, 0)]
        end = size = 0
        for start, behind, instead in pieces:
            kept.append(data[end:start])
            size += start - end
            if instead:
                kept.append(instead)
                pieces_read.append((size, start, behind - start))
                size += len(instead)
            end = behind
            pieces_read.append((size, end, 0))
        self.data = b"".join((*kept, data[end:])) if kept else data
        self._at, self._place, self._whole = zip(*pieces_read, strict=True)
        """Where each piece begins as it is read, and in the text; and how many bytes of the text
        are one, whatever of it is meant (0: each is itself)."""

    def place(self, at: int) -> int:
        """Where in the text the byte stands that is read here."""
        piece = bisect_right(self._at, at) - 1
        return self._place[piece] + (0 if self._whole[piece] else at - self._at[piece])

    def end(self, at: int) -> int:
        """Where in the text something ends that ends here as it is read."""
        piece = bisect_right(self._at, at - 1) - 1
        return self._place[piece] + (self._whole[piece] or at - self._at[piece])

    def at(self, place: int) -> int:
        """Where it is read what stands here in the text, or what follows it."""
        piece = bisect_right(self._place, place) - 1
        if self._whole[piece]:
            return self._at[piece]
        behind = self._at[piece + 1] if piece + 1 < len(self._at) else len(self.data)
        return min(self._at[piece] + place - self._place[piece], behind)


def left_out(data: bytes, what: Linear) -> Reading:
    """A text without what an expression finds."""
    return Reading(data, ((*found.span(), b"") for found in what.finditer(data)))


def in_lines(data: bytes, lines: Linear, pieces: Callable[[bytes], Iterable[Piece]]) -> Reading:
    """Of a text the lines that an expression finds, read otherwise: so most of a text is
    read but once."""
    return Reading(data, _of_lines(data, lines, pieces))


def _of_lines(
    data: bytes, lines: Linear, pieces: Callable[[bytes], Iterable[Piece]]
) -> Iterator[Piece]:
    at = 0
    for found in lines.finditer(data):
        start, end = found.span()
        if at < start:
            yield at, start, _PASSED
        for first, last, instead in pieces(data[start:end]):
            yield start + first, start + last, instead
        at = end
    if at < len(data):
        yield at, len(data), _PASSED

"""A text read otherwise than it stands there: a place in what is read is a place in the text."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Final

from dragoman.text.linear import Linear

Piece = tuple[int, int, bytes]
"""Start and end in a text, and the replacement."""
_Pieces = Callable[[bytes], Iterable[Piece]]
_PASSED: Final = b";\n"
"""Replacement of skipped lines."""


class Reading:
    """A normalized text, and the original positions of its bytes.

    Most texts have no findings, so the positions are computed when the first is needed.
    """

    def __init__(self, text: bytes, read: bytes, pieces: _Pieces) -> None:
        """`find_replacements` finds the replaced pieces of the text, in order."""
        self.data = read
        self._text = text
        self._pieces = pieces

    def place(self, at: int) -> int:
        """Original position of a byte."""
        starts, places, wholes = self._map
        piece = bisect_right(starts, at) - 1
        return places[piece] + (0 if wholes[piece] else at - starts[piece])

    def end(self, at: int) -> int:
        """Original end of a span that ends here."""
        starts, places, wholes = self._map
        piece = bisect_right(starts, at - 1) - 1
        return places[piece] + (wholes[piece] or at - starts[piece])

    def at(self, place: int) -> int:
        """Normalized position of an original one, or of what follows it."""
        starts, places, wholes = self._map
        piece = bisect_right(places, place) - 1
        if wholes[piece]:
            return starts[piece]
        behind = starts[piece + 1] if piece + 1 < len(starts) else len(self.data)
        return min(starts[piece] + place - places[piece], behind)

    @cached_property
    def _map(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Normalized and original start of each piece, and its original length if it was replaced
        as a whole (0: it was not).
        """
        pieces = [(0, 0, 0)]
        end = size = 0
        for start, behind, instead in self._pieces(self._text):
            size += start - end
            if instead:
                pieces.append((size, start, behind - start))
                size += len(instead)
            end = behind
            pieces.append((size, end, 0))
        starts, places, wholes = zip(*pieces, strict=True)
        return starts, places, wholes


def left_out(data: bytes, what: Linear) -> Reading:
    """Remove the matches of an expression."""
    spans = [found.span() for found in what.finditer(data)]
    borders = [0, *(border for span in spans for border in span), len(data)]
    kept = (data[a:b] for a, b in zip(borders[::2], borders[1::2], strict=True))
    return Reading(data, b"".join(kept), lambda _: ((*span, b"") for span in spans))


def in_lines(
    data: bytes, lines: Linear, read: Callable[[bytes], bytes], pieces: _Pieces
) -> Reading:
    """Normalize the matching lines only, so that most of a text is searched but once."""
    spans = [found.span() for found in lines.finditer(data)]
    parts, at = list[bytes](), 0
    for start, end in spans:
        parts += (_PASSED if at < start else b"", read(data[start:end]))
        at = end
    parts.append(_PASSED if at < len(data) else b"")
    return Reading(data, b"".join(parts), lambda text: _of_lines(text, spans, pieces))


def _of_lines(data: bytes, spans: Iterable[tuple[int, int]], pieces: _Pieces) -> Iterator[Piece]:
    at = 0
    for start, end in spans:
        if at < start:
            yield at, start, _PASSED
        for first, last, instead in pieces(data[start:end]):
            yield start + first, start + last, instead
        at = end
    if at < len(data):
        yield at, len(data), _PASSED

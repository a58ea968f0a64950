"""A text read otherwise than it stands there: a place in what is read is a place in the text."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Final

from dragoman.text.linear import Linear

Piece = tuple[int, int, bytes]
"""Where something stands in a text, and what is read in its place."""
_Pieces = Callable[[bytes], Iterable[Piece]]
_PASSED: Final = b";\n"
"""What is read in the place of lines that are passed over."""


class Reading:
    """A text as it is read, and where in the text each of its bytes stands.

    Most texts hold nothing, so that the places are told only when the first is asked for.
    """

    def __init__(self, text: bytes, read: bytes, pieces: _Pieces) -> None:
        """`pieces`: what is read otherwise in the text, in its order."""
        self.data = read
        self._text = text
        self._pieces = pieces

    def place(self, at: int) -> int:
        """Where in the text the byte stands that is read here."""
        starts, places, wholes = self._map
        piece = bisect_right(starts, at) - 1
        return places[piece] + (0 if wholes[piece] else at - starts[piece])

    def end(self, at: int) -> int:
        """Where in the text something ends that ends here as it is read."""
        starts, places, wholes = self._map
        piece = bisect_right(starts, at - 1) - 1
        return places[piece] + (wholes[piece] or at - starts[piece])

    def at(self, place: int) -> int:
        """Where it is read what stands here in the text, or what follows it."""
        starts, places, wholes = self._map
        piece = bisect_right(places, place) - 1
        if wholes[piece]:
            return starts[piece]
        behind = starts[piece + 1] if piece + 1 < len(starts) else len(self.data)
        return min(starts[piece] + place - places[piece], behind)

    @cached_property
    def _map(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Where each piece begins as it is read, and in the text; and how many bytes of the text
        are one, whatever of it is meant (0: each is itself)."""
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
    """A text without what an expression finds."""
    spans = [found.span() for found in what.finditer(data)]
    borders = [0, *(border for span in spans for border in span), len(data)]
    kept = (data[a:b] for a, b in zip(borders[::2], borders[1::2], strict=True))
    return Reading(data, b"".join(kept), lambda _: ((*span, b"") for span in spans))


def in_lines(
    data: bytes, lines: Linear, read: Callable[[bytes], bytes], pieces: _Pieces
) -> Reading:
    """Of a text the lines that an expression finds, read otherwise: so most of a text is
    read but once."""
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

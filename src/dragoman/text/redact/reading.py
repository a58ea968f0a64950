"""A text read otherwise than it stands there: a place in what is read is a place in the text."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Final

from dragoman.text.linear import LinearRegex

Replacement = tuple[int, int, bytes]
"""Start and end in a text, and the replacement."""
_FindReplacements = Callable[[bytes], Iterable[Replacement]]
_PASSED: Final = b";\n"
"""Replacement of skipped lines."""


class NormalizedText:
    """A normalized text, and the original positions of its bytes.

    Most texts have no findings, so the positions are computed when the first is needed.
    """

    def __init__(
        self, text: bytes, normalized: bytes, find_replacements: _FindReplacements
    ) -> None:
        """`find_replacements` finds the replaced pieces of the text, in order."""
        self.data = normalized
        self._text = text
        self._find_replacements = find_replacements

    def original_start(self, at: int) -> int:
        """Original position of a byte."""
        starts, places, wholes = self._map
        piece = bisect_right(starts, at) - 1
        return places[piece] + (0 if wholes[piece] else at - starts[piece])

    def original_end(self, at: int) -> int:
        """Original end of a span that ends here."""
        starts, places, wholes = self._map
        piece = bisect_right(starts, at - 1) - 1
        return places[piece] + (wholes[piece] or at - starts[piece])

    def normalized_at(self, place: int) -> int:
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
        for start, behind, instead in self._find_replacements(self._text):
            size += start - end
            if instead:
                pieces.append((size, start, behind - start))
                size += len(instead)
            end = behind
            pieces.append((size, end, 0))
        starts, places, wholes = zip(*pieces, strict=True)
        return starts, places, wholes


def remove_matches(data: bytes, regex: LinearRegex) -> NormalizedText:
    """Remove the matches of an expression."""
    spans = [found.span() for found in regex.finditer(data)]
    borders = [0, *(border for span in spans for border in span), len(data)]
    kept = (data[a:b] for a, b in zip(borders[::2], borders[1::2], strict=True))
    return NormalizedText(data, b"".join(kept), lambda _: ((*span, b"") for span in spans))


def normalize_lines(
    data: bytes,
    lines: LinearRegex,
    normalize: Callable[[bytes], bytes],
    find_replacements: _FindReplacements,
) -> NormalizedText:
    """Normalize the matching lines only, so that most of a text is searched but once."""
    spans = [found.span() for found in lines.finditer(data)]
    parts, at = list[bytes](), 0
    for start, end in spans:
        parts += (_PASSED if at < start else b"", normalize(data[start:end]))
        at = end
    parts.append(_PASSED if at < len(data) else b"")
    return NormalizedText(
        data, b"".join(parts), lambda text: _line_replacements(text, spans, find_replacements)
    )


def _line_replacements(
    data: bytes, spans: Iterable[tuple[int, int]], find_replacements: _FindReplacements
) -> Iterator[Replacement]:
    at = 0
    for start, end in spans:
        if at < start:
            yield at, start, _PASSED
        for first, last, instead in find_replacements(data[start:end]):
            yield start + first, start + last, instead
        at = end
    if at < len(data):
        yield at, len(data), _PASSED

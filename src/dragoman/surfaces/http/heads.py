"""Heads of HTTP as they are written, and without the offer of another protocol."""

from collections.abc import Iterable, Iterator

Headers = Iterable[tuple[bytes, bytes]]

_OFFERS = (b"upgrade", b"http2-settings")
"""Headers by which a caller offers to speak another protocol from now on, as some do every time."""


def without_offer(headers: Headers) -> Iterator[tuple[bytes, bytes]]:
    """The headers of a request as they would be without an offer of another protocol."""
    for name, value in headers:
        if name == b"connection":
            words = [word.strip() for word in value.split(b",")]
            yield name, b", ".join(word for word in words if word.lower() not in _OFFERS)
        elif name not in _OFFERS:
            yield name, value


def head(first: bytes, headers: Headers) -> bytes:
    """A head of HTTP as it is written."""
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return b"%b\r\n%b\r\n" % (first, lines)

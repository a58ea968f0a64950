"""Heads of HTTP as they are written, and without the offer of another protocol."""

from collections.abc import Iterable, Iterator

Headers = Iterable[tuple[bytes, bytes]]

_UPGRADE_HEADERS = (b"upgrade", b"http2-settings")
"""Headers by which a client offers to upgrade to another protocol, as some always do."""


def strip_upgrade(headers: Headers) -> Iterator[tuple[bytes, bytes]]:
    """Yield the headers of a request without an offer to upgrade the protocol."""
    for name, value in headers:
        if name == b"connection":
            words = [word.strip() for word in value.split(b",")]
            yield name, b", ".join(word for word in words if word.lower() not in _UPGRADE_HEADERS)
        elif name not in _UPGRADE_HEADERS:
            yield name, value


def format_head(first_line: bytes, headers: Headers) -> bytes:
    """Format the head of an HTTP message."""
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return b"%b\r\n%b\r\n" % (first_line, lines)

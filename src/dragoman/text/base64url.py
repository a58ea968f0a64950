"""Base64url without padding, in one spelling: no two texts stand for the same bytes."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode


def to_base64url(data: bytes) -> str:
    """The text of bytes."""
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def from_base64url(text: str) -> bytes | None:
    """The bytes of a text; None when it is not how they are written."""
    try:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None
    return data if to_base64url(data) == text else None

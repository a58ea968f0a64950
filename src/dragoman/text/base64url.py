"""Base64url without padding, in one spelling: no two texts stand for the same bytes."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode


def encode_base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode_base64url(text: str) -> bytes | None:
    """Decode a text; None unless it is the canonical spelling."""
    try:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None
    return data if encode_base64url(data) == text else None

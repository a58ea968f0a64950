"""The chain of a stream: each hash covers the one before it and the whole line."""

from hashlib import sha256

GENESIS = bytes(32)
"""The hash before the first entry of a stream."""


def link_hash(previous: bytes, line: bytes) -> bytes:
    """SHA-256 of the previous hash of the stream, followed by the line."""
    return sha256(previous + line).digest()

"""Keyed digests, and ids derived from digests.

A keyed digest tells equal from different, and nothing else to a reader who lacks the key.
"""

from functools import lru_cache
from hashlib import sha256

_BLOCK = 64
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))
_CACHED_KEYS = 8
"""Number of cached keys; a hub has one."""


def keyed_digest(key: bytes, data: bytes) -> bytes:
    """The first sixteen bytes of an HMAC with SHA-256.

    The same as `hmac.digest`, in less than half of its time: the key is hashed once, not each time.
    """
    inner, outer = _keyed_states(key)
    inside, outside = inner.copy(), outer.copy()
    inside.update(data)
    outside.update(inside.digest())
    return outside.digest()[:16]


@lru_cache(_CACHED_KEYS)
def _keyed_states(key: bytes):
    block = (key if len(key) <= _BLOCK else sha256(key).digest()).ljust(_BLOCK, b"\0")
    return sha256(block.translate(_INNER)), sha256(block.translate(_OUTER))


_VERSION = 0x8 << 76
_VARIANT = 0x2 << 62
_FREE = ~((0xF << 76) | (0x3 << 62))


def uuid8(digest: bytes) -> str:
    """Format the first sixteen bytes of a digest as a UUID of version 8 (RFC 9562)."""
    number = (int.from_bytes(digest[:16]) & _FREE) | _VERSION | _VARIANT
    digits = f"{number:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

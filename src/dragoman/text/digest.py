"""A keyed digest: tells equal from different, and tells nothing else to whoever lacks the key."""

import hmac


def keyed_digest(key: bytes, data: bytes) -> bytes:
    """The first sixteen bytes of an HMAC with SHA-256."""
    return hmac.digest(key, data, "sha256")[:16]

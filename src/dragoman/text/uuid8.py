"""Ids that follow from what they name: a digest as a UUID of version 8 (RFC 9562)."""

_VERSION = 0x8 << 76
_VARIANT = 0x2 << 62
_FREE = ~((0xF << 76) | (0x3 << 62))


def uuid8(digest: bytes) -> str:
    """Format the first sixteen bytes of a digest as a UUID of version 8 (RFC 9562)."""
    number = (int.from_bytes(digest[:16]) & _FREE) | _VERSION | _VARIANT
    digits = f"{number:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

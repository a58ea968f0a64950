"""What stands in the place of a secret already."""

import re
from typing import Final

from dragoman.text.linear import LinearRegex

PLACEHOLDER: Final = LinearRegex(rb"\[REDACTED:[a-z0-9_]{1,64}:[0-9a-f]{8}\]", captures=False)
MARK: Final = b"[REDACTED:"
_MASKED: Final = re.compile(PLACEHOLDER.pattern)
_LONGEST: Final = 84


def without_placeholders(value: bytes) -> str:
    """Remove placeholders."""
    return (_MASKED.sub(b"", value) if b"[" in value else value).decode(errors="replace")


def is_in_placeholder(data: bytes, at: int) -> bool:
    """Check whether a position is in a placeholder."""
    begin = data.rfind(MARK, max(0, at - _LONGEST), at)
    found = PLACEHOLDER.match(data, begin) if begin >= 0 else None
    return found is not None and at < found.end()

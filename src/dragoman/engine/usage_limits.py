"""Usage limits of vendors: what their programs say when one is reached, and until when it lasts."""

import re
from typing import Final

from dragoman.core.timestamps import parse_rfc3339
from dragoman.text.lazy_regex import lazy_regex

_REACHED: Final = lazy_regex(
    r"\b(?:usage|rate|session|weekly|quota|credit) limit (?:was |is |has been )?"
    r"(?:reached|exceeded|hit)"
    r"|\b(?:hit|reached|exceeded) your (?:\w+ )?(?:limit|quota)\b"
    r"|\brate_limit\b",
    re.IGNORECASE,
)
_EPOCH: Final = lazy_regex(r"(?<![0-9])[0-9]{10}(?:[0-9]{3})?(?![0-9])")
_RFC3339: Final = lazy_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,20}(?:Z|[+-][0-9]{2}:[0-9]{2})")
_IN: Final = lazy_regex(
    r"\b([0-9]{1,4}) ?(s|sec|second|m|min|minute|h|hour|d|day)s?\b", re.IGNORECASE
)
_TRY_AGAIN: Final = lazy_regex(
    r"\b(?:try again|resets?|retry|wait)\b.{0,12}?\bin\b(.{1,60})", re.IGNORECASE
)
_UNITS_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MAX_CHARS: Final = 2_000


def find_usage_limit(text: str, now: int) -> int | None:
    """Find out whether a line says that a limit is reached: until when, 0 if it does not say; None
    if no limit is."""
    line = text[:_MAX_CHARS]
    return find_limit_end(line, now) if _REACHED.search(line) else None


def find_limit_end(text: str, now: int) -> int:
    """End of a limit in a sentence about it: a timestamp, seconds since the epoch, or "try again in
    2 hours 5 minutes"; 0 if there is none."""
    stamp = _RFC3339.search(text)
    if stamp is not None:
        try:
            return parse_rfc3339(stamp[0])
        except ValueError:
            return 0
    epoch = _EPOCH.search(text)
    if epoch is not None:
        number = int(epoch[0])
        return number if len(epoch[0]) > 10 else number * 1_000
    wait = _TRY_AGAIN.search(text)
    parts = _IN.findall(wait[1]) if wait else []
    length = sum(int(number) * _UNITS_MS[unit[0].lower()] for number, unit in parts)
    return now + length if length else 0

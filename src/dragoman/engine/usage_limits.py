"""Usage limits of vendors: what their programs say when one is reached, and until when it lasts."""

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from dragoman.core.timestamps import parse_rfc3339
from dragoman.text.lazy_regex import lazy_regex

_REACHED: Final = lazy_regex(
    r"(?:\b(?:usage|rate|session|weekly|quota|credit)|[0-9]-hour) limit "
    r"(?:(?:was |is |has been )?(?:reached|exceeded|hit)|[·∙•|] resets)"
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
_CLOCK: Final = lazy_regex(
    r"\b(?:resets?|try again|retry)(?: at| on)? "
    r"(?:(?P<month>[a-z]{3})[a-z]* (?P<day>[0-9]{1,2})(?:st|nd|rd|th)?,? "
    r"(?:[0-9]{4},? )?(?:at )?)?"
    r"(?P<hour>1[0-2]|0?[1-9])(?::(?P<minute>[0-5][0-9]))? ?(?P<half>[ap]m)\b"
    r"(?: \((?P<zone>[^)]{1,64})\))?",
    re.IGNORECASE,
)
_MONTHS: Final = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
_MAX_DAYS: Final = 8
"""Days ahead in which a clock time is looked for: limits last hours, or a week."""

_UNITS_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MAX_CHARS: Final = 2_000


def find_usage_limit(text: str, now: int) -> int | None:
    """Find out whether a line says that a limit is reached: until when, 0 if it does not say; None
    if no limit is."""
    line = text[:_MAX_CHARS]
    return find_limit_end(line, now) if _REACHED.search(line) else None


def find_limit_end(text: str, now: int) -> int:
    """End of a limit in a sentence about it: a timestamp, seconds since the epoch, "try again in
    2 hours 5 minutes" or "resets Nov 24, 3pm (UTC)"; 0 if there is none that is understood."""
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
    return now + length if length else _find_clock_time(text, now)


def _find_clock_time(text: str, now: int) -> int:
    """The next moment that a clock shows what a sentence says, in the zone that it names, else in
    that of this machine; 0 if there is none in the next days."""
    found = _CLOCK.search(text)
    if found is None:
        return 0
    try:
        zone = _zone(found["zone"])
    except (KeyError, ValueError, OSError):  # there is none of this name
        return 0
    today = datetime.fromtimestamp(now // 1_000, zone).date()
    half = 12 if found["half"].lower() == "pm" else 0
    clock = time(int(found["hour"]) % 12 + half, int(found["minute"] or 0), tzinfo=zone)
    days = (today + timedelta(days=ahead) for ahead in range(_MAX_DAYS + 1))
    ends = (datetime.combine(day, clock).timestamp() for day in days if _is_day(day, found))
    return next((int(end) * 1_000 for end in ends if end * 1_000 > now), 0)


def _zone(name: str | None) -> tzinfo | None:
    if name is None:
        return None
    return UTC if name.upper() in ("UTC", "GMT") else ZoneInfo(name)


def _is_day(day: date, found: re.Match[str]) -> bool:
    """True if a sentence means this day, or names none."""
    if found["month"] is None:
        return True
    named = (_MONTHS[day.month - 1], day.day)
    return (found["month"].lower(), int(found["day"])) == named

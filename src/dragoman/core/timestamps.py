"""Timestamps and durations as text: RFC 3339 outside, milliseconds (UTC) inside."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from dragoman.text.lazy_regex import lazy_regex

EXAMPLE_TIMESTAMP: Final = "2026-02-09T14:30:00.000Z"

_RFC3339_RE: Final = lazy_regex(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))",
    re.ASCII,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_MIN_TIMESTAMP: Final = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MILLISECOND
_MAX_TIMESTAMP: Final = (
    datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC) - _EPOCH
) // _MILLISECOND
TIMESTAMP_RANGE: Final = (_MIN_TIMESTAMP, _MAX_TIMESTAMP)
"""First and last timestamp that can be written as text."""
_DURATION_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"))
_DURATION_RE: Final = lazy_regex(r"([0-9]{1,12})(ms|s|m|h|d)?", re.ASCII)
_UNIT_MS: Final = {"ms": 1} | {unit: size for size, unit in _DURATION_UNITS}
_MAX_QUOTED: Final = 40


def parse_rfc3339(text: str) -> int:
    """Parse a timestamp to milliseconds; finer digits are cut off, never rounded up."""
    found = _RFC3339_RE.fullmatch(text)
    if found is None:
        raise _timestamp_error(text, "it is not of the form date, T, time, Z or offset")
    year, month, day, hour, minute, second, fraction, sign, off_hours, off_minutes = found.groups()
    if second == "60":
        raise _timestamp_error(
            text, "it is a leap second, which dragoman does not keep; use second 59"
        )
    try:
        whole = datetime(
            int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC
        )
    except ValueError as error:
        raise _timestamp_error(text, f"there is no such date or time: {error}") from None
    milliseconds = int((fraction or "").ljust(3, "0")[:3])
    moment = (whole - _EPOCH) // _MILLISECOND + milliseconds
    if sign is not None:
        moment -= _offset(text, sign, int(off_hours), int(off_minutes))
    if not _MIN_TIMESTAMP <= moment <= _MAX_TIMESTAMP:
        raise _timestamp_error(text, "in UTC it lies outside the years 0001 to 9999")
    return moment


def clamp_timestamp(moment: int) -> int:
    """The timestamp, or the nearest one that can be written as text."""
    return (
        moment
        if _MIN_TIMESTAMP <= moment <= _MAX_TIMESTAMP
        else min(max(moment, _MIN_TIMESTAMP), _MAX_TIMESTAMP)
    )


@lru_cache(maxsize=64)
def to_rfc3339(moment: int) -> str:
    """Format a timestamp, always with milliseconds and Z, so that text order is time order.

    One out of range becomes the nearest that can be written: what is stored can be shown.
    """
    if not _MIN_TIMESTAMP <= moment <= _MAX_TIMESTAMP:
        moment = clamp_timestamp(moment)
    second, millisecond = divmod(moment, 1000)
    return f"{_format_second(second)}.{millisecond:03d}Z"


def format_duration(milliseconds: int) -> str:
    """Format a duration in its largest whole unit: 5m, 90s, 1500ms."""
    for size, unit in _DURATION_UNITS:
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def format_rough_duration(milliseconds: int) -> str:
    """Format a duration, rounded down to its largest unit: 3d, 5h, 90ms."""
    for size, unit in _DURATION_UNITS:
        if milliseconds >= size:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def format_hours(milliseconds: int) -> str:
    """Format a duration as ACP does, in whole seconds, hours the largest unit: 24h, 1h30m, 5m."""
    seconds = milliseconds // 1_000
    parts = ((seconds // 3_600, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"


def parse_duration(text: str) -> int:
    """Parse a duration to milliseconds: seconds, or a number with its unit."""
    found = _DURATION_RE.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text!a} is not a length of time: use seconds, or 500ms, 90s, 5m, 2h, 30d"
        )
    return int(found[1]) * _UNIT_MS[found[2] or "s"]


@lru_cache(maxsize=64)
def _format_second(second: int) -> str:
    # Cached because a busy hub formats thousands of timestamps of one second, and the same one
    # for all entries of a batch.
    return (_EPOCH + timedelta(seconds=second)).replace(tzinfo=None).isoformat()


def _offset(text: str, sign: str, hours: int, minutes: int) -> int:
    if hours > 23 or minutes > 59:
        raise _timestamp_error(text, "its offset is not between -23:59 and +23:59")
    milliseconds = (hours * 60 + minutes) * 60_000
    return -milliseconds if sign == "-" else milliseconds


def _timestamp_error(text: str, problem: str) -> ValueError:
    shown = text if len(text) <= _MAX_QUOTED else text[:_MAX_QUOTED] + "…"
    return ValueError(
        f"{shown!a} is not a timestamp: {problem}. Use, for example, {EXAMPLE_TIMESTAMP}."
    )

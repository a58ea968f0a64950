"""Timestamps and durations: parsed strictly, formatted in one form."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.timestamps import (
    format_duration,
    format_hours,
    format_rough_duration,
    parse_duration,
    parse_rfc3339,
    to_rfc3339,
)
from tests.requirements import proves

pytestmark = proves("CLI-NOW")

FIRST = -62_135_596_800_000
LAST = 253_402_300_799_999
DAY = 86_400_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.001Z", 1),
        ("1969-12-31T23:59:59.999Z", -1),
        ("2026-02-09T14:30:00.123Z", 1_770_647_400_123),
        ("2026-02-09t14:30:00.123z", 1_770_647_400_123),
        ("2026-02-09T16:30:00.123+02:00", 1_770_647_400_123),
        ("2026-02-09T09:00:00.123-05:30", 1_770_647_400_123),
        ("2026-02-09T14:30:00.123-00:00", 1_770_647_400_123),
        ("2026-02-10T04:30:00.123+14:00", 1_770_647_400_123),
        ("2026-02-09T14:30:00.1Z", 1_770_647_400_100),
        ("2026-02-09T14:30:00.12Z", 1_770_647_400_120),
        ("2026-02-09T14:30:00.123999999Z", 1_770_647_400_123),
        ("1969-12-31T23:59:59.9999Z", -1),
        ("2024-02-29T00:00:00Z", 1_709_164_800_000),
        ("0001-01-01T00:00:00Z", FIRST),
        ("0001-01-01T14:00:00+14:00", FIRST),
        ("9999-12-31T23:59:59.999Z", LAST),
        ("9999-12-31T09:59:59.999999999-14:00", LAST),
    ],
)
def test_timestamp_is_parsed(text: str, moment: int) -> None:
    assert parse_rfc3339(text) == moment


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not of the form"),
        ("now", "not of the form"),
        ("2026-02-09", "not of the form"),
        ("2026-02-09T14:30:00", "not of the form"),
        ("2026-02-09 14:30:00Z", "not of the form"),
        ("2026-02-09T14:30Z", "not of the form"),
        ("2026-2-9T14:30:00Z", "not of the form"),
        ("2026-02-09T14:30:00Z\n", "not of the form"),
        (" 2026-02-09T14:30:00Z", "not of the form"),
        ("２026-02-09T14:30:00Z", "not of the form"),
        ("2026-02-09T14:30:00.Z", "not of the form"),
        ("2026-02-09T14:30:00,5Z", "not of the form"),
        ("2026-02-09T14:30:00.0123456789Z", "not of the form"),
        ("2026-02-09T14:30:00+0200", "not of the form"),
        ("2026-02-09T14:30:00+02", "not of the form"),
        ("2026-02-09T14:30:00ZZ", "not of the form"),
        ("20260-02-09T14:30:00Z", "not of the form"),
        ("-2026-02-09T14:30:00Z", "not of the form"),
        ("2016-12-31T23:59:60Z", "leap second"),
        ("2026-02-30T00:00:00Z", "no such date"),
        ("2025-02-29T00:00:00Z", "no such date"),
        ("2026-13-01T00:00:00Z", "no such date"),
        ("2026-00-01T00:00:00Z", "no such date"),
        ("0000-01-01T00:00:00Z", "no such date"),
        ("2026-02-09T24:00:00Z", "no such date or time"),
        ("2026-02-09T14:60:00Z", "no such date or time"),
        ("2026-02-09T14:30:61Z", "no such date or time"),
        ("2026-02-09T14:30:00+24:00", "offset"),
        ("2026-02-09T14:30:00-02:60", "offset"),
        ("0001-01-01T00:00:00+00:01", "outside the years"),
        ("9999-12-31T23:59:59-00:01", "outside the years"),
    ],
)
def test_invalid_timestamp_is_refused_with_reason_and_example(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        parse_rfc3339(text)
    assert "for example, 2026-02-09T14:30:00.000Z." in str(caught.value)


def test_hostile_timestamp_is_shown_short_and_escaped() -> None:
    with pytest.raises(ValueError, match="not of the form") as caught:
        parse_rfc3339("\x1b[31m\uff12" + "9" * 100_000)
    shown = str(caught.value)
    assert shown.isascii()
    assert shown.isprintable()
    assert len(shown) < 200


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1_770_647_400_007, "2026-02-09T14:30:00.007Z"),
        (FIRST, "0001-01-01T00:00:00.000Z"),
        (LAST, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_timestamp_is_formatted_with_milliseconds_and_z(moment: int, text: str) -> None:
    assert to_rfc3339(moment) == text


@pytest.mark.parametrize(
    ("moment", "nearest"),
    [(FIRST - 1, FIRST), (LAST + 1, LAST), (-(10**30), FIRST), (10**30, LAST)],
)
def test_timestamp_outside_calendar_is_formatted_as_the_nearest(moment: int, nearest: int) -> None:
    assert to_rfc3339(moment) == to_rfc3339(nearest)


@given(st.integers(FIRST, LAST))
def test_formatted_timestamp_round_trips(moment: int) -> None:
    assert parse_rfc3339(to_rfc3339(moment)) == moment


@given(st.lists(st.integers(FIRST, LAST), min_size=2, max_size=2))
def test_formatted_timestamps_sort_like_moments(moments: list[int]) -> None:
    assert sorted(map(to_rfc3339, moments)) == list(map(to_rfc3339, sorted(moments)))


@given(st.integers(FIRST + DAY, LAST - DAY), st.integers(-23 * 60 - 59, 23 * 60 + 59))
def test_offsets_agree_with_datetime(moment: int, offset: int) -> None:
    there = timezone(timedelta(minutes=offset))
    local = (EPOCH + timedelta(milliseconds=moment)).astimezone(there)
    assert parse_rfc3339(local.isoformat()) == moment


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0ms"), (1, "1ms"), (1_500, "1500ms"), (90_000, "90s"), (300_000, "5m"),
     (7_200_000, "2h"), (86_400_000, "1d")],
)  # fmt: skip
def test_duration_uses_largest_whole_unit(milliseconds: int, text: str) -> None:
    assert format_duration(milliseconds) == text


@proves("CLI-DOCTOR")
@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(999, "999ms"), (90_500, "1m"), (DAY - 1, "23h"), (251_607_475_392_427, "2912123d")],
)
def test_rough_duration_uses_largest_unit(milliseconds: int, text: str) -> None:
    assert format_rough_duration(milliseconds) == text


@proves("ACP-RESPONSE")
def test_duration_is_parsed_with_unit_or_in_seconds() -> None:
    durations = {"30m": 1_800_000, "90": 90_000, "500ms": 500, "2h": 7_200_000, "1d": DAY}
    assert {text: parse_duration(text) for text in durations} == durations
    for wrong in ("", "m", "-1m", "1.5h", "1 h", "1w", "٣m"):
        with pytest.raises(ValueError, match="not a length of time"):
            parse_duration(wrong)


@proves("ACP-AUDIT")
@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0s"),
        (999, "0s"),
        (90_500, "1m30s"),
        (5 * 60_000, "5m"),
        (DAY, "24h"),
        (26 * 3_600_000 + 60_000, "26h1m"),
    ],
)
def test_duration_in_hours_uses_hours_at_most(milliseconds: int, text: str) -> None:
    assert format_hours(milliseconds) == text

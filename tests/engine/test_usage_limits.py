"""Sentences of vendors' programs about usage limits."""

import time

import pytest

from dragoman.core.timestamps import parse_rfc3339
from dragoman.engine.usage_limits import find_limit_end, find_usage_limit
from tests.requirements import proves

pytestmark = proves("USAGE-LIMIT")

NOW = parse_rfc3339("2026-02-09T12:00:00Z")
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("line", "until"),
    [
        ("Claude AI usage limit reached|1770660000", 1_770_660_000_000),
        ("usage limit exceeded, resets at 2026-02-09T15:00:00Z", NOW + 3 * 3_600_000),
        ("Rate limit reached: try again in 2 hours 5 minutes.", NOW + 125 * 60_000),
        ("You've hit your usage limit. Try again in 3 days 1 hour.", NOW + 73 * 3_600_000),
        ("You've hit your session limit · resets 3pm (UTC)", NOW + 3 * HOUR),
        ("weekly limit has been reached", 0),
        ("error: rate_limit", 0),
        ("quota limit hit at 1770660000123", 1_770_660_000_123),
        ("session limit reached, again at 2026-99-09T15:00:00Z", 0),
    ],
)
def test_limit_is_found_in_a_line(line: str, until: int) -> None:
    assert find_usage_limit(line, NOW) == until


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("You've hit your limit · resets 3am (UTC)", "2026-02-10T03:00:00Z"),
        ("session limit · resets 5:30am (Europe/Berlin)", "2026-02-10T04:30:00Z"),
        ("session limit reached ∙ resets 12pm (UTC)", "2026-02-10T12:00:00Z"),
        ("session limit reached ∙ resets 12am (utc)", "2026-02-10T00:00:00Z"),
        ("5-hour limit reached ∙ resets 3pm", "2026-02-09T18:00:00Z"),
        ("5-hour limit reached ∙ resets 6am", "2026-02-10T09:00:00Z"),
        ("weekly limit · resets Feb 14, 3pm (UTC)", "2026-02-14T15:00:00Z"),
        ("weekly limit · resets Feb 9 at 11am (America/Lima)", "2026-02-09T16:00:00Z"),
        (
            "You've hit your usage limit, try again at Feb 12th, 2026 3:05 PM.",
            "2026-02-12T18:05:00Z",
        ),
    ],
)
def test_clock_time_is_its_next_moment(
    line: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a zone it is that of this machine, here three hours behind."""
    monkeypatch.setenv("TZ", "XST+3")
    time.tzset()
    try:
        assert find_usage_limit(line, NOW) == parse_rfc3339(end)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_clock_time_is_that_of_the_day_on_which_clocks_change() -> None:
    before = parse_rfc3339("2026-03-28T20:00:00Z")
    line = "weekly limit · resets 5am (Europe/Berlin)"
    assert find_usage_limit(line, before) == parse_rfc3339("2026-03-29T03:00:00Z")


def test_year_may_end_before_the_limit() -> None:
    new_year = parse_rfc3339("2026-12-30T20:00:00Z")
    line = "weekly limit · resets Jan 2, 3pm (UTC)"
    assert find_usage_limit(line, new_year) == parse_rfc3339("2027-01-02T15:00:00Z")


@pytest.mark.parametrize(
    "when",
    [
        "resets Mar 24, 3pm (UTC)",
        "resets Feb 9, 11am (UTC)",
        "resets Feb 30, 3pm (UTC)",
        "resets Foo 12, 3pm (UTC)",
        "resets 13pm (UTC)",
        "resets 3:75pm (UTC)",
        "resets 3pm (Europe/Nowhere)",
        "resets 3pm (../etc/passwd)",
        "resets 3pm (Europe)",
        "resets soon",
    ],
)
def test_clock_time_that_is_not_understood_is_unknown(when: str) -> None:
    assert find_usage_limit(f"You've hit your limit · {when}", NOW) == 0


@pytest.mark.parametrize(
    "line", ["", "the limit of the function is 3", "rate limiting tests pass", "x" * 100_000]
)
def test_other_lines_say_nothing_of_a_limit(line: str) -> None:
    assert find_usage_limit(line, NOW) is None


def test_end_is_found_without_the_word_limit() -> None:
    assert find_limit_end("wait: in 90 s", NOW) == NOW + 90_000
    assert find_limit_end("Server is busy", NOW) == 0

"""Sentences of vendors' programs about usage limits."""

import pytest

from dragoman.core.timestamps import parse_rfc3339
from dragoman.engine.usage_limits import find_limit_end, find_usage_limit
from tests.requirements import proves

pytestmark = proves("USAGE-LIMIT")

NOW = parse_rfc3339("2026-02-09T12:00:00Z")


@pytest.mark.parametrize(
    ("line", "until"),
    [
        ("Claude AI usage limit reached|1770660000", 1_770_660_000_000),
        ("usage limit exceeded, resets at 2026-02-09T15:00:00Z", NOW + 3 * 3_600_000),
        ("Rate limit reached: try again in 2 hours 5 minutes.", NOW + 125 * 60_000),
        ("You've hit your usage limit. Try again in 3 days 1 hour.", NOW + 73 * 3_600_000),
        ("You've hit your session limit · resets 3pm (UTC)", 0),
        ("weekly limit has been reached", 0),
        ("error: rate_limit", 0),
        ("quota limit hit at 1770660000123", 1_770_660_000_123),
        ("session limit reached, again at 2026-99-09T15:00:00Z", 0),
    ],
)
def test_limit_is_found_in_a_line(line: str, until: int) -> None:
    assert find_usage_limit(line, NOW) == until


@pytest.mark.parametrize(
    "line", ["", "the limit of the function is 3", "rate limiting tests pass", "x" * 100_000]
)
def test_other_lines_say_nothing_of_a_limit(line: str) -> None:
    assert find_usage_limit(line, NOW) is None


def test_end_is_found_without_the_word_limit() -> None:
    assert find_limit_end("wait: in 90 s", NOW) == NOW + 90_000
    assert find_limit_end("Server is busy", NOW) == 0

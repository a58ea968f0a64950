"""Parsing of command-line values, and the name of the local user."""

import pytest

from dragoman.core.ids import check_agent
from dragoman.core.timestamps import parse_duration, parse_rfc3339
from dragoman.surfaces.cli.command import parse_clock, parse_text
from dragoman.surfaces.cli.data_directory import login_name, sanitize_login
from tests.requirements import proves
from tests.surfaces.cli.console import Console

pytestmark = proves("CLI-PROMISES")


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("0", 0), ("1", 1_000), ("500ms", 500), ("90s", 90_000), ("5m", 300_000), ("1d", 86_400_000)],
)
def test_duration_is_parsed(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "m", "-1", "1.5", "5 m", "5M", "1e3", "\uff15m", "9" * 13])
def test_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a length of time"):
        parse_duration(text)


def test_moment_and_text_are_parsed() -> None:
    assert parse_rfc3339("1970-01-01T00:00:01Z") == 1_000
    assert parse_text("ä") == "ä"
    with pytest.raises(ValueError, match="is not valid UTF-8"):
        parse_text("\udcff")


def test_too_long_number_is_refused_as_such(dragoman: Console) -> None:
    result = dragoman("task", "list", "--before", "9" * 23)
    assert result.code == 2
    assert f"{'9' * 23} has more digits than a number may have here, 18" in result.err
    assert dragoman("task", "list", "--before", "1x").err.count("is not a whole number") == 1


def test_clock_before_1970_is_refused() -> None:
    assert parse_clock("1970-01-01T00:00:00Z") == 0
    with pytest.raises(ValueError, match="is before 1970, where the hub's clock begins"):
        parse_clock("1969-12-31T23:59:59.999Z")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ada", "ada"),
        ("Ada.Lovelace_1-x", "Ada.Lovelace_1-x"),
        ("DOMAIN\\ada", "DOMAIN-ada"),
        ("ada lovelace", "ada-lovelace"),
        ("_apt", "apt"),
        ("-", ""),
        ("ädä", "d-"),
        ("x" * 200, "x" * 128),
    ],
)
def test_login_name_is_fitted_to_the_grammar(name: str, expected: str) -> None:
    assert sanitize_login(name) == expected
    assert not expected or check_agent(expected) is None


def test_local_user_always_has_a_valid_name() -> None:
    assert check_agent(login_name()) is None

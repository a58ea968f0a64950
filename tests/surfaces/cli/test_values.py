"""How words become values, and who sits at the keyboard."""

import pytest

from dragoman.core.ids import check_agent
from dragoman.surfaces.cli.person import fit, login_name
from dragoman.surfaces.cli.values import read_clock, read_duration, read_moment, read_text
from tests.requirements import proves
from tests.surfaces.cli.console import Console

pytestmark = proves("CLI-PROMISES")


@pytest.mark.parametrize(
    ("given", "milliseconds"),
    [("0", 0), ("1", 1_000), ("500ms", 500), ("90s", 90_000), ("5m", 300_000), ("1d", 86_400_000)],
)
def test_a_length_of_time_is_read(given: str, milliseconds: int) -> None:
    assert read_duration(given) == milliseconds


@pytest.mark.parametrize("given", ["", "m", "-1", "1.5", "5 m", "5M", "1e3", "\uff15m", "9" * 13])
def test_anything_else_is_no_length_of_time(given: str) -> None:
    with pytest.raises(ValueError, match="is not a length of time"):
        read_duration(given)


def test_a_moment_is_read_and_a_text_must_be_text() -> None:
    assert read_moment("1970-01-01T00:00:01Z") == 1_000
    assert read_text("ä") == "ä"
    with pytest.raises(ValueError, match="is not valid UTF-8"):
        read_text("\udcff")


def test_a_number_that_is_too_long_is_one_all_the_same(dragoman: Console) -> None:
    said = dragoman("task", "list", "--before", "9" * 23)
    assert said.code == 2
    assert f"{'9' * 23} has more digits than a number may have here, 18" in said.err
    assert dragoman("task", "list", "--before", "1x").err.count("is not a whole number") == 1


def test_the_clock_of_a_hub_begins_in_1970() -> None:
    assert read_clock("1970-01-01T00:00:00Z") == 0
    with pytest.raises(ValueError, match="is before 1970, where the hub's clock begins"):
        read_clock("1969-12-31T23:59:59.999Z")


@pytest.mark.parametrize(
    ("name", "fitted"),
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
def test_a_login_name_is_made_to_fit_the_grammar(name: str, fitted: str) -> None:
    assert fit(name) == fitted
    assert not fitted or check_agent(fitted) is None


def test_somebody_always_sits_at_the_keyboard() -> None:
    assert check_agent(login_name()) is None

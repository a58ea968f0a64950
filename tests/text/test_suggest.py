"""Suggestions: the name that was probably meant, or none."""

import pytest

from dragoman.text.nearest import meant, nearest_or_all
from tests.requirements import proves

pytestmark = proves("NEAREST-NAME")


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("titel", ("body", "title"), "; did you mean title?"),
        ("reviewRequired", ("title", "review_required"), "; did you mean review_required?"),
        ("status", ("title", "body", "ready"), ""),
        ("foo", ("status", "cursor"), ""),
        ("review_required", ("progress", "fence"), ""),
        ("foo", (), ""),
        ("x" * 100_000, ("xx",), ""),
    ],
)
def test_only_near_names_are_suggested(name: str, known: tuple[str, ...], hint: str) -> None:
    assert meant(name, known) == hint


def test_all_names_are_listed_when_none_is_near() -> None:
    assert nearest_or_all("titel", ("body", "title")) == "; did you mean title?"
    assert nearest_or_all("foo", ("status", "cursor")) == "; known: status, cursor"
    assert nearest_or_all("foo", ()) == ""

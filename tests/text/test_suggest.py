"""Suggestions: the name that was probably meant, or none."""

import pytest

from dragoman.text.error_messages import suggest, suggest_or_list
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
    assert suggest(name, known) == hint


def test_all_names_are_listed_when_none_is_near() -> None:
    assert suggest_or_list("titel", ("body", "title")) == "; did you mean title?"
    assert suggest_or_list("foo", ("status", "cursor")) == "; known: status, cursor"
    assert suggest_or_list("foo", ()) == ""

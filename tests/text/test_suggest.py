"""Suggestions: the name that was probably meant, or none."""

import pytest

from dragoman.text.error_messages import is_one_edit, suggest, suggest_given_name, suggest_or_list
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


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("swe-bakend", ("swe-backend", "owner"), "; did you mean swe-backend?"),
        (
            "TASK-2026-02-09-010",
            ("TASK-2026-02-09-100", "TASK-2026-02-09-101"),
            "TASK-2026-02-09-100",
        ),
        ("TASK-2026-02-09-019", ("TASK-2026-02-09-100", "TASK-2026-02-08-010"), ""),
        ("step-12", ("step-2", "step-98"), "; did you mean step-2?"),
        ("release-12", ("release-98", "releases-98"), "; did you mean releases-98?"),
        ("coder", ("owner",), ""),
        ("python", ("pyt",), ""),
        ("T-9", ("T-1", "T-2"), ""),
        ("x", (), ""),
    ],
)
def test_given_names_are_suggested_when_they_were_meant(
    name: str, known: tuple[str, ...], hint: str
) -> None:
    found = suggest_given_name(name, known)
    assert hint in found
    assert bool(hint) == bool(found)


@pytest.mark.parametrize(
    ("name", "other", "is_one"),
    [
        ("parse", "prase", True),
        ("parse", "pase", True),
        ("parse", "parsee", True),
        ("parse", "parze", True),
        ("parse", "prsae", False),
        ("parse", "par", False),
        ("parse", "paxsy", False),
    ],
)
def test_one_edit_leaves_out_adds_replaces_or_swaps(name: str, other: str, is_one: bool) -> None:
    assert is_one_edit(name, other) is is_one

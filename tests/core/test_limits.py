"""Bounds at one less, at the limit and at one more; and JSON that can be encoded again."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.limits import check_count, check_json, check_range, check_text
from tests.requirements import proves

pytestmark = proves("LIMIT-TEXT")

MAX_SAFE_INTEGER = 9_007_199_254_740_991


def code(refusal: object) -> str:
    """Code of a refusal; empty if there is none."""
    return getattr(refusal, "code", "")


def nested(depth: int) -> object:
    """Nested lists of this depth."""
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(("length", "fits"), [(0, True), (9, True), (10, True), (11, False)])
def test_text_and_list_lengths_are_bounded(length: int, fits: bool) -> None:
    assert (check_text("title", "é" * length, 10) is None) is fits
    assert (check_count("list", "x" * length, 10) is None) is fits


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u200b", " \u200b\u2060 ", "\ufeff"])
def test_invisible_text_is_empty(text: str) -> None:
    assert "title is empty" in str(check_text("title", text, 10, minimum=1))
    assert check_text("title", text, 10) is None
    assert check_text("title", f"{text}.", 10, minimum=1) is None


def test_refusal_names_field_value_and_limit() -> None:
    assert "title has 11 characters; at most 10" in str(check_text("title", "x" * 11, 10))
    assert "links has 11 items; at most 10" in str(check_count("links", "x" * 11, 10))
    assert "ttl is 0; it must be from 1 to 2" in str(check_range("ttl", 0, 1, 2))


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000"])
def test_required_text_is_not_blank(text: str) -> None:
    assert code(check_text("title", text, 10, minimum=1)) == "invalid_field"
    assert check_text("title", text, 10) is None


@pytest.mark.parametrize("text", ["\ud800", "ab\udc00", "x\udbff\udbff"], ids=ascii)
def test_lone_surrogate_is_refused_with_its_position(text: str) -> None:
    refusal = check_text("title", text, 10)
    assert code(refusal) == "invalid_field"
    position = next(n for n, c in enumerate(text, 1) if "\ud800" <= c <= "\udfff")
    assert f"character {position} is half of a surrogate pair" in str(refusal)


@given(st.text())
def test_text_is_accepted_exactly_when_it_can_be_encoded(text: str) -> None:
    try:
        text.encode()
        can_be_written = True
    except UnicodeEncodeError:
        can_be_written = False
    assert (check_text("title", text, 10**6) is None) is can_be_written


@pytest.mark.parametrize(
    ("value", "fits"), [(-1, False), (0, True), (1, True), (4, True), (5, True), (6, False)]
)
def test_number_lies_within_its_bounds(value: int, fits: bool) -> None:
    assert (check_range("n", value, 0, 5) is None) is fits


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        (None, True),
        (True, True),
        ("é", True),
        ({"a": [1, {"b": (2.5, "c")}]}, True),
        (MAX_SAFE_INTEGER - 1, True),
        (MAX_SAFE_INTEGER, True),
        (MAX_SAFE_INTEGER + 1, False),
        (-MAX_SAFE_INTEGER, True),
        (-MAX_SAFE_INTEGER - 1, False),
        (1e308, True),
        (float("nan"), False),
        (float("inf"), False),
        ({"a": float("-inf")}, False),
        ("\ud800", False),
        ({"\ud800": 1}, False),
        ([1, {"a": ["\udfff"]}], False),
        (nested(31), True),
        (nested(32), True),
        (nested(33), False),
        ({"a": nested(31)}, True),
        ({"a": nested(32)}, False),
        (nested(100_000), False),
    ],
    ids=range(22),
)
def test_json_is_accepted_if_it_can_be_encoded_without_loss(value: object, fits: bool) -> None:
    assert code(check_json("details", value)) == ("" if fits else "invalid_field")


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(st.characters(blacklist_categories=()), max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
        max_leaves=8,
    )
)
def test_accepted_json_round_trips(value: object) -> None:
    if check_json("details", value) is None:
        assert msgspec.json.decode(msgspec.json.encode(value)) == value

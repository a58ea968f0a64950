"""Canonical JSON: the fast writer and rfc8785 write the same bytes."""

from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.canonical import canonical_json, canonical_sha256
from tests.requirements import proves

pytestmark = proves("ACP-PACKAGE-HASH")

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXT, VALUES, max_size=6))
def test_any_object_is_written_as_rfc8785_requires(value: dict[str, Any]) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    "value",
    [
        {"b": 1, "a": [True, None, '\x00\x1f\x7f"\\/\b\f\n\r\t']},
        {"a": "\u2028 \u202e \U0001f600 é"},
        {"\U0001f600": 1, "\ufb33": 2},
        {"é": 1, "z": 2},
        {"a": 1.0, "b": -0.0, "c": 1e21, "d": 0.1},
        {"a": (1, 2)},
        {"a": list(range(200_000))},
    ],
    ids=lambda value: str(value)[:20],
)
def test_edge_cases_are_written_as_rfc8785_requires(value: dict[str, Any]) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


def nested_object(levels: int, innermost: float) -> dict[str, Any]:
    value: dict[str, Any] = {"a": innermost}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "value",
    [
        {"a": 2**53},
        {"a": -(2**53)},
        {"a": float("nan")},
        {"a": "\ud800"},
        {"a": "\ud800", "b": 0.5},
        {"a": b"x"},
        nested_object(9_999, 0),
        nested_object(9_999, 0.5),
    ],
    ids=range(8),
)
def test_value_without_a_canonical_form_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical_sha256(value)

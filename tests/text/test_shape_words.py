"""What is wrong with a shape is told in words, with its place."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from dragoman.text.shape_words import shape_fault
from tests.requirements import proves

pytestmark = proves("SHAPE-WORDS")


class Inner(Struct, forbid_unknown_fields=True):
    """A part."""

    count: Annotated[int, Meta(ge=1, le=3)]
    tier: Literal["T0", "T1"] = "T0"


class Outer(Struct):
    """A whole."""

    inner: Inner
    is_so: bool = True
    name: Annotated[str, Meta(min_length=2, max_length=3)] = "ab"
    size: int | None = None


@pytest.mark.parametrize(
    ("value", "reason", "path"),
    [
        ({}, "inner is missing", "inner"),
        ({"inner": {}}, "count is missing", "inner.count"),
        ({"inner": {"count": 2}, "is_so": "yes"}, "it must be true or false, not a text", "is_so"),
        (
            {"inner": {"count": 2}, "size": []},
            "it must be a whole number or null, not a list",
            "size",
        ),
        ({"inner": {"count": 0}}, "it must be a whole number, at least 1", "inner.count"),
        ({"inner": {"count": 4}}, "it must be a whole number, at most 3", "inner.count"),
        (
            {"inner": {"count": 1}, "name": "a"},
            "it must be a text, of at least 2 characters or parts",
            "name",
        ),
        ({"inner": {"count": 1, "tier": "T9"}}, "'T9' is not one of its values", "inner.tier"),
        ({"inner": {"count": 1, "n": 1}}, "there is no field n here", "inner"),
        ([], "it must be an object, not a list", ""),
    ],
)
def test_each_fault_has_its_words(value: Any, reason: str, path: str) -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.convert(value, Outer)
    assert shape_fault(str(raised.value)) == (reason, path)


def test_what_is_not_known_stays_as_it_is() -> None:
    assert shape_fault("something else - at `$.a`") == ("something else", "a")

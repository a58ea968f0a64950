"""Errors of shapes: the reason, the path, and what would be valid."""

from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
import pytest
from msgspec import UNSET, Meta, Struct, UnsetType

from dragoman.text.error_messages import ShapeFault, join_path, shape_fault
from tests.requirements import proves

pytestmark = proves("SHAPE-WORDS")

T = TypeVar("T")


class Inner(Struct, forbid_unknown_fields=True):
    """A nested shape."""

    count: Annotated[int, Meta(ge=1, le=3)]
    tier: Literal["T0", "T1"] = "T0"


class Box(Struct, Generic[T], rename="camel"):
    """A generic shape."""

    task_id: T


class Cat(Struct, tag="cat"):
    """One variant of a tagged union."""

    name: str = ""
    way: Literal["in", "out"] = "in"


class Dog(Struct, tag="dog"):
    """The other variant."""

    name: Annotated[str, Meta(max_length=3)] = ""
    way: int = 0


Day = Annotated[str, Meta(pattern="^[a-z]+$", extra={"reason": "a day such as monday"})]


class Outer(Struct):
    """The shape under test."""

    inner: Inner
    is_so: bool = True
    name: Annotated[str, Meta(min_length=2, max_length=3, pattern="^a")] = "ab"
    size: int | None = None
    share: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    many: Annotated[tuple[Inner, ...], Meta(max_length=2)] = ()
    one: Annotated[list[str], Meta(min_length=1)] = []
    pair: tuple[int, Literal["x"]] = (1, "x")
    table: Annotated[dict[str, Inner], Meta(max_length=1)] = {}
    named: dict[int, int] = {}
    keyed: dict[Literal["x", "y"], int] = {}
    kind: Cat | Dog | None = None
    tier: Literal["T0", "T1"] | UnsetType = UNSET
    version: Literal[1] = 1
    priority: Literal["a", "b"] | int = 0
    outcome: Literal["a", "b", ""] = ""
    day: Day | UnsetType = UNSET
    days: tuple[Day, ...] = ()
    until: Day | int = 0
    box: Box[Inner] | None = None


GOOD = {"inner": {"count": 1}}


@pytest.mark.parametrize(
    ("value", "reason", "path"),
    [
        ({}, "it is missing", "inner"),
        ({"inner": {}}, "it is missing", "inner.count"),
        ({"is_so": "yes"}, "it must be true or false, not a text", "is_so"),
        ({"size": []}, "it must be a whole number or null, not a list", "size"),
        ({"size": 1.5}, "a whole number or null, not a number with a point", "size"),
        ({"inner": {"count": 0}}, "it must be a whole number, at least 1", "inner.count"),
        ({"inner": {"count": 4}}, "it must be a whole number, at most 3", "inner.count"),
        ({"share": 0}, "it must be a number, more than 0.0", "share"),
        ({"share": 1}, "it must be a number, less than 1.0", "share"),
        ({"name": "a"}, "it must be a text of at least 2 characters", "name"),
        ({"name": "bb"}, "it must be a text of the form '^a'", "name"),
        ({"one": []}, "it must be a list of at least 1 entry", "one"),
        ({"many": [1, 2, 3]}, "it must be a list of at most 2 entries", "many"),
        ({"many": [{"count": 9}]}, "it must be a whole number, at most 3", "many[0].count"),
        ({"pair": [1]}, "it must be a list of 2 entries, not 1", "pair"),
        ({"pair": [1, "y"]}, "it must be x, not 'y'", "pair[1]"),
        ({"table": {"a": 1, "b": 1}}, "it must be an object of at most 1 field", "table"),
        ({"table": {"a.b": {"count": 1, "tier": "T"}}}, "'T' is not one of: T0, T1", None),
        ({"named": {"x": 1}}, "a name in it: it must be a whole number, not a text", "named"),
        ({"keyed": {"z": 1}}, "a name in it: 'z' is not one of: x, y", "keyed"),
        ({"tier": "T9"}, "'T9' is not one of: T0, T1", "tier"),
        ({"tier": "T" * 99}, f"'{'T' * 59}… is not one of: T0, T1", "tier"),
        ({"tier": 9}, "it must be one of: T0, T1", "tier"),
        ({"version": 2}, "it must be 1, not 2", "version"),
        ({"version": "1"}, "it must be 1", "version"),
        ({"priority": "c"}, "'c' is not one of: a, b", "priority"),
        ({"outcome": "c"}, "'c' is not one of: a, b", "outcome"),
        ({"priority": []}, "it must be a whole number or a text, not a list", "priority"),
        ({"kind": {"type": "cow"}}, "'cow' is not one of: cat, dog", "kind.type"),
        ({"kind": {"type": "cat", "way": "up"}}, "'up' is not one of: in, out", "kind.way"),
        (
            {"kind": {"type": "dog", "way": "up"}},
            "it must be a whole number, not a text",
            "kind.way",
        ),
        ({"kind": {}}, "it is missing", "kind.type"),
        ({"day": "7"}, "it must be a day such as monday", "day"),
        ({"day": 7}, "it must be a day such as monday", "day"),
        ({"days": ["monday", "7"]}, "it must be a day such as monday", "days[1]"),
        ({"until": []}, "it must be a whole number or a text, not a list", "until"),
        ({"inner": {"count": 1, "teir": 1}}, "no such field; did you mean tier?", "inner.teir"),
        ({"inner": {"count": 1, "n": 1}}, "there is no such field; known: count, tier", "inner.n"),
        ({"inner": {"count": 1, "\n": 1}}, "there is no such field; known", r"inner.'\n'"),
        ({"box": {"taskId": {}}}, "it is missing", "box.taskId.count"),
        ([], "it must be an object, not a list", ""),
    ],
)
def test_each_fault_has_a_reason_and_a_path(value: Any, reason: str, path: str | None) -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.convert(GOOD | value if value else value, Outer)
    fault = shape_fault(raised.value, Outer)
    assert reason in fault.reason
    assert fault.path == ("table[...].tier" if path is None else path)
    assert str(fault) == (f"{fault.path}: {fault.reason}" if fault.path else fault.reason)


def test_reason_omits_the_actual_type_when_every_value_is_text() -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.convert(GOOD | {"size": "x"}, Outer, strict=False)
    assert shape_fault(raised.value, Outer, is_text=True).reason == (
        "it must be a whole number or null"
    )


@pytest.mark.parametrize("shape", [Any, dict[str, Any], list, Inner])
def test_reason_without_known_choices_is_shorter(shape: Any) -> None:
    invalid_choice = ValueError("Invalid enum value 'x' - at `$.a[1].b`")
    assert shape_fault(invalid_choice, shape) == ShapeFault(
        "'x' is not one of its values", "a[1].b"
    )
    unknown_field = ValueError("Object contains unknown field `c` - at `$.a`")
    assert shape_fault(unknown_field, shape) == ShapeFault("there is no such field", "a.c")


def test_unknown_validation_message_is_kept() -> None:
    fault = shape_fault(ValueError("something else - at `$.a`"), Outer)
    assert fault == ShapeFault("something else", "a")


def test_paths_are_joined() -> None:
    assert [
        join_path("", ""),
        join_path("a", ""),
        join_path("", "b"),
        join_path("a", "b"),
        join_path("a", "[0].b"),
    ] == [*("", "a", "b", "a.b", "a[0].b")]

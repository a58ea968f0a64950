"""Strict JSON from untrusted callers: limits, arbitrary bytes, and errors with a path."""

import json
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.strict_json import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_KEY_LENGTH,
    MAX_NODES,
    MAX_SAFE_INTEGER,
    StrictJsonError,
    encode_json,
    parse_json,
)
from tests.requirements import proves

pytestmark = proves("JSON-STRICT")

TEXTS = st.text(st.characters(codec="utf-8"), max_size=MAX_KEY_LENGTH)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=20,
)


def parse_refused(text: bytes | str, most_bytes: int = MAX_BYTES) -> StrictJsonError:
    """Parse a text that must be refused and return the error."""
    with pytest.raises(StrictJsonError) as caught:
        parse_json(text, most_bytes)
    return caught.value


def nested(depth: int, opening: str = "[", closing: str = "]") -> str:
    return opening * depth + closing * depth


@given(VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_valid_json_is_read(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert parse_json(text) == value
    assert parse_json(text.encode()) == value


@pytest.mark.parametrize(
    ("at_limit", "beyond_limit", "reason"),
    [
        pytest.param(nested(MAX_DEPTH), nested(MAX_DEPTH + 1), "32 deep", id="depth of arrays"),
        pytest.param(
            nested(MAX_DEPTH, '{"a":', "}").replace(":}", ":1}", 1),
            nested(MAX_DEPTH + 1, '{"a":', "}").replace(":}", ":1}", 1),
            "32 deep",
            id="depth of objects",
        ),
        pytest.param(
            json.dumps([1] * (MAX_NODES - 1)),
            json.dumps([1] * MAX_NODES),
            "more than 10000 values",
            id="values",
        ),
        pytest.param(
            json.dumps({"k" * MAX_KEY_LENGTH: 1}),
            json.dumps({"k" * (MAX_KEY_LENGTH + 1): 1}),
            "more than 64 characters",
            id="keys",
        ),
        pytest.param(str(MAX_SAFE_INTEGER), str(MAX_SAFE_INTEGER + 1), "whole number", id="large"),
        pytest.param(
            str(-MAX_SAFE_INTEGER), str(-MAX_SAFE_INTEGER - 1), "whole number", id="small"
        ),
    ],
)
def test_value_at_a_limit_is_read_and_beyond_it_refused(
    at_limit: str, beyond_limit: str, reason: str
) -> None:
    parse_json(at_limit)
    assert reason in parse_refused(beyond_limit).reason


@pytest.mark.parametrize("text", ['"aaa"', b'"aaa"', '"äü"'], ids=["text", "bytes", "not ASCII"])
def test_size_limit_counts_bytes(text: str | bytes) -> None:
    size = len(text if isinstance(text, bytes) else text.encode())
    parse_json(text, size)
    error = parse_refused(text, size - 1)
    assert error.too_large
    assert f"more than {size - 1} bytes" in error.reason


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a":1,"a":1}', "a"),
        ('{"a":1,"b":{},"a":2}', "a"),
        (r'{"a":1,"\u0061":2}', "a"),
        ('{"a":{"b":[0,{"c":1},{"d":2,"d":3}]}}', "a.b[2].d"),
        ('[[],{"x":[1,2],"y":"{\\"x\\":1,", "x":0}]', "[1].x"),
        (r'{"a":"x\u003ay","b":{"c":":","c":":"}}', "b.c"),
        ('{"":1,"":2}', ""),
    ],
)
def test_duplicate_key_is_refused_with_its_path(text: str, path: str) -> None:
    error = parse_refused(text)
    assert error.path == path
    assert "twice" in error.reason


@pytest.mark.parametrize(
    "text",
    [
        '{"a":":","b":"::","c:":{"d":"a:b"}}',
        r'{"a":"\u003a","b":"\u003A"}',
        r'{"a":"\\u003a"}',
        '{"a":{"a":{"a":[{"a":1},{"a":1}]}}}',
    ],
)
def test_colons_in_texts_are_not_taken_for_keys(text: str) -> None:
    assert parse_json(text) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a":[1,{"b":9007199254740992}]}', "a[1].b"),
        ('{"a":{"%s":1}}' % ("k" * 70), "a." + "k" * 40 + "…"),
        ('{"a":' + nested(MAX_DEPTH) + "}", "a" + "[0]" * (MAX_DEPTH - 1)),
    ],
)
def test_exceeded_limit_is_refused_with_its_path(text: str, path: str) -> None:
    assert parse_refused(text).path == path


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "there is nothing in it"),
        (b" \n", "there is nothing in it"),
        (b'{"a":', "it ends before it is complete"),
        (b"NaN", "not JSON"),
        (b"[Infinity]", "not JSON"),
        (b'{"a":-Infinity}', "not JSON"),
        (b"1e400", "not JSON"),
        (b"1" * 5_000, "not JSON"),
        (b"{'a':1}", "not JSON"),
        (b'{"a":1,}', "not JSON"),
        (b"[1] [2]", "not JSON"),
        (b'"\x00"', "not JSON"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'"\\ud800"', "\\ud800 (byte 1) is half of a surrogate pair"),
        (b'"\\udc00x"', "\\udc00 (byte 1) is half of a surrogate pair"),
        (b'"\\ud83d\\ude00 \\\\ud800 \\ud800"', "\\ud800 (byte 22) is half"),
        (b'"\xff"', "not UTF-8: invalid start byte (byte 1)"),
        (b"\xff", "not UTF-8"),
        (b'"\xed\xa0\x80"', "byte 1 begins half of a surrogate pair"),
        (b'{"\xc0\xaf":1}', "not UTF-8"),
        ('"\ud800"', "half of a surrogate pair"),
        (b"[" * 30_000, "32 deep"),
        (b'{"a":' * 30_000, "32 deep"),
    ],
)
def test_invalid_json_is_refused_with_the_reason(text: bytes | str, reason: str) -> None:
    assert reason in parse_refused(text).reason


def test_surrogate_pair_is_one_character() -> None:
    assert parse_json(rb'"\ud83d\ude00"') == "😀"


@given(st.binary() | st.text(st.characters(exclude_categories=[])))
def test_any_input_is_parsed_or_refused(raw: bytes | str) -> None:
    with suppress(StrictJsonError):
        parse_json(raw)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":"' + "\\\\" * 60_000 + '","a":1}',
        '{"' + '":1,"'.join(str(n) for n in range(5_000)) + '":1,"7":2}',
        '["' + ":" * 200_000 + '"]',
        '{"a":"\\u003a' + "x" * 200_000 + '"}',
        '"' * 200_000,
    ],
    ids=["escapes", "keys", "colons", "an escaped colon", "quotes"],
)
def test_worst_case_texts_take_linear_time(text: str) -> None:
    # Anything worse than linear would exceed the time limit of a test run.
    with suppress(StrictJsonError):
        parse_json(text)


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"1," * 1_000_000 + b"1]",
        b"[" + b"[]," * 1_000_000 + b"1]",
        b"[" + b"[]," * 80_000 + b"1]",
        b"[" + b",".join([b"[" * 500 + b"]" * 500] * 2_000) + b"]",
        b'{"a":{' + b",".join(b'"%d":1' % number for number in range(250_000)) + b"}}",
    ],
    ids=["numbers", "lists", "lists of a short text", "nests", "keys"],
)
def test_text_of_very_many_values_takes_bounded_memory(
    text: bytes,
) -> None:
    tracemalloc.start()
    try:
        assert str(parse_refused(text, len(text))) == "it has more than 10000 values"
        assert tracemalloc.get_traced_memory()[1] < 2 * len(text)
    finally:
        tracemalloc.stop()


def test_path_of_an_excess_value_is_found_in_bounded_memory() -> None:
    text = b"[" + b"1," * 2 * MAX_NODES + b"1]"
    tracemalloc.start()
    try:
        assert parse_refused(text).path == f"[{MAX_NODES - 1}]"
        assert tracemalloc.get_traced_memory()[1] < 6_000_000
    finally:
        tracemalloc.stop()


def test_commas_and_brackets_in_texts_are_not_counted_as_values() -> None:
    long = ",[{" * 200_000 + '"\\'
    assert parse_json(json.dumps({"a": long}), 2_000_000) == {"a": long}


def test_error_has_path_and_reason() -> None:
    assert str(parse_refused('{"a":{"b":1,"b":2}}')) == "a.b: this key stands twice in its object"
    assert str(parse_refused("nope")).startswith("this is not JSON: ")


@given(VALUES)
def test_written_values_are_read_back(value: Any) -> None:
    assert parse_json(encode_json(value)) == value


def cyclic_list() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


@pytest.mark.parametrize(
    "value", [float("nan"), {"a": float("inf")}, {"a": {1, 2}}, cyclic_list(), b"bytes"], ids=repr
)
def test_value_that_json_cannot_express_is_not_written(value: Any) -> None:
    with pytest.raises(StrictJsonError, match="cannot be written as JSON"):
        encode_json(value)


def test_half_of_a_surrogate_pair_is_refused() -> None:
    assert "half of a surrogate pair" in parse_refused(encode_json({"a": "\ud800"})).reason

"""Strict CBOR from untrusted callers: the values of JSON, in one form, within the same limits."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.strict_cbor import encode_cbor, is_cbor_map, parse_cbor
from dragoman.text.strict_json import MAX_DEPTH, MAX_KEY_LENGTH, MAX_SAFE_INTEGER, StrictJsonError
from tests.requirements import proves

pytestmark = proves("CBOR-STRICT")

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


def parse_refused(data: bytes, most_bytes: int = 1_000_000) -> StrictJsonError:
    """Parse data that must be refused and return the error."""
    with pytest.raises(StrictJsonError) as caught:
        parse_cbor(data, most_bytes)
    return caught.value


@given(VALUES)
def test_written_values_are_read_back(value: Any) -> None:
    parsed = parse_cbor(encode_cbor(value))
    assert parsed == value
    assert encode_cbor(parsed) == encode_cbor(value)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        # from RFC 8949, appendix A
        (0, "00"),
        (23, "17"),
        (24, "1818"),
        (1000, "1903e8"),
        (1000000000000, "1b000000e8d4a51000"),
        (-1, "20"),
        (-1000, "3903e7"),
        (0.0, "f90000"),
        (1.1, "fb3ff199999999999a"),
        (100000.0, "fa47c35000"),
        (65504.0, "f97bff"),
        (1.0e300, "fb7e37e43c8800759c"),
        (-4.1, "fbc010666666666666"),
        (False, "f4"),
        (True, "f5"),
        (None, "f6"),
        ("", "60"),
        ("IETF", "6449455446"),
        ("\u6c34", "63e6b0b4"),
        ([], "80"),
        ([1, [2, 3], [4, 5]], "8301820203820405"),
        ({}, "a0"),
        ({"a": 1, "b": [2, 3]}, "a26161016162820203"),
    ],
)
def test_examples_of_rfc8949(value: Any, written: str) -> None:
    assert encode_cbor(value).hex() == written
    assert parse_cbor(bytes.fromhex(written)) == value


def test_equal_objects_encode_to_equal_bytes() -> None:
    assert encode_cbor({"b": 1, "a": 2}) == encode_cbor({"a": 2, "b": 1})


@pytest.mark.parametrize(
    ("data", "reason", "path"),
    [
        pytest.param("", "ends before", "", id="nothing"),
        pytest.param("a1", "ends before", "", id="cut"),
        pytest.param("a1616141ff", "byte string", "a", id="bytes"),
        pytest.param("a16161c001", "a tag", "a", id="tag"),
        pytest.param("a16161f7", "does not have", "a", id="undefined"),
        pytest.param("a16161f8ff", "does not have", "a", id="simple"),
        pytest.param("a16161f97e00", "not a number", "a", id="nan"),
        pytest.param("a16161f97c00", "not a number", "a", id="infinity"),
        pytest.param("a161619f01ff", "length is indefinite", "a", id="endless list"),
        pytest.param("bf616101ff", "length is indefinite", "", id="endless map"),
        pytest.param("1c", "reserved initial byte", "", id="reserved head"),
        pytest.param("a101f6", "key is not a text", "", id="number as key"),
        pytest.param("a2616101616102", "twice", "a", id="key twice"),
        pytest.param("a1616161ff", "not UTF-8", "a", id="no text"),
        pytest.param("1b0020000000000000", "beyond", "", id="too large a number"),
        pytest.param("3b001fffffffffffff", "beyond", "", id="too small a number"),
        pytest.param("0000", "something follows", "", id="more"),
        pytest.param("9affffffff", "ends before", "[0]", id="a list that claims much"),
        pytest.param("81" * (MAX_DEPTH + 1) + "00", "32 deep", "[0]" * MAX_DEPTH, id="depth"),
        pytest.param("992710" + "00" * 10_000, "10000 values", "[9999]", id="many"),
        pytest.param("a17841" + "61" * 65 + "00", "64 characters", "", id="long key"),
    ],
)
def test_value_that_json_cannot_express_is_refused(data: str, reason: str, path: str) -> None:
    error = parse_refused(bytes.fromhex(data))
    assert reason in error.reason
    assert error.path == path


def test_too_long_input_is_refused_unparsed() -> None:
    error = parse_refused(encode_cbor("x" * 100), most_bytes=100)
    assert error.too_large


@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_or_refused(data: bytes) -> None:
    with suppress(StrictJsonError):
        value = parse_cbor(data)
        assert parse_cbor(encode_cbor(value)) == value


def test_json_is_distinguished_from_a_cbor_map() -> None:
    assert is_cbor_map(encode_cbor({"a": 1}))
    assert not is_cbor_map(b'{"a":1}')
    assert not is_cbor_map(b"")


@pytest.mark.parametrize("value", [object(), b"bytes"])
def test_only_json_values_are_written(value: object) -> None:
    with pytest.raises(TypeError):
        encode_cbor(value)


@pytest.mark.parametrize("value", [float("nan"), 2**64])
def test_unreadable_numbers_are_not_written(value: float) -> None:
    with pytest.raises(ValueError, match=r"number|large"):
        encode_cbor(value)

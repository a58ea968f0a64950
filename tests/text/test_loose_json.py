"""Loose JSON: any text gives a value, with null for what is broken in it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.strict_json import parse_loosely
from tests.requirements import proves

pytestmark = proves("JSON-LOOSE")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a":1,"a":2}', {"a": 2}),
        (b"[NaN, -Infinity, 1e400, -1e400, 1.5]", [None, None, None, None, 1.5]),
        (b"[9007199254740993, " + b"9" * 5_000 + b"]", [9007199254740993, None]),
        (
            rb'["\ud800", "\udfff\ud83d\ude00", "\\ud800"]',
            ["\ufffd", "\ufffd\U0001f600", "\\ud800"],
        ),
        (b'["\xed\xa0\x80", "\xff"]', ["\ufffd", "\ufffd"]),
        ('["\ud800"]', ["\ufffd"]),
        (b"\xef\xbb\xbf{}", {}),
        (b'["a\tb"]', ["a\tb"]),
        (b"[" * 33 + b"]" * 33, msgspec.json.decode(b"[" * 33 + b"]" * 33)),
    ],
)
def test_readable_json_is_parsed(text: bytes | str, value: Any) -> None:
    assert parse_loosely(text) == value


@pytest.mark.parametrize(
    "text", [b"", b"{", b"nope", b'{"a":1', b"[" * 100_000, "{}".encode("utf-16")]
)
def test_unreadable_json_gives_the_default(text: bytes) -> None:
    assert parse_loosely(text) is None
    assert parse_loosely(text, default={}) == {}


@given(st.binary() | st.text(st.characters(exclude_categories=[])))
def test_any_text_gives_an_encodable_value(text: bytes | str) -> None:
    msgspec.json.encode(parse_loosely(text))

"""Explanations for messages that no dialect recognises."""

from typing import Any

import pytest

from dragoman.bootstrap.dialects import build_dialects
from dragoman.engine.lint import explain_unrecognized
from tests.requirements import proves

pytestmark = proves("DIALECT-NOBODYS")


@pytest.mark.parametrize(
    ("message", "code", "expected"),
    [
        ("hello", "not_recognized", "no dialect recognises it (aof: an object whose prot"),
        ("AOF/1\n{}", "not_recognized", 'text that begins with "AOF/1 "'),
        ("", "not_recognized", "there is nothing in it (aof: "),
        (b" \n", "not_recognized", "there is nothing in it (aof: "),
        ({}, "not_recognized", "there is nothing in it (aof: "),
        (b"\xff", "not_recognized", "agentmail: an object with subject"),
        ({"hello": "there"}, "not_recognized", "saop: an object with turn_index"),
        ('{"hello": "there"}', "not_recognized", "acp: an object with action"),
        ('{"hello": ', "invalid_json", "it ends before it is complete"),
        (b'[1 "2"]', "invalid_json", "(byte 3)"),
        (b' [{"hello": "there"}]', "not_recognized", "several as JSON Lines, one per line (aof"),
        ('{"a": "\ud800"}', "invalid_json", "half of a surrogate pair"),
        (b"\xa1\x61", "invalid_json", "it cannot be read as CBOR"),
        ("[" + " " * 300_000, "message_too_large", "no more are taken"),
    ],
)
def test_explanation_tells_broken_syntax_from_an_unknown_shape(
    message: Any, code: str, expected: str
) -> None:
    fault = explain_unrecognized(message, build_dialects())

    assert fault.code == code
    assert expected in fault.detail

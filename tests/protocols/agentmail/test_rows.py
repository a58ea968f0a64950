"""Rows: our own, those of MCP Agent Mail servers, and malformed ones."""

import json
from collections import UserDict
from types import MappingProxyType
from typing import Any

import pytest

from dragoman.protocols.agentmail import MessageType, Parsed, Parser
from tests.protocols.agentmail.letters import row
from tests.requirements import proves

pytestmark = proves("MAIL-ROWS")

OURS = {
    "id": "m-1",
    "from": "ada",
    "to": ["bob", "eve"],
    "cc": ["orc"],
    "subject": "[a-1] DONE",
    "body_md": "Bead: a-1",
    "thread_id": "a-1",
    "timestamp": "2026-01-31T10:00:00Z",
    "importance": "high",
    "ack_required": True,
    "acknowledged": False,
    "read": True,
}
THEIRS = {
    "id": 42,
    "project_id": 1,
    "sender_id": 7,
    "from": "GreenCastle",
    "to": ["BlueLake"],
    "subject": "[ol-1] HELP_REQUEST",
    "body_md": "Issue Type: STUCK",
    "thread_id": None,
    "importance": "normal",
    "ack_required": 0,
    "created_ts": "2026-01-31T10:30:00.123456+00:00",
    "kind": "to",
    "attachments": [],
}


@pytest.mark.parametrize(
    "raw",
    [OURS, json.dumps(OURS), json.dumps(OURS).encode(), MappingProxyType(OURS), UserDict(OURS)],
    ids=["dict", "str", "bytes", "proxy", "mapping"],
)
def test_own_row_is_parsed_in_every_form(raw: Any) -> None:
    message = Parser().parse(raw)

    assert (message.id, message.sender, message.thread_id) == ("m-1", "ada", "a-1")
    assert (message.to, message.cc) == (("bob", "eve"), ("orc",))
    assert (message.type, message.subject, message.body) == ("DONE", "[a-1] DONE", "Bead: a-1")
    assert (message.timestamp, message.importance) == ("2026-01-31T10:00:00Z", "high")
    assert (message.ack_required, message.acknowledged, message.read) == (True, False, True)
    assert message.problems == ()


@pytest.mark.parametrize("strict", [True, False])
def test_row_of_a_mail_server_is_parsed(strict: bool) -> None:
    letter = row("HELP_REQUEST")
    message = Parser(strict=strict).parse({**THEIRS, **letter})

    assert (message.id, message.sender, message.to) == (42, "GreenCastle", ("BlueLake",))
    assert message.timestamp == "2026-01-31T10:30:00.123456+00:00"
    assert (message.thread_id, message.ack_required) == ("", False)
    assert (message.acknowledged, message.read) == (None, None)
    assert message.problems == ()


def test_foreign_field_names_are_recognized() -> None:
    message = Parser().parse(
        {
            "subject": "DONE",
            "body": "Bead: a-1",
            "sender_name": "ada",
            "to": "bob, eve",
            "ack_ts": "2026-01-31T10:30:00Z",
            "read_ts": None,
        }
    )
    assert (message.bead_id, message.sender, message.to) == ("a-1", "ada", ("bob", "eve"))
    assert (message.acknowledged, message.read) == (True, None)


@proves("MAIL-ACK-DEFAULT")
@pytest.mark.parametrize(
    ("type", "default"),
    [
        ("BEAD_ACCEPTED", False),
        ("PROGRESS", False),
        ("HELP_REQUEST", True),
        ("HELP_RESPONSE", False),
        ("OFFERING_READY", True),
        ("DONE", False),
        ("FAILED", False),
        ("CHECKPOINT", False),
        ("SPAWN_REQUEST", True),
        ("SPAWN_ACK", False),
        ("hello", False),
    ],
)
def test_ack_requirement_defaults_to_that_of_the_type(type: str, default: bool) -> None:
    for stated, expected in {None: default, True: True, False: False}.items():
        message = Parser().parse({"subject": type, "ack_required": stated})
        assert message.ack_required is expected


WRONG_TYPES: dict[str, Any] = {
    "id": [],
    "subject": 7,
    "body_md": {"a": 1},
    "thread_id": 7,
    "from": ["ada"],
    "to": [1],
    "cc": {},
    "timestamp": 1769855400,
    "importance": True,
    "ack_required": "yes",
    "acknowledged": [],
    "read": {},
}


@proves("MAIL-STRICT")
@pytest.mark.parametrize(("field", "value"), WRONG_TYPES.items())
def test_field_of_a_wrong_type_is_reported_and_the_rest_is_parsed(field: str, value: Any) -> None:
    for raw in (OURS | {field: value}, json.dumps(OURS | {field: value})):
        message = Parser().parse(raw)
        problem = message.problems[0]
        assert (problem.name, problem.field, problem.line) == ("bad_envelope", field, 0)
        assert message.importance == ("normal" if field == "importance" else "high")


@proves("MAIL-STRICT")
@pytest.mark.parametrize(
    "raw", ["", "{", "[]", "7", b"\xff", "\ud800", None, 7, [], object(), "[" * 10**5]
)
def test_invalid_row_is_an_unknown_letter_with_a_problem(raw: Any) -> None:
    message = Parser().parse(raw)
    assert (message.type, message.parsed) == (MessageType.UNKNOWN, Parsed())
    assert [problem.name for problem in message.problems] == ["not_a_row"]


@proves("MAIL-STRICT")
@pytest.mark.parametrize(
    ("raw", "description"),
    [("null", "null"), (None, "null"), ("[]", "a list"), ("7", "a whole number"), ((), "a tuple")],
)
def test_problem_describes_what_stands_in_place_of_a_row(raw: Any, description: str) -> None:
    (problem,) = Parser().parse(raw).problems
    assert (
        problem.text == f"this is {description}: a letter is a JSON object with subject and body_md"
    )


@proves("MAIL-STRICT")
@pytest.mark.parametrize(
    ("raw", "subject"),
    [
        (b'\xef\xbb\xbf{"subject":"DONE"}', "DONE"),
        (b'{"subject":"DONE","weight":NaN}', "DONE"),
        (b'{"subject":"DONE","id":1e400}', "DONE"),
        (rb'{"subject":"DONE \ud800"}', "DONE \ufffd"),
        (b'{"subject":"DONE \xff"}', "DONE \ufffd"),
        (b'{"subject":"DONE\tnow"}', "DONE\tnow"),
        ('{"subject":"DONE \ud800"}', "DONE \ufffd"),
    ],
)
def test_readable_rest_of_broken_json_is_parsed(raw: bytes | str, subject: str) -> None:
    message = Parser().parse(raw)
    assert (message.type, message.subject, message.id) == (MessageType.DONE, subject, None)
    assert [problem.name for problem in message.problems] == ["not_a_row"]


def test_many_rows_are_parsed_in_order() -> None:
    subjects = ["DONE", "FAILED", "PROGRESS"]
    raws = [{"subject": subject} for subject in subjects]
    lines = "\n".join(map(json.dumps, raws)) + "\n\n"
    parser = Parser()

    for many in (raws, map(json.dumps, raws), json.dumps(raws), lines, lines.encode()):
        assert [message.type for message in parser.parse_many(many)] == subjects
    assert parser.parse_many("") == []
    assert [m.problems[0].name for m in parser.parse_many("[{}, ")] == ["not_a_row"]
    assert [m.problems[0].name for m in parser.parse_many("\ud800")] == ["not_a_row"]

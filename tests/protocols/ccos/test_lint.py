"""Lint of CCOS messages: findings with their path."""

import json
from typing import Any

import pytest

from dragoman.engine.lint import lint_text
from dragoman.protocols.ccos import dialect, wire
from dragoman.protocols.ccos.lint import lint
from dragoman.text.strict_cbor import encode_cbor
from tests.requirements import proves

pytestmark = proves("CCOS-LINT")

REQUEST = {"intent_id": "i-1", "agent_id": "ada", "goal": "Sum it up"}
RESULT = {"intent_id": "i-1", "agent_id": "ada", "success": True, "output": 1}


def test_valid_message_is_returned_as_parsed() -> None:
    linted = lint(RESULT, "", strict=True)
    assert (linted.ok, linted.type, linted.message) == (True, "TaskResult", RESULT)


@pytest.mark.parametrize(
    ("value", "ok"),
    [(RESULT | {"output": "x" * 300_000}, True), (REQUEST | {"goal": "x" * 300_000}, False)],
)
def test_only_results_may_be_long(value: dict[str, Any], ok: bool) -> None:
    linted = lint_text(dialect(), json.dumps(value).encode(), "", strict=False)
    assert (linted.ok, "bytes" in str(linted.issues)) == (ok, not ok)


@pytest.mark.parametrize(
    ("value", "kind", "path", "reason"),
    [
        ([], "", "", "must be an object"),
        ({"intent_id": "i"}, "", "", "says nothing by which"),
        (REQUEST, "TaskResult", "", "this is a TaskRequest, not a TaskResult"),
        (REQUEST | {"agent_id": 7}, "", "agent_id", "it must be a text, not a whole number"),
        ({"goal": "x", "agent_id": "a"}, "", "intent_id", "it is missing"),
        (RESULT | {"error": "no"}, "", "", "a success has no error"),
        (REQUEST | {"deadline": "soon"}, "", "deadline", "is not a timestamp"),
        ({"intent_id": "i"}, "TaskUpdate", "agent_id", "it is missing"),
    ],
)
def test_invalid_message_is_reported_with_its_path(
    value: Any, kind: str, path: str, reason: str
) -> None:
    linted = lint(value, kind, strict=False)
    assert not linted.ok
    assert linted.issues[0]["path"] == path
    assert reason in linted.issues[0]["reason"]


NULLS = {"request_id": None, "attempt": None, "meta": None, "protocol_version": None}


@pytest.mark.parametrize(
    "value",
    [
        REQUEST | NULLS | {"deadline": None},
        RESULT | NULLS | {"error": None},
        {
            "intent_id": "i",
            "agent_id": "ada",
            "message": "half",
            "progress": None,
            "sequence": None,
        },
    ],
    ids=["TaskRequest", "TaskResult", "TaskUpdate"],
)
@proves("CCOS-NULLS")
def test_null_counts_as_absent_for_optional_fields(value: dict[str, Any]) -> None:
    linted = lint(value, "", strict=True)
    plain = {name: content for name, content in value.items() if content is not None}
    assert (linted.ok, linted.message) == (True, lint(plain, "", strict=True).message)
    shape: Any = wire.MESSAGE_SHAPES[linted.type]
    for write in (json.dumps(value).encode(), encode_cbor(value)):
        assert wire.as_value(wire.read(write, shape)) == linted.message


@pytest.mark.parametrize("name", ["intent_id", "agent_id", "goal", "params"])
@proves("CCOS-NULLS")
def test_null_is_refused_for_required_fields(name: str) -> None:
    linted = lint(REQUEST | {name: None}, "", strict=False)
    assert [issue["path"] for issue in linted.issues] == [name]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (REQUEST | {"intent_id": "i 1"}, "intent_id"),
        (REQUEST | {"agent_id": "a/b"}, "agent_id"),
        (REQUEST | {"priority": 1}, "priority"),
    ],
)
def test_strict_lint_checks_names_and_unknown_fields(value: dict[str, Any], path: str) -> None:
    assert lint(value, "", strict=False).ok
    linted = lint(value, "", strict=True)
    assert [issue["path"] for issue in linted.issues] == [path]

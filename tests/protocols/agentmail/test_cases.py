"""Conformance cases and harder ones of our own, with their expected results."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.engine.operation import LintResult
from dragoman.protocols.agentmail import MailError, Parser
from dragoman.protocols.agentmail.lint import lint
from tests.requirements import proves

pytestmark = proves("MAIL-TYPE", "MAIL-BEAD", "MAIL-FIELDS", "MAIL-STRICT")

TEXTS = (
    Path(__file__).with_name(name).read_text(encoding="utf-8")
    for name in ("cases.jsonl", "nasty.jsonl")
)
CASES: list[dict[str, Any]] = [
    json.loads(line) for text in TEXTS for line in text.split("\n") if line
]


def parse_case(case: dict[str, Any]) -> Any:
    """Parse the row of a case and return the message as JSON."""
    try:
        message = Parser(strict=case["strict"]).parse(json.dumps(case["raw"]))
    except MailError as error:
        return {"error": bool(error.problems)}
    return json.loads(msgspec.json.encode(message))


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case_has_its_expected_result(case: dict[str, Any]) -> None:
    expected, message = case["expect"], parse_case(case)
    expected_fields = expected.pop("parsed", {})

    assert {name: message.get(name) for name in expected} == expected
    assert {name: message["parsed"].get(name) for name in expected_fields} == expected_fields


def test_message_as_json_has_the_field_names_of_its_row() -> None:
    message = parse_case(
        {"strict": False, "raw": {"subject": "DONE", "body_md": "x", "from": "ada"}}
    )

    assert (message["from"], message["body_md"], message["acknowledged"]) == ("ada", "x", None)


@pytest.mark.parametrize("strict", [False, True])
def test_row_in_a_json_string_is_not_a_row(strict: bool) -> None:
    linted = lint(json.dumps({"subject": "DONE", "body_md": "Bead: a-1"}), "", strict)

    assert (linted.ok, linted.type) == (not strict, "UNKNOWN")
    assert linted.issues[0]["reason"].startswith("not_a_row")


@pytest.mark.parametrize("strict", [False, True])
def test_lint_reports_bcc_recipients(strict: bool) -> None:
    def linted(bcc: list[str]) -> LintResult:
        row = {"subject": "a note", "body_md": "x", "from": "ada", "to": ["ben"], "bcc": bcc}
        return lint({**row, "id": "m-1", "timestamp": "2026-01-31T10:00:00Z"}, "", strict)

    without, with_bcc = linted([]), linted(["carol"])

    (issue,) = [issue for issue in with_bcc.issues if issue not in without.issues]
    assert issue["path"] == "bcc"
    assert "name them in cc" in issue["reason"]
    assert with_bcc.ok is not strict

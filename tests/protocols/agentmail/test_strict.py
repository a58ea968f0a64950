"""Strict mode: required fields of every type, and problems with name and line."""

import re
from typing import Any

import pytest

from dragoman.protocols.agentmail import MailError, MessageType, Parser, Problem
from dragoman.protocols.agentmail.errors import PROBLEM_NAMES
from dragoman.protocols.agentmail.wire import MESSAGE_TYPES
from tests.protocols.agentmail.letters import DRAFTS, row
from tests.requirements import proves

pytestmark = proves("MAIL-STRICT")


def problems(raw: Any) -> tuple[Problem, ...]:
    """Return the problems that strict mode finds."""
    try:
        Parser(strict=True).parse(raw)
    except MailError as error:
        return error.problems
    return ()


def problem_keys(raw: Any) -> list[tuple[str, str, int]]:
    """Return name, field and line of each problem."""
    return [(one.name, one.field, one.line) for one in problems(raw)]


@pytest.mark.parametrize("kind", MESSAGE_TYPES)
def test_letter_of_the_document_is_accepted(kind: str) -> None:
    message = Parser(strict=True).parse(row(kind))
    assert (message.type, message.problems) == (kind, ())


def test_every_type_has_a_sample_letter() -> None:
    assert set(DRAFTS) == set(MESSAGE_TYPES)


def lines_of(kind: str) -> list[tuple[str, int]]:
    """Return the labelled lines of a letter with their numbers."""
    body = row(kind)["body_md"].split("\n")
    return [(line, at) for at, line in enumerate(body, 1) if re.match(r"(- )?[A-Z][\w ]*: ", line)]


LABELLED = [
    (kind, line, at)
    for kind in MESSAGE_TYPES
    for line, at in lines_of(kind)
    if not re.search("Bead|bead|Issue:|Files|Description", line)
]
MAY_BE_MISSING = {("FAILED", "- Commit: ghi789a")}


@pytest.mark.parametrize(("kind", "line", "at"), LABELLED)
def test_label_without_a_value_is_missing_at_its_line(kind: str, line: str, at: int) -> None:
    letter = row(kind)
    letter["body_md"] = letter["body_md"].replace(line, line.partition(":")[0] + ":")
    expected = [] if (kind, line) in MAY_BE_MISSING else [("missing_field", at)]

    assert [(one.name, one.line) for one in problems(letter)] == expected


SECTIONS = {
    ("HELP_REQUEST", "problem"): "It hangs.",
    ("HELP_REQUEST", "what_tried"): "- waiting\n- shouting",
    ("HELP_REQUEST", "question"): "Why?",
    ("OFFERING_READY", "summary"): "Added JWT.",
    ("DONE", "files"): "src/auth.py, tests/test_auth.py",
    ("CHECKPOINT", "progress"): "half is done",
    ("CHECKPOINT", "next_steps"): "1. finish\n2. test",
    ("HELP_RESPONSE", "guidance"): "Use lib/auth.\n\nReally.",
}


@pytest.mark.parametrize(("location", "text"), SECTIONS.items())
def test_empty_section_is_missing(location: tuple[str, str], text: str) -> None:
    kind, field = location
    letter = row(kind)
    letter["body_md"] = letter["body_md"].replace(text, "")

    ((name, missed, line),) = problem_keys(letter)
    assert (name, missed) == ("missing_field", field)
    assert (line > 0) is (field != "guidance")


def test_conditional_fields_are_required() -> None:
    fresh = "Issue: a-1\nResume: {}\nOrchestrator: o-1"
    ack = "Issue: a-1\nStatus: {}"
    missed = [("missing_field", "partial_commit_sha", 0)]

    assert problem_keys({"subject": "SPAWN_REQUEST", "body_md": fresh.format("false")}) == []
    assert problem_keys({"subject": "SPAWN_REQUEST", "body_md": fresh.format("true")}) == missed
    assert problem_keys({"subject": "SPAWN_ACK", "body_md": ack.format("Failed")}) == []
    spawned = {"subject": "SPAWN_ACK", "body_md": ack.format("Spawned")}
    assert problem_keys(spawned) == [("missing_field", "session", 0)]


def test_optional_fields_may_be_absent() -> None:
    step = "Bead: a-1\nStep: s\nStatus: s\nContext usage: 1%"
    failure = "Status: FAILED\n## Failure\nType: ERROR\nReason: r\nInternal Attempts: 0"

    assert problem_keys({"subject": "PROGRESS", "body_md": step}) == []
    assert problem_keys({"subject": "[a-1] FAILED", "body_md": failure}) == []


def test_bead_is_required_in_subject_or_body() -> None:
    for kind in MESSAGE_TYPES:
        letter = row(kind)
        body = re.sub(r"(Accepted bead|Bead|Issue): .*", r"\1:", letter["body_md"])
        assert problem_keys({**letter, "body_md": body}) == []
        names = [one.name for one in problems({"subject": kind, "body_md": body})]
        assert names == (["missing_bead_id"] if kind != MessageType.HELP_RESPONSE else [])


WRONG = {
    "unknown_type": {"subject": "hello"},
    "two_types": {**row("DONE"), "subject": "[ol-527.1] DONE, FAILED"},
    "bead_mismatch": {**row("DONE"), "subject": "[x-1] DONE"},
    "bad_timestamp": {**row("DONE"), "timestamp": "nope"},
    "bad_envelope": {**row("DONE"), "to": 7},
    "not_a_row": "[]",
}


@pytest.mark.parametrize(("name", "raw"), WRONG.items())
def test_each_problem_has_its_name(name: str, raw: Any) -> None:
    assert [one.name for one in problems(raw)][:1] == [name]


@pytest.mark.parametrize(
    ("kind", "old", "new", "name"),
    [
        ("PROGRESS", "45%", "150%", "bad_percentage"),
        ("PROGRESS", "45%", "lots", "bad_percentage"),
        ("PROGRESS", "45%", "~45%", "bad_percentage"),
        ("PROGRESS", "45%", "45.0%", "bad_percentage"),
        ("HELP_REQUEST", "STUCK", "\ufb06uck", "bad_value"),
        ("HELP_REQUEST", "STUCK", "\u017ftuck", "bad_value"),
        ("CHECKPOINT", "CONTEXT_HIGH", "t\u0131meout", "bad_value"),
        ("FAILED", "Attempts: 3", "Attempts: three", "bad_number"),
        ("FAILED", "TESTS_FAIL", "FLAKY", "bad_value"),
        ("FAILED", "Status: FAILED", "Status: DONE", "bad_value"),
        ("DONE", "Tests: PASS", "Tests: mostly", "bad_verdict"),
        ("DONE", "Status: DONE", "Status: nearly", "bad_value"),
        ("SPAWN_ACK", "spawned", "maybe", "bad_value"),
        ("BEAD_ACCEPTED", "2026-01-31T10:00:00Z", "this morning", "bad_timestamp"),
    ],
)
def test_wrong_value_is_one_problem_at_its_line(kind: str, old: str, new: str, name: str) -> None:
    letter = row(kind)
    body = letter["body_md"].replace(old, new)
    line = next(at for at, text in enumerate(body.split("\n"), 1) if new in text)

    assert [(one.name, one.line) for one in problems({**letter, "body_md": body})] == [(name, line)]


def test_error_lists_all_problems() -> None:
    with pytest.raises(MailError) as caught:
        Parser(strict=True).parse({"subject": "PROGRESS", "body_md": "Context usage: 150%\nStep:"})

    assert [(one.name, one.field, one.line) for one in caught.value.problems] == [
        ("bad_percentage", "context_usage", 1),
        ("missing_bead_id", "bead_id", 0),
        ("missing_field", "step", 2),
        ("missing_field", "status", 0),
    ]
    assert str(caught.value).startswith(
        "bad_percentage (line 1 of the body): context_usage is '150%': use a whole number"
    )
    assert "missing_field (line 2 of the body): step is missing: write a line Step:" in str(
        caught.value
    )


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"subject":"DONE","subject":"FAILED"}', "subject"),
        ("{", ""),
        ("\ud800", ""),
        (b"\xff", ""),
    ],
)
def test_ambiguous_json_is_refused(text: Any, path: str) -> None:
    problem = problems(text)[0]
    assert (problem.name, problem.field) == ("not_a_row", path)


def test_problem_text_is_short_and_printable() -> None:
    (problem,) = problems({"subject": "\x1b[31m" + "x" * 500})
    assert problem.text.isascii()
    assert problem.text.isprintable()
    assert len(problem.text) < 400


def test_every_problem_has_a_known_name() -> None:
    met = {one.name for raw in WRONG.values() for one in problems(raw)}
    assert met <= PROBLEM_NAMES

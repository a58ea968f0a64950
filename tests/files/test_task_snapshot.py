"""Run artifacts and handoff documents, byte for byte as the AOF guide shows them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman.core.attempt_state import Lease, Report
from dragoman.core.task_state import Delegation
from dragoman.core.timestamps import parse_rfc3339
from dragoman.files.attempt_history import Attempt
from dragoman.files.task_snapshot import (
    format_json,
    render_delegation,
    render_delegation_page,
    render_heartbeat,
    render_result,
    render_run,
)
from tests.files.spec_examples import RESULT
from tests.requirements import proves

TASK = "TASK-2026-02-09-057"
STARTED = parse_rfc3339("2026-02-09T20:55:00.000Z")

RUN = """\
{
  "taskId": "TASK-2026-02-09-057",
  "agentId": "swe-backend",
  "startedAt": "2026-02-09T20:55:00.000Z",
  "status": "running",
  "artifactPaths": {
    "inputs": "inputs/",
    "work": "work/",
    "output": "output/"
  },
  "metadata": {}
}
"""

HEARTBEAT = """\
{
  "taskId": "TASK-2026-02-09-057",
  "agentId": "swe-backend",
  "lastHeartbeat": "2026-02-09T21:00:00.000Z",
  "beatCount": 5,
  "expiresAt": "2026-02-09T21:05:00.000Z"
}
"""

HANDOFF = """\
{
  "taskId": "TASK-2026-02-09-060",
  "parentTaskId": "TASK-2026-02-09-057",
  "fromAgent": "swe-backend",
  "toAgent": "swe-qa",
  "acceptanceCriteria": ["All tests pass", "Update docs"],
  "expectedOutputs": ["tests/report.md", "docs/QA.md"],
  "contextRefs": [
    "tasks/in-progress/TASK-2026-02-09-057.md",
    "tasks/in-progress/TASK-2026-02-09-057/outputs/handoff.md"
  ],
  "constraints": ["No new dependencies"],
  "dueBy": "2026-02-10T12:00:00.000Z"
}
"""

PAGE = """\
# Handoff Request

**From:** swe-backend
**To:** swe-qa
**Due By:** 2026-02-10T12:00:00.000Z

## Acceptance Criteria

- All tests pass
- Update docs

## Expected Outputs

- tests/report.md
- docs/QA.md

## Context References

- tasks/in-progress/TASK-2026-02-09-057.md
- tasks/in-progress/TASK-2026-02-09-057/outputs/handoff.md

## Constraints

- No new dependencies
"""

DELEGATION = Delegation(
    parent=TASK,
    from_agent="swe-backend",
    to_agent="swe-qa",
    due_by=parse_rfc3339("2026-02-10T12:00:00.000Z"),
    acceptance_criteria=("All tests pass", "Update docs"),
    expected_outputs=("tests/report.md", "docs/QA.md"),
    context_refs=(
        "tasks/in-progress/TASK-2026-02-09-057.md",
        "tasks/in-progress/TASK-2026-02-09-057/outputs/handoff.md",
    ),
    constraints=("No new dependencies",),
)


@proves("FILES-ARTIFACTS")
def test_run_document_of_running_attempt() -> None:
    attempt = Attempt(1, "swe-backend", 1, STARTED, 300_000)
    assert render_run(TASK, attempt).decode() == RUN


@proves("FILES-ARTIFACTS")
def test_run_document_of_expired_attempt_has_time_and_reason() -> None:
    attempt = Attempt(
        1,
        "swe-backend",
        1,
        STARTED,
        300_000,
        status="expired",
        ended_at=STARTED + 300_000,
        reason="stale_heartbeat",
    )
    assert render_run(TASK, attempt).decode() == RUN.replace('"running"', '"expired"').replace(
        '"metadata": {}\n',
        '"metadata": {},\n  "expiredAt": "2026-02-09T21:00:00.000Z",\n'
        '  "reason": "stale_heartbeat"\n',
    )


@proves("RUN-UNREPORTED")
def test_run_document_without_report_has_notes_of_hub() -> None:
    unreported = Report(1, "swe-backend", "failed", "exit code 3", by="hub", at=STARTED + 9)
    attempt = Attempt(
        1,
        "swe-backend",
        1,
        STARTED,
        300_000,
        status="released",
        ended_at=STARTED + 9,
        reason="unreported_failed",
        unreported=unreported,
    )
    assert render_run(TASK, attempt).decode() == RUN.replace('"running"', '"released"').replace(
        '"metadata": {}\n',
        '"metadata": {},\n  "reason": "unreported_failed",\n  "notes": "exit code 3"\n',
    )


@proves("FILES-ARTIFACTS")
def test_heartbeat_document() -> None:
    last_heartbeat = STARTED + 300_000
    lease = Lease("swe-backend", 1, 300_000, last_heartbeat, last_heartbeat + 300_000, heartbeats=5)
    assert render_heartbeat(TASK, lease).decode() == HEARTBEAT


@proves("FILES-ARTIFACTS")
def test_result_document() -> None:
    report = Report(
        attempt=1,
        agent="swe-backend",
        outcome="done",
        at=STARTED + 900_000,
        notes="All acceptance criteria met. Tests passing.",
        details={
            "summaryRef": "outputs/summary.md",
            "deliverables": ["src/foo.ts", "src/bar.ts"],
            "tests": {"total": 120, "passed": 120, "failed": 0},
        },
    )
    assert render_result(TASK, report).decode() == RESULT


@proves("FILES-ARTIFACTS")
def test_result_document_defaults_missing_fields() -> None:
    result = json.loads(render_result(TASK, Report(1, "ada", "partial", at=STARTED)))
    assert result["tests"] == {"total": 0, "passed": 0, "failed": 0}
    assert result["summaryRef"] == "outputs/summary.md"
    assert result["deliverables"] == result["blockers"] == []


@proves("FILES-ARTIFACTS", "PATH-INSIDE")
@pytest.mark.parametrize(
    "details",
    [
        {"summaryRef": "../../etc/passwd", "handoffRef": "/etc/passwd"},
        {"summaryRef": "a/../../b", "handoffRef": "..\\b"},
        {"summaryRef": 7, "handoffRef": None, "deliverables": "all", "tests": "many"},
        {"summaryRef": "", "deliverables": ["../a", "/b", 7], "tests": {"total": 1}},
        {"tests": {"total": 1, "passed": True, "failed": 0}},
        {"tests": {"total": 1, "passed": -1, "failed": 0}},
    ],
)
def test_result_document_ignores_malformed_details(
    details: dict[str, object],
) -> None:
    empty = Report(1, "ada", "partial", at=STARTED)
    assert render_result(TASK, replace(empty, details=details)) == render_result(TASK, empty)


@proves("FILES-ARTIFACTS", "PATH-INSIDE")
def test_result_document_keeps_redacted_paths() -> None:
    paths = ["src/[REDACTED:key:0a1b]/x.ts", "../x"]
    report = Report(1, "ada", "done", details={"deliverables": paths}, at=STARTED)
    assert json.loads(render_result(TASK, report))["deliverables"] == paths[:1]


@proves("FILES-ARTIFACTS")
def test_handoff_document_and_page() -> None:
    assert render_delegation("TASK-2026-02-09-060", TASK, DELEGATION).decode() == HANDOFF
    assert render_delegation_page(DELEGATION).decode() == PAGE


@proves("FILES-ARTIFACTS", "FILES-ROUND-TRIP")
def test_handoff_page_escapes_line_breaks_and_controls() -> None:
    delegation = Delegation(TASK, "a", "b", STARTED, acceptance_criteria=("x\n## Forged\x1b[2J",))
    page = render_delegation_page(delegation).decode()
    assert "\n## Forged" not in page
    assert "\x1b" not in page
    assert page.count("\nNone.\n") == 3


@proves("FILES-ROUND-TRIP")
@given(st.text(st.characters(codec="utf-8")), st.lists(st.text(st.characters(codec="utf-8"))))
def test_json_document_round_trips_any_text(text: str, items: list[str]) -> None:
    data = format_json({"a": text, "b": items, "c": {"d": text}})
    assert json.loads(data) == {"a": text, "b": items, "c": {"d": text}}
    assert not set(data.decode()) & {"\x1b", "\u202e", "\x85", "\u2028"}


@proves("FILES-ROUND-TRIP")
@pytest.mark.parametrize(
    ("item", "shown"),
    [
        ("# x", "- \\# x"),
        ("  ## x", "-   \\## x"),
        ("- x", "- \\- x"),
        ("1. x", "- 1\\. x"),
        ("> x", "- \\> x"),
        ("<script>", "- &lt;script>"),
        ("< x", "- \\< x"),
        ("see ![x](http://a) <b>", "- see ![x]\\(http://a) &lt;b>"),
        ("```", "- \\```"),
        ("x # y - z", "- x # y - z"),
        ("2 tests", "- 2 tests"),
    ],
)
def test_handoff_page_items_begin_no_markdown_block(item: str, shown: str) -> None:
    page = render_delegation_page(replace(DELEGATION, constraints=(item,))).decode()
    assert page.splitlines()[-1] == shown


@proves("DIALECTS-MEET")
def test_result_of_another_dialect_has_an_outcome_and_notes_of_aof() -> None:
    failed = json.loads(render_result(TASK, Report(1, "ada", "failed", "no disk", at=STARTED)))
    assert (failed["outcome"], failed["blockers"]) == ("blocked", ["no disk"])
    silent = json.loads(render_result(TASK, Report(1, "ada", "failed", at=STARTED)))
    assert silent["blockers"] == ["failed"]
    report = Report(1, "ada", "done", details={"output": {"pages": 3}}, at=STARTED)
    done = json.loads(render_result(TASK, report))
    assert (done["outcome"], done["notes"]) == ("done", '{"pages": 3}')

"""Every row of the AOF/1 guide's tables through the command line: errors, conflicts, recovery."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.aof_office import BACKEND, QA, Office
from tests.protocols.aof.hub import (
    CHILD,
    PARENT,
    UNKNOWN,
    accepted,
    envelope,
    rejected,
    report,
    request,
    update,
)
from tests.requirements import proves

Message = dict[str, Any]

GRANDCHILD = "TASK-2026-02-09-070"
EVE = {"fromAgent": "eve"}


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """Give an office where swe-backend holds the parent, and the child is ready."""
    office = Office(tmp_path / "hub")
    office.held(PARENT, BACKEND, session="s-1")
    office.ready(CHILD)
    return office


def at(time: str) -> tuple[str, str]:
    return "--now", f"2026-02-09T{time}Z"


def since(office: Office, count: int) -> list[tuple[str, str, str]]:
    """Type, actor and reason of the event lines after the first ones."""
    return [
        (line["type"], line["actor"], line["payload"].get("reason", ""))
        for line in office.lines()[count:]
    ]


def moves(office: Office, task: str = PARENT) -> list[tuple[str, str]]:
    return [
        (line["payload"]["from"], line["payload"]["to"])
        for line in office.events("task.transitioned")
        if line["taskId"] == task
    ]


# Completion outcomes


@proves("AOF-COMPLETION", "AOF-SESSION-END")
@pytest.mark.parametrize(
    ("outcome", "words", "steps"),
    [
        ("done", (), [("in-progress", "review")]),
        ("done", ("--no-review",), [("in-progress", "review"), ("review", "done")]),
        ("blocked", (), [("in-progress", "blocked")]),
        ("needs_review", (), [("in-progress", "review")]),
        ("needs_review", ("--no-review",), [("in-progress", "review")]),
        ("partial", (), [("in-progress", "review")]),
        ("partial", ("--no-review",), [("in-progress", "review")]),
    ],
)
def test_every_outcome_leads_where_the_table_says(
    tmp_path: Path, outcome: str, words: tuple[str, ...], steps: list[tuple[str, str]]
) -> None:
    office = Office(tmp_path / "hub")
    office.held(PARENT, BACKEND, *words)
    before = moves(office)

    office.send(report(outcome))
    assert (office.status(PARENT), moves(office)) == ("in-progress", before)
    assert office.run(PARENT, "run_result.json")["outcome"] == outcome
    office.console.ask("session-end")

    assert moves(office) == before + steps
    assert office.status(PARENT) == steps[-1][1]
    office.verified()


# What is rejected, why, and which lines it leaves

REJECTED = "protocol.message.rejected"
DELEGATION = "delegation.rejected"


def without(message: Message, *fields: str) -> Message:
    return {name: value for name, value in message.items() if name not in fields}


def about(task: str, message: Callable[..., Message], **fields: Any) -> Message:
    return message(taskId=task, **fields) | {"taskId": task}


REJECTIONS: tuple[tuple[Message | str, str, list[str]], ...] = (
    ("AOF/1 {oops", "invalid_json", [REJECTED]),
    ('{"protocol":"aof", oops', "invalid_json", [REJECTED]),
    (without(report(), "payload"), "invalid_envelope", [REJECTED]),
    (without(report(), "sentAt"), "invalid_envelope", [REJECTED]),
    (report() | {"version": 2}, "invalid_envelope", [REJECTED]),
    (report() | {"taskId": "TASK-1"}, "invalid_envelope", [REJECTED]),
    (report("great"), "invalid_envelope", [REJECTED]),
    (report("blocked", blockers=[]), "invalid_envelope", [REJECTED]),
    (report(tests={"total": 1, "passed": 1, "failed": 1}), "invalid_envelope", [REJECTED]),
    (report(tests={"total": 1, "passed": -1, "failed": 0}), "invalid_envelope", [REJECTED]),
    (report() | EVE, "unauthorized_agent", [REJECTED]),
    (report() | {"taskId": UNKNOWN}, "task_not_found", [REJECTED]),
    (update(), "invalid_envelope", [REJECTED]),
    (update(status="finished"), "invalid_envelope", [REJECTED]),
    (about(UNKNOWN, update, notes="x"), "task_not_found", [REJECTED]),
    (about(CHILD, update, notes="x"), "unassigned_task", [REJECTED]),
    (update(taskId=CHILD, notes="x"), "taskId_mismatch", [REJECTED]),
    (update(agentId="eve", notes="x") | EVE, "unauthorized_agent", [REJECTED]),
    (about(UNKNOWN, request), "task_not_found", [REJECTED, DELEGATION]),
    (request(parentTaskId=UNKNOWN), "parent_not_found", [DELEGATION]),
    (request(taskId=PARENT), "taskId_mismatch", [REJECTED]),
    (request(fromAgent="eve") | EVE, "unauthorized_agent", [REJECTED]),
    (request(dueBy="soon"), "invalid_envelope", [REJECTED]),
    (about(UNKNOWN, accepted), "task_not_found", [REJECTED, DELEGATION]),
    (accepted(taskId=PARENT), "taskId_mismatch", [REJECTED]),
    (accepted(accepted=False), "invalid_envelope", [REJECTED]),
    (about(UNKNOWN, rejected), "task_not_found", [REJECTED, DELEGATION]),
    (rejected(taskId=PARENT), "taskId_mismatch", [REJECTED]),
    (rejected(accepted=True), "invalid_envelope", [REJECTED]),
)
"""A message, the code that it is refused with, and the event lines that it leaves."""


@proves("AOF-REASONS", "AOF-ENVELOPE", "AOF-EVENTS")
def test_what_is_rejected_is_logged_with_its_reason_and_changes_nothing(office: Office) -> None:
    pages = office.page(PARENT), office.page(CHILD)
    for message, code, lines in REJECTIONS:
        before = len(office.lines())

        assert office.refused(message) == code, message

        logged = since(office, before)
        assert [kind for kind, _, _ in logged] == lines, message
        assert {reason for _, _, reason in logged} == {code}, message
    assert (office.page(PARENT), office.page(CHILD)) == pages
    assert not (office.data / f"runs/{PARENT}/run_result.json").exists()
    office.verified()


@proves("AOF-REASONS")
def test_an_unknown_type_has_its_own_event(office: Office) -> None:
    before = len(office.lines())

    assert office.refused(envelope("task.magic", BACKEND, {})) == "unknown_type"

    (line,) = office.lines()[before:]
    assert (line["type"], line["actor"]) == ("protocol.message.unknown", BACKEND)
    assert line["payload"]["type"] == "task.magic"


@proves("AOF-HANDOFF", "AOF-REASONS")
def test_delegated_work_is_not_delegated_on(office: Office) -> None:
    office.ready(GRANDCHILD)
    office.send(request())
    office.claim(CHILD, QA)
    before = len(office.lines())
    payload = request()["payload"] | {
        "taskId": GRANDCHILD,
        "parentTaskId": CHILD,
        "fromAgent": QA,
        "toAgent": "ada",
    }
    nested = envelope("handoff.request", QA, payload, taskId=GRANDCHILD, toAgent="ada")

    assert office.refused(nested) == "nested_delegation"

    assert since(office, before) == [(DELEGATION, QA, "nested_delegation")]
    assert not (office.folder(GRANDCHILD) / "inputs/handoff.json").exists()
    assert "delegationDepth: 0" in office.page(GRANDCHILD)


@proves("AOF-HANDOFF", "AOF-REASONS", "AOF-WARNINGS")
def test_a_handoff_proceeds_without_criteria_that_are_no_list_of_strings(office: Office) -> None:
    for criteria in ("All of it", [1, 2], {"a": "b"}, None):
        answer = office.send(request(acceptanceCriteria=criteria))
        assert len(answer["warnings"]) == 1

    warnings = office.events("protocol.message.warning")
    assert {line["payload"]["reason"] for line in warnings} == {"invalid_acceptance_criteria"}
    assert len(warnings) == 4
    assert len(office.events("delegation.requested")) == 1
    assert '"acceptanceCriteria": []' in (office.folder(CHILD) / "inputs/handoff.json").read_text()


@proves("AOF-WARNINGS")
def test_a_missing_summary_is_a_warning_and_no_obstacle(office: Office) -> None:
    office.send(report())

    (warning,) = office.events("protocol.message.warning")
    assert warning["taskId"] == PARENT
    assert "outputs/summary.md" in warning["payload"]["detail"]
    office.console.ask("session-end")
    assert office.status(PARENT) == "review"


# Idempotency and conflicts


LATER = {"sentAt": "2026-02-09T22:00:00Z"}


@proves("AOF-REPEAT", "AOF-EVENTS")
@pytest.mark.parametrize("outcome", ["done", "blocked", "needs_review", "partial"])
def test_a_completion_sent_again_moves_nothing(office: Office, outcome: str) -> None:
    office.send(report(outcome))
    office.console.ask("session-end")
    before = moves(office), office.run(PARENT, "run_result.json")

    office.send(report(outcome))
    office.send(report(outcome) | LATER)
    office.console.ask("session-end")

    assert (moves(office), office.run(PARENT, "run_result.json")) == before
    assert len(office.events("task.completed")) == 1
    office.verified()


@proves("AOF-REPEAT", "AOF-REASONS")
def test_a_completion_of_a_task_that_is_done_is_a_no_op(office: Office) -> None:
    office.send(report())
    office.console.ask("session-end")
    office.console.ask("task", "move", PARENT, "done")
    before = len(office.lines())

    for message in (report("partial"), report("blocked"), report() | EVE):
        office.send(message)

    assert [kind for kind, _, _ in since(office, before)] == ["protocol.message.received"] * 3
    assert office.status(PARENT) == "done"


@proves("AOF-STATUS", "AOF-REASONS")
def test_a_status_that_cannot_be_reached_becomes_a_line_of_the_work_log(office: Office) -> None:
    before = moves(office)

    for status in ("done", "backlog", "in-progress"):
        office.send(update(status=status, progress=f"Not {status}", notes="So far"))
        assert (office.status(PARENT), moves(office)) == ("in-progress", before)
        assert office.page(PARENT).endswith(
            f"- 2026-02-09T21:00:00.000Z Progress: Not {status} | Notes: So far\n"
        )


@proves("AOF-STATUS")
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"blockers": ["No key", "No disk"], "notes": "n", "progress": "p"}, "No key; No disk"),
        ({"blockers": [], "notes": "n", "progress": "p"}, "n"),
        ({"progress": "p"}, "p"),
    ],
)
def test_the_reason_is_the_first_of_blockers_notes_and_progress(
    office: Office, fields: Message, reason: str
) -> None:
    office.send(update(status="review", **fields))

    assert office.status(PARENT) == "review"
    assert office.events("task.transitioned")[-1]["payload"]["reason"] == reason


@proves("AOF-REPEAT", "AOF-STATUS")
def test_a_status_that_the_task_has_already_is_a_no_op(office: Office) -> None:
    office.send(update(status="blocked", blockers=["No key"]))
    before = moves(office), office.page(PARENT)

    office.send(update(status="blocked", blockers=["No key"]))
    office.send(update(status="blocked") | {"sentAt": "2026-02-09T22:00:00Z"})

    assert (moves(office), office.page(PARENT)) == before


@proves("AOF-HANDOFF", "AOF-REPEAT")
def test_a_handoff_sent_again_is_one_delegation(office: Office) -> None:
    office.send(request())
    inputs = office.folder(CHILD) / "inputs"
    before = {path.name: path.read_bytes() for path in inputs.iterdir()}

    office.send(request())
    office.send(request() | LATER)
    assert {path.name: path.read_bytes() for path in inputs.iterdir()} == before
    assert len(office.events("delegation.requested")) == 1

    for answer, kind in ((accepted(), "accepted"), (rejected(), "rejected")):
        office.send(answer)
        office.send(answer)
        office.send(answer | LATER)
        assert len(office.events(f"delegation.{kind}")) == 1
    assert moves(office, CHILD) == [("ready", "blocked")]
    office.verified()


# Resume


@proves("LEASE-RECOVERY", "AOF-COMPLETION")
@pytest.mark.parametrize(
    ("outcome", "words", "steps"),
    [
        ("partial", (), ["review"]),
        ("needs_review", (), ["review"]),
        ("done", (), ["review"]),
        ("done", ("--no-review",), ["review", "done"]),
        ("blocked", (), ["blocked"]),
    ],
)
def test_recovery_honours_what_was_reported(
    tmp_path: Path, outcome: str, words: tuple[str, ...], steps: list[str]
) -> None:
    office = Office(tmp_path / "hub")
    office.ready(PARENT, *words, *at("09:00:00"))
    office.claim(PARENT, BACKEND, *at("09:00:00"))
    office.send(report(outcome), *at("09:01:00"))
    before = len(office.events("task.transitioned"))

    office.console.ask("tick", *at("09:06:00"))
    office.console.ask("tick", *at("09:07:00"))

    moved = office.events("task.transitioned")[before:]
    assert [line["payload"]["to"] for line in moved] == steps
    assert {line["payload"]["reason"] for line in moved} == {f"stale_heartbeat_{outcome}"}
    assert office.status(PARENT) == steps[-1]
    assert office.run(PARENT, "run.json")["status"] != "expired"
    office.verified()


@proves("LEASE-RECOVERY", "FILES-ARTIFACTS")
def test_an_old_result_is_not_applied_to_a_new_run(tmp_path: Path) -> None:
    office = Office(tmp_path / "hub")
    office.ready(PARENT, *at("09:00:00"))
    office.claim(PARENT, BACKEND, *at("09:00:00"))
    office.send(report("blocked"), *at("09:01:00"))
    office.console.ask("session-end", *at("09:02:00"))
    office.console.ask("task", "move", PARENT, "ready", *at("09:03:00"))
    office.claim(PARENT, QA, *at("09:04:00"))

    runs = office.data / "runs" / PARENT
    assert not (runs / "run_result.json").exists()
    assert office.run(PARENT, "attempts/1/run_result.json")["outcome"] == "blocked"
    assert office.run(PARENT, "attempts/1/run.json")["agentId"] == BACKEND
    assert office.run(PARENT, "run.json")["agentId"] == QA
    office.console.ask("session-end", *at("09:05:00"))
    assert office.status(PARENT) == "in-progress"
    assert office.refused(report("done"), *at("09:05:00")) == "lease_lost"
    office.console.ask("tick", *at("09:10:00"))
    assert office.status(PARENT) == "ready"
    assert not (runs / "run_result.json").exists()
    office.verified()


@proves("LEASE-HEARTBEAT", "LEASE-RECOVERY")
def test_a_word_of_the_holder_is_a_heartbeat(tmp_path: Path) -> None:
    office = Office(tmp_path / "hub")
    office.ready(PARENT, *at("09:00:00"))
    office.claim(PARENT, BACKEND, *at("09:00:00"))
    office.send(update(progress="Alive"), *at("09:04:00"))
    office.console.ask("tick", *at("09:08:00"))
    assert office.status(PARENT) == "in-progress"
    # The same words again add nothing, and yet they are a sign of life.
    assert office.send(update(progress="Alive"), *at("09:08:00"))["repeated"] is True

    heartbeat = office.run(PARENT, "run_heartbeat.json")
    assert heartbeat["lastHeartbeat"] == "2026-02-09T09:08:00.000Z"
    assert heartbeat["expiresAt"] == "2026-02-09T09:13:00.000Z"
    assert heartbeat["beatCount"] == 3
    office.console.ask("tick", *at("09:12:59"))
    assert office.status(PARENT) == "in-progress"


@proves("LEASE-RECOVERY")
def test_run_artifacts_that_are_gone_stop_nothing(office: Office) -> None:
    for path in (office.data / "runs" / PARENT).iterdir():
        path.unlink()
    office.send(report("partial"))
    (office.data / f"runs/{PARENT}/run_result.json").unlink()

    office.console.ask("session-end", "--session", "s-1")

    assert office.status(PARENT) == "review"
    assert office.run(PARENT, "run_result.json")["outcome"] == "partial"
    office.verified()


UNREPORTED: Message = {
    "taskId": PARENT,
    "agentId": BACKEND,
    "completedAt": "2026-02-09T21:00:00.000Z",
    "outcome": "done",
    "summaryRef": "outputs/summary.md",
    "handoffRef": "outputs/handoff.md",
    "deliverables": [],
    "tests": {"total": 0, "passed": 0, "failed": 0},
    "blockers": [],
    "notes": "",
}


@proves("LEASE-RECOVERY", "FILES-ARTIFACTS", "AOF-REASONS")
@pytest.mark.parametrize("content", ["{oops", '{"outcome": "done"}', json.dumps(UNREPORTED)])
@pytest.mark.parametrize("end", ["session-end", "tick"])
def test_a_result_file_that_no_report_made_is_logged_and_not_applied(
    office: Office, content: str, end: str
) -> None:
    run = office.data / "runs" / PARENT
    (run / "run_result.json").write_text(content)
    found = office.console.ask("verify", code=1)["findings"]
    assert [f["problem"] for f in found] == [f"runs/{PARENT}/run_result.json is surplus"]
    before = len(office.lines())

    office.console.ask(end)

    assert office.status(PARENT) == "in-progress"
    assert since(office, before) == [(REJECTED, "files", "invalid_envelope")]
    assert office.lines()[-1]["taskId"] == PARENT
    assert (run / "run_result.rejected.json").read_text() == content
    assert (run / "run_result.rejected.json.reason.txt").exists()
    office.verified()
    # What is reported afterwards takes the place that is free again.
    office.send(report("partial"))
    office.console.ask("session-end")
    assert office.status(PARENT) == "review"
    office.verified()


@proves("LEASE-RECOVERY", "FILES-ARTIFACTS", "AOF-REASONS")
def test_a_result_file_that_was_damaged_is_logged_and_what_was_reported_counts(
    tmp_path: Path,
) -> None:
    office = Office(tmp_path / "hub")
    office.ready(PARENT, *at("09:00:00"))
    office.claim(PARENT, BACKEND, *at("09:00:00"))
    office.send(report("partial"), *at("09:01:00"))
    (office.data / f"runs/{PARENT}/run_result.json").write_text('{"outcome": "done"}')

    office.console.ask("tick", *at("09:06:00"))

    assert office.status(PARENT) == "review"
    assert office.events("task.transitioned")[-1]["payload"]["reason"] == "stale_heartbeat_partial"
    assert len(office.events(REJECTED)) == 1
    assert office.run(PARENT, "run_result.json")["outcome"] == "partial"
    office.verified()


# Logging


@proves("AOF-EVENTS")
def test_every_event_line_says_what_when_who_and_which_task(office: Office) -> None:
    office.send(update(progress="Half of it"))
    office.send(request())
    office.send(accepted())
    office.send(report())
    office.refused(report("great"))
    office.refused(envelope("task.magic", BACKEND, {}))
    office.console.ask("session-end")

    lines = office.lines()
    keys = ["eventId", "type", "timestamp", "actor", "taskId", "payload"]
    assert all(list(line) == keys for line in lines)
    for kind in (
        "protocol.message.received",
        "protocol.message.rejected",
        "protocol.message.unknown",
        "task.completed",
        "task.transitioned",
        "delegation.requested",
        "delegation.accepted",
    ):
        assert office.events(kind), kind
    day = lines[0]["timestamp"][:10]
    assert (office.data / f"events/{day}.jsonl").exists()
    assert {line["actor"] for line in office.events("protocol.message.received")} == {BACKEND, QA}

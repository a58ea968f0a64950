"""Every row of the AOF/1 guide's tables through the command line: errors, conflicts, recovery."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.aof_hub import BACKEND, QA, AofHub
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
FROM_EVE = {"fromAgent": "eve"}


@pytest.fixture
def hub(tmp_path: Path) -> AofHub:
    """Give a hub where swe-backend holds the parent, and the child is ready."""
    hub = AofHub(tmp_path / "hub")
    hub.create_claimed(PARENT, BACKEND, session="s-1")
    hub.create_ready(CHILD)
    return hub


def at_time(time: str) -> tuple[str, str]:
    return "--now", f"2026-02-09T{time}Z"


def lines_after(hub: AofHub, count: int) -> list[tuple[str, str, str]]:
    """Type, actor and reason of the event lines after the first `count`."""
    return [
        (line["type"], line["actor"], line["payload"].get("reason", ""))
        for line in hub.event_lines()[count:]
    ]


def transitions(hub: AofHub, task: str = PARENT) -> list[tuple[str, str]]:
    return [
        (line["payload"]["from"], line["payload"]["to"])
        for line in hub.events_of_type("task.transitioned")
        if line["taskId"] == task
    ]


# Completion outcomes


@proves("AOF-COMPLETION", "AOF-SESSION-END")
@pytest.mark.parametrize(
    ("outcome", "args", "steps"),
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
def test_every_outcome_leads_to_the_status_of_the_table(
    tmp_path: Path, outcome: str, args: tuple[str, ...], steps: list[tuple[str, str]]
) -> None:
    hub = AofHub(tmp_path / "hub")
    hub.create_claimed(PARENT, BACKEND, *args)
    before = transitions(hub)

    hub.send(report(outcome))
    assert (hub.status(PARENT), transitions(hub)) == ("in-progress", before)
    assert hub.run_artifact(PARENT, "run_result.json")["outcome"] == outcome
    hub.console.ask("session-end")

    assert transitions(hub) == before + steps
    assert hub.status(PARENT) == steps[-1][1]
    hub.assert_verified()


# Rejections: codes and event lines

REJECTED = "protocol.message.rejected"
DELEGATION = "delegation.rejected"


def without_fields(message: Message, *fields: str) -> Message:
    return {name: value for name, value in message.items() if name not in fields}


def for_task(task: str, message: Callable[..., Message], **fields: Any) -> Message:
    return message(taskId=task, **fields) | {"taskId": task}


REJECTIONS: tuple[tuple[Message | str, str, list[str]], ...] = (
    ("AOF/1 {oops", "invalid_json", [REJECTED]),
    ('{"protocol":"aof", oops', "invalid_json", [REJECTED]),
    (without_fields(report(), "payload"), "invalid_envelope", [REJECTED]),
    (without_fields(report(), "sentAt"), "invalid_envelope", [REJECTED]),
    (report() | {"version": 2}, "invalid_envelope", [REJECTED]),
    (report() | {"taskId": "TASK-1"}, "invalid_envelope", [REJECTED]),
    (report("great"), "invalid_envelope", [REJECTED]),
    (report("blocked", blockers=[]), "invalid_envelope", [REJECTED]),
    (report(tests={"total": 1, "passed": 1, "failed": 1}), "invalid_envelope", [REJECTED]),
    (report(tests={"total": 1, "passed": -1, "failed": 0}), "invalid_envelope", [REJECTED]),
    (report() | FROM_EVE, "unauthorized_agent", [REJECTED]),
    (report() | {"taskId": UNKNOWN}, "task_not_found", [REJECTED]),
    (update(), "invalid_envelope", [REJECTED]),
    (update(status="finished"), "invalid_envelope", [REJECTED]),
    (for_task(UNKNOWN, update, notes="x"), "task_not_found", [REJECTED]),
    (for_task(CHILD, update, notes="x"), "unassigned_task", [REJECTED]),
    (update(taskId=CHILD, notes="x"), "taskId_mismatch", [REJECTED]),
    (update(agentId="eve", notes="x") | FROM_EVE, "unauthorized_agent", [REJECTED]),
    (for_task(UNKNOWN, request), "task_not_found", [REJECTED, DELEGATION]),
    (request(parentTaskId=UNKNOWN), "parent_not_found", [DELEGATION]),
    (request(taskId=PARENT), "taskId_mismatch", [REJECTED]),
    (request(fromAgent="eve") | FROM_EVE, "unauthorized_agent", [REJECTED]),
    (request(dueBy="soon"), "invalid_envelope", [REJECTED]),
    (for_task(UNKNOWN, accepted), "task_not_found", [REJECTED, DELEGATION]),
    (accepted(taskId=PARENT), "taskId_mismatch", [REJECTED]),
    (accepted(accepted=False), "invalid_envelope", [REJECTED]),
    (for_task(UNKNOWN, rejected), "task_not_found", [REJECTED, DELEGATION]),
    (rejected(taskId=PARENT), "taskId_mismatch", [REJECTED]),
    (rejected(accepted=True), "invalid_envelope", [REJECTED]),
)
"""A message, the code of its refusal, and its event lines."""


@proves("AOF-REASONS", "AOF-ENVELOPE", "AOF-EVENTS")
def test_rejected_message_is_logged_with_its_reason_and_changes_nothing(hub: AofHub) -> None:
    pages = hub.task_file(PARENT), hub.task_file(CHILD)
    for message, code, lines in REJECTIONS:
        before = len(hub.event_lines())

        assert hub.refusal_code(message) == code, message

        logged = lines_after(hub, before)
        assert [kind for kind, _, _ in logged] == lines, message
        assert {reason for _, _, reason in logged} == {code}, message
    assert (hub.task_file(PARENT), hub.task_file(CHILD)) == pages
    assert not (hub.data / f"runs/{PARENT}/run_result.json").exists()
    hub.assert_verified()


@proves("AOF-REASONS")
def test_unknown_type_has_its_own_event(hub: AofHub) -> None:
    before = len(hub.event_lines())

    assert hub.refusal_code(envelope("task.magic", BACKEND, {})) == "unknown_type"

    (line,) = hub.event_lines()[before:]
    assert (line["type"], line["actor"]) == ("protocol.message.unknown", BACKEND)
    assert line["payload"]["type"] == "task.magic"


@proves("AOF-HANDOFF", "AOF-REASONS")
def test_nested_delegation_is_refused(hub: AofHub) -> None:
    hub.create_ready(GRANDCHILD)
    hub.send(request())
    hub.claim(CHILD, QA)
    before = len(hub.event_lines())
    payload = request()["payload"] | {
        "taskId": GRANDCHILD,
        "parentTaskId": CHILD,
        "fromAgent": QA,
        "toAgent": "ada",
    }
    nested = envelope("handoff.request", QA, payload, taskId=GRANDCHILD, toAgent="ada")

    assert hub.refusal_code(nested) == "nested_delegation"

    assert lines_after(hub, before) == [(DELEGATION, QA, "nested_delegation")]
    assert not (hub.task_folder(GRANDCHILD) / "inputs/handoff.json").exists()
    assert "delegationDepth: 0" in hub.task_file(GRANDCHILD)


@proves("AOF-HANDOFF", "AOF-REASONS", "AOF-WARNINGS")
def test_handoff_with_invalid_criteria_proceeds_with_a_warning(hub: AofHub) -> None:
    for criteria in ("All of it", [1, 2], {"a": "b"}, None):
        answer = hub.send(request(acceptanceCriteria=criteria))
        assert len(answer["warnings"]) == 1

    warnings = hub.events_of_type("protocol.message.warning")
    assert {line["payload"]["reason"] for line in warnings} == {"invalid_acceptance_criteria"}
    assert len(warnings) == 4
    assert len(hub.events_of_type("delegation.requested")) == 1
    assert (
        '"acceptanceCriteria": []' in (hub.task_folder(CHILD) / "inputs/handoff.json").read_text()
    )


@proves("AOF-WARNINGS")
def test_missing_summary_is_a_warning_only(hub: AofHub) -> None:
    hub.send(report())

    (warning,) = hub.events_of_type("protocol.message.warning")
    assert warning["taskId"] == PARENT
    assert "outputs/summary.md" in warning["payload"]["detail"]
    hub.console.ask("session-end")
    assert hub.status(PARENT) == "review"


# Idempotency and conflicts


LATER = {"sentAt": "2026-02-09T22:00:00Z"}


@proves("AOF-REPEAT", "AOF-EVENTS")
@pytest.mark.parametrize("outcome", ["done", "blocked", "needs_review", "partial"])
def test_repeated_completion_moves_nothing(hub: AofHub, outcome: str) -> None:
    hub.send(report(outcome))
    hub.console.ask("session-end")
    before = transitions(hub), hub.run_artifact(PARENT, "run_result.json")

    hub.send(report(outcome))
    hub.send(report(outcome) | LATER)
    hub.console.ask("session-end")

    assert (transitions(hub), hub.run_artifact(PARENT, "run_result.json")) == before
    assert len(hub.events_of_type("task.completed")) == 1
    hub.assert_verified()


@proves("AOF-REPEAT", "AOF-REASONS")
def test_completion_of_a_done_task_is_a_no_op(hub: AofHub) -> None:
    hub.send(report())
    hub.console.ask("session-end")
    hub.console.ask("task", "move", PARENT, "done")
    before = len(hub.event_lines())

    for message in (report("partial"), report("blocked"), report() | FROM_EVE):
        hub.send(message)

    assert [kind for kind, _, _ in lines_after(hub, before)] == ["protocol.message.received"] * 3
    assert hub.status(PARENT) == "done"


@proves("AOF-STATUS", "AOF-REASONS")
def test_unreachable_status_becomes_a_line_of_the_work_log(hub: AofHub) -> None:
    before = transitions(hub)

    for status in ("done", "backlog", "in-progress"):
        hub.send(update(status=status, progress=f"Not {status}", notes="So far"))
        assert (hub.status(PARENT), transitions(hub)) == ("in-progress", before)
        assert hub.task_file(PARENT).endswith(
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
def test_reason_is_the_first_of_blockers_notes_and_progress(
    hub: AofHub, fields: Message, reason: str
) -> None:
    hub.send(update(status="review", **fields))

    assert hub.status(PARENT) == "review"
    assert hub.events_of_type("task.transitioned")[-1]["payload"]["reason"] == reason


@proves("AOF-REPEAT", "AOF-STATUS")
def test_current_status_sent_again_is_a_no_op(hub: AofHub) -> None:
    hub.send(update(status="blocked", blockers=["No key"]))
    before = transitions(hub), hub.task_file(PARENT)

    hub.send(update(status="blocked", blockers=["No key"]))
    hub.send(update(status="blocked") | {"sentAt": "2026-02-09T22:00:00Z"})

    assert (transitions(hub), hub.task_file(PARENT)) == before


@proves("AOF-HANDOFF", "AOF-REPEAT")
def test_repeated_handoff_is_one_delegation(hub: AofHub) -> None:
    hub.send(request())
    inputs = hub.task_folder(CHILD) / "inputs"
    before = {path.name: path.read_bytes() for path in inputs.iterdir()}

    hub.send(request())
    hub.send(request() | LATER)
    assert {path.name: path.read_bytes() for path in inputs.iterdir()} == before
    assert len(hub.events_of_type("delegation.requested")) == 1

    for answer, kind in ((accepted(), "accepted"), (rejected(), "rejected")):
        hub.send(answer)
        hub.send(answer)
        hub.send(answer | LATER)
        assert len(hub.events_of_type(f"delegation.{kind}")) == 1
    assert transitions(hub, CHILD) == [("ready", "blocked")]
    hub.assert_verified()


# Resume


@proves("LEASE-RECOVERY", "AOF-COMPLETION")
@pytest.mark.parametrize(
    ("outcome", "args", "steps"),
    [
        ("partial", (), ["review"]),
        ("needs_review", (), ["review"]),
        ("done", (), ["review"]),
        ("done", ("--no-review",), ["review", "done"]),
        ("blocked", (), ["blocked"]),
    ],
)
def test_recovery_applies_the_reported_outcome(
    tmp_path: Path, outcome: str, args: tuple[str, ...], steps: list[str]
) -> None:
    hub = AofHub(tmp_path / "hub")
    hub.create_ready(PARENT, *args, *at_time("09:00:00"))
    hub.claim(PARENT, BACKEND, *at_time("09:00:00"))
    hub.send(report(outcome), *at_time("09:01:00"))
    before = len(hub.events_of_type("task.transitioned"))

    hub.console.ask("tick", *at_time("09:06:00"))
    hub.console.ask("tick", *at_time("09:07:00"))

    moved = hub.events_of_type("task.transitioned")[before:]
    assert [line["payload"]["to"] for line in moved] == steps
    assert {line["payload"]["reason"] for line in moved} == {f"stale_heartbeat_{outcome}"}
    assert hub.status(PARENT) == steps[-1]
    assert hub.run_artifact(PARENT, "run.json")["status"] != "expired"
    hub.assert_verified()


@proves("LEASE-RECOVERY", "FILES-ARTIFACTS")
def test_old_result_is_not_applied_to_a_new_run(tmp_path: Path) -> None:
    hub = AofHub(tmp_path / "hub")
    hub.create_ready(PARENT, *at_time("09:00:00"))
    hub.claim(PARENT, BACKEND, *at_time("09:00:00"))
    hub.send(report("blocked"), *at_time("09:01:00"))
    hub.console.ask("session-end", *at_time("09:02:00"))
    hub.console.ask("task", "move", PARENT, "ready", *at_time("09:03:00"))
    hub.claim(PARENT, QA, *at_time("09:04:00"))

    runs = hub.data / "runs" / PARENT
    assert not (runs / "run_result.json").exists()
    assert hub.run_artifact(PARENT, "attempts/1/run_result.json")["outcome"] == "blocked"
    assert hub.run_artifact(PARENT, "attempts/1/run.json")["agentId"] == BACKEND
    assert hub.run_artifact(PARENT, "run.json")["agentId"] == QA
    hub.console.ask("session-end", *at_time("09:05:00"))
    assert hub.status(PARENT) == "in-progress"
    assert hub.refusal_code(report("done"), *at_time("09:05:00")) == "lease_lost"
    hub.console.ask("tick", *at_time("09:10:00"))
    assert hub.status(PARENT) == "ready"
    assert not (runs / "run_result.json").exists()
    hub.assert_verified()


@proves("LEASE-HEARTBEAT", "LEASE-RECOVERY")
def test_message_of_the_holder_is_a_heartbeat(tmp_path: Path) -> None:
    hub = AofHub(tmp_path / "hub")
    hub.create_ready(PARENT, *at_time("09:00:00"))
    hub.claim(PARENT, BACKEND, *at_time("09:00:00"))
    hub.send(update(progress="Alive"), *at_time("09:04:00"))
    hub.console.ask("tick", *at_time("09:08:00"))
    assert hub.status(PARENT) == "in-progress"
    # The same text again adds no entry but renews the lease.
    assert hub.send(update(progress="Alive"), *at_time("09:08:00"))["repeated"] is True

    heartbeat = hub.run_artifact(PARENT, "run_heartbeat.json")
    assert heartbeat["lastHeartbeat"] == "2026-02-09T09:08:00.000Z"
    assert heartbeat["expiresAt"] == "2026-02-09T09:13:00.000Z"
    assert heartbeat["beatCount"] == 3
    hub.console.ask("tick", *at_time("09:12:59"))
    assert hub.status(PARENT) == "in-progress"


@proves("LEASE-RECOVERY")
def test_missing_run_artifacts_stop_nothing(hub: AofHub) -> None:
    for path in (hub.data / "runs" / PARENT).iterdir():
        path.unlink()
    hub.send(report("partial"))
    (hub.data / f"runs/{PARENT}/run_result.json").unlink()

    hub.console.ask("session-end", "--session", "s-1")

    assert hub.status(PARENT) == "review"
    assert hub.run_artifact(PARENT, "run_result.json")["outcome"] == "partial"
    hub.assert_verified()


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
def test_unreported_result_file_is_logged_and_not_applied(
    hub: AofHub, content: str, end: str
) -> None:
    run = hub.data / "runs" / PARENT
    (run / "run_result.json").write_text(content)
    found = hub.console.ask("verify", code=1)["findings"]
    assert [f["problem"] for f in found] == [f"runs/{PARENT}/run_result.json is surplus"]
    before = len(hub.event_lines())

    hub.console.ask(end)

    assert hub.status(PARENT) == "in-progress"
    assert lines_after(hub, before) == [(REJECTED, "files", "invalid_envelope")]
    assert hub.event_lines()[-1]["taskId"] == PARENT
    assert (run / "run_result.rejected.json").read_text() == content
    assert (run / "run_result.rejected.json.reason.txt").exists()
    hub.assert_verified()
    # A later report takes the free place.
    hub.send(report("partial"))
    hub.console.ask("session-end")
    assert hub.status(PARENT) == "review"
    hub.assert_verified()


@proves("LEASE-RECOVERY", "FILES-ARTIFACTS", "AOF-REASONS")
def test_damaged_result_file_is_logged_and_the_report_counts(
    tmp_path: Path,
) -> None:
    hub = AofHub(tmp_path / "hub")
    hub.create_ready(PARENT, *at_time("09:00:00"))
    hub.claim(PARENT, BACKEND, *at_time("09:00:00"))
    hub.send(report("partial"), *at_time("09:01:00"))
    (hub.data / f"runs/{PARENT}/run_result.json").write_text('{"outcome": "done"}')

    hub.console.ask("tick", *at_time("09:06:00"))

    assert hub.status(PARENT) == "review"
    assert (
        hub.events_of_type("task.transitioned")[-1]["payload"]["reason"]
        == "stale_heartbeat_partial"
    )
    assert len(hub.events_of_type(REJECTED)) == 1
    assert hub.run_artifact(PARENT, "run_result.json")["outcome"] == "partial"
    hub.assert_verified()


# Logging


@proves("AOF-EVENTS")
def test_every_event_line_has_type_time_actor_and_task(hub: AofHub) -> None:
    hub.send(update(progress="Half of it"))
    hub.send(request())
    hub.send(accepted())
    hub.send(report())
    hub.refusal_code(report("great"))
    hub.refusal_code(envelope("task.magic", BACKEND, {}))
    hub.console.ask("session-end")

    lines = hub.event_lines()
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
        assert hub.events_of_type(kind), kind
    day = lines[0]["timestamp"][:10]
    assert (hub.data / f"events/{day}.jsonl").exists()
    assert {line["actor"] for line in hub.events_of_type("protocol.message.received")} == {
        BACKEND,
        QA,
    }

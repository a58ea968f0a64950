"""The nine examples of the AOF/1 guide through the command line, byte for byte."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.e2e.aof_hub import BACKEND, QA, AofHub
from tests.protocols.aof.hub import example
from tests.requirements import proves

DAY = "2026-02-09"
PARENT = f"TASK-{DAY}-057"
CHILD = f"TASK-{DAY}-061"

pytestmark = proves("AOF-EXAMPLES", "FILES-ARTIFACTS", "FILES-PROJECTION", "CLI-SEND")


@pytest.fixture
def hub(tmp_path: Path) -> AofHub:
    """Give a hub without tasks."""
    return AofHub(tmp_path / "hub")


def at_time(time: str) -> tuple[str, str]:
    return "--now", f"{DAY}T{time}Z"


def create_claimed(hub: AofHub, task: str, agent: str, since: str, *args: str) -> None:
    """Create a task and claim it for an agent at a time of the day, in session s-1."""
    hub.create_ready(task, *args, *at_time("20:50:00"))
    hub.claim(task, agent, *at_time(since), session="s-1")


def transitions(hub: AofHub, task: str) -> list[tuple[str, str, str]]:
    """Transitions of a task according to its event lines."""
    return [
        (line["payload"]["from"], line["payload"]["to"], line["payload"]["reason"])
        for line in hub.events_of_type("task.transitioned")
        if line["taskId"] == task
    ]


def test_run_artifacts_are_written_on_claim_and_heartbeat(hub: AofHub) -> None:
    create_claimed(hub, PARENT, BACKEND, "20:55:00")
    for beat in ("20:56:00", "20:57:00", "20:58:00", "21:00:00"):
        hub.console.ask("task", "heartbeat", PARENT, "--agent", BACKEND, *at_time(beat))

    assert (hub.data / f"runs/{PARENT}/run.json").read_text() == dedent("""\
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
        """)
    assert (hub.data / f"runs/{PARENT}/run_heartbeat.json").read_text() == dedent("""\
        {
          "taskId": "TASK-2026-02-09-057",
          "agentId": "swe-backend",
          "lastHeartbeat": "2026-02-09T21:00:00.000Z",
          "beatCount": 5,
          "expiresAt": "2026-02-09T21:05:00.000Z"
        }
        """)


@proves("AOF-COMPLETION", "AOF-SESSION-END")
def test_example_1_done_report_leads_to_review_at_session_end(hub: AofHub) -> None:
    create_claimed(hub, PARENT, BACKEND, "21:06:00")
    outputs = hub.task_folder(PARENT) / "outputs"
    (outputs / "summary.md").write_text("All done.\n")

    answer = hub.send(example(1), *at_time("21:10:00"))

    assert (answer["type"], answer["agent"], answer["warnings"]) == (
        "completion.report",
        BACKEND,
        [],
    )
    assert (hub.data / f"runs/{PARENT}/run_result.json").read_text() == dedent("""\
        {
          "taskId": "TASK-2026-02-09-057",
          "agentId": "swe-backend",
          "completedAt": "2026-02-09T21:10:00.000Z",
          "outcome": "done",
          "summaryRef": "outputs/summary.md",
          "handoffRef": "outputs/handoff.md",
          "deliverables": ["src/api/users.ts", "src/api/auth.ts"],
          "tests": {
            "total": 120,
            "passed": 120,
            "failed": 0
          },
          "blockers": [],
          "notes": "All acceptance criteria met. Tests passing. Ready for review."
        }
        """)
    assert hub.event_types(PARENT)[-2:] == ["protocol.message.received", "task.completed"]
    assert hub.status(PARENT) == "in-progress"

    hub.console.ask("session-end", "--session", "s-1", *at_time("21:11:00"))

    assert hub.status(PARENT) == "review"
    assert transitions(hub, PARENT)[-1][:2] == ("in-progress", "review")
    assert (hub.task_folder(PARENT) / "outputs/summary.md").read_text() == "All done.\n"
    hub.assert_verified()


@proves("AOF-COMPLETION")
def test_example_1_without_review_leads_to_done(hub: AofHub) -> None:
    create_claimed(hub, PARENT, BACKEND, "21:06:00", "--no-review")
    hub.send(example(1), *at_time("21:10:00"))
    hub.console.ask("session-end", *at_time("21:11:00"))

    assert hub.status(PARENT) == "done"
    steps = [step[:2] for step in transitions(hub, PARENT)]
    assert steps[-2:] == [("in-progress", "review"), ("review", "done")]
    hub.assert_verified()


@proves("AOF-COMPLETION", "NOTIFY-NEWS")
def test_example_2_blocked_report_blocks_and_notifies(hub: AofHub, tmp_path: Path) -> None:
    notices = tmp_path / "told"
    hub.console.ask("init")
    (hub.data / "dragoman.toml").write_text(
        f'[notify]\ncommand = ["sh", "-c", "cat >> {notices}"]\n'
    )
    task = f"TASK-{DAY}-058"
    create_claimed(hub, task, BACKEND, "21:12:00")

    hub.send(example(2), *at_time("21:15:00"))
    assert hub.run_artifact(task, "run_result.json")["outcome"] == "blocked"
    assert not notices.exists()
    hub.console.ask("session-end", "--session", "s-1", *at_time("21:16:00"))

    assert hub.status(task) == "blocked"
    assert transitions(hub, task)[-1][:2] == ("in-progress", "blocked")
    assert task in notices.read_text()
    assert "blocked" in notices.read_text()


@proves("AOF-STATUS")
def test_example_3_progress_is_a_line_of_the_work_log(hub: AofHub) -> None:
    task = f"TASK-{DAY}-059"
    create_claimed(hub, task, QA, "21:18:00", "--body", "Test all of it.")
    before = transitions(hub, task)

    hub.send(example(3), *at_time("21:20:07"))

    assert hub.task_file(task).endswith(
        "---\n\nTest all of it.\n\n## Work Log\n\n"
        "- 2026-02-09T21:20:00.000Z Progress: Executed 50/100 test cases "
        "| Notes: No issues found so far\n"
    )
    assert hub.status(task) == "in-progress"
    assert transitions(hub, task) == before
    assert hub.event_types(task)[-2:] == ["protocol.message.received", "task.updated"]


@proves("AOF-STATUS")
def test_guide_work_log_entry_with_blockers(hub: AofHub) -> None:
    create_claimed(hub, PARENT, BACKEND, "21:04:00")
    message = example(3) | {
        "taskId": PARENT,
        "fromAgent": BACKEND,
        "sentAt": "2026-02-09T21:05:00.000Z",
        "payload": {
            "taskId": PARENT,
            "agentId": BACKEND,
            "progress": "Implemented core logic",
            "blockers": ["Awaiting API key"],
            "notes": "ETA after credentials arrive",
        },
    }
    hub.send(message, *at_time("21:05:00"))
    hub.send(message | {"sentAt": "2026-02-09T21:06:00.000Z"}, *at_time("21:06:00"))

    line = (
        "Progress: Implemented core logic | Notes: ETA after credentials arrive "
        "| Blockers: Awaiting API key\n"
    )
    page = hub.task_file(PARENT)
    assert page.count("## Work Log") == 1
    assert page.endswith(
        f"## Work Log\n\n- 2026-02-09T21:05:00.000Z {line}- 2026-02-09T21:06:00.000Z {line}"
    )


@proves("AOF-STATUS", "AOF-EVENTS")
def test_example_4_status_update_moves_the_task(hub: AofHub) -> None:
    task = f"TASK-{DAY}-060"
    create_claimed(hub, task, QA, "21:22:00")

    hub.send(example(4), *at_time("21:25:00"))

    assert hub.status(task) == "blocked"
    assert transitions(hub, task)[-1] == ("in-progress", "blocked", "Test environment unreachable")
    (last,) = (
        e for e in hub.events_of_type("task.transitioned") if e["payload"]["to"] == "blocked"
    )
    assert (last["actor"], last["timestamp"]) == (QA, "2026-02-09T21:25:00.000Z")
    assert "## Work Log" not in hub.task_file(task)


def delegate(hub: AofHub, message: dict[str, Any]) -> str:
    """Claim the parent for swe-backend and delegate the child."""
    child = str(message["taskId"])
    if not (hub.data / f"runs/{PARENT}").exists():
        create_claimed(hub, PARENT, BACKEND, "21:26:00")
    hub.create_ready(child, *at_time("21:27:00"))
    hub.send(message, *at_time("21:30:00"))
    return child


@proves("AOF-HANDOFF")
def test_example_5_handoff_request_writes_both_artifacts(hub: AofHub) -> None:
    assert delegate(hub, example(5)) == CHILD

    inputs = hub.data / f"tasks/ready/{CHILD}/inputs"
    written = json.loads((inputs / "handoff.json").read_text())
    assert written == example(5)["payload"]
    assert list(written) == list(example(5)["payload"])
    assert (inputs / "handoff.md").read_text() == dedent("""\
        # Handoff Request

        **From:** swe-backend
        **To:** swe-qa
        **Due By:** 2026-02-10T12:00:00.000Z

        ## Acceptance Criteria

        - All unit tests pass
        - Integration tests pass
        - Code coverage >= 80%

        ## Expected Outputs

        - tests/report.md
        - coverage/report.html

        ## Context References

        - tasks/in-progress/TASK-2026-02-09-057.md
        - tasks/in-progress/TASK-2026-02-09-057/outputs/handoff.md
        - src/api/users.ts
        - src/api/auth.ts

        ## Constraints

        - No new dependencies
        - Use existing test framework
        """)
    assert hub.status(CHILD) == "ready"
    (line,) = hub.events_of_type("delegation.requested")
    assert (line["actor"], line["taskId"]) == (BACKEND, CHILD)
    assert line["payload"]["parentTaskId"] == PARENT
    assert "delegationDepth: 1" in hub.task_file(CHILD)
    assert f"parentId: {PARENT}" in hub.task_file(CHILD)
    hub.assert_verified()


@proves("AOF-HANDOFF")
def test_guide_handoff_artifacts(hub: AofHub) -> None:
    message = example(5)
    message["taskId"] = f"TASK-{DAY}-060"
    message["payload"] |= {
        "taskId": f"TASK-{DAY}-060",
        "acceptanceCriteria": ["All tests pass", "Update docs"],
        "expectedOutputs": ["tests/report.md", "docs/QA.md"],
        "contextRefs": [
            f"tasks/in-progress/{PARENT}.md",
            f"tasks/in-progress/{PARENT}/outputs/handoff.md",
        ],
        "constraints": ["No new dependencies"],
    }
    inputs = hub.data / f"tasks/ready/{delegate(hub, message)}/inputs"

    assert (inputs / "handoff.json").read_text() == dedent("""\
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
        """)


@proves("AOF-HANDOFF")
def test_example_6_accepted_handoff_moves_nothing(hub: AofHub) -> None:
    delegate(hub, example(5))
    before = transitions(hub, CHILD)

    hub.send(example(6), *at_time("21:35:00"))

    (accepted,) = hub.events_of_type("delegation.accepted")
    assert (accepted["actor"], accepted["taskId"]) == (QA, CHILD)
    assert transitions(hub, CHILD) == before
    assert hub.status(CHILD) == "ready"


@proves("AOF-HANDOFF", "NOTIFY-NEWS")
def test_example_7_rejected_handoff_blocks_the_child(hub: AofHub, tmp_path: Path) -> None:
    notices = tmp_path / "told"
    hub.console.ask("init")
    (hub.data / "dragoman.toml").write_text(
        f'[notify]\ncommand = ["sh", "-c", "cat >> {notices}"]\n'
    )
    child = f"TASK-{DAY}-062"
    request = example(5)
    request["taskId"] = request["payload"]["taskId"] = child
    delegate(hub, request)

    hub.send(example(7), *at_time("21:40:00"))

    reason = "Insufficient context: no test plan provided"
    assert hub.status(child) == "blocked"
    assert transitions(hub, child)[-1] == ("ready", "blocked", reason)
    (rejected,) = hub.events_of_type("delegation.rejected")
    assert (rejected["actor"], rejected["taskId"]) == (QA, child)
    assert rejected["payload"]["reason"] == reason
    assert (hub.task_folder(child) / "inputs/handoff.json").exists()
    assert child in notices.read_text()
    hub.assert_verified()


@proves("AOF-COMPLETION", "LEASE-RECOVERY")
def test_example_8_stale_heartbeat_with_result_applies_it(hub: AofHub) -> None:
    create_claimed(hub, PARENT, BACKEND, "21:06:00")
    message = example(1)
    message["payload"] |= {
        "outcome": "partial",
        "deliverables": ["src/foo.ts"],
        "tests": {"total": 10, "passed": 8, "failed": 2},
        "notes": "80% complete; needs final polish",
    }
    hub.send(message, *at_time("21:10:00"))
    result = (hub.data / f"runs/{PARENT}/run_result.json").read_text()
    assert result == dedent("""\
        {
          "taskId": "TASK-2026-02-09-057",
          "agentId": "swe-backend",
          "completedAt": "2026-02-09T21:10:00.000Z",
          "outcome": "partial",
          "summaryRef": "outputs/summary.md",
          "handoffRef": "outputs/handoff.md",
          "deliverables": ["src/foo.ts"],
          "tests": {
            "total": 10,
            "passed": 8,
            "failed": 2
          },
          "blockers": [],
          "notes": "80% complete; needs final polish"
        }
        """)

    hub.console.ask("tick", *at_time("21:14:59"))
    assert hub.status(PARENT) == "in-progress"
    hub.console.ask("tick", *at_time("21:15:00"))

    assert hub.status(PARENT) == "review"
    assert transitions(hub, PARENT)[-1] == ("in-progress", "review", "stale_heartbeat_partial")
    assert (hub.data / f"runs/{PARENT}/run_result.json").read_text() == result
    hub.assert_verified()


@proves("LEASE-RECOVERY")
def test_example_9_stale_heartbeat_without_result_reclaims_the_task(hub: AofHub) -> None:
    create_claimed(hub, PARENT, BACKEND, "21:00:00")

    hub.console.ask("tick", *at_time("21:05:00"))

    assert hub.status(PARENT) == "ready"
    assert transitions(hub, PARENT)[-1] == ("in-progress", "ready", "stale_heartbeat_reclaim")
    assert not (hub.data / f"runs/{PARENT}/run_result.json").exists()
    run = hub.run_artifact(PARENT, "run.json")
    assert (run["status"], run["expiredAt"], run["reason"]) == (
        "expired",
        "2026-02-09T21:05:00.000Z",
        "stale_heartbeat",
    )
    hub.assert_verified()

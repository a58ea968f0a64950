"""The nine examples of the AOF/1 guide through the command line, byte for byte."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.e2e.aof_office import BACKEND, QA, Office
from tests.protocols.aof.hub import example
from tests.requirements import proves

DAY = "2026-02-09"
PARENT = f"TASK-{DAY}-057"
CHILD = f"TASK-{DAY}-061"

pytestmark = proves("AOF-EXAMPLES", "FILES-ARTIFACTS", "FILES-PROJECTION", "CLI-SEND")


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """Give an office without any task."""
    return Office(tmp_path / "hub")


def at(time: str) -> tuple[str, str]:
    return "--now", f"{DAY}T{time}Z"


def held(office: Office, task: str, agent: str, since: str, *words: str) -> None:
    """A task that an agent has in its hands since a time of the day, in the session s-1."""
    office.ready(task, *words, *at("20:50:00"))
    office.claim(task, agent, *at(since), session="s-1")


def moved(office: Office, task: str) -> list[tuple[str, str, str]]:
    """Every transition of a task, as its event lines say."""
    return [
        (line["payload"]["from"], line["payload"]["to"], line["payload"]["reason"])
        for line in office.events("task.transitioned")
        if line["taskId"] == task
    ]


def test_run_artifacts_are_written_when_the_lease_is_taken_and_renewed(office: Office) -> None:
    held(office, PARENT, BACKEND, "20:55:00")
    for beat in ("20:56:00", "20:57:00", "20:58:00", "21:00:00"):
        office.console.ask("task", "heartbeat", PARENT, "--agent", BACKEND, *at(beat))

    assert (office.data / f"runs/{PARENT}/run.json").read_text() == dedent("""\
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
    assert (office.data / f"runs/{PARENT}/run_heartbeat.json").read_text() == dedent("""\
        {
          "taskId": "TASK-2026-02-09-057",
          "agentId": "swe-backend",
          "lastHeartbeat": "2026-02-09T21:00:00.000Z",
          "beatCount": 5,
          "expiresAt": "2026-02-09T21:05:00.000Z"
        }
        """)


@proves("AOF-COMPLETION", "AOF-SESSION-END")
def test_example_1_a_report_of_done_goes_to_review_when_its_session_ends(office: Office) -> None:
    held(office, PARENT, BACKEND, "21:06:00")
    outputs = office.folder(PARENT) / "outputs"
    (outputs / "summary.md").write_text("All done.\n")

    answer = office.send(example(1), *at("21:10:00"))

    assert (answer["type"], answer["agent"], answer["warnings"]) == (
        "completion.report",
        BACKEND,
        [],
    )
    assert (office.data / f"runs/{PARENT}/run_result.json").read_text() == dedent("""\
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
    assert office.types(PARENT)[-2:] == ["protocol.message.received", "task.completed"]
    assert office.status(PARENT) == "in-progress"

    office.console.ask("session-end", "--session", "s-1", *at("21:11:00"))

    assert office.status(PARENT) == "review"
    assert moved(office, PARENT)[-1][:2] == ("in-progress", "review")
    assert (office.folder(PARENT) / "outputs/summary.md").read_text() == "All done.\n"
    office.verified()


@proves("AOF-COMPLETION")
def test_example_1_without_a_review_goes_on_to_done(office: Office) -> None:
    held(office, PARENT, BACKEND, "21:06:00", "--no-review")
    office.send(example(1), *at("21:10:00"))
    office.console.ask("session-end", *at("21:11:00"))

    assert office.status(PARENT) == "done"
    steps = [step[:2] for step in moved(office, PARENT)]
    assert steps[-2:] == [("in-progress", "review"), ("review", "done")]
    office.verified()


@proves("AOF-COMPLETION", "NOTIFY-NEWS")
def test_example_2_a_report_of_blocked_blocks_and_tells(office: Office, tmp_path: Path) -> None:
    told = tmp_path / "told"
    office.console.ask("init")
    (office.data / "dragoman.toml").write_text(
        f'[notify]\ncommand = ["sh", "-c", "cat >> {told}"]\n'
    )
    task = f"TASK-{DAY}-058"
    held(office, task, BACKEND, "21:12:00")

    office.send(example(2), *at("21:15:00"))
    assert office.run(task, "run_result.json")["outcome"] == "blocked"
    assert not told.exists()
    office.console.ask("session-end", "--session", "s-1", *at("21:16:00"))

    assert office.status(task) == "blocked"
    assert moved(office, task)[-1][:2] == ("in-progress", "blocked")
    assert task in told.read_text()
    assert "blocked" in told.read_text()


@proves("AOF-STATUS")
def test_example_3_progress_is_a_line_of_the_work_log(office: Office) -> None:
    task = f"TASK-{DAY}-059"
    held(office, task, QA, "21:18:00", "--body", "Test all of it.")
    before = moved(office, task)

    office.send(example(3), *at("21:20:07"))

    assert office.page(task).endswith(
        "---\n\nTest all of it.\n\n## Work Log\n\n"
        "- 2026-02-09T21:20:00.000Z Progress: Executed 50/100 test cases "
        "| Notes: No issues found so far\n"
    )
    assert office.status(task) == "in-progress"
    assert moved(office, task) == before
    assert office.types(task)[-2:] == ["protocol.message.received", "task.updated"]


@proves("AOF-STATUS")
def test_the_guides_work_log_entry_with_blockers(office: Office) -> None:
    held(office, PARENT, BACKEND, "21:04:00")
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
    office.send(message, *at("21:05:00"))
    office.send(message | {"sentAt": "2026-02-09T21:06:00.000Z"}, *at("21:06:00"))

    line = (
        "Progress: Implemented core logic | Notes: ETA after credentials arrive "
        "| Blockers: Awaiting API key\n"
    )
    page = office.page(PARENT)
    assert page.count("## Work Log") == 1
    assert page.endswith(
        f"## Work Log\n\n- 2026-02-09T21:05:00.000Z {line}- 2026-02-09T21:06:00.000Z {line}"
    )


@proves("AOF-STATUS", "AOF-EVENTS")
def test_example_4_a_status_update_moves_the_task(office: Office) -> None:
    task = f"TASK-{DAY}-060"
    held(office, task, QA, "21:22:00")

    office.send(example(4), *at("21:25:00"))

    assert office.status(task) == "blocked"
    assert moved(office, task)[-1] == ("in-progress", "blocked", "Test environment unreachable")
    (last,) = (e for e in office.events("task.transitioned") if e["payload"]["to"] == "blocked")
    assert (last["actor"], last["timestamp"]) == (QA, "2026-02-09T21:25:00.000Z")
    assert "## Work Log" not in office.page(task)


def delegated(office: Office, message: dict[str, Any]) -> str:
    """The parent in the hands of swe-backend, and the child asked for."""
    child = str(message["taskId"])
    if not (office.data / f"runs/{PARENT}").exists():
        held(office, PARENT, BACKEND, "21:26:00")
    office.ready(child, *at("21:27:00"))
    office.send(message, *at("21:30:00"))
    return child


@proves("AOF-HANDOFF")
def test_example_5_a_handoff_request_writes_both_artifacts(office: Office) -> None:
    assert delegated(office, example(5)) == CHILD

    inputs = office.data / f"tasks/ready/{CHILD}/inputs"
    asked = json.loads((inputs / "handoff.json").read_text())
    assert asked == example(5)["payload"]
    assert list(asked) == list(example(5)["payload"])
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
    assert office.status(CHILD) == "ready"
    (line,) = office.events("delegation.requested")
    assert (line["actor"], line["taskId"]) == (BACKEND, CHILD)
    assert line["payload"]["parentTaskId"] == PARENT
    assert "delegationDepth: 1" in office.page(CHILD)
    assert f"parentId: {PARENT}" in office.page(CHILD)
    office.verified()


@proves("AOF-HANDOFF")
def test_the_guides_handoff_artifacts(office: Office) -> None:
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
    inputs = office.data / f"tasks/ready/{delegated(office, message)}/inputs"

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
def test_example_6_an_accepted_handoff_moves_nothing(office: Office) -> None:
    delegated(office, example(5))
    before = moved(office, CHILD)

    office.send(example(6), *at("21:35:00"))

    (accepted,) = office.events("delegation.accepted")
    assert (accepted["actor"], accepted["taskId"]) == (QA, CHILD)
    assert moved(office, CHILD) == before
    assert office.status(CHILD) == "ready"


@proves("AOF-HANDOFF", "NOTIFY-NEWS")
def test_example_7_a_rejected_handoff_blocks_the_child(office: Office, tmp_path: Path) -> None:
    told = tmp_path / "told"
    office.console.ask("init")
    (office.data / "dragoman.toml").write_text(
        f'[notify]\ncommand = ["sh", "-c", "cat >> {told}"]\n'
    )
    child = f"TASK-{DAY}-062"
    asked = example(5)
    asked["taskId"] = asked["payload"]["taskId"] = child
    delegated(office, asked)

    office.send(example(7), *at("21:40:00"))

    reason = "Insufficient context: no test plan provided"
    assert office.status(child) == "blocked"
    assert moved(office, child)[-1] == ("ready", "blocked", reason)
    (rejected,) = office.events("delegation.rejected")
    assert (rejected["actor"], rejected["taskId"]) == (QA, child)
    assert rejected["payload"]["reason"] == reason
    assert (office.folder(child) / "inputs/handoff.json").exists()
    assert child in told.read_text()
    office.verified()


@proves("AOF-COMPLETION", "LEASE-RECOVERY")
def test_example_8_a_stale_heartbeat_with_a_result_applies_the_result(office: Office) -> None:
    held(office, PARENT, BACKEND, "21:06:00")
    message = example(1)
    message["payload"] |= {
        "outcome": "partial",
        "deliverables": ["src/foo.ts"],
        "tests": {"total": 10, "passed": 8, "failed": 2},
        "notes": "80% complete; needs final polish",
    }
    office.send(message, *at("21:10:00"))
    result = (office.data / f"runs/{PARENT}/run_result.json").read_text()
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

    office.console.ask("tick", *at("21:14:59"))
    assert office.status(PARENT) == "in-progress"
    office.console.ask("tick", *at("21:15:00"))

    assert office.status(PARENT) == "review"
    assert moved(office, PARENT)[-1] == ("in-progress", "review", "stale_heartbeat_partial")
    assert (office.data / f"runs/{PARENT}/run_result.json").read_text() == result
    office.verified()


@proves("LEASE-RECOVERY")
def test_example_9_a_stale_heartbeat_without_a_result_reclaims_the_task(office: Office) -> None:
    held(office, PARENT, BACKEND, "21:00:00")

    office.console.ask("tick", *at("21:05:00"))

    assert office.status(PARENT) == "ready"
    assert moved(office, PARENT)[-1] == ("in-progress", "ready", "stale_heartbeat_reclaim")
    assert not (office.data / f"runs/{PARENT}/run_result.json").exists()
    run = office.run(PARENT, "run.json")
    assert (run["status"], run["expiredAt"], run["reason"]) == (
        "expired",
        "2026-02-09T21:05:00.000Z",
        "stale_heartbeat",
    )
    office.verified()

"""Decisions about points that AOF/1 leaves open (S-AOF), through the command line and its files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.aof_hub import BACKEND, QA, AofHub
from tests.e2e.program import Program
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


@pytest.fixture
def hub(tmp_path: Path) -> AofHub:
    """Give a hub where swe-backend holds the parent, and the child is ready."""
    hub = AofHub(tmp_path / "hub")
    hub.create_claimed(PARENT, BACKEND, session="s-1")
    hub.create_ready(CHILD)
    return hub


def at_time(time: str, day: str = "2026-02-09") -> tuple[str, str]:
    return "--now", f"{day}T{time}Z"


def configured_hub(tmp_path: Path, text: str) -> AofHub:
    hub = AofHub(tmp_path / "hub")
    hub.console.ask("init")
    (hub.data / "dragoman.toml").write_text(text)
    return hub


# S-AOF-1: detection


@proves("AOF-DETECT", "CLI-SEND")
def test_message_is_recognized_in_every_wrapping(hub: AofHub) -> None:
    wraps: tuple[Callable[[Message], Message | str], ...] = (
        lambda m: m,
        lambda m: {"payload": m},
        lambda m: {"event": "message_received", "message": m},
        lambda m: {"content": m},
        lambda m: {"content": json.dumps(m)},
        lambda m: {"content": "AOF/1 " + json.dumps(m)},
        lambda m: "AOF/1 " + json.dumps(m),
        lambda m: json.dumps(m, indent=2),
    )
    for number, wrap in enumerate(wraps):
        answer = hub.send(wrap(update(progress=f"Way {number}")))
        assert (answer["type"], answer["repeated"]) == ("status.update", False)
        assert hub.task_file(PARENT).endswith(f"Progress: Way {number}\n")
        # In every wrapping it is the same message.
        assert hub.send(update(progress=f"Way {number}"))["repeated"] is True
    assert len(hub.events_of_type("protocol.message.received")) == 8


# S-AOF-2: the order of checks


@proves("AOF-ORDER")
def test_first_failing_check_is_reported(hub: AofHub) -> None:
    """Each message fails all later checks, too."""
    eve = {"fromAgent": "eve"}
    spoofed = update(status="blocked", blockers=["x"]) | eve  # agentId is another, no authority
    rows: tuple[tuple[Message | str, str], ...] = (
        ("AOF/1 " + "{" * 300_000, "message_too_large"),
        ('AOF/1 {"protocol":"aof","version":2', "invalid_json"),
        (spoofed | {"version": 2, "type": "task.magic"}, "invalid_envelope"),
        (spoofed | {"type": "task.magic", "taskId": UNKNOWN}, "unknown_type"),
        (spoofed | {"taskId": UNKNOWN}, "taskId_mismatch"),
        (update(taskId=UNKNOWN, notes="x") | eve | {"taskId": UNKNOWN}, "task_not_found"),
        (spoofed, "identity_mismatch"),
        (update(agentId="eve", status="blocked", blockers=["x"]) | eve, "unauthorized_agent"),
    )
    for message, code in rows:
        assert hub.refusal_code(message) == code, message
    # "Already in the target" is checked before authority.
    hub.send(update(agentId="eve", status="in-progress") | eve)


# S-AOF-3: time of applying a completion


@proves("AOF-COMPLETION")
def test_completion_can_be_applied_immediately(tmp_path: Path) -> None:
    hub = configured_hub(tmp_path, '[aof]\napply_completion = "immediately"\n')
    hub.create_claimed(PARENT, BACKEND)

    assert hub.send(report())["reply"]["status"] == "review"

    assert hub.status(PARENT) == "review"
    kinds = hub.event_types(PARENT)[2:]
    assert kinds[:3] == ["protocol.message.received", "task.completed", "task.transitioned"]
    hub.assert_verified()


@proves("AOF-COMPLETION")
def test_latest_report_of_the_attempt_counts(hub: AofHub) -> None:
    hub.send(report("done"))
    hub.send(report("blocked", notes="On second thoughts"))

    result = hub.run_artifact(PARENT, "run_result.json")
    assert (result["outcome"], result["notes"]) == ("blocked", "On second thoughts")
    hub.console.ask("session-end", "--session", "s-1")
    assert hub.status(PARENT) == "blocked"


@proves("AOF-SESSION-END")
def test_session_end_touches_its_own_attempts_only(hub: AofHub) -> None:
    hub.claim(CHILD, QA, session="s-2")
    third = "TASK-2026-02-09-071"
    hub.create_claimed(third, BACKEND, session="s-1")
    hub.send(report())
    payload = report()["payload"]
    hub.send(envelope("completion.report", QA, payload, taskId=CHILD))

    ended = hub.console.ask("session-end", "--session", "s-1", "--as", BACKEND)

    assert {"taskId": PARENT, "status": "review"} in ended["tasks"]
    assert CHILD not in {task["taskId"] for task in ended["tasks"]}
    assert [hub.status(task) for task in (PARENT, CHILD, third)] == [
        "review",
        "in-progress",
        "in-progress",
    ]
    hub.console.ask("session-end")
    assert (hub.status(CHILD), hub.status(third)) == ("review", "in-progress")


# S-AOF-4 and S-ROLE: authority and identity


@proves("AOF-IDENTITY", "AOF-AUTHORITY")
def test_agent_cannot_act_for_another_in_any_field(hub: AofHub) -> None:
    hub.send(request())
    eve = ("--as", "eve")
    rows: tuple[tuple[Message, tuple[str, ...], str], ...] = (
        (report(), eve, "identity_mismatch"),
        (report(agentId="eve"), (), "identity_mismatch"),
        (update(notes="x"), eve, "identity_mismatch"),
        (update(notes="x", agentId="eve"), (), "identity_mismatch"),
        (request(), eve, "identity_mismatch"),
        (request(fromAgent="eve"), (), "identity_mismatch"),
        (request(toAgent="eve"), (), "identity_mismatch"),
        (accepted(), eve, "identity_mismatch"),
        (accepted() | {"fromAgent": "eve"}, (), "unauthorized_agent"),
        (accepted() | {"fromAgent": BACKEND}, (), "unauthorized_agent"),
        (rejected() | {"fromAgent": "eve"}, eve, "unauthorized_agent"),
    )
    for message, args, code in rows:
        assert hub.refusal_code(message, *args) == code, message
    assert hub.event_types(CHILD)[-1] == "protocol.message.rejected"
    assert not hub.events_of_type("delegation.accepted")
    assert {line["actor"] for line in hub.events_of_type("protocol.message.rejected")} == {
        "eve",
        BACKEND,
    }
    hub.assert_verified()


@proves("AOF-AUTHORITY", "LEASE-FENCE")
def test_former_holder_is_refused_with_lease_lost(hub: AofHub) -> None:
    hub.console.ask("task", "release", PARENT, "--agent", BACKEND)
    hub.claim(PARENT, QA)

    for message in (report(), update(notes="x"), update(status="blocked", blockers=["x"])):
        assert hub.refusal_code(message) == "lease_lost"
    assert hub.run_artifact(PARENT, "run.json")["agentId"] == QA
    assert hub.status(PARENT) == "in-progress"


@proves("AOF-AUTHORITY")
def test_assignee_may_block_but_not_complete_an_unclaimed_task(hub: AofHub) -> None:
    third = "TASK-2026-02-09-071"
    hub.create_ready(third, "--assignee", QA)
    payload = {"taskId": third, "agentId": QA, "status": "blocked", "blockers": ["No disk"]}
    done = hub.try_send(envelope("completion.report", QA, report()["payload"], taskId=third))

    assert (done.code, done.json["code"]) == (1, "unauthorized_agent")
    assert done.json["detail"] == f"{QA} does not hold {third}: claim it first"
    hub.send(envelope("status.update", QA, payload, taskId=third))
    assert hub.status(third) == "blocked"


@proves("TASK-REVIEW", "AOF-AUTHORITY")
def test_agent_cannot_approve_its_own_work(hub: AofHub) -> None:
    hub.send(report())
    hub.console.ask("session-end")

    assert hub.try_send(update(status="done", notes="Looks good to me")).code == 1

    assert hub.status(PARENT) == "review"


# S-AOF-6 and S-AOF-12: times


@proves("AOF-TIMES", "AOF-STATUS")
def test_times_with_an_offset_are_normalized(hub: AofHub) -> None:
    message = update(progress="Half of it") | {
        "sentAt": "2026-02-09T22:30:00.5+01:30",
        "projectId": "apollo",
    }
    hub.send(message)
    hub.send(request(dueBy="2026-02-10T13:00:00+01:00"))

    assert hub.task_file(PARENT).endswith("- 2026-02-09T21:00:00.500Z Progress: Half of it\n")
    inputs = hub.task_folder(CHILD) / "inputs"
    assert '"dueBy": "2026-02-10T12:00:00.000Z"' in (inputs / "handoff.json").read_text()
    received = hub.events_of_type("protocol.message.received")[0]["payload"]
    assert received["projectId"] == "apollo"


# S-AOF-7: handoffs


@proves("AOF-HANDOFF", "FILES-FOLDER")
def test_handoff_artifacts_move_with_their_task(hub: AofHub) -> None:
    hub.send(request())
    before = (hub.data / f"tasks/ready/{CHILD}/inputs/handoff.json").read_bytes()

    hub.claim(CHILD, QA)

    assert (hub.data / f"tasks/in-progress/{CHILD}/inputs/handoff.json").read_bytes() == before
    assert hub.status(CHILD) == "in-progress"
    hub.send(rejected())
    assert (hub.data / f"tasks/blocked/{CHILD}/inputs/handoff.json").read_bytes() == before
    assert hub.status(CHILD) == "blocked"


@proves("DELEGATION-SLA", "AOF-HANDOFF")
def test_overdue_handoff_is_escalated_once_and_not_moved(tmp_path: Path) -> None:
    hub = AofHub(tmp_path / "hub")
    hub.create_ready(PARENT, *at_time("09:00:00"))
    hub.claim(PARENT, BACKEND, *at_time("09:00:00"))
    hub.create_ready(CHILD, *at_time("09:00:00"))
    hub.send(request(), *at_time("09:01:00"))

    hub.console.ask("tick", *at_time("11:59:59", "2026-02-10"))
    assert not hub.events_of_type("delegation.escalated")
    hub.console.ask("tick", *at_time("12:00:00", "2026-02-10"))
    hub.console.ask("tick", *at_time("12:30:00", "2026-02-10"))

    (escalated,) = hub.events_of_type("delegation.escalated")
    assert escalated["taskId"] == CHILD
    assert escalated["payload"]["dueBy"] == "2026-02-10T12:00:00.000Z"
    assert hub.status(CHILD) == "ready"


@proves("AOF-HANDOFF", "AOF-AUTHORITY", "CLI-AGENT")
def test_orchestrator_hands_off_a_task_it_does_not_hold(hub: AofHub) -> None:
    message = request(fromAgent="boss") | {"fromAgent": "boss"}
    assert hub.refusal_code(message) == "unauthorized_agent"
    hub.console.ask("agent", "add", "boss", "--role", "orchestrator")

    hub.send(message, "--as", "boss")

    assert hub.events_of_type("delegation.requested")[0]["actor"] == "boss"


# S-AOF-8: recovery


@proves("LEASE-RECOVERY", "RETRY-DEADLETTER")
def test_repeatedly_failing_task_becomes_deadletter(tmp_path: Path) -> None:
    hub = AofHub(tmp_path / "hub")
    hub.create_ready(PARENT, *at_time("09:00:00"))
    for hour in range(10, 15):
        hub.claim(PARENT, BACKEND, *at_time(f"{hour}:00:00"))
        hub.console.ask("tick", *at_time(f"{hour}:30:00"))

    assert hub.status(PARENT) == "deadletter"
    steps = [
        (line["payload"]["from"], line["payload"]["to"])
        for line in hub.events_of_type("task.transitioned")
    ]
    assert steps[-2:] == [("in-progress", "ready"), ("ready", "deadletter")]
    assert sorted(path.name for path in (hub.data / f"runs/{PARENT}/attempts").iterdir()) == [
        "1",
        "2",
        "3",
        "4",
    ]
    hub.assert_verified()


@proves("LEASE-HEARTBEAT", "CONFIG-ONCE")
def test_lease_length_is_configured(tmp_path: Path) -> None:
    hub = configured_hub(tmp_path, "[leases]\nttl_ms = 60000\n")
    hub.create_ready(PARENT, *at_time("09:00:00"))
    hub.claim(PARENT, BACKEND, *at_time("09:00:00"))

    assert hub.run_artifact(PARENT, "run_heartbeat.json")["expiresAt"] == "2026-02-09T09:01:00.000Z"
    hub.console.ask("tick", *at_time("09:00:59"))
    assert hub.status(PARENT) == "in-progress"
    hub.console.ask("tick", *at_time("09:01:00"))
    assert hub.status(PARENT) == "ready"


# S-AOF-10: files that a report names


@proves("AOF-WARNINGS")
def test_report_refers_to_files_of_its_own_folder(hub: AofHub) -> None:
    outputs = hub.task_folder(PARENT) / "outputs"
    (outputs / "summary.md").write_text("Done.\n")
    (outputs / "link.md").symlink_to("/etc/hostname")

    for ref, warned in (
        ("outputs/summary.md", False),
        ("output/summary.md", False),
        ("./outputs/summary.md", False),
        ("outputs/link.md", True),
        ("outputs", True),
        ("summary.md", True),
    ):
        assert bool(hub.send(report(summaryRef=ref))["warnings"]) is warned, ref
    named = hub.send(report(summaryRef="outputs/summary.md", handoffRef="outputs/h.md"))
    assert "outputs/h.md" in named["warnings"][0]
    assert hub.run_artifact(PARENT, "run_result.json")["handoffRef"] == "outputs/h.md"


# S-AOF-11: tools


@proves("AOF-TOOLS")
def test_tools_have_the_effects_of_the_messages(hub: AofHub, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    by_tool = AofHub(tmp_path / "other/hub")
    by_tool.create_claimed(PARENT, BACKEND, session="s-1")

    def call(name: str, message: Message) -> None:
        arguments = json.dumps(message["payload"] | {"taskId": PARENT})
        assert by_tool.console("call", name, arguments, "--as", BACKEND).code == 0

    hub.send(update(progress="Half of it"))
    call("aof_task_update", update(progress="Half of it"))
    hub.send(report("partial"))
    call("aof_task_complete", report("partial"))
    hub.console.ask("session-end", "--session", "s-1")
    by_tool.console.ask("session-end", "--session", "s-1")

    results = [each.run_artifact(PARENT, "run_result.json") for each in (hub, by_tool)]
    for result in results:
        del result["completedAt"]
    assert results[0] == results[1]
    assert by_tool.status(PARENT) == "review"
    expected = [kind for kind in hub.event_types(PARENT) if kind != "protocol.message.received"]
    assert by_tool.event_types(PARENT) == expected
    assert by_tool.task_file(PARENT).endswith("Progress: Half of it\n")
    by_tool.assert_verified()


# S-AOF-13: files


@proves("FILES-TASK-FILE", "FILES-PROJECTION")
def test_task_file_has_every_field_of_the_task(hub: AofHub) -> None:
    hub.console.make("Sub", "--id", "ol-527.1", "--parent", PARENT, "--alias", "bead:x-1")
    shown = hub.console.ask("task", "show", "ol-527.1")

    page = (hub.data / f"tasks/backlog/{shown['aofId']}.md").read_text()
    for line in (
        f"id: {shown['aofId']}",
        "primaryId: ol-527.1",
        f"parentId: {PARENT}",
        "status: backlog",
        "priority: normal",
    ):
        assert f"\n{line}\n" in page
    assert "bead:x-1" in page
    held = hub.task_file(PARENT)
    for field in ("createdAt", "updatedAt", "lastTransitionAt", "assignee", "lease", "metadata"):
        assert f"\n{field}:" in held
    assert "  agent: swe-backend" in held
    folder = hub.task_folder(PARENT)
    assert sorted(path.name for path in folder.iterdir()) == ["inputs", "outputs", "work"]


@proves("FILES-EDITS")
def test_edited_or_moved_file_is_a_request(hub: AofHub) -> None:
    path = hub.data / f"tasks/ready/{CHILD}.md"
    path.write_text(path.read_text().replace('title: "A task"', "title: A better title"))
    path.rename(hub.data / f"tasks/blocked/{CHILD}.md")

    hub.console.ask("tick")

    shown = hub.console.ask("task", "show", CHILD)
    assert (shown["title"], hub.status(CHILD)) == ("A better title", "blocked")
    changes = hub.console("events", "--json", "--task", CHILD).objects[-2:]
    assert {e["type"] for e in changes} == {"task.edited", "task.transitioned"}
    assert {e["actor"] for e in changes} == {"file:files"}
    hub.assert_verified()

    (hub.data / f"tasks/blocked/{CHILD}.md").rename(hub.data / f"tasks/done/{CHILD}.md")
    hub.console.ask("tick")
    assert hub.status(CHILD) == "blocked"
    (note,) = hub.data.glob(f"tasks/blocked/{CHILD}*.reason.txt")
    assert "invalid_transition" in note.read_text()
    hub.assert_verified()


@proves("FILES-EDITS", "TASK-REVIEW")
def test_moved_file_approves_a_review_only_if_moves_are_trusted(hub: AofHub) -> None:
    hub.send(report())
    hub.console.ask("session-end")
    review, done = (hub.data / f"tasks/{s}/{PARENT}.md" for s in ("review", "done"))

    review.rename(done)
    hub.console.ask("tick")
    assert hub.status(PARENT) == "review"
    assert list(review.parent.glob(f"{PARENT}*.reason.txt"))

    (hub.data / "dragoman.toml").write_text("[files]\ntrust_moves = true\n")
    review.rename(done)
    hub.console.ask("tick")
    assert hub.status(PARENT) == "done"
    hub.assert_verified()


# S-AOF-14: the inbox


@proves("FILES-INBOX", "AOF-IDENTITY")
def test_agents_with_only_a_file_system_use_the_inbox(hub: AofHub) -> None:
    inbox = hub.data / "inbox"
    for folder in (BACKEND, "eve"):
        (inbox / folder).mkdir()
    (inbox / BACKEND / "1.json").write_text(json.dumps(update(progress="By folder")))
    (inbox / "eve/1.json").write_text(json.dumps(update(progress="Spoofed")))
    (inbox / "2.txt").write_text("AOF/1 " + json.dumps(update(progress="By name")))
    (inbox / "3.json").write_text("AOF/1 {oops")
    (inbox / "half.json.tmp").write_text("{")

    hub.console.ask("tick")

    kept = {str(p.relative_to(inbox)) for p in inbox.rglob("*") if p.is_file()}
    assert kept == {
        f"{BACKEND}/processed/1.json",
        "eve/rejected/1.json",
        "eve/rejected/1.json.reason.txt",
        "processed/2.txt",
        "rejected/3.json",
        "rejected/3.json.reason.txt",
        "half.json.tmp",
    }
    assert (inbox / "eve/rejected/1.json.reason.txt").read_text().startswith("identity_mismatch")
    page = hub.task_file(PARENT)
    assert ("By folder" in page, "By name" in page, "Spoofed" in page) == (True, True, False)
    for entry in hub.console("events", "--json", "--task", PARENT).objects[-2:]:
        assert (entry["actor"], entry["via"]) == (f"agent:{BACKEND}", "inbox")
    hub.assert_verified()


@proves("FILES-INBOX", "AOF-REPEAT")
def test_replay_in_a_later_attempt_is_noted_beside_its_file(hub: AofHub) -> None:
    folder = hub.data / "inbox" / BACKEND
    folder.mkdir()
    for attempt in (1, 2):
        (folder / "1.json").write_text(json.dumps(update(progress="Half of it")))
        hub.console.ask("tick")
        if attempt == 1:
            hub.console.ask("task", "move", PARENT, "ready")
            hub.console.ask("task", "claim", PARENT, "--agent", BACKEND)
    notes = {note.name: note.read_text() for note in folder.rglob("*.txt")}
    assert list(notes) == ["1-2.json.warning.txt"]
    assert "already applied to attempt 1" in notes["1-2.json.warning.txt"]


# Stores


@proves("STORE-URL", "AOF-COMPLETION", "FILES-PROJECTION")
def test_session_leaves_the_same_files_on_either_database(program_per_store: Program) -> None:
    hub = AofHub(program_per_store.data)
    hub.create_ready(PARENT, *at_time("09:00:00"))
    hub.claim(PARENT, BACKEND, *at_time("09:00:00"), session="s-1")
    hub.create_ready(CHILD, *at_time("09:00:30"))
    hub.send(update(progress="Half of it"), *at_time("09:01:00"))
    hub.send(request(), *at_time("09:02:00"))
    hub.send(accepted(), *at_time("09:02:30"))
    assert (
        hub.refusal_code(report() | {"fromAgent": "eve"}, *at_time("09:02:40"))
        == "unauthorized_agent"
    )
    hub.send(report("partial"), *at_time("09:03:00"))
    hub.console.ask("tick", *at_time("09:08:00"))

    assert hub.status(PARENT) == "review"
    assert [(line["eventId"], line["type"]) for line in hub.event_lines()] == [
        (10, "task.created"),
        (20, "task.transitioned"),
        (30, "task.created"),
        (40, "protocol.message.received"),
        (41, "task.updated"),
        (50, "protocol.message.received"),
        (51, "delegation.requested"),
        (60, "task.linked"),
        (80, "protocol.message.received"),
        (81, "delegation.accepted"),
        (90, "protocol.message.rejected"),
        (100, "protocol.message.received"),
        (101, "task.completed"),
        (110, "protocol.message.warning"),
        (120, "task.transitioned"),
    ]
    hub.assert_verified()

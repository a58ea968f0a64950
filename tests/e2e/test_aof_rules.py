"""What AOF/1 leaves open and is settled here (S-AOF), through the command line and its files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.aof_office import BACKEND, QA, Office
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
def office(tmp_path: Path) -> Office:
    """Give an office where swe-backend holds the parent, and the child is ready."""
    office = Office(tmp_path / "hub")
    office.held(PARENT, BACKEND, session="s-1")
    office.ready(CHILD)
    return office


def at(time: str, day: str = "2026-02-09") -> tuple[str, str]:
    return "--now", f"{day}T{time}Z"


def with_settings(tmp_path: Path, text: str) -> Office:
    office = Office(tmp_path / "hub")
    office.console.ask("init")
    (office.data / "dragoman.toml").write_text(text)
    return office


# S-AOF-1: detection


@proves("AOF-DETECT", "CLI-SEND")
def test_a_message_is_found_in_every_way(office: Office) -> None:
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
        answer = office.send(wrap(update(progress=f"Way {number}")))
        assert (answer["type"], answer["repeated"]) == ("status.update", False)
        assert office.page(PARENT).endswith(f"Progress: Way {number}\n")
        # However it is wrapped, it is the same message.
        assert office.send(update(progress=f"Way {number}"))["repeated"] is True
    assert len(office.events("protocol.message.received")) == 8


# S-AOF-2: the order of checks


@proves("AOF-ORDER")
def test_the_first_thing_that_is_wrong_is_named(office: Office) -> None:
    """Each message is wrong in all that follows, too."""
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
        assert office.refused(message) == code, message
    # Already in the target comes before authority.
    office.send(update(agentId="eve", status="in-progress") | eve)


# S-AOF-3: when a completion is applied


@proves("AOF-COMPLETION")
def test_a_completion_may_be_applied_at_once(tmp_path: Path) -> None:
    office = with_settings(tmp_path, '[aof]\napply_completion = "immediately"\n')
    office.held(PARENT, BACKEND)

    assert office.send(report())["reply"]["status"] == "review"

    assert office.status(PARENT) == "review"
    kinds = office.types(PARENT)[2:]
    assert kinds[:3] == ["protocol.message.received", "task.completed", "task.transitioned"]
    office.verified()


@proves("AOF-COMPLETION")
def test_the_latest_report_of_the_attempt_counts(office: Office) -> None:
    office.send(report("done"))
    office.send(report("blocked", notes="On second thoughts"))

    result = office.run(PARENT, "run_result.json")
    assert (result["outcome"], result["notes"]) == ("blocked", "On second thoughts")
    office.console.ask("session-end", "--session", "s-1")
    assert office.status(PARENT) == "blocked"


@proves("AOF-SESSION-END")
def test_a_session_touches_its_own_attempts_only(office: Office) -> None:
    office.claim(CHILD, QA, session="s-2")
    third = "TASK-2026-02-09-071"
    office.held(third, BACKEND, session="s-1")
    office.send(report())
    payload = report()["payload"]
    office.send(envelope("completion.report", QA, payload, taskId=CHILD))

    ended = office.console.ask("session-end", "--session", "s-1", "--as", BACKEND)

    assert {"taskId": PARENT, "status": "review"} in ended["tasks"]
    assert CHILD not in {task["taskId"] for task in ended["tasks"]}
    assert [office.status(task) for task in (PARENT, CHILD, third)] == [
        "review",
        "in-progress",
        "in-progress",
    ]
    office.console.ask("session-end")
    assert (office.status(CHILD), office.status(third)) == ("review", "in-progress")


# S-AOF-4 and S-ROLE: authority and identity


@proves("AOF-IDENTITY", "AOF-AUTHORITY")
def test_nobody_speaks_for_somebody_else_in_any_field(office: Office) -> None:
    office.send(request())
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
    for message, words, code in rows:
        assert office.refused(message, *words) == code, message
    assert office.types(CHILD)[-1] == "protocol.message.rejected"
    assert not office.events("delegation.accepted")
    assert {line["actor"] for line in office.events("protocol.message.rejected")} == {
        "eve",
        BACKEND,
    }
    office.verified()


@proves("AOF-AUTHORITY", "LEASE-FENCE")
def test_whoever_has_lost_the_task_is_told_to_stop(office: Office) -> None:
    office.console.ask("task", "release", PARENT, "--agent", BACKEND)
    office.claim(PARENT, QA)

    for message in (report(), update(notes="x"), update(status="blocked", blockers=["x"])):
        assert office.refused(message) == "lease_lost"
    assert office.run(PARENT, "run.json")["agentId"] == QA
    assert office.status(PARENT) == "in-progress"


@proves("AOF-AUTHORITY")
def test_whom_a_task_waits_for_may_block_it_and_not_complete_it(office: Office) -> None:
    third = "TASK-2026-02-09-071"
    office.ready(third, "--assignee", QA)
    payload = {"taskId": third, "agentId": QA, "status": "blocked", "blockers": ["No disk"]}
    done = office.say(envelope("completion.report", QA, report()["payload"], taskId=third))

    assert (done.code, done.json["code"]) == (1, "unauthorized_agent")
    assert done.json["detail"] == f"{QA} does not hold {third}: claim it first"
    office.send(envelope("status.update", QA, payload, taskId=third))
    assert office.status(third) == "blocked"


@proves("TASK-REVIEW", "AOF-AUTHORITY")
def test_no_agent_approves_its_own_work(office: Office) -> None:
    office.send(report())
    office.console.ask("session-end")

    assert office.say(update(status="done", notes="Looks good to me")).code == 1

    assert office.status(PARENT) == "review"


# S-AOF-6 and S-AOF-12: times


@proves("AOF-TIMES", "AOF-STATUS")
def test_times_with_an_offset_are_the_same_moments(office: Office) -> None:
    message = update(progress="Half of it") | {
        "sentAt": "2026-02-09T22:30:00.5+01:30",
        "projectId": "apollo",
    }
    office.send(message)
    office.send(request(dueBy="2026-02-10T13:00:00+01:00"))

    assert office.page(PARENT).endswith("- 2026-02-09T21:00:00.500Z Progress: Half of it\n")
    inputs = office.folder(CHILD) / "inputs"
    assert '"dueBy": "2026-02-10T12:00:00.000Z"' in (inputs / "handoff.json").read_text()
    received = office.events("protocol.message.received")[0]["payload"]
    assert received["projectId"] == "apollo"


# S-AOF-7: handoffs


@proves("AOF-HANDOFF", "FILES-FOLDER")
def test_handoff_artifacts_go_where_the_task_goes(office: Office) -> None:
    office.send(request())
    before = (office.data / f"tasks/ready/{CHILD}/inputs/handoff.json").read_bytes()

    office.claim(CHILD, QA)

    assert (office.data / f"tasks/in-progress/{CHILD}/inputs/handoff.json").read_bytes() == before
    assert office.status(CHILD) == "in-progress"
    office.send(rejected())
    assert (office.data / f"tasks/blocked/{CHILD}/inputs/handoff.json").read_bytes() == before
    assert office.status(CHILD) == "blocked"


@proves("DELEGATION-SLA", "AOF-HANDOFF")
def test_a_handoff_that_is_overdue_is_escalated_once_and_not_moved(tmp_path: Path) -> None:
    office = Office(tmp_path / "hub")
    office.ready(PARENT, *at("09:00:00"))
    office.claim(PARENT, BACKEND, *at("09:00:00"))
    office.ready(CHILD, *at("09:00:00"))
    office.send(request(), *at("09:01:00"))

    office.console.ask("tick", *at("11:59:59", "2026-02-10"))
    assert not office.events("delegation.escalated")
    office.console.ask("tick", *at("12:00:00", "2026-02-10"))
    office.console.ask("tick", *at("12:30:00", "2026-02-10"))

    (escalated,) = office.events("delegation.escalated")
    assert escalated["taskId"] == CHILD
    assert escalated["payload"]["dueBy"] == "2026-02-10T12:00:00.000Z"
    assert office.status(CHILD) == "ready"


@proves("AOF-HANDOFF", "AOF-AUTHORITY", "CLI-AGENT")
def test_an_orchestrator_hands_off_what_it_does_not_hold(office: Office) -> None:
    message = request(fromAgent="boss") | {"fromAgent": "boss"}
    assert office.refused(message) == "unauthorized_agent"
    office.console.ask("agent", "add", "boss", "--role", "orchestrator")

    office.send(message, "--as", "boss")

    assert office.events("delegation.requested")[0]["actor"] == "boss"


# S-AOF-8: recovery


@proves("LEASE-RECOVERY", "RETRY-DEADLETTER")
def test_a_task_that_fails_again_and_again_is_given_up(tmp_path: Path) -> None:
    office = Office(tmp_path / "hub")
    office.ready(PARENT, *at("09:00:00"))
    for hour in range(10, 15):
        office.claim(PARENT, BACKEND, *at(f"{hour}:00:00"))
        office.console.ask("tick", *at(f"{hour}:30:00"))

    assert office.status(PARENT) == "deadletter"
    steps = [
        (line["payload"]["from"], line["payload"]["to"])
        for line in office.events("task.transitioned")
    ]
    assert steps[-2:] == [("in-progress", "ready"), ("ready", "deadletter")]
    assert sorted(path.name for path in (office.data / f"runs/{PARENT}/attempts").iterdir()) == [
        "1",
        "2",
        "3",
        "4",
    ]
    office.verified()


@proves("LEASE-HEARTBEAT", "CONFIG-ONCE")
def test_the_length_of_a_lease_is_configured(tmp_path: Path) -> None:
    office = with_settings(tmp_path, "[leases]\nttl_ms = 60000\n")
    office.ready(PARENT, *at("09:00:00"))
    office.claim(PARENT, BACKEND, *at("09:00:00"))

    assert office.run(PARENT, "run_heartbeat.json")["expiresAt"] == "2026-02-09T09:01:00.000Z"
    office.console.ask("tick", *at("09:00:59"))
    assert office.status(PARENT) == "in-progress"
    office.console.ask("tick", *at("09:01:00"))
    assert office.status(PARENT) == "ready"


# S-AOF-10: files that a report names


@proves("AOF-WARNINGS")
def test_a_report_names_files_of_its_own_folder(office: Office) -> None:
    outputs = office.folder(PARENT) / "outputs"
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
        assert bool(office.send(report(summaryRef=ref))["warnings"]) is warned, ref
    named = office.send(report(summaryRef="outputs/summary.md", handoffRef="outputs/h.md"))
    assert "outputs/h.md" in named["warnings"][0]
    assert office.run(PARENT, "run_result.json")["handoffRef"] == "outputs/h.md"


# S-AOF-11: tools


@proves("AOF-TOOLS")
def test_the_tools_do_what_the_messages_do(office: Office, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    by_tool = Office(tmp_path / "other/hub")
    by_tool.held(PARENT, BACKEND, session="s-1")

    def call(name: str, message: Message) -> None:
        arguments = json.dumps(message["payload"] | {"taskId": PARENT})
        assert by_tool.console("call", name, arguments, "--as", BACKEND).code == 0

    office.send(update(progress="Half of it"))
    call("aof_task_update", update(progress="Half of it"))
    office.send(report("partial"))
    call("aof_task_complete", report("partial"))
    office.console.ask("session-end", "--session", "s-1")
    by_tool.console.ask("session-end", "--session", "s-1")

    results = [o.run(PARENT, "run_result.json") for o in (office, by_tool)]
    for result in results:
        del result["completedAt"]
    assert results[0] == results[1]
    assert by_tool.status(PARENT) == "review"
    said = [kind for kind in office.types(PARENT) if kind != "protocol.message.received"]
    assert by_tool.types(PARENT) == said
    assert by_tool.page(PARENT).endswith("Progress: Half of it\n")
    by_tool.verified()


# S-AOF-13: files


@proves("FILES-TASK-FILE", "FILES-PROJECTION")
def test_a_task_file_says_all_of_the_task(office: Office) -> None:
    office.console.make("Sub", "--id", "ol-527.1", "--parent", PARENT, "--alias", "bead:x-1")
    shown = office.console.ask("task", "show", "ol-527.1")

    page = (office.data / f"tasks/backlog/{shown['aofId']}.md").read_text()
    for line in (
        f"id: {shown['aofId']}",
        "primaryId: ol-527.1",
        f"parentId: {PARENT}",
        "status: backlog",
        "priority: normal",
    ):
        assert f"\n{line}\n" in page
    assert "bead:x-1" in page
    held = office.page(PARENT)
    for field in ("createdAt", "updatedAt", "lastTransitionAt", "assignee", "lease", "metadata"):
        assert f"\n{field}:" in held
    assert "  agent: swe-backend" in held
    folder = office.folder(PARENT)
    assert sorted(path.name for path in folder.iterdir()) == ["inputs", "outputs", "work"]


@proves("FILES-EDITS")
def test_an_edited_or_moved_file_is_a_request(office: Office) -> None:
    path = office.data / f"tasks/ready/{CHILD}.md"
    path.write_text(path.read_text().replace('title: "A task"', "title: A better title"))
    path.rename(office.data / f"tasks/blocked/{CHILD}.md")

    office.console.ask("tick")

    shown = office.console.ask("task", "show", CHILD)
    assert (shown["title"], office.status(CHILD)) == ("A better title", "blocked")
    changes = office.console("events", "--json", "--task", CHILD).objects[-2:]
    assert {e["type"] for e in changes} == {"task.edited", "task.transitioned"}
    assert {e["actor"] for e in changes} == {"file:files"}
    office.verified()

    (office.data / f"tasks/blocked/{CHILD}.md").rename(office.data / f"tasks/done/{CHILD}.md")
    office.console.ask("tick")
    assert office.status(CHILD) == "blocked"
    (note,) = office.data.glob(f"tasks/blocked/{CHILD}*.reason.txt")
    assert "invalid_transition" in note.read_text()
    office.verified()


@proves("FILES-EDITS", "TASK-REVIEW")
def test_a_review_is_approved_by_a_move_only_where_moves_are_trusted(office: Office) -> None:
    office.send(report())
    office.console.ask("session-end")
    review, done = (office.data / f"tasks/{s}/{PARENT}.md" for s in ("review", "done"))

    review.rename(done)
    office.console.ask("tick")
    assert office.status(PARENT) == "review"
    assert list(review.parent.glob(f"{PARENT}*.reason.txt"))

    (office.data / "dragoman.toml").write_text("[files]\ntrust_moves = true\n")
    review.rename(done)
    office.console.ask("tick")
    assert office.status(PARENT) == "done"
    office.verified()


# S-AOF-14: the inbox


@proves("FILES-INBOX", "AOF-IDENTITY")
def test_agents_with_only_a_file_system_use_the_inbox(office: Office) -> None:
    inbox = office.data / "inbox"
    for folder in (BACKEND, "eve"):
        (inbox / folder).mkdir()
    (inbox / BACKEND / "1.json").write_text(json.dumps(update(progress="By folder")))
    (inbox / "eve/1.json").write_text(json.dumps(update(progress="Spoofed")))
    (inbox / "2.txt").write_text("AOF/1 " + json.dumps(update(progress="By name")))
    (inbox / "3.json").write_text("AOF/1 {oops")
    (inbox / "half.json.tmp").write_text("{")

    office.console.ask("tick")

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
    page = office.page(PARENT)
    assert ("By folder" in page, "By name" in page, "Spoofed" in page) == (True, True, False)
    for entry in office.console("events", "--json", "--task", PARENT).objects[-2:]:
        assert (entry["actor"], entry["via"]) == (f"agent:{BACKEND}", "inbox")
    office.verified()


@proves("FILES-INBOX", "AOF-REPEAT")
def test_a_replay_in_a_later_attempt_is_told_beside_its_file(office: Office) -> None:
    folder = office.data / "inbox" / BACKEND
    folder.mkdir()
    for attempt in (1, 2):
        (folder / "1.json").write_text(json.dumps(update(progress="Half of it")))
        office.console.ask("tick")
        if attempt == 1:
            office.console.ask("task", "move", PARENT, "ready")
            office.console.ask("task", "claim", PARENT, "--agent", BACKEND)
    notes = {note.name: note.read_text() for note in folder.rglob("*.txt")}
    assert list(notes) == ["1-2.json.warning.txt"]
    assert "has counted for attempt 1" in notes["1-2.json.warning.txt"]


# Stores


@proves("STORE-URL", "AOF-COMPLETION", "FILES-PROJECTION")
def test_a_session_leaves_the_same_files_on_either_database(anywhere: Program) -> None:
    office = Office(anywhere.data)
    office.ready(PARENT, *at("09:00:00"))
    office.claim(PARENT, BACKEND, *at("09:00:00"), session="s-1")
    office.ready(CHILD, *at("09:00:30"))
    office.send(update(progress="Half of it"), *at("09:01:00"))
    office.send(request(), *at("09:02:00"))
    office.send(accepted(), *at("09:02:30"))
    assert office.refused(report() | {"fromAgent": "eve"}, *at("09:02:40")) == "unauthorized_agent"
    office.send(report("partial"), *at("09:03:00"))
    office.console.ask("tick", *at("09:08:00"))

    assert office.status(PARENT) == "review"
    assert [(line["eventId"], line["type"]) for line in office.lines()] == [
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
    office.verified()

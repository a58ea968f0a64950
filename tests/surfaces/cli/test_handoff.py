"""`handoff`: steps of a handoff, lists, verification and diagnosis."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from dragoman.core.handoff.state import RejectReason
from dragoman.text.safe_text import HARMFUL
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console
from tests.surfaces.cli.message_files import MessageFiles

pytestmark = proves("ACP-CLI")

PACKAGE = (
    *("--criterion", "all tests pass", "--summary", "half done", "--next-step", "write the tests"),
)
LOG = "teamspaces/default/handoffs/handoffs.jsonl"


def offer(dragoman: Console, *args: str, id: str = "h1", task: str = "t1") -> dict[str, Any]:
    """Offer a task from ada to bob."""
    options = ("--as", "ada", "--to", "bob", "--task", task, "--id", id, *PACKAGE, *args)
    return dragoman.ask("handoff", "initiate", *options)


def step(dragoman: Console, action: str, by: str, *args: str, id: str = "h1") -> Any:
    """Run a step that must succeed and return the status of the handoff."""
    return dragoman.ask("handoff", action, id, "--as", by, *args)["status"]


def test_handoff_goes_from_proposed_to_closed(dragoman: Console) -> None:
    task = dragoman.make("Fix the login", "--ready")
    offered = offer(dragoman, "--priority", "high", task=task)
    assert (offered["ok"], offered["success"], offered["status"]) == (True, True, "proposed")
    assert "handoff     from ada to bob, handoff h1" in dragoman("task", "show", task).out
    assert step(dragoman, "accept", "bob", "--notes", "fine") == "accepted"
    assert step(dragoman, "activate", "bob") == "activated"
    taken = dragoman.ask("task", "show", task)
    assert (taken["assignee"], taken["handoff"]) == ("bob", "h1")
    assert taken["handoffChain"] == ["ada", "bob"]
    assert "taken over by bob" in dragoman("task", "show", task).out
    assert step(dragoman, "complete", "bob", "--notes", "merged") == "completed"
    assert step(dragoman, "close", "ada") == "closed"
    shown = dragoman.ask("handoff", "show", "h1")
    assert (shown["title"], shown["status"]) == ("Fix the login", "closed")
    assert shown["package"]["task"]["priority"] == "high"
    events = [json.loads(line)["event"] for line in (dragoman.data / LOG).read_text().splitlines()]
    assert events[-1] == "handoff_closed"
    assert dragoman("verify").code == 0


def test_offer_is_read_from_a_file(dragoman: Console, message_file: MessageFiles) -> None:
    package = {
        "action": "initiate",
        "to_agent": "bob",
        "task": {
            "task_id": "t1",
            "title": "Fix it",
            "objective": "It works",
            "success_criteria": ["tests pass"],
            "priority": "low",
        },
        "context": {"summary": "broken", "known_risks": ["time"]},
        "work_state": {"status": "blocked", "next_step": "look"},
    }
    offered = dragoman.ask(
        "handoff", "initiate", message_file(package), "--as", "ada", "--to", "carol"
    )
    shown = dragoman.ask("handoff", "show", offered["handoff_id"])
    assert (shown["to_agent"], shown["package"]["context"]["known_risks"]) == ("carol", ["time"])


@proves("ACP-CLI-OPTIONS")
def test_options_override_the_offer_file(dragoman: Console, message_file: MessageFiles) -> None:
    file = message_file(
        {
            "to_agent": "bob",
            "task": {
                "task_id": "t1",
                "title": "Fix it",
                "objective": "It works",
                "success_criteria": ["tests pass"],
                "priority": "high",
                "deadline": "2027-01-01T00:00:00Z",
            },
            "context": {"summary": "broken", "known_risks": ["time"]},
            "work_state": {"status": "blocked", "next_step": "look", "branch": "b"},
            "artifacts": [
                {"artifact_id": "a", "ref": {"type": "url", "path": "https://a.example"}}
            ],
        }
    )
    args = (
        *("--id", "o1", "--task", "t9", "--to", "carol", "--title", "T", "--objective", "O"),
        *("--criterion", "C", "--criterion", "D", "--summary", "S", "--next-step", "N"),
        *("--priority", "low", "--state", "review", "--deadline", "2027-02-02T00:00:00Z"),
        *("--artifact", "x/trace.txt", "--needs-approval", "--reason", "R", "--thread", "th9"),
        *("--teamspace", "blue"),
    )
    dragoman.ask("handoff", "initiate", file, "--as", "ada", *args)
    shown = dragoman.ask("handoff", "show", "o1")
    package = shown["package"]
    assert (shown["task_id"], shown["to_agent"], shown["teamspace_id"]) == ("t9", "carol", "blue")
    assert (shown["reason"], shown["thread_id"]) == ("R", "th9")
    assert package["task"] == {
        "task_id": "t9",
        "title": "T",
        "objective": "O",
        "success_criteria": ["C", "D"],
        "priority": "low",
        "deadline": "2027-02-02T00:00:00Z",
    }
    assert package["context"] == {"summary": "S", "known_risks": ["time"]}
    assert package["work_state"] == {"status": "review", "next_step": "N", "branch": "b"}
    assert [one["artifact_id"] for one in package["artifacts"]] == ["trace.txt"]
    assert package["policy"]["requires_human_approval"]
    with_deadline = message_file(
        {**json.loads(Path(file).read_text()), "deadline": "2027-01-01T00:00:00Z"}
    )
    late = ("--task", "t8", "--id", "o3", "--deadline", "2027-02-02T00:00:00Z")
    dragoman.ask("handoff", "initiate", with_deadline, "--as", "ada", *late)
    stated = dragoman.ask("handoff", "show", "o3")["package"]["task"]["deadline"]
    assert stated == "2027-02-02T00:00:00Z"
    plain = dragoman.ask("handoff", "initiate", file, "--as", "ada", "--id", "o2")
    unchanged = dragoman.ask("handoff", "show", plain["handoff_id"])["package"]
    assert (unchanged["task"]["priority"], unchanged["work_state"]["status"]) == ("high", "blocked")
    invalid = message_file({"to_agent": "bob", "task": "t1", "context": [], "work_state": {}})
    refused = dragoman(
        "handoff", "initiate", invalid, "--as", "ada", "--summary", "S", "--task", "t2"
    )
    assert (refused.code, refused.err.startswith("schema_invalid: task: ")) == (1, True)


@proves("CLI-EXIT")
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[]", "is no JSON object"),
        ('{"a":1,"a":2}', "is not JSON that can be trusted"),
        ('{"action":"accept"}', "asks for another action"),
    ],
)
def test_invalid_offer_file_is_a_usage_error(
    dragoman: Console, message_file: MessageFiles, content: str, expected: str
) -> None:
    done = dragoman("handoff", "initiate", message_file(content), "--as", "ada")
    assert done.code == 2
    assert expected in done.err


@proves("CLI-EXIT")
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("initiate", "--as", "ada", "--to", "bob"), "--to NAME and --task ID"),
        (("show",), "Missing argument 'ID'"),
        (("reject", "h1", "--reason", "bored", "--detail", "x"), "'bored' is not one of"),
        (("list", "--status", "lost"), "'lost' is not one of"),
    ],
    ids=str,
)
def test_invalid_arguments_are_usage_errors(
    dragoman: Console, args: tuple[str, ...], expected: str
) -> None:
    done = dragoman("handoff", *args)
    assert (done.code, expected in done.err) == (2, True), done


@proves("ACP-BESIDE")
def test_work_state_and_notes_of_a_step_are_shown(
    dragoman: Console,
) -> None:
    offer(dragoman)
    step(dragoman, "accept", "bob", "--notes", "from Monday on")
    update = '{"percent_complete": 60, "next_step": "write the docs", "completed_steps": ["tests"]}'
    step(dragoman, "activate", "bob", "--work-state", update, "--session", "s-1")
    prefix = "work_state_update: percent_complete: 60, next_step: write the docs, "
    told = dragoman("story", "t1").out.replace("\\_", "_")
    assert f"{prefix}completed_steps: tests" in told
    page = dragoman("handoff", "show", "h1").out
    assert "write the docs" in page
    assert "percent complete  60" in page
    assert dragoman.ask("task", "show", "t1")["lease"]["session"] == "s-1"
    path = dragoman.data / "teamspaces" / "default" / "artifacts" / "report.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("all green")
    step(dragoman, "complete", "bob", "--artifact", "report.txt", "--notes", "see the report")
    shown = dragoman.ask("handoff", "show", "h1")["notes"][-1]
    assert shown["data"]["final_artifacts"][0]["ref"]["path"] == "report.txt"
    step(dragoman, "close", "ada", "--notes", "thank you")
    shown = dragoman.ask("handoff", "show", "h1")["transitions"]
    assert [(one["to_status"], one["by"], one["note"]) for one in shown] == [
        ("proposed", "ada", ""),
        ("validating", "bob", ""),
        ("accepted", "bob", "from Monday on"),
        ("activated", "bob", ""),
        ("completed", "bob", "see the report"),
        ("closed", "ada", "thank you"),
    ]
    page = dragoman("handoff", "show", "h1").out
    assert "from Monday on" in page
    assert "thank you" in page
    wrong = dragoman("handoff", "activate", "h1", "--as", "bob", "--work-state", "[]")
    assert (wrong.code, "it is no JSON object" in wrong.err) == (2, True)


@proves("ACP-BESIDE")
def test_page_shows_every_field_of_the_package(dragoman: Console, tmp_path: Path) -> None:
    parts: dict[str, dict[str, object]] = {
        "task": {
            "task_id": "t1",
            "title": "The title",
            "objective": "The objective",
            "success_criteria": ["It works"],
            "priority": "critical",
            "deadline": "2027-01-01T00:00:00Z",
            "external_refs": [{"type": "ticket", "value": "T-7", "description": "the wish"}],
        },
        "context": {
            name: [f"one of the {name}"]
            for name in ("constraints", "assumptions", "open_questions", "known_risks")
        },
        "work_state": {
            "status": "review",
            "percent_complete": 12.5,
            "completed_steps": ["The first step"],
            "next_step": "The next step",
            "branch": "a-branch",
            "worktree_path": "/a/tree",
            "test_status": "failing",
        },
        "provenance": {"related_sessions": ["s-7"], "decision_refs": ["d-7"]},
        "policy": {
            "classification": "restricted",
            "export_restrictions": ["not abroad"],
            "visibility": "human-audit",
            "sensitivity": "moderate",
        },
    }
    parts["context"]["summary"] = "The summary"
    ref = {"type": "url", "path": "https://example.org/x", "description": "a page", "version": "9"}
    package = {"artifacts": [{"artifact_id": "a-7", "ref": {**ref, "sha256": "0" * 64}}], **parts}
    file = tmp_path / "package.json"
    file.write_text(json.dumps({"to_agent": "bob", **package}))
    dragoman.ask("handoff", "initiate", str(file), "--as", "ada", "--id", "h1")
    page = dragoman("handoff", "show", "h1").out
    assert [word for word in _leaf_texts(package) if word not in page] == []


def _leaf_texts(value: object) -> Iterator[str]:
    """Yield every value in a structure, without its keys."""
    if isinstance(value, dict):
        value = list(cast(dict[str, object], value).values())
    if isinstance(value, list):
        for item in cast(list[object], value):
            yield from _leaf_texts(item)
    else:
        yield str(value)


def test_redelegation_is_shown(dragoman: Console) -> None:
    offer(dragoman)
    for action in ("accept", "activate"):
        step(dragoman, action, "bob")
    args = ("--to", "carol", "--task", "t1", "--id", "h2", "--supersedes", "h1", *PACKAGE)
    dragoman.ask("handoff", "initiate", "--as", "bob", *args)
    assert "re-delegated as h2" in dragoman("handoff", "show", "h1").out


@proves("CLI-EXIT")
def test_refusal_has_protocol_and_cli_fields(
    dragoman: Console,
) -> None:
    offer(dragoman)
    again = dragoman.ask(
        *("handoff", "initiate", "--as", "ada", "--to", "carol", "--task", "t1", *PACKAGE), code=1
    )
    assert (again["ok"], again["success"], again["code"]) == (False, False, "ownership_conflict")
    assert again["error"]["kind"] == "active_handoff"
    wrong = dragoman("handoff", "accept", "h1", "--as", "eve")
    assert wrong.code == 1
    assert wrong.err.startswith("not_authorized: ")
    assert dragoman.ask("handoff", "show", "nothing", code=1)["code"] == "handoff_not_found"


@pytest.mark.parametrize("by", ["bob", "carl"])
def test_rejected_work_may_be_offered_again(dragoman: Console, by: str) -> None:
    dragoman.ask("agent", "add", "carl", "--role", "coordinator")
    offer(dragoman)
    reason: RejectReason = "capacity_unavailable"
    args = ("--reason", reason, "--detail", "not before Friday", "--fix", "ask carol")
    assert step(dragoman, "reject", by, *args) == "rejected"
    shown = dragoman.ask("handoff", "show", "h1")
    assert shown["rejection"]["suggested_fix"] == "ask carol"
    offer(dragoman, "--supersedes", "h1", id="h2")
    assert dragoman.ask("handoff", "show", "h2")["supersedes"] == "h1"
    text = dragoman("handoff", "show", "h1").out
    assert "reason         capacity_unavailable" in text
    assert "superseded by       h2" in text


def test_only_a_person_can_approve(dragoman: Console) -> None:
    offer(dragoman, "--needs-approval")
    waiting = dragoman.ask("handoff", "accept", "h1", "--as", "bob", code=1)
    assert (waiting["status"], waiting["code"]) == ("validating", "approval_required")
    output = dragoman("handoff", "diagnose", "h1").out
    assert "a person has to approve" in output
    assert "a person can approve: dragoman handoff approve h1\n" in output
    assert "a person can deny: dragoman handoff deny h1\n" in output
    assert "can accept" not in output
    assert dragoman.ask("handoff", "approve", "h1", "--as", "bob", code=1)["code"] == (
        "not_authorized"
    )
    mismatch = dragoman.ask("handoff", "approve", "h1", "--hash", "ab" * 32, code=1)
    assert mismatch["code"] == "hash_mismatch"
    seen = dragoman.ask("handoff", "show", "h1")["package_hash"]
    dragoman.ask("handoff", "approve", "h1", "--hash", seen, "--note", "fine")
    assert dragoman.ask("handoff", "show", "h1")["approval"]["by"] == "owner"
    assert step(dragoman, "accept", "bob") == "accepted"
    assert f"by            {'owner'}" in dragoman("handoff", "show", "h1").out


def test_registered_person_can_deny_under_its_name(dragoman: Console) -> None:
    dragoman.ask("agent", "add", "olga", "--role", "human")
    offer(dragoman, "--needs-approval")
    denied = dragoman.ask("handoff", "deny", "h1", "--as", "olga", "--note", "not outside")
    assert denied["status"] == "rejected"
    shown = dragoman.ask("handoff", "show", "h1")
    assert (shown["rejection"]["reason"], shown["approval"]["approved"]) == (
        "policy_violation",
        False,
    )
    assert "denied by olga" in dragoman("handoff", "show", "h1").out


def test_coordinator_extends_and_reassigns_a_late_handoff(dragoman: Console) -> None:
    dragoman.ask("agent", "add", "carl", "--role", "coordinator")
    offer(dragoman, "--now", NOON)
    later = "2026-02-09T12:06:00Z"
    assert dragoman("tick", "--now", later).code == 0
    text = dragoman("handoff", "diagnose", "h1", "--now", later).out
    assert "late: it should have gone on by 2026-02-09T12:05:00.000Z" in text
    assert "carl can extend_sla: dragoman handoff extend h1 --by 30m --as carl" in text
    assert "bob or carl can reject: dragoman handoff reject h1 --reason other --detail TEXT" in text
    diagnosis = dragoman.ask("handoff", "diagnose", "h1", "--now", later)
    assert (diagnosis["late"], diagnosis["due_by"]) == (True, "2026-02-09T12:05:00.000Z")
    assert "late" in dragoman("handoff", "list", "--now", later).out
    shown = dragoman("handoff", "show", "h1").out
    assert "trigger         timeout" in shown
    assert "sla elapsed     6m" in shown
    step(dragoman, "extend", "carl", "--by", "30m", "--stage", "proposed", "--now", later)
    extended = dragoman.ask("handoff", "diagnose", "h1", "--now", later)
    assert (extended["late"], extended["due_by"]) == (False, "2026-02-09T12:36:00.000Z")
    step(dragoman, "accept", "bob", "--now", later)
    args = ("--by", "30m", "--stage", "proposed", "--now", later)
    assert step(dragoman, "extend", "carl", *args) == "accepted"
    new = dragoman.ask("handoff", "reassign", "h1", "--to", "dan", "--as", "carl", "--now", later)
    assert new["status"] == "proposed"
    assert dragoman.ask("handoff", "show", "h1")["superseded_by"] == new["handoff_id"]


@proves("ACP-SLA")
def test_late_step_that_was_not_escalated_names_no_recipient(dragoman: Console) -> None:
    offer(dragoman, "--now", NOON)
    step(dragoman, "accept", "bob", "--now", "2026-02-09T12:06:00Z")
    late = "timeout in proposed→validating after 6m"
    (shown,) = dragoman.ask("handoff", "show", "h1")["escalations"]
    assert shown["escalated_to"] == ""
    assert f"escalated to nobody, as it was over: {late}" in dragoman("events").out
    findings = dragoman.ask("handoff", "diagnose", "h1")["findings"]
    assert any(one.startswith("nobody was told at ") for one in findings)
    assert dragoman.ask("call", "acp_query", '{"type": "status.blocked"}')["messages"] == []


@proves("ACP-ARTIFACTS")
def test_copy_that_changed_or_is_gone_is_noticed_at_activation(dragoman: Console) -> None:
    root = dragoman.data / "teamspaces/default/artifacts"
    root.mkdir(parents=True)
    offer(dragoman, "--artifact", "log.txt")
    (root / "log.txt").write_text("a log")
    step(dragoman, "accept", "bob")
    copy = next((dragoman.data / "artifacts/sha256").rglob("[0-9a-f]" * 64))
    copy.chmod(0o600)
    copy.write_text("another log")
    assert dragoman("handoff", "activate", "h1", "--as", "bob").code == 1
    copy.unlink()
    assert step(dragoman, "activate", "bob") == "activated"
    assert copy.read_text() == "a log"


def test_sender_can_withdraw_an_offer(dragoman: Console) -> None:
    offer(dragoman)
    assert step(dragoman, "withdraw", "ada", "--notes", "done myself") == "rejected"
    assert dragoman.ask("handoff", "show", "h1")["rejection"]["detail"].startswith("withdrawn")


def test_artifacts_are_copied_and_may_be_left_out(dragoman: Console) -> None:
    root = dragoman.data / "teamspaces/default/artifacts"
    root.mkdir(parents=True)
    for name in ("log.txt", "notes.md"):
        (root / name).write_text(name)
    offer(dragoman, "--artifact", "log.txt", "--artifact", "notes.md")
    assert step(dragoman, "accept", "bob", "--leave-out", "notes.md") == "accepted"
    shown = dragoman.ask("handoff", "show", "h1")
    assert list(shown["artifacts"]) == ["log.txt"]
    assert shown["artifacts_left_out"] == ["notes.md"]
    assert dragoman.ask("verify")["found"] == 0
    copy = next((dragoman.data / "artifacts/sha256").rglob("[0-9a-f]" * 64))
    copy.unlink()
    (finding,) = dragoman.ask("verify", code=1)["findings"]
    assert copy.name in finding["problem"]
    missing = offer(dragoman, "--artifact", "gone.txt", id="h2", task="t2")
    assert missing["status"] == "proposed"
    failed = dragoman("handoff", "accept", "h2", "--as", "bob")
    assert failed.code == 1
    assert failed.err.startswith("missing_artifact: ")
    assert "failed: missing_artifact" not in failed.out, "it is said once"


def test_list_is_filtered_and_paged(dragoman: Console) -> None:
    for number in range(3):
        offer(dragoman, id=f"h{number}", task=f"t{number}")
    step(dragoman, "accept", "bob", id="h0")

    def ids(*args: str) -> list[str]:
        page = dragoman.ask("handoff", "list", *args)
        return [row["handoff_id"] for row in page["handoffs"]]

    assert ids() == ["h2", "h1", "h0"]
    assert ids("--status", "accepted") == ["h0"]
    assert ids("--task", "t1", "--from", "ada", "--to", "bob", "--teamspace", "default") == ["h1"]
    page = dragoman.ask("handoff", "list", "--limit", "2")
    assert ids("--before", str(page["cursor"])) == ["h0"]
    text = dragoman("handoff", "list", "--limit", "2").out
    assert f"There are more: add --before {page['cursor']}" in text
    assert dragoman("handoff", "list", "--to", "nobody").out == "none\n"


def test_story_of_the_task_has_the_events_of_a_handoff_in_order(dragoman: Console) -> None:
    offer(dragoman)
    step(dragoman, "accept", "bob")
    told = dragoman("story", "t1").out
    places = [
        told.index(part) for part in ("offers t1 to bob", "proposed → validating", "accepted")
    ]
    assert places == sorted(places)


def test_durations_have_one_format(
    dragoman: Console,
) -> None:
    offer(dragoman, "--now", NOON)
    dragoman.ask("tick", "--now", "2026-02-09T13:30:00Z")
    assert "after 1h30m" in dragoman("handoff", "diagnose", "h1").out
    assert "after 1h30m" in dragoman("story", "t1").out
    for action in ("accept", "activate", "complete"):
        step(dragoman, action, "bob")
    assert "no completion\\_notes" in dragoman("story", "t1").out


def test_text_of_agents_cannot_control_the_terminal(dragoman: Console) -> None:
    hostile = "\x1b[2J\u202eevil\nok: true"
    offer(dragoman, "--title", f"T{hostile}", "--reason", f"R{hostile}", "--summary", hostile)
    step(dragoman, "reject", "bob", "--reason", "other", "--detail", hostile)
    for args in (("list",), ("show", "h1"), ("diagnose", "h1")):
        lines = dragoman("handoff", *args).out.splitlines()
        assert all(HARMFUL.search(line) is None for line in lines), args
        assert "ok: true" not in lines
    assert "\u202e" not in dragoman.on_terminal("handoff", "show", "h1").out


def test_closed_teamspace_is_hidden_from_others(dragoman: Console) -> None:
    dragoman.ask("init")
    settings = dragoman.data / "dragoman.toml"
    settings.write_text('[teamspaces.default]\nmembers = ["ada", "bob"]\n')
    offer(dragoman)
    assert dragoman("handoff", "list", "--as", "eve").out == "none\n"
    assert dragoman.ask("handoff", "show", "h1", "--as", "eve", code=1)["code"] == (
        "handoff_not_found"
    )
    assert dragoman.ask("handoff", "show", "h1", "--as", "bob")["status"] == "proposed"
    assert dragoman.ask("handoff", "show", "h1")["status"] == "proposed"


@proves("ACP-CLI")
def test_page_shows_the_facts_for_an_approval(dragoman: Console) -> None:
    offer(
        dragoman, "--priority", "high", "--artifact", "a.txt", "--deadline", "2026-02-20T12:00:00Z"
    )
    shown = dragoman("handoff", "show", "h1").out
    for fact in (
        "objective         t1",
        "priority          high",
        "deadline          2026-02-20T12:00:00Z",
        "classification      internal",
        "artifact id  a.txt",
    ):
        assert fact in shown, shown

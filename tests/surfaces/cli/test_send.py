"""`send`: effects of any message as text and JSON, and refusals."""

import json
from pathlib import Path

import pytest

from tests.protocols.acp.hub import offer
from tests.protocols.aof.hub import (
    PARENT,
    UNKNOWN,
    report,
    update,
)
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console
from tests.surfaces.cli.message_files import MessageFiles

BACKEND = "swe-backend"

pytestmark = proves("CLI-SEND")


@pytest.fixture
def claimed(dragoman: Console) -> Console:
    """Give a command line where swe-backend holds a task."""
    dragoman.make("One", "--id", PARENT, "--ready")
    dragoman.ask("task", "claim", PARENT, "--agent", BACKEND, "--session", "s-1")
    return dragoman


@proves("CLI-PROMISES")
def test_json_describes_the_effect_of_a_message(
    claimed: Console, message_file: MessageFiles
) -> None:
    path = message_file(report())
    task = {"id": PARENT, "status": "in-progress"}
    warning = f"there is no file outputs/summary.md in the folder of {PARENT}"

    first = claimed.ask("send", path)
    (effect,) = first.pop("effects")
    assert effect.startswith(f"done is on record: {PARENT} moves when session s-1 is ended, or")
    assert first == {
        "ok": True,
        "dialect": "aof",
        "type": "completion.report",
        "agent": BACKEND,
        "reply": {"taskId": PARENT, "status": "in-progress", "warnings": [warning]},
        "tasks": [task],
        "warnings": [warning],
        "repeated": False,
    }
    assert claimed.ask("send", path)["repeated"] is True


@proves("CLI-PROMISES", "AOF-SESSION-END")
def test_report_without_session_moves_the_task_at_once(
    dragoman: Console, message_file: MessageFiles
) -> None:
    dragoman.make("One", "--id", PARENT, "--ready")
    dragoman.ask("task", "claim", PARENT, "--agent", BACKEND)

    (effect,) = dragoman.ask("send", message_file(report()))["effects"]

    assert effect == f"done is on record and {PARENT} has moved: review"


@proves("CLI-PROMISES", "AOF-COMPLETION")
@pytest.mark.parametrize("settings", ["", '[aof]\napply_completion = "immediately"\n'])
@pytest.mark.parametrize("agent", [BACKEND, "mallory"])
def test_ignored_report_is_described_as_such(
    dragoman: Console, message_file: MessageFiles, settings: str, agent: str
) -> None:
    dragoman.make("One", "--id", PARENT, "--ready")
    (dragoman.data / "dragoman.toml").write_text(settings)
    dragoman.ask("task", "claim", PARENT, "--agent", BACKEND)
    dragoman.ask("send", message_file(report()))

    other = report("partial", notes="something else") | {"fromAgent": agent}
    (effect,) = dragoman.ask("send", message_file(other))["effects"]

    assert effect == f"{PARENT} was review already: the report changes nothing"


def test_text_describes_the_effect_of_a_message(
    dragoman: Console, message_file: MessageFiles
) -> None:
    path, at_noon = message_file(report()), ("--now", NOON)
    dragoman.make("One", "--id", PARENT, "--ready", *at_noon)
    claim = ("task", "claim", PARENT, "--agent", BACKEND, "--session", "s-1")
    dragoman.ask(*claim, *at_noon)

    moves = "moves when session s-1 is ended, or its lease ends (2026-02-09T12:05:00.000Z)"
    assert dragoman("send", path, *at_noon).out.splitlines() == [
        "completion.report from swe-backend",
        f"  done is on record: {PARENT} {moves}",
        f"  {PARENT} is in-progress",
        f"  warning: there is no file outputs/summary.md in the folder of {PARENT}",
    ]
    assert "sent before: nothing was added" in dragoman("send", path, *at_noon).out


@proves("MAIL-POST")
def test_mail_warnings_equal_those_of_the_mail_command(
    dragoman: Console, message_file: MessageFiles
) -> None:
    row = {"to": ["boss"], "subject": "FAILED", "body_md": "Bead: ol-1\nType: SPEC_IMPOSSIBLE"}
    output = dragoman("send", message_file(json.dumps(row)), "--as", "ada").out
    assert "  warning: not understood: failure_type is in the wrong section" in output
    row = {"to": ["boss"], "subject": "HELP_RESPONSE", "body_md": "Go left."}
    output = dragoman("send", message_file(json.dumps(row)), "--as", "ada").out
    assert "  warning: it answers no open question" in output


@proves("CLI-EXIT", "AOF-IDENTITY")
def test_refused_message_exits_1_with_its_code(
    claimed: Console, message_file: MessageFiles
) -> None:
    stranger = message_file(update(agentId="eve", progress="x") | {"fromAgent": "eve"})

    refused = claimed.ask("send", stranger, code=1)
    assert (refused["ok"], refused["code"]) == (False, "unauthorized_agent")
    assert refused["detail"] == f"{PARENT} belongs to swe-backend, not to eve"
    text = claimed("send", stranger)
    assert (text.code, text.out) == (1, "")
    assert text.err.startswith("unauthorized_agent: ")
    spoofed = claimed.ask("send", message_file(update(progress="x")), "--as", "eve", code=1)
    assert spoofed["code"] == "identity_mismatch"


_WITHOUT_SENDER = {
    "subject": "[ol-55] PROGRESS",
    "body_md": "Bead: ol-55\nStep: 1\nStatus: going\nContext usage: 10%",
    "to": ["bob"],
}


@proves("CLI-PROMISES", "AOF-IDENTITY")
def test_message_without_sender_is_from_the_owner(
    dragoman: Console, message_file: MessageFiles
) -> None:
    sent = dragoman.ask("send", message_file(_WITHOUT_SENDER))

    assert sent["agent"] == "owner"
    assert {event["actor"] for event in dragoman("events", "--json").objects} == {"human:owner"}


@proves("FILES-INBOX", "AOF-IDENTITY")
def test_inbox_file_without_sender_is_refused(dragoman: Console) -> None:
    dragoman.ask("init")
    inbox = dragoman.data / "inbox"
    inbox.mkdir(exist_ok=True)
    (inbox / "1.json").write_text(json.dumps(_WITHOUT_SENDER))

    dragoman("tick")

    reason = (inbox / "rejected/1.json.reason.txt").read_text()
    assert reason.startswith("unauthenticated: the message names no valid sender")
    assert "inbox/NAME/" in reason
    assert dragoman.ask("task", "list")["tasks"] == []


@proves("CLI-EXIT", "DIALECT-RECORD")
@pytest.mark.parametrize(
    "text", ["hello", "", '{"protocol":"smtp"}', "[1]", b"\xff\xfe", "x" * 300_000]
)
def test_unrecognized_message_is_refused_and_leaves_no_entry(
    dragoman: Console, message_file: MessageFiles, text: str | bytes
) -> None:
    refused = dragoman.ask("send", message_file(text), code=1)

    assert refused["code"] == "not_recognized"
    assert "aof" in refused["detail"]
    assert dragoman("events", "--json").out == ""


@proves("CLI-EXIT", "DIALECT-RECORD")
def test_broken_json_is_refused_with_its_byte_offset(
    dragoman: Console, message_file: MessageFiles
) -> None:
    refused = dragoman.ask("send", message_file('{"subject": "Hello" "body_md": "x"}'), code=1)

    assert refused["code"] == "invalid_json"
    assert "(byte 20)" in refused["detail"]
    assert dragoman("events", "--json").out == ""


@proves("CLI-EXIT")
def test_unreadable_file_is_a_usage_error(dragoman: Console, tmp_path: Path) -> None:
    for source, expected in (
        (tmp_path / "nowhere.json", "No such file or directory"),
        (tmp_path, "Is a directory"),
    ):
        result = dragoman("send", str(source))
        assert result.code == 2
        assert f"{source} cannot be read: {expected}" in result.err
    nameless = dragoman("send", "a\0b")
    assert (nameless.code, "its name cannot be one" in nameless.err) == (2, True)
    assert not dragoman.data.exists()


@proves("CLI-EXIT", "NAME-GRAMMAR")
def test_invalid_agent_name_is_refused(claimed: Console, message_file: MessageFiles) -> None:
    refused = claimed.ask("send", message_file(update(progress="x")), "--as", "a b", code=1)

    assert refused["code"] == "invalid_id"


@proves("CLI-NOW", "AOF-COMPLETION")
def test_now_option_is_the_time_of_every_entry(
    dragoman: Console, message_file: MessageFiles
) -> None:
    dragoman.make("One", "--id", PARENT, "--ready", "--now", NOON)
    dragoman.ask("task", "claim", PARENT, "--agent", BACKEND, "--session", "s-1", "--now", NOON)
    dragoman.ask("send", message_file(report()), "--now", "2026-02-09T12:01:00Z")

    result = json.loads((dragoman.data / f"runs/{PARENT}/run_result.json").read_text())
    assert result["completedAt"] == "2026-02-09T12:01:00.000Z"
    last = dragoman("events", "--json").objects[-1]
    assert last["actor"] == f"agent:{BACKEND}"
    assert last["via"].startswith("cli human:")
    assert last["via"].endswith("--now")


@proves("CLI-SAFE-TEXT")
def test_text_of_agents_cannot_control_the_terminal(
    claimed: Console, message_file: MessageFiles
) -> None:
    result = claimed("send", message_file(report(summaryRef="outputs/a\u200db.md")))
    refused = claimed("send", message_file(update(progress="x") | {"type": "\x1b[31mred\n"}))

    for text in (result.out, result.err, refused.out, refused.err):
        assert "\x1b" not in text
        assert "\u200d" not in text
    assert refused.code == 1


@proves("CLI-EXIT")
def test_refusal_names_the_path_in_the_message(
    dragoman: Console, message_file: MessageFiles
) -> None:
    dragoman.make("One", "--id", PARENT, "--ready")
    broken = message_file(report(summaryRef="../x"))

    refused = dragoman.ask("send", broken, code=1)
    assert (refused["ok"], refused["code"]) == (False, "invalid_envelope")
    assert refused["path"] == "payload.summaryRef"
    result = dragoman("send", broken)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("invalid_envelope: payload.summaryRef: ")
    unknown = dragoman.ask("send", message_file(report() | {"taskId": UNKNOWN}), code=1)
    assert "path" not in unknown


def test_size_limit_in_the_refusal_is_exact(dragoman: Console, message_file: MessageFiles) -> None:
    refused = dragoman.ask("send", message_file("AOF/1 " + "x" * 400_000), code=1)

    assert refused["code"] == "message_too_large"
    assert refused["detail"] == "it has more than 262144 bytes, and no more are taken"


def test_repeat_reports_the_status_of_the_first_answer(
    claimed: Console, message_file: MessageFiles
) -> None:
    path = message_file(report())
    claimed.ask("send", path)
    claimed.ask("session-end")

    again = claimed.ask("send", path)
    assert (again["repeated"], again["effects"]) == (True, [])
    assert again["tasks"] == [{"id": PARENT, "status": "in-progress"}]
    assert f"  {PARENT} was in-progress\n" in claimed("send", path).out


def test_impossible_transition_is_written_into_the_work_log(
    claimed: Console, message_file: MessageFiles
) -> None:
    def effect(message: dict[str, object]) -> str:
        reply = claimed.ask("send", message_file(message))
        return "; ".join((*reply["effects"], *reply["warnings"]))

    assert effect(update(progress="half")) == "written into the work log"
    obstacle = "there is no transition from in-progress to done"
    impossible = update(status="done", notes="x")
    assert effect(impossible) == f"{obstacle}: written into the work log"
    assert effect(impossible) == f"{obstacle}: written into the work log", (
        "a repeat is told the same"
    )
    assert effect(update(status="done")) == f"{obstacle}: nothing was changed"
    assert effect(update(status="review")) == ""
    assert effect(report(notes="again")) == (
        f"{PARENT} was review already: the report changes nothing"
    )


@proves("AOF-STATUS")
def test_notes_of_a_transition_are_logged(claimed: Console, message_file: MessageFiles) -> None:
    blocker, notes = "Test environment unreachable", "Cannot proceed until it is fixed"
    claimed.ask("send", message_file(update(status="blocked", blockers=[blocker], notes=notes)))

    assert f"in-progress → blocked ({blocker}): {notes}" in claimed("task", "log", PARENT).out


@proves("AOF-COMPLETION")
def test_report_that_is_applied_immediately_is_described_as_such(
    claimed: Console, message_file: MessageFiles
) -> None:
    (claimed.data / "dragoman.toml").write_text('[aof]\napply_completion = "immediately"\n')

    (effect,) = claimed.ask("send", message_file(report()))["effects"]
    assert effect == f"done is on record and {PARENT} has moved: review"


@proves("ACP-CLI")
def test_acp_action_and_query_are_described(dragoman: Console, message_file: MessageFiles) -> None:
    message = offer(task="t-1")
    offered = dragoman("send", message_file(message), "--as", "ada")
    (handoff,) = dragoman.ask("handoff", "list")["handoffs"]
    id = handoff["handoff_id"]
    expected = f"acp_handoff from ada\n  handoff {id} is proposed\n  t-1 is ready\n"
    assert (offered.code, offered.out) == (0, expected)
    accept = message_file({"action": "accept", "handoff_id": id})
    assert dragoman.ask("send", accept, "--as", "bob")["effects"] == [f"handoff {id} is accepted"]
    queried = dragoman("send", message_file({"action": "query", "task_id": "t-1"}), "--as", "bob")
    first, answer = queried.out.splitlines()
    assert first == "acp_handoff from bob"
    assert json.loads(answer)["handoffs"][0]["handoff_id"] == id

"""send: any message, what came of it in words and in JSON, and why not."""

import json
from pathlib import Path

import pytest

from dragoman.surfaces.cli.person import login_name
from tests.protocols.acp.hub import offer
from tests.protocols.aof.hub import (
    CHILD,
    PARENT,
    UNKNOWN,
    accepted,
    rejected,
    report,
    request,
    update,
)
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console
from tests.surfaces.cli.letters import Letters

BACKEND = "swe-backend"

pytestmark = proves("CLI-SEND")


@pytest.fixture
def working(dragoman: Console) -> Console:
    """Give a command line where swe-backend works on a task."""
    dragoman.make("One", "--id", PARENT, "--ready")
    dragoman.ask("task", "claim", PARENT, "--agent", BACKEND, "--session", "s-1")
    return dragoman


@proves("CLI-PROMISES")
def test_what_came_of_a_message_is_told_to_programs(working: Console, letter: Letters) -> None:
    said = letter(report())
    task = {"id": PARENT, "status": "in-progress", "now": "in-progress"}
    warning = f"there is no file outputs/summary.md in the folder of {PARENT}"

    first = working.ask("send", said)
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
    assert working.ask("send", said)["repeated"] is True


@proves("CLI-PROMISES", "AOF-SESSION-END")
def test_without_a_session_it_is_told_that_the_report_has_moved_the_task(
    dragoman: Console, letter: Letters
) -> None:
    dragoman.make("One", "--id", PARENT, "--ready")
    dragoman.ask("task", "claim", PARENT, "--agent", BACKEND)

    (effect,) = dragoman.ask("send", letter(report()))["effects"]

    assert effect == f"done is on record and {PARENT} has moved: review"


@proves("CLI-PROMISES", "AOF-COMPLETION")
@pytest.mark.parametrize("settings", ["", '[aof]\napply_completion = "immediately"\n'])
@pytest.mark.parametrize("agent", [BACKEND, "mallory"])
def test_a_report_that_is_not_recorded_is_not_told_to_be(
    dragoman: Console, letter: Letters, settings: str, agent: str
) -> None:
    dragoman.make("One", "--id", PARENT, "--ready")
    (dragoman.data / "dragoman.toml").write_text(settings)
    dragoman.ask("task", "claim", PARENT, "--agent", BACKEND)
    dragoman.ask("send", letter(report()))

    other = report("partial", notes="something else") | {"fromAgent": agent}
    (effect,) = dragoman.ask("send", letter(other))["effects"]

    assert effect == f"{PARENT} was review already: the report changes nothing"


def test_what_came_of_a_message_is_told_to_people(dragoman: Console, letter: Letters) -> None:
    said, at_noon = letter(report()), ("--now", NOON)
    dragoman.make("One", "--id", PARENT, "--ready", *at_noon)
    claim = ("task", "claim", PARENT, "--agent", BACKEND, "--session", "s-1")
    dragoman.ask(*claim, *at_noon)

    moves = "moves when session s-1 is ended, or its lease ends (2026-02-09T12:05:00.000Z)"
    assert dragoman("send", said, *at_noon).out.splitlines() == [
        "completion.report from swe-backend",
        f"  done is on record: {PARENT} {moves}",
        f"  {PARENT} is in-progress",
        f"  warning: there is no file outputs/summary.md in the folder of {PARENT}",
    ]
    assert "said before: nothing was added" in dragoman("send", said, *at_noon).out


@proves("MAIL-POST")
def test_what_is_odd_about_a_letter_is_told_as_by_the_command_for_letters(
    dragoman: Console, letter: Letters
) -> None:
    row = {"to": ["boss"], "subject": "FAILED", "body_md": "Bead: ol-1\nType: SPEC_IMPOSSIBLE"}
    told = dragoman("send", letter(json.dumps(row)), "--as", "ada").out
    assert "  warning: not understood: failure_type is in the wrong section" in told
    row = {"to": ["boss"], "subject": "HELP_RESPONSE", "body_md": "Go left."}
    told = dragoman("send", letter(json.dumps(row)), "--as", "ada").out
    assert "  warning: it answers no open question" in told


@proves("CLI-EXIT", "AOF-IDENTITY")
def test_a_refused_message_ends_with_1_and_its_code(working: Console, letter: Letters) -> None:
    stranger = letter(update(agentId="eve", progress="x") | {"fromAgent": "eve"})

    refused = working.ask("send", stranger, code=1)
    assert (refused["ok"], refused["code"]) == (False, "unauthorized_agent")
    assert refused["detail"] == f"{PARENT} belongs to swe-backend, not to eve"
    in_words = working("send", stranger)
    assert (in_words.code, in_words.out) == (1, "")
    assert in_words.err.startswith("unauthorized_agent: ")
    spoofed = working.ask("send", letter(update(progress="x")), "--as", "eve", code=1)
    assert spoofed["code"] == "identity_mismatch"


_OF_NOBODY = {
    "subject": "[ol-55] PROGRESS",
    "body_md": "Bead: ol-55\nStep: 1\nStatus: going\nContext usage: 10%",
    "to": ["bob"],
}


@proves("CLI-PROMISES", "AOF-IDENTITY")
def test_what_names_no_sender_is_from_the_person_who_types(
    dragoman: Console, letter: Letters
) -> None:
    sent = dragoman.ask("send", letter(_OF_NOBODY))

    assert sent["agent"] == login_name()
    assert {event["actor"] for event in dragoman("events", "--json").objects} == {
        f"human:{login_name()}"
    }


@proves("FILES-INBOX", "AOF-IDENTITY")
def test_a_file_in_the_inbox_that_names_nobody_is_refused(dragoman: Console) -> None:
    dragoman.ask("init")
    inbox = dragoman.data / "inbox"
    inbox.mkdir(exist_ok=True)
    (inbox / "1.json").write_text(json.dumps(_OF_NOBODY))

    dragoman("tick")

    why = (inbox / "rejected/1.json.reason.txt").read_text()
    assert why.startswith("unauthenticated: it names nobody")
    assert "inbox/NAME/" in why
    assert dragoman.ask("task", "list")["tasks"] == []


@proves("CLI-EXIT", "DIALECT-RECORD")
@pytest.mark.parametrize(
    "text", ["hello", "", '{"protocol":"smtp"}', "[1]", b"\xff\xfe", "x" * 300_000]
)
def test_what_no_dialect_claims_is_said_so_and_leaves_no_trace(
    dragoman: Console, letter: Letters, text: str | bytes
) -> None:
    refused = dragoman.ask("send", letter(text), code=1)

    assert refused["code"] == "not_recognized"
    assert "aof" in refused["detail"]
    assert dragoman("events", "--json").out == ""


@proves("CLI-EXIT", "DIALECT-RECORD")
def test_json_that_is_broken_is_told_where(dragoman: Console, letter: Letters) -> None:
    refused = dragoman.ask("send", letter('{"subject": "Hello" "body_md": "x"}'), code=1)

    assert refused["code"] == "invalid_json"
    assert "(byte 20)" in refused["detail"]
    assert dragoman("events", "--json").out == ""


@proves("CLI-EXIT")
def test_a_file_that_cannot_be_read_is_wrong_usage(dragoman: Console, tmp_path: Path) -> None:
    for source, why in (
        (tmp_path / "nowhere.json", "No such file or directory"),
        (tmp_path, "Is a directory"),
    ):
        said = dragoman("send", str(source))
        assert said.code == 2
        assert f"{source} cannot be read: {why}" in said.err
    nameless = dragoman("send", "a\0b")
    assert (nameless.code, "its name cannot be one" in nameless.err) == (2, True)
    assert not dragoman.data.exists()


@proves("CLI-EXIT", "NAME-GRAMMAR")
def test_a_name_that_cannot_be_one_is_refused(working: Console, letter: Letters) -> None:
    refused = working.ask("send", letter(update(progress="x")), "--as", "a b", code=1)

    assert refused["code"] == "invalid_id"


@proves("CLI-NOW", "AOF-COMPLETION")
def test_the_time_of_a_command_is_the_time_of_what_it_writes(
    dragoman: Console, letter: Letters
) -> None:
    dragoman.make("One", "--id", PARENT, "--ready", "--now", NOON)
    dragoman.ask("task", "claim", PARENT, "--agent", BACKEND, "--session", "s-1", "--now", NOON)
    dragoman.ask("send", letter(report()), "--now", "2026-02-09T12:01:00Z")

    result = json.loads((dragoman.data / f"runs/{PARENT}/run_result.json").read_text())
    assert result["completedAt"] == "2026-02-09T12:01:00.000Z"
    last = dragoman("events", "--json").objects[-1]
    assert last["actor"] == f"agent:{BACKEND}"
    assert last["via"].startswith("cli human:")
    assert last["via"].endswith("--now")


@proves("CLI-SAFE-TEXT")
def test_what_an_agent_writes_cannot_steer_the_terminal(working: Console, letter: Letters) -> None:
    said = working("send", letter(report(summaryRef="outputs/a\u200db.md")))
    refused = working("send", letter(update(progress="x") | {"type": "\x1b[31mred\n"}))

    for text in (said.out, said.err, refused.out, refused.err):
        assert "\x1b" not in text
        assert "\u200d" not in text
    assert refused.code == 1


@proves("CLI-EXIT")
def test_a_refusal_names_the_place_in_the_message(dragoman: Console, letter: Letters) -> None:
    dragoman.make("One", "--id", PARENT, "--ready")
    broken = letter(report(summaryRef="../x"))

    refused = dragoman.ask("send", broken, code=1)
    assert (refused["ok"], refused["code"]) == (False, "invalid_envelope")
    assert refused["path"] == "payload.summaryRef"
    said = dragoman("send", broken)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("invalid_envelope: payload.summaryRef: ")
    unknown = dragoman.ask("send", letter(report() | {"taskId": UNKNOWN}), code=1)
    assert "path" not in unknown


def test_the_size_that_is_stated_is_true(dragoman: Console, letter: Letters) -> None:
    refused = dragoman.ask("send", letter("AOF/1 " + "x" * 400_000), code=1)

    assert refused["code"] == "message_too_large"
    assert refused["detail"] == "it has more than 262144 bytes, and no more are taken"


def test_a_repeat_is_told_where_the_task_stands_now(working: Console, letter: Letters) -> None:
    said = letter(report())
    working.ask("send", said)
    working.ask("session-end")

    again = working.ask("send", said)
    assert (again["repeated"], again["effects"]) == (True, [])
    assert again["tasks"] == [{"id": PARENT, "status": "in-progress", "now": "review"}]
    assert f"  {PARENT} is review (it was in-progress then)\n" in working("send", said).out


def test_what_could_not_be_and_what_was_done_instead_is_told(
    working: Console, letter: Letters
) -> None:
    def effect(message: dict[str, object]) -> str:
        told = working.ask("send", letter(message))
        return "; ".join((*told["effects"], *told["warnings"]))

    assert effect(update(progress="half")) == "written into the work log"
    no_way = "there is no way from in-progress to done"
    in_vain = update(status="done", notes="x")
    assert effect(in_vain) == f"{no_way}: written into the work log"
    assert effect(in_vain) == f"{no_way}: written into the work log", "a repeat is told the same"
    assert effect(update(status="done")) == f"{no_way}: nothing was changed"
    assert effect(update(status="review")) == ""
    assert effect(report(notes="again")) == (
        f"{PARENT} was review already: the report changes nothing"
    )


@proves("AOF-STATUS")
def test_what_is_said_beside_a_transition_stands_in_the_log(
    working: Console, letter: Letters
) -> None:
    why, notes = "Test environment unreachable", "Cannot proceed until it is fixed"
    working.ask("send", letter(update(status="blocked", blockers=[why], notes=notes)))

    assert f"in-progress → blocked ({why}): {notes}" in working("task", "log", PARENT).out


@proves("AOF-HANDOFF")
def test_what_became_of_a_handoff_is_told(working: Console, letter: Letters) -> None:
    for message, words in (
        (request(), f"{CHILD} is handed to swe-qa as a part of {PARENT}, due by 2026-02-10T12:00"),
        (accepted(), f"the handoff of {CHILD} from swe-backend is accepted"),
        (rejected(), f"the handoff of {CHILD} is rejected (No test plan)"),
    ):
        working("task", "create", "Two", "--id", CHILD, "--ready")
        (effect,) = working.ask("send", letter(message))["effects"]
        assert effect.startswith(words)


@proves("AOF-HANDOFF")
def test_a_part_that_cannot_begin_is_not_told_to(working: Console, letter: Letters) -> None:
    working("task", "create", "Two", "--id", CHILD, "--ready")
    first = working.make("First", "--ready")

    def told() -> str:
        said = accepted() | {"sentAt": f"2026-02-09T21:0{working.make('x')[-1]}:00Z"}
        return "; ".join(working.ask("send", letter(said))["effects"]).rpartition("; ")[2]

    working.ask("send", letter(request()))
    assert told() == "a claim begins the work"
    working.ask("task", "link", CHILD, "--blocked-by", first)
    assert told() == f"it waits for {first}"
    working.ask("task", "move", first, "cancelled")
    working.ask("task", "move", CHILD, "blocked")
    assert told() == "it is blocked"


@proves("AOF-COMPLETION")
def test_a_report_that_takes_effect_at_once_says_so(working: Console, letter: Letters) -> None:
    (working.data / "dragoman.toml").write_text('[aof]\napply_completion = "immediately"\n')

    (effect,) = working.ask("send", letter(report()))["effects"]
    assert effect == f"done is on record and {PARENT} has moved: review"


@proves("ACP-CLI")
def test_of_an_action_it_is_told_where_its_handoff_stands_and_a_question_is_answered(
    dragoman: Console, letter: Letters
) -> None:
    said = offer(task="t-1")
    offered = dragoman("send", letter(said), "--as", "ada")
    (handoff,) = dragoman.ask("handoff", "list")["handoffs"]
    id = handoff["handoff_id"]
    told = f"acp_handoff from ada\n  handoff {id} is proposed\n  t-1 is ready\n"
    assert (offered.code, offered.out) == (0, told)
    accept = letter({"action": "accept", "handoff_id": id})
    assert dragoman.ask("send", accept, "--as", "bob")["effects"] == [f"handoff {id} is accepted"]
    asked = dragoman("send", letter({"action": "query", "task_id": "t-1"}), "--as", "bob")
    first, answer = asked.out.splitlines()
    assert first == "acp_handoff from bob"
    assert json.loads(answer)["handoffs"][0]["handoff_id"] == id

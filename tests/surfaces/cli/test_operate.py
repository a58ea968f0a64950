"""call and session-end: operations by their names, with replies in their dialect's own form."""

import json

import pytest

from tests.protocols.aof.scene import PARENT, report, update
from tests.requirements import proves
from tests.surfaces.cli.console import Console
from tests.surfaces.cli.letters import Letters

BACKEND = "swe-backend"
COMPLETE = json.dumps(report()["payload"] | {"taskId": PARENT})

pytestmark = proves("CLI-CALL")


@pytest.fixture
def working(dragoman: Console) -> Console:
    """Give a command line where swe-backend works on a task in the session s-1."""
    dragoman.make("One", "--id", PARENT, "--ready")
    dragoman.ask("task", "claim", PARENT, "--agent", BACKEND, "--session", "s-1")
    return dragoman


def status(dragoman: Console) -> str:
    return str(dragoman.ask("task", "show", PARENT)["status"])


@proves("AOF-TOOLS", "CLI-PROMISES")
def test_a_reply_is_printed_as_its_dialect_has_it(working: Console) -> None:
    progress = json.dumps({"taskId": PARENT, "progress": "Half of it"})

    for more in ((), ("--json",)):
        said = working("call", "aof_task_update", progress, "--as", BACKEND, *more)
        assert (said.code, said.json) == (0, {"taskId": PARENT, "status": "in-progress"})
    assert working("call", "aof_task_complete", COMPLETE, "--as", BACKEND).code == 0
    assert working("call", "session_end", '{"sessionId":"s-1"}', "--as", BACKEND).json == {
        "sessionId": "s-1",
        "tasks": [{"taskId": PARENT, "status": "review"}],
    }


@proves("AOF-TOOLS")
def test_a_message_may_be_called_by_its_type(working: Console) -> None:
    message = json.dumps(update(status="blocked", blockers=["No key"]))

    assert working("call", "status.update", message, "--as", BACKEND).json["status"] == "blocked"


@proves("CLI-EXIT", "AOF-REASONS")
@pytest.mark.parametrize(
    ("operation", "given", "speaker", "code"),
    [
        ("aof_task_complete", COMPLETE, "eve", "unauthorized_agent"),
        ("aof_task_complete", "{}", BACKEND, "invalid_envelope"),
        ("aof_task_complete", "{oops", BACKEND, "invalid_json"),
        ("aof_task_complete", "[]", BACKEND, "invalid_envelope"),
        (
            "aof_task_update",
            json.dumps({"taskId": PARENT, "agentId": "eve", "notes": "x"}),
            BACKEND,
            "identity_mismatch",
        ),
        (
            "aof_task_update",
            '{"taskId":"TASK-2026-02-09-999","notes":"x"}',
            BACKEND,
            "task_not_found",
        ),
        ("aof_task_update", f'{{"taskId":"{PARENT}"}}', BACKEND, "invalid_envelope"),
        ("aof_nothing", "{}", BACKEND, "unknown_type"),
        ("session_end", "{}", BACKEND, "not_authorized"),
    ],
)
def test_a_refusal_is_an_object_with_its_code(
    working: Console, operation: str, given: str, speaker: str, code: str
) -> None:
    said = working("call", operation, given, "--as", speaker)

    assert (said.code, said.json["ok"], said.json["code"]) == (1, False, code)
    assert said.json["detail"]
    assert status(working) == "in-progress"


@proves("AOF-SESSION-END")
def test_a_session_ends_by_its_name_and_touches_no_other(working: Console, letter: Letters) -> None:
    working.ask("send", letter(report()))

    for others in (("--session", "s-2"), ("--session", "s-1", "--as", "eve")):
        assert working.ask("session-end", *others)["tasks"] == []
        assert working("session-end", *others).out == "no attempt has anything to apply\n"
    ended = working.ask("session-end", "--session", "s-1", "--as", BACKEND)
    assert ended["tasks"] == [{"taskId": PARENT, "status": "review"}]
    assert status(working) == "review"
    assert working.ask("session-end", "--session", "s-1")["tasks"] == []


@proves("AOF-SESSION-END", "CLI-EXIT", "CLI-AGENT")
def test_without_a_name_it_is_for_whoever_runs_the_show(working: Console, letter: Letters) -> None:
    working.ask("agent", "add", "boss", "--role", "orchestrator")
    working.ask("agent", "add", "watcher", "--role", "observer")
    assert working("session-end").out == "no attempt has anything to apply\n"
    working.ask("send", letter(report()))

    for nobody in (BACKEND, "watcher"):
        assert working.ask("session-end", "--as", nobody, code=1)["code"] == "not_authorized"
    assert status(working) == "in-progress"
    assert working("session-end", "--as", "boss").out == f"{PARENT} is review\n"

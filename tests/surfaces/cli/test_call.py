"""`call` and `session-end`: operations by name, with replies in the form of their dialect."""

import json

import pytest

from tests.protocols.aof.hub import PARENT, report, update
from tests.requirements import proves
from tests.surfaces.cli.console import Console
from tests.surfaces.cli.message_files import MessageFiles

BACKEND = "swe-backend"
COMPLETION = json.dumps(report()["payload"] | {"taskId": PARENT})

pytestmark = proves("CLI-CALL")


@pytest.fixture
def claimed(dragoman: Console) -> Console:
    """Give a command line where swe-backend holds a task in session s-1."""
    dragoman.make("One", "--id", PARENT, "--ready")
    dragoman.ask("task", "claim", PARENT, "--agent", BACKEND, "--session", "s-1")
    return dragoman


def task_status(dragoman: Console) -> str:
    return str(dragoman.ask("task", "show", PARENT)["status"])


@proves("AOF-TOOLS", "CLI-PROMISES")
def test_reply_is_printed_in_the_form_of_its_dialect(claimed: Console) -> None:
    progress = json.dumps({"taskId": PARENT, "progress": "Half of it"})

    for more in ((), ("--json",)):
        result = claimed("call", "aof_task_update", progress, "--as", BACKEND, *more)
        assert (result.code, result.json) == (0, {"taskId": PARENT, "status": "in-progress"})
    assert claimed("call", "aof_task_complete", COMPLETION, "--as", BACKEND).code == 0
    assert claimed("call", "session_end", '{"sessionId":"s-1"}', "--as", BACKEND).json == {
        "sessionId": "s-1",
        "tasks": [{"taskId": PARENT, "status": "review"}],
    }


@proves("AOF-TOOLS")
def test_message_can_be_called_by_its_type(claimed: Console) -> None:
    message = json.dumps(update(status="blocked", blockers=["No key"]))

    assert claimed("call", "status.update", message, "--as", BACKEND).json["status"] == "blocked"


@proves("CLI-EXIT", "AOF-REASONS")
@pytest.mark.parametrize(
    ("operation", "arguments", "agent", "code"),
    [
        ("aof_task_complete", COMPLETION, "eve", "unauthorized_agent"),
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
        ("session_end", "{}", BACKEND, "unauthorized_agent"),
    ],
)
def test_refusal_is_an_object_with_its_code(
    claimed: Console, operation: str, arguments: str, agent: str, code: str
) -> None:
    result = claimed("call", operation, arguments, "--as", agent)

    assert (result.code, result.json["ok"], result.json["code"]) == (1, False, code)
    assert result.json["detail"]
    assert task_status(claimed) == "in-progress"


@proves("AOF-SESSION-END")
def test_session_end_touches_no_other_session(claimed: Console, message_file: MessageFiles) -> None:
    claimed.ask("send", message_file(report()))

    unchanged = {
        ("--session", "s-2"): "no task is held in a session 's-2': nothing was changed\n",
        ("--session", "s-1", "--as", "eve"): (
            "no task is held by eve in a session 's-1': nothing was changed\n"
        ),
    }
    for options, expected in unchanged.items():
        assert claimed.ask("session-end", *options)["tasks"] == []
        assert claimed("session-end", *options).out == expected
    ended = claimed.ask("session-end", "--session", "s-1", "--as", BACKEND)
    assert ended["tasks"] == [{"taskId": PARENT, "status": "review"}]
    assert task_status(claimed) == "review"
    assert claimed.ask("session-end", "--session", "s-1")["tasks"] == []


@proves("AOF-SESSION-END", "CLI-EXIT", "CLI-AGENT")
def test_session_end_without_name_is_for_orchestrators(
    claimed: Console, message_file: MessageFiles
) -> None:
    claimed.ask("agent", "add", "boss", "--role", "orchestrator")
    claimed.ask("agent", "add", "watcher", "--role", "observer")
    assert claimed("session-end").out == "no attempt has reported: nothing was changed\n"
    claimed.ask("send", message_file(report()))

    for agent in (BACKEND, "watcher"):
        refused = claimed.ask("session-end", "--as", agent, code=1)
        assert refused["code"] == "unauthorized_agent"
    assert task_status(claimed) == "in-progress"
    assert claimed("session-end", "--as", "boss").out == f"{PARENT} is review\n"


@proves("AOF-SESSION-END", "FILES-PROJECTION")
@pytest.mark.parametrize(
    "args", [("session-end", "--session", "s-1"), ("call", "session_end", '{"sessionId":"s-1"}')]
)
def test_session_end_rejects_an_unreported_result_file(
    claimed: Console, message_file: MessageFiles, args: tuple[str, ...]
) -> None:
    claimed.ask("send", message_file(report()))
    runs = claimed.data / "runs" / PARENT
    (runs / "run_result.json").write_text('{"outcome":"done"}')

    assert claimed(*args, "--as", BACKEND).code == 0

    assert (runs / "run_result.rejected.json").read_text() == '{"outcome":"done"}'
    assert task_status(claimed) == "review"


@proves("AOF-SESSION-END", "FILES-DISK")
@pytest.mark.parametrize(
    "args", [("session-end", "--session", "s-1"), ("call", "session_end", '{"sessionId":"s-1"}')]
)
def test_unreadable_run_files_are_a_warning_of_session_end(
    claimed: Console, message_file: MessageFiles, args: tuple[str, ...]
) -> None:
    claimed.ask("send", message_file(report()))
    lock = claimed.data / "projection.lock"
    lock.unlink(missing_ok=True)
    lock.mkdir()

    result = claimed(*args, "--as", BACKEND)

    assert result.code == 0
    assert "the files lag behind the ledger" in result.err
    assert task_status(claimed) == "review"


@proves("AOF-SESSION-END")
def test_session_end_explains_an_unchanged_task(claimed: Console) -> None:
    output = claimed("session-end", "--session", "s-1").out
    assert output.startswith(
        f"{PARENT} has no report: it stays in-progress until its lease ends (20"
    )


@proves("AOF-SESSION-END", "LEASE-LOST")
def test_late_session_end_names_the_expired_lease(
    claimed: Console, message_file: MessageFiles
) -> None:
    claimed.ask("send", message_file(report()))
    late = ("--as", BACKEND, "--now", "2999-01-01T00:00:00Z")

    output = claimed("session-end", "--session", "s-1", *late).out
    called = claimed("call", "session_end", '{"sessionId":"s-1"}', *late)

    assert output.startswith(
        f"{PARENT} is in-progress: the lease on {PARENT} (fence 1) ended at 20"
    )
    assert "`dragoman tick` decides by what was reported" in output
    (warning,) = called.json["warnings"]
    assert called.err == f"warning: {warning}\n"
    assert warning.startswith(f"the lease on {PARENT} (fence 1) ended at 20")

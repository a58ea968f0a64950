"""call and session-end: operations by their names, with replies in their dialect's own form."""

import json

import pytest

from tests.protocols.aof.hub import PARENT, report, update
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
        ("session_end", "{}", BACKEND, "unauthorized_agent"),
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

    nothing = {
        ("--session", "s-2"): "no task is held in a session 's-2': nothing was changed\n",
        ("--session", "s-1", "--as", "eve"): (
            "no task is held by eve in a session 's-1': nothing was changed\n"
        ),
    }
    for others, words in nothing.items():
        assert working.ask("session-end", *others)["tasks"] == []
        assert working("session-end", *others).out == words
    ended = working.ask("session-end", "--session", "s-1", "--as", BACKEND)
    assert ended["tasks"] == [{"taskId": PARENT, "status": "review"}]
    assert status(working) == "review"
    assert working.ask("session-end", "--session", "s-1")["tasks"] == []


@proves("AOF-SESSION-END", "CLI-EXIT", "CLI-AGENT")
def test_without_a_name_it_is_for_whoever_runs_the_show(working: Console, letter: Letters) -> None:
    working.ask("agent", "add", "boss", "--role", "orchestrator")
    working.ask("agent", "add", "watcher", "--role", "observer")
    assert working("session-end").out == "no attempt has reported: nothing was changed\n"
    working.ask("send", letter(report()))

    for nobody in (BACKEND, "watcher"):
        refused = working.ask("session-end", "--as", nobody, code=1)
        assert refused["code"] == "unauthorized_agent"
    assert status(working) == "in-progress"
    assert working("session-end", "--as", "boss").out == f"{PARENT} is review\n"


@proves("AOF-SESSION-END", "FILES-PROJECTION")
@pytest.mark.parametrize(
    "words", [("session-end", "--session", "s-1"), ("call", "session_end", '{"sessionId":"s-1"}')]
)
def test_either_way_to_end_a_session_minds_the_run_files(
    working: Console, letter: Letters, words: tuple[str, ...]
) -> None:
    working.ask("send", letter(report()))
    runs = working.data / "runs" / PARENT
    (runs / "run_result.json").write_text('{"outcome":"done"}')

    assert working(*words, "--as", BACKEND).code == 0

    assert (runs / "run_result.rejected.json").read_text() == '{"outcome":"done"}'
    assert status(working) == "review"


@proves("AOF-SESSION-END", "FILES-DISK")
@pytest.mark.parametrize(
    "words", [("session-end", "--session", "s-1"), ("call", "session_end", '{"sessionId":"s-1"}')]
)
def test_run_files_that_cannot_be_looked_at_are_told_and_stop_nothing(
    working: Console, letter: Letters, words: tuple[str, ...]
) -> None:
    working.ask("send", letter(report()))
    lock = working.data / "projection.lock"
    lock.unlink(missing_ok=True)
    lock.mkdir()

    said = working(*words, "--as", BACKEND)

    assert said.code == 0
    assert "the files lag behind the ledger" in said.err
    assert status(working) == "review"


@proves("AOF-SESSION-END")
def test_the_end_of_a_session_says_why_nothing_moved(working: Console) -> None:
    said = working("session-end", "--session", "s-1").out
    assert said.startswith(f"{PARENT} has no report: it stays in-progress until its lease ends (20")


@proves("AOF-SESSION-END", "LEASE-LOST")
def test_the_end_of_a_session_that_comes_too_late_says_so(
    working: Console, letter: Letters
) -> None:
    working.ask("send", letter(report()))
    late = ("--as", BACKEND, "--now", "2999-01-01T00:00:00Z")

    said = working("session-end", "--session", "s-1", *late).out
    called = working("call", "session_end", '{"sessionId":"s-1"}', *late)

    assert said.startswith(f"{PARENT} is in-progress: the lease on {PARENT} (fence 1) ended at 20")
    assert "`dragoman tick` decides by what was reported" in said
    (warning,) = called.json["warnings"]
    assert called.err == f"warning: {warning}\n"
    assert warning.startswith(f"the lease on {PARENT} (fence 1) ended at 20")

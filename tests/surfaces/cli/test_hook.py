"""`hook`: sessions of coding agents in `status`, and letters at their next turn."""

import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from dragoman.surfaces.cli.agent_clients import CLIENTS
from tests.e2e.program import COMMAND
from tests.requirements import proves
from tests.surfaces.cli.console import CommandResult, Console

pytestmark = proves("AGENT-HOOKS")

SESSION = "0e6c1d80-7d1c-4d0f-9a53-2f5d1c4b8a11"
PERMISSION = {"tool_name": "Bash", "tool_input": {"command": "rm -rf build"}}
IDLE = {"notification_type": "idle_prompt", "message": "Claude is waiting for your input"}

Send = Callable[..., CommandResult]


@pytest.fixture
def send(dragoman: Console, monkeypatch: pytest.MonkeyPatch) -> Send:
    """Give a function that runs the hook of an agent with an event."""
    dragoman.ask("agent", "add", "ada", "--no-token")

    def send_event(event: str, session: str = SESSION, **fields: Any) -> CommandResult:
        given = {"hook_event_name": event, "session_id": session, "cwd": "/srv/app", **fields}
        return send_raw(json.dumps(given))

    def send_raw(text: str) -> CommandResult:
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(text.encode())))
        result = dragoman("hook", "claude-code", "--as", "ada")
        assert (result.code, result.err) == (0, "")
        return result

    send_event.__dict__["raw"] = send_raw
    return send_event


def waiting(dragoman: Console) -> list[str]:
    """Texts of what waits for input."""
    needs = dragoman.ask("status")["attention"]
    return [item["text"] for item in needs if item["kind"] == "waits_for_input"]


def state(dragoman: Console) -> list[str]:
    """State of each session of ada."""
    return [one["state"] for one in dragoman.ask("agent", "show", "ada")["sessions"]]


def test_question_is_shown_until_the_next_turn(dragoman: Console, send: Send) -> None:
    send("SessionStart", source="startup")
    assert state(dragoman) == ["idle"]
    send("UserPromptSubmit", prompt="Mend it")
    assert (state(dragoman), waiting(dragoman)) == (["working"], [])
    send("PermissionRequest", **PERMISSION)
    (text,) = waiting(dragoman)
    assert text == f"ada waits for input in session {SESSION}: may it use Bash: rm -rf build"
    assert "waits for input" in dragoman("status").out
    assert "may it use Bash: rm -rf build" in dragoman("agent", "show", "ada").out
    # It is said again in general words.
    send("Notification", notification_type="permission_prompt", message="It needs you")
    send("Notification", message="It needs your permission")
    assert waiting(dragoman) == [text]
    send("PostToolUse", tool_name="Bash")
    assert (state(dragoman), waiting(dragoman)) == (["working"], [])
    send("Stop")
    assert state(dragoman) == ["idle"]
    send("Notification", **IDLE)
    assert waiting(dragoman)[0].endswith(": Claude is waiting for your input")
    send("SessionEnd", reason="exit")
    assert (state(dragoman), waiting(dragoman)) == ([], [])


QUESTIONS = {
    "questions": [
        {"question": "Which DB?", "options": [{"label": "Postgres"}, {"label": "SQLite"}]},
        {"question": "Its name?"},
    ]
}
PLAN = {"plan": "# Login\n\n1. Mend it\n2. Test it\n3. Tell it\n4. Rest\n5. Never shown\n"}


@pytest.mark.parametrize(
    ("tool", "arguments", "shown"),
    [
        ("AskUserQuestion", QUESTIONS, "Which DB? (Postgres / SQLite); Its name?"),
        ("AskUserQuestion", {"questions": "?"}, "may it use AskUserQuestion?"),
        (
            "ExitPlanMode",
            PLAN,
            "may it carry out its plan: # Login / 1. Mend it / 2. Test it / 3. Tell it / 4. Rest",
        ),
        ("ExitPlanMode", {"plan": " "}, "may it use ExitPlanMode?"),
    ],
)
def test_question_and_plan_are_shown(
    dragoman: Console, send: Send, tool: str, arguments: object, shown: str
) -> None:
    send("PermissionRequest", tool_name=tool, tool_input=arguments)
    assert waiting(dragoman) == [f"ada waits for input in session {SESSION}: {shown}"]


@pytest.mark.parametrize(
    ("event", "fields", "shown"),
    [
        ("Notification", IDLE, ["Claude is waiting for your input"]),
        (
            "Notification",
            {"notification_type": "elicitation_dialog", "message": "Your e-mail?"},
            ["Your e-mail?"],
        ),
        ("PostToolUseFailure", {"tool_name": "Bash"}, []),
        ("Stop", {}, []),
    ],
)
def test_question_that_nobody_answered_is_replaced(
    dragoman: Console, send: Send, event: str, fields: dict[str, str], shown: list[str]
) -> None:
    send("PermissionRequest", **PERMISSION)
    send(event, **fields)
    assert [text.partition(f"{SESSION}: ")[2] for text in waiting(dragoman)] == shown


def test_two_sessions_of_one_agent_wait_apart(dragoman: Console, send: Send) -> None:
    for session in ("s-1", "s-2"):
        send("PermissionRequest", session, tool_name="Edit", tool_input={"file_path": session})
    send("PostToolUse", "s-1")
    assert waiting(dragoman) == ["ada waits for input in session s-2: may it use Edit: s-2"]
    send("PermissionRequest", "s-1", tool_name="WebSearch")
    assert "may it use WebSearch?" in waiting(dragoman)[-1]


def test_letters_are_given_at_the_next_turn_once(dragoman: Console, send: Send) -> None:
    for number in range(7):
        body = "x" * 5_000 if number == 0 else "Look at the cookie."
        letter = ("--to", "ada", "--subject", f"Login {number}", "--body", body)
        dragoman.ask("mail", "send", "--as", "bob", *letter)
    assert send("Stop").out == ""
    output = json.loads(send("UserPromptSubmit", prompt="Go on").out)["hookSpecificOutput"]
    assert output["hookEventName"] == "UserPromptSubmit"
    text = output["additionalContext"]
    assert [f"Login {number}\n" in text for number in range(7)] == [True] * 5 + [False] * 2
    assert "(cut)" in text
    later = json.loads(send("SessionStart", source="resume").out)["hookSpecificOutput"]
    assert later["additionalContext"].count("From bob") == 2
    assert send("UserPromptSubmit").out == ""


@proves("USAGE-LIMIT")
def test_usage_limit_releases_what_the_agent_holds(dragoman: Console, send: Send) -> None:
    task = dragoman.make("Mend it", "--ready")
    dragoman.ask("task", "claim", task, "--agent", "ada")
    told = {"error_type": "server_error", "error_message": "try again in 2 hours"}
    send("StopFailure", **told)
    assert dragoman.ask("task", "show", task)["status"] == "in-progress"
    send("StopFailure", **told | {"error_type": "rate_limit"})
    assert dragoman.ask("task", "show", task)["status"] == "ready"
    paused = dragoman.ask("agent", "show", "ada")["paused"]
    assert paused["reason"].startswith("usage limit of ada until ")
    assert paused["until"] > paused["since"]
    needs = dragoman.ask("status")["attention"]
    assert [item["kind"] for item in needs] == ["paused"]
    assert "until" in needs[0]["text"]


@proves("USAGE-LIMIT")
def test_end_of_a_limit_is_read_from_what_claude_code_says(dragoman: Console, send: Send) -> None:
    """The event as Claude Code 2.1 sends it after an answer with status 429."""
    task = dragoman.make("Mend it", "--ready")
    dragoman.ask("task", "claim", task, "--agent", "ada")
    message = "API Error: Request rejected (429) · You've hit your limit, it resets at "
    message += "2099-01-01T00:00:00Z"
    send("StopFailure", prompt_id="p", error="rate_limit", last_assistant_message=message)

    paused = dragoman.ask("agent", "show", "ada")["paused"]
    assert paused["until"] == "2099-01-01T00:01:00.000Z"


@proves("USAGE-LIMIT")
def test_usage_limit_is_reported_at_the_command_line(dragoman: Console) -> None:
    dragoman.ask("agent", "add", "ada", "--no-token")
    task = dragoman.make("Mend it", "--ready")
    dragoman.ask("task", "claim", task, "--agent", "ada")
    refused = dragoman.ask("task", "limit", task, "--agent", "ada", "--until", "soon", code=1)
    assert refused["code"] == "invalid_field"
    dragoman.ask("task", "limit", task, "--agent", "ada", "--until", "2020-01-01T00:00:00Z")
    shown = dragoman.ask("agent", "show", "ada")["paused"]
    assert shown["reason"] == "usage limit of ada until 2020-01-01T00:00:00.000Z"
    assert dragoman.ask("task", "show", task)["status"] == "ready"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"hook_event_name": "Other", "session_id": "s"}', "\x00" * 10],
)
def test_what_is_no_event_of_ours_is_ignored(dragoman: Console, send: Send, text: str) -> None:
    assert send.__dict__["raw"](text).out == ""
    assert send("Stop", "a session with spaces").out == ""
    assert send("Notification", notification_type="auth_success").out == ""
    assert state(dragoman) == []


def test_agent_is_never_stopped(
    tmp_path: Path, dragoman: Console, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = json.dumps({"hook_event_name": "Stop", "session_id": "s"})
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(event.encode())))
    assert Console(tmp_path / "nowhere")("hook", "codex") == CommandResult(0, "", "")
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(event.encode())))
    assert dragoman("hook", "codex", "--as", "nobody-knows") == CommandResult(0, "", "")


def test_hub_that_hangs_is_given_up_before_it_is_called_silent() -> None:
    event = json.dumps({"hook_event_name": "Stop", "session_id": "s"})
    with socket.create_server(("127.0.0.1", 0)) as hangs:
        url = f"http://127.0.0.1:{hangs.getsockname()[1]}"
        done = subprocess.run(
            (*COMMAND, "--url", url, "hook", "claude-code", "--as", "ada"),
            input=event,
            text=True,
            capture_output=True,
            env=os.environ | {"DRAGOMAN_TOKEN": "drg_ada_x_y"},
            check=True,
        )
    assert done.stdout == ""
    assert done.stderr == ("store_unavailable: the hub has not answered a hook in 1.5 s\n")


@proves("CONNECT-UNTOUCHED")
@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_hooks_are_installed_run_and_removed(
    dragoman: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    client, project = CLIENTS[name], tmp_path / "project"
    file = project / client.hooks
    file.parent.mkdir(parents=True)
    (project / ".git").mkdir()
    others = (
        '{\n  "hooks": {\n    "Stop": [{"hooks": [{"type": "command", "command": "x"}]}]\n  }\n}\n'
    )
    file.write_text(others)
    monkeypatch.chdir(project)
    dragoman.ask("init")

    dragoman.ask("connect", name, "--hooks", "--write")
    installed = json.loads(file.read_text())["hooks"]
    assert installed.keys() == set(client.hook_events)
    assert [group["hooks"][0]["command"] == "x" for group in installed["Stop"]] == [True, False]
    assert "nothing to do" in dragoman("connect", name, "--hooks", "--write").out

    command = installed["PermissionRequest"][0]["hooks"][0]["command"]
    event = {"hook_event_name": "PermissionRequest", "session_id": "s-1", **PERMISSION}
    run = subprocess.run(
        ("sh", "-c", command), input=json.dumps(event), text=True, capture_output=True, check=True
    )
    assert (run.stdout, run.stderr) == ("", "")
    assert len(waiting(dragoman)) == 1
    broken = command.replace(shlex.quote(sys.executable), "/no/such/program")
    run = subprocess.run(("sh", "-c", broken), input="", text=True, capture_output=True, check=True)
    assert run.stdout == ""

    dragoman.ask("connect", name, "--undo", "--write")
    assert file.read_text() == others
    assert "has no hooks" in dragoman("connect", "cursor", "--hooks").err

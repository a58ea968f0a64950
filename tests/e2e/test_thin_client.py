"""Thin client: commands that the running hub runs for their callers."""

import fcntl
import json
import os
import re
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.hub_process import run_hub
from tests.e2e.program import ProcessResult, Program
from tests.e2e.test_imports import imported_modules
from tests.e2e.test_output_streams import on_terminal
from tests.requirements import proves

pytestmark = proves("HUB-CLI")

LETTER = {"to": ["ben"], "subject": "Hello", "body_md": "Are you there?"}

STORY: list[tuple[tuple[str, ...], str]] = [
    (("task", "create", "One", "--id", "T-1", "--ready", "--json"), ""),
    (("task", "create", "Two", "--id", "T-2", "--ready", "--body-file", "-"), "The body\n"),
    (("task", "create", "Three", "--body-file", "body.md", "--json"), ""),
    (("task", "create", "--file", "plan.toml"), ""),
    (("task", "create", "--file", "-", "--json"), '{"title": "Five"}\n{"title": 5}'),
    (("task", "claim", "T-1", "--agent", "ada", "--session", "s-1", "--json"), ""),
    (("task", "claim", "T-1", "--agent", "ben"), ""),
    (("task", "claim", "T-1", "--agent", "ben", "--json"), ""),
    (("task", "heartbeat", "T-1", "--agent", "ada"), ""),
    (("task", "log", "T-1", "half done", "--as", "ada"), ""),
    (("task", "log", "T-1"), ""),
    (("task", "show", "T-2"), ""),
    (("task", "show", "T-404"), ""),
    (("task", "list", "--limit", "2"), ""),
    (("task", "list", "--limit", "many"), ""),
    (("task", "lost"), ""),
    (("task", "list", "--help"), ""),
    (("mail", "send", "--as", "ada", "--json"), json.dumps(LETTER)),
    (("mail", "inbox", "--as", "ben"), ""),
    (("send", "--as", "ada", "-"), json.dumps(LETTER)),
    (("send", "--as", "ada", "letter.json"), ""),
    (("send", "missing.json"), ""),
    (("call", "mail.inbox", "--as", "ben", "{}"), ""),
    (("call", "mail.inbox", "--as", "ben", "-"), '{"limit": 1}'),
    (("call", "mail.outbox", "{}"), ""),
    (("task", "create", "key = AKIAIOSFODNN7EXAMPLE"), ""),
    (("task", "retry", "T-1", "T-404", "T-2"), ""),
    (("task", "complete", "T-1", "--agent", "ada", "--notes", "done"), ""),
    (("task", "approve", "T-1", "--json"), ""),
    (("task", "assign", "T-2", "adda"), ""),
    (("task", "edit", "T-2", "--priority", "high"), ""),
    (("agent", "list"), ""),
    (("status", "--json"), ""),
    (("task", "list", "--now", "2026-02-09T12:00:00Z", "--assignee", ""), ""),
    (("events", "--limit", "3"), ""),
]
"""Commands and their standard input, in an order that makes sense."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the working folder of the commands, with the files that they name."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "body.md").write_text("From a file")
    (folder / "plan.toml").write_text('[[tasks]]\nid = "T-4"\ntitle = "Four"\nready = true')
    (folder / "letter.json").write_text(json.dumps(LETTER))
    monkeypatch.chdir(folder)
    return folder


UNPREDICTABLE = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b[0-9a-f]{16,}\b|\d{4}-\d\d-\d\d[T0-9:.Z-]*"
)
"""Ids, digests and times."""


def predictable(result: ProcessResult) -> tuple[int, str, str]:
    """A result without what differs from one run to the next."""
    out, err = (UNPREDICTABLE.sub("#", text) for text in (result.out, result.err))
    return result.code, re.sub(r" +", " ", out), err


@pytest.mark.usefixtures("folder")
def test_commands_print_the_same_with_and_without_a_hub(tmp_path: Path, bytecode: Path) -> None:
    results = list[list[tuple[int, str, str]]]()
    for has_hub in (False, True):
        program = Program(tmp_path / str(has_hub) / "hub", bytecode)
        # The first start of a hub registers the owner.
        assert program.run("agent", "add", "owner", "--role", "human", "--no-token").code == 0
        if has_hub:
            with run_hub(program):
                told = [program.run(*args, stdin=text) for args, text in STORY]
        else:
            told = [program.run(*args, stdin=text) for args, text in STORY]
        results.append([predictable(one) for one in told])

    for (args, _), alone, with_hub in zip(STORY, *results, strict=True):
        assert with_hub == alone, args


@pytest.mark.usefixtures("folder")
def test_command_through_the_hub_imports_little(program: Program) -> None:
    commands = (
        ("task", "create", "One", "--ready"),
        ("status",),
        ("task", "list"),
        ("task", "show", "T-1"),
        ("task", "claim", "T-1", "--agent", "ada"),
        ("task", "heartbeat", "T-1", "--agent", "ada"),
        ("task", "log", "T-1", "half done", "--as", "ada"),
        ("call", "mail.inbox", "--as", "ada", "{}"),
        ("mail", "inbox", "--as", "ada"),
        ("send", "--as", "ada", "letter.json"),
    )
    program.prepare("task", "create", "One", "--id", "T-1", "--ready")
    with run_hub(program):
        for args in commands:
            modules = imported_modules(program, *args)
            assert {name for name in modules if name.startswith("dragoman.")} <= {
                "dragoman.__main__",
                "dragoman.surfaces",
                "dragoman.surfaces.cli",
                "dragoman.surfaces.cli.thin_client",
                "dragoman.system",
                "dragoman.system.data_search",
            }
            assert not modules & {"typing", "pathlib", "ssl", "http.client", "msgspec", "typer"}


def test_terminal_of_the_caller_decides_colours_and_width(program: Program) -> None:
    program.prepare("task", "create", "A long title " * 20, "--id", "T-1", "--ready")
    alone = [on_terminal(program, "task", "list", **more) for more in ({}, {"NO_COLOR": "1"})]
    with run_hub(program):
        through = [on_terminal(program, "task", "list", **more) for more in ({}, {"NO_COLOR": "1"})]
    assert through == alone
    assert "\x1b[36mready" in through[0]
    assert "\x1b[36m" not in through[1]


def test_entry_names_the_caller_and_the_agent(program: Program) -> None:
    commands = (("task", "create", "One"), ("task", "create", "Two", "--as", "ada"))
    program.prepare(*commands[0])
    program.prepare(*commands[1])
    with run_hub(program):
        for args in commands:
            assert program.run(*args).code == 0
        entries = [json.loads(line) for line in program.run("events", "--json").out.splitlines()]
    origins = [(e["actor"], e["via"]) for e in entries if e["type"] == "task.created"]
    assert origins[:2] == origins[2:]


def test_token_that_others_can_read_is_refused(program: Program) -> None:
    program.prepare("init")
    with run_hub(program):
        (program.data / "token").chmod(0o644)
        refused = program.run("task", "list")
        (program.data / "token").chmod(0o600)
    assert refused.code == 1
    assert "can be used by others on this machine" in refused.err


@pytest.mark.parametrize("json_option", [(), ("--json",)], ids=["people", "json"])
def test_hub_that_dies_before_it_answers_leaves_the_outcome_unknown(
    program: Program, json_option: tuple[str, ...]
) -> None:
    program.prepare("init")
    with run_hub(program):
        pass
    with dying_hub(program.data):
        result = program.run("task", "create", "One", *json_option)
    assert result.code == 1
    told = result.json["detail"] if json_option else result.err
    assert "failed before it answered" in told
    assert "check its effect before you repeat it" in told


@proves("CLI-TASK-ACTIONS")
def test_hub_that_dies_at_an_action_on_several_tasks_leaves_their_outcome_unknown(
    program: Program,
) -> None:
    for name in ("T-1", "T-2"):
        program.prepare("task", "create", "One", "--id", name)
    with run_hub(program):
        pass
    with dying_hub(program.data):
        result = program.run("task", "move", "T-1", "ready", "--json")
        several = program.run("task", "block", "T-1", "T-2", "--blocker", "no key")
    assert (result.code, result.json["ok"]) == (1, False)
    assert (several.code, several.out) == (1, "")
    assert "check its effect before you repeat it" in several.err


def test_hub_of_another_version_leaves_the_command_to_its_caller(program: Program) -> None:
    program.prepare("task", "create", "One", "--id", "T-1")
    with run_hub(program):
        pass
    answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    with dying_hub(program.data, answer):
        assert "T-1" in program.run("task", "list").out


def test_hub_that_failed_at_a_command_leaves_the_outcome_unknown(program: Program) -> None:
    program.prepare("init")
    with run_hub(program):
        pass
    with dying_hub(program.data, b"HTTP/1.1 500 Internal Server Error\r\n\r\n{}"):
        result = program.run("task", "create", "One")
    assert (result.code, "check its effect before you repeat it" in result.err) == (1, True)
    assert program.ask("task", "list")["tasks"] == []


def test_only_files_that_the_command_names_are_read_for_a_hub(
    program: Program, tmp_path: Path
) -> None:
    program.prepare("task", "create", "One", "--id", "T-1")
    with run_hub(program):
        pass
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    wanted = json.dumps({"wanted": {"source": str(secret), "max_bytes": 100}}).encode()
    with dying_hub(program.data, b"HTTP/1.1 200 OK\r\n\r\n" + wanted) as requests:
        assert "T-1" in program.run("task", "list").out
    assert not any(b"the secret" in request for request in requests)
    assert requests, "the command was offered to the hub"


def test_secret_that_only_the_caller_knows_is_masked(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.prepare("init")
    (program.data / "dragoman.toml").write_text('[redaction]\nvariables = ["TEAM_PHRASE"]\n')
    with run_hub(program):
        monkeypatch.setenv("TEAM_PHRASE", "zebra mango kettle")
        made = program.ask("task", "create", "look at zebra mango kettle now")
    assert "[REDACTED:team_phrase:" in made["title"]


@contextmanager
def dying_hub(data: Path, answer: bytes = b"") -> Generator[list[bytes]]:
    """Hold the lock of a data directory, take requests, answer this and hang up."""
    server = socket.create_server(("127.0.0.1", 0))
    requests = list[bytes]()

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                requests.append(connection.recv(65_536))
                connection.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    lock = os.open(data / "hub.lock", os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        holder = {"pid": os.getpid(), "url": f"http://127.0.0.1:{server.getsockname()[1]}"}
        os.ftruncate(lock, 0)
        os.pwrite(lock, json.dumps(holder).encode(), 0)
        yield requests
    finally:
        os.close(lock)
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()

"""Commands of callers elsewhere: each acts as the bearer of its token, and as nobody else."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from io import BytesIO, TextIOWrapper
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from msgspec import Struct
from typer.core import TyperArgument

from dragoman.surfaces.cli import thin_client
from dragoman.surfaces.cli.commands import (
    GROUPS,
    RUN_FROM_ELSEWHERE,
    TOP_LEVEL,
)
from dragoman.surfaces.cli.thin_client import ELSEWHERE, NEED_NO_HUB, NEED_THE_DISK, run_in_hub
from dragoman.surfaces.cli.typer_app import build_cli
from tests.e2e.hub_process import HubProcess, run_hub, wait_for_event
from tests.e2e.program import COMMAND, ProcessResult, Program
from tests.requirements import proves
from tests.surfaces.cli.console import Console

pytestmark = proves("HUB-ELSEWHERE")

ROLES = ("agent", "orchestrator", "coordinator", "observer", "human")

CallElsewhere = Callable[..., ProcessResult]


class Elsewhere(Struct):
    """A hub that runs, and a token for each role; `attempt` has that of an attempt on T-9."""

    program: Program
    hub: HubProcess
    tokens: dict[str, str]


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory, bytecode: Path) -> Generator[Elsewhere]:
    """Run a hub with a bearer of each role."""
    with closing(Program(tmp_path_factory.mktemp("elsewhere") / "hub", bytecode)) as program:
        tokens = {
            role: program.ask_here("agent", "add", f"a-{role}", "--role", role)["token"]
            for role in ROLES
        }
        (program.data / "dragoman.toml").write_text("[http]\nrate_per_second = 0\n")
        program.prepare("task", "create", "One", "--id", "T-1")
        program.prepare("task", "create", "Nine", "--id", "T-9", "--ready", "--assignee", "a-agent")
        program.prepare("task", "create", "Five", "--ready", "--assignee", "nobody")
        program.prepare("mail", "send", "--as", "a-agent", "--to", "a-human", "--subject", "Hello")
        with run_hub(program) as hub:
            tokens["owner"] = (program.data / "token").read_text().strip()
            yield Elsewhere(program, hub, tokens)


@pytest.fixture
def call(
    elsewhere: Elsewhere,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> CallElsewhere:
    """Run a command in the thin client of this process, far from the data directory."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("DRAGOMAN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DRAGOMAN_URL", elsewhere.hub.url)

    def run(role: str, *args: str, stdin: str = "") -> ProcessResult:
        monkeypatch.setenv("DRAGOMAN_TOKEN", elsewhere.tokens[role])
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(stdin.encode())))
        code = run_in_hub(list(args))
        assert code is not None, f"{args} was left to this process"
        out, err = capfd.readouterr()
        return ProcessResult(code, out, err)

    return run


# --- every command, by every role -------------------------------------------------------------

WORDS = [
    *((name,) for names in TOP_LEVEL.values() for name in names),
    *(
        (group, name)
        for group, commands in GROUPS.items()
        for names in commands.modules.values()
        for name in names
    ),
]
"""Every command as a tuple of its words."""

OF_HUB = [
    words
    for words in WORDS
    if {words[0], " ".join(words)}.isdisjoint(NEED_NO_HUB | NEED_THE_DISK) and words[-1] != "watch"
]
"""Commands that a hub runs, without those that follow."""


def test_every_command_is_of_the_disk_of_the_hub_or_of_the_caller() -> None:
    of_hub = {name for module in RUN_FROM_ELSEWHERE for name in TOP_LEVEL.get(module, ())} | {
        group
        for group, commands in GROUPS.items()
        if not RUN_FROM_ELSEWHERE.isdisjoint(commands.modules)
    }
    sets = (of_hub, NEED_NO_HUB, NEED_THE_DISK - {"task path"})
    assert sum(map(len, sets)) == len(frozenset[str]().union(*sets))
    assert frozenset[str]().union(*sets) == {words[0] for words in WORDS}


def arguments_of(words: tuple[str, ...]) -> tuple[str, ...]:
    """Arguments with which a command can be parsed, as far as its parameters say."""
    command: Any = build_cli()
    for word in words:
        command = command.commands[word]
    required = [one for one in command.params if one.required]
    arguments = list[str]()
    for one in required:
        choices = getattr(one.type_descriptor, "choices", None)
        value = next(iter(choices)) if choices else "T-9"
        arguments += [value] if isinstance(one, TyperArgument) else [one.opts[0], value]
    return tuple(arguments)


def test_whatever_is_tried_is_done_as_the_bearer(elsewhere: Elsewhere, call: CallElsewhere) -> None:
    before = elsewhere.program.ask_here("events", "--after", "-1")["position"]
    outcomes = Counter[int]()
    for words in OF_HUB:
        arguments = arguments_of(words)
        for role in ROLES:
            for more in ((), ("--as", "somebody-else"), ("--agent", "somebody-else")):
                outcomes[call(role, *words, *arguments, *more).code] += 1
    assert set(outcomes) <= {0, 1, 2}
    assert min(outcomes[0], outcomes[1]) > 50, outcomes
    printed = elsewhere.program.run("events", "--after", f"{before}", "--json").out
    entries = list(map(json.loads, printed.splitlines()))
    assert {one["actor"] for one in entries} <= {
        *(f"{role}:a-{role}" for role in ROLES),
        "system:hub",
    }
    assert {one["via"] for one in entries if one["actor"] != "system:hub"} <= {"cli"}


ALL = (*ROLES, "owner")

WRITERS = tuple(role for role in ALL if role != "observer")

EXPECTED: list[tuple[tuple[str, ...], tuple[str, ...], str]] = [
    (("task", "list"), ALL, ""),
    (("status",), ALL, ""),
    (("events", "--limit", "1"), ALL, ""),
    (("agent", "list"), ALL, ""),
    (("mail", "inbox"), ALL, ""),
    (("task", "create", "X"), WRITERS, "not_authorized"),
    (("task", "log", "T-1", "note"), WRITERS, "not_authorized"),
    (("agent", "add", "evil", "--role", "human"), ("human", "owner"), "not_authorized"),
    (("agent", "token", "a-human"), ("human", "owner"), "not_authorized"),
    (("agent", "token", "a-orchestrator"), ("human", "owner"), "not_authorized"),
    (("agent", "pause", "a-human"), ("orchestrator", "human", "owner"), "not_authorized"),
    (("task", "list", "--as", "a-human"), ("human", "owner"), ""),
    (("task", "create", "X", "--as", "a-human"), ("human", "owner"), "not_authorized"),
    (("mail", "inbox", "--as", "a-human"), ("human", "owner"), "not_authorized"),
    (("task", "claim", "--agent", "a-human"), ("human", "owner"), "not_authorized"),
    (("call", "mail.inbox", "{}", "--as", "a-human"), ("human", "owner"), "not_authorized"),
    (("task", "list", "--now", "2026-02-09T12:00:00Z"), (), "invalid_settings"),
    (("task", "list", "--store", "sqlite:////etc/passwd"), (), "invalid_settings"),
]
"""Commands, the bearers who may give them, and the code of the refusal for the others."""


@pytest.mark.parametrize(("args", "allowed", "code"), EXPECTED, ids=range(len(EXPECTED)))
def test_roles_may_do_what_they_may_over_http(
    call: CallElsewhere, args: tuple[str, ...], allowed: tuple[str, ...], code: str
) -> None:
    for role in ALL:
        done = call(role, *args, "--json")
        if role in allowed:
            assert done.code == 0 or done.json["code"] == "nothing_ready", (role, done)
        elif code:
            assert (done.code, done.json["code"]) == (1, code), (role, done)


# --- what a caller elsewhere cannot reach -----------------------------------------------------


@pytest.mark.parametrize("command", sorted(NEED_THE_DISK))
def test_command_of_the_disk_says_so(command: str, call: CallElsewhere, tmp_path: Path) -> None:
    refused = call("owner", *command.split())
    assert (refused.code, refused.err) == (1, f"invalid_settings: {ELSEWHERE}\n")
    assert list(tmp_path.iterdir()) == []


def test_files_of_the_hub_are_not_read_for_a_caller(
    elsewhere: Elsewhere, call: CallElsewhere, tmp_path: Path
) -> None:
    key = elsewhere.program.data / "public.pem"
    key.write_text("the secret of the hub")
    (tmp_path / "letter").write_text(json.dumps({"to": ["ben"], "subject": "Mine", "body_md": "x"}))
    for role in ("owner", "agent"):
        sent = call(role, "send", "letter", "--json")
        assert sent.code == 0, sent
        missing = call(role, "send", "public.pem")
        assert (missing.code, "public.pem cannot be read" in missing.err) == (1, True)
        assert "the secret" not in call(role, "agent", "add", "a-agent", "--key", f"{key}").err
        written = call(role, "story", "T-1", "--html", f"{elsewhere.program.data / 'page.html'}")
        assert (written.code, "does not run this command" in written.err) == (1, True)


def test_data_directory_of_the_hubs_machine_cannot_be_named(elsewhere: Elsewhere) -> None:
    for args in (("--data", "/etc", "task", "list"), ("task", "list", "--data", "/etc")):
        reply = post(elsewhere, "agent", {"args": args})
        assert reply == {"runs_here": False}


def test_only_the_owner_has_a_process_beside_the_hub(elsewhere: Elsewhere) -> None:
    local = {"data": f"{elsewhere.program.data}", "names_data": True, "folder": "/", "user": 0}
    forged = {"args": ["task", "create", "Forged", "--as", "a-human"], "local": local}
    reply = post(elsewhere, "agent", forged)
    assert reply["code"] == 1
    assert "may not act as a-human" in reply["output"][0][1]
    assert post(elsewhere, "owner", forged)["code"] == 0


def post(elsewhere: Elsewhere, role: str, call: dict[str, Any]) -> Any:
    """Send a call that the thin client would not send."""
    body: dict[str, Any] = {
        "terminals": [False, False],
        "encoding": "utf-8",
        "environ": {},
        "inputs": {},
        **call,
    }
    headers = {
        "Authorization": f"Bearer {elsewhere.tokens[role]}",
        "Content-Type": "application/json",
    }
    url = f"{elsewhere.hub.url}/v1/internal/cli"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310
        return json.load(reply)


# --- a hub that cannot be asked, or does not answer --------------------------------------------


@pytest.mark.parametrize(
    ("variables", "args", "expected"),
    [
        ({"DRAGOMAN_TOKEN": ""}, (), "unauthenticated: there is no token for the hub at http"),
        ({"DRAGOMAN_TOKEN": "drgn_x"}, (), "unauthenticated: the hub at http"),
        ({"DRAGOMAN_TOKEN": "two words"}, (), "unauthenticated: DRAGOMAN_TOKEN holds no token"),
        ({}, ("--token-file", "none"), "invalid_settings: --token-file none cannot be read: No"),
        ({}, ("--url", "http://127.0.0.1:1"), "hub_unreachable: the hub at http://127.0.0.1:1 "),
        ({}, ("--url", "http://no.such.host.invalid"), "hub_unreachable: the hub at http://no."),
        ({}, ("--url", "ftp://hub"), "invalid_settings: 'ftp://hub' is not the url of a hub"),
        ({}, ("--url", "http://hub:99999"), "invalid_settings: 'http://hub:99999' is not"),
        ({}, ("--url", "http://a@b"), "invalid_settings: 'http://a@b' is not the url of a hub"),
        ({}, ("--url", "http://h", "--data", "d"), "invalid_settings: --url and --data name two"),
    ],
)
def test_hub_that_cannot_be_asked_is_one_clear_line(
    call: CallElsewhere,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    variables: dict[str, str],
    args: tuple[str, ...],
    expected: str,
) -> None:
    assert call("agent", "task", "list").code == 0
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert run_in_hub(["task", "list", *args]) == 1
    out, err = capfd.readouterr()
    assert (out, err.startswith(expected), err.count("\n")) == ("", True, 1), err
    assert run_in_hub(["task", "list", *args, "--json"]) == 1
    assert json.loads(capfd.readouterr().out)["code"] == expected.partition(":")[0]


def test_url_and_token_file_name_a_hub_and_a_bearer(
    elsewhere: Elsewhere,
    call: CallElsewhere,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    url = elsewhere.hub.url
    assert call("agent", "--url", url, "task", "list").code == 0
    for name in ("DRAGOMAN_URL", "DRAGOMAN_TOKEN"):
        monkeypatch.delenv(name)
    (tmp_path / "token").write_text(elsewhere.tokens["human"] + "\n")
    made = run_in_hub(["task", "create", "By file", "--url", url, "--token-file=token", "--json"])
    assert (made, json.loads(capfd.readouterr().out)["title"]) == (0, "By file")
    assert run_in_hub(["status", f"--url={url}", "--token-file", "token"]) == 0
    assert f"--url {url}" in capfd.readouterr().out, "the next command names the hub, too"


def test_data_option_wins_over_the_hub_of_the_environment(
    call: CallElsewhere, tmp_path: Path
) -> None:
    assert call("agent", "task", "list").code == 0
    Console(tmp_path / "mine").make("Mine")
    assert run_in_hub(["--data", "mine", "task", "list"]) is None
    assert run_in_hub(["lint", "--dialect", "aof", "x"]) is None, "it needs no hub"


@contextmanager
def server_that(answer: Callable[[socket.socket], None]) -> Generator[str]:
    """Serve as a hub that answers each request so; its URL."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.recv(65_536)
                answer(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"", "failed before it answered. A command that writes may have been done"),
        (OK + b"\r\n", "failed before it answered"),
        (OK + b"\r\n" + b'{"output": [[1, "Hel', "failed before it answered"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n\n\r\n5", "failed before it answered"),
        (OK + b'\r\n{"output": [[1, "Hello"]]}\n', "ended the connection"),
        (b"HTTP/1.1 500 Oh\r\n\r\n{}", "failed before it answered"),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n<html>", "is no hub of this version: it answered 502"),
        (OK + b"\r\n<html>\n", "is no hub"),
        (OK + b'\r\n{"wanted": {"source": "/etc/passwd", "max_bytes": 9}}', "does not name"),
        (OK + b'\r\n{"runs_here": false}', "does not run this command for callers elsewhere"),
        (
            b'HTTP/1.1 403 No\r\n\r\n{"code": "rate_limited", "detail": "wait"}',
            "rate_limited: wait",
        ),
    ],
    ids=range(11),
)
def test_hub_that_fails_is_one_clear_line(
    call: CallElsewhere, capfd: pytest.CaptureFixture[str], answer: bytes, expected: str
) -> None:
    assert call("agent", "task", "list").code == 0
    with server_that(lambda connection: connection.sendall(answer)) as url:
        assert run_in_hub(["--url", url, "task", "create", "One"]) == 1
    err = capfd.readouterr().err
    assert (expected in err, err.count("\n")) == (True, 1), err


def test_hub_that_hangs_is_given_up(
    elsewhere: Elsewhere,
    call: CallElsewhere,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert call("agent", "task", "list").code == 0
    monkeypatch.setattr(thin_client, "_SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(thin_client, "_TELL_SECONDS", 0.1)
    process = elsewhere.hub.process
    process.send_signal(signal.SIGSTOP)
    try:
        assert run_in_hub(["task", "list"]) == 1
        told, failed = capfd.readouterr().err.splitlines()
        assert "is silent; waiting for it, 0.2 s in all" in told
        assert "has given no sign of life" in failed
        assert run_in_hub(["--data", f"{elsewhere.program.data}", "task", "list"]) == 1
        assert f"`kill -CONT {process.pid}` lets a stopped one go on" in capfd.readouterr().err
    finally:
        process.send_signal(signal.SIGCONT)


def test_command_whose_answer_was_lost_is_done_once_under_its_key(
    elsewhere: Elsewhere, call: CallElsewhere, capfd: pytest.CaptureFixture[str]
) -> None:
    command = ("task", "create", "Once", "--key", "lost-1", "--json")
    done = call("agent", *command).json
    with server_that(lambda _: None) as url:
        assert run_in_hub(["--url", url, *command]) == 1
    lost = json.loads(capfd.readouterr().out)
    assert (lost["ok"], "can be sent again" in lost["detail"]) == (False, True)
    again = call("agent", *command).json
    assert (again["id"], again["repeated"]) == (done["id"], True)
    listed = elsewhere.program.ask_here("task", "list", "--limit", "1000")["tasks"]
    assert [one["title"] for one in listed].count("Once") == 1


# --- agents that the hub starts ---------------------------------------------------------------

AGENT = """\
#!/bin/sh
set -e
dragoman() { PYTHON -m dragoman "$@"; }
dragoman task log "$DRAGOMAN_TASK" "half done"
dragoman task list --json > list.json
dragoman mail send --to boss --subject "Nearly there"
dragoman task log T-other "not mine" 2> other.txt || true
dragoman verify 2> verify.txt || true
dragoman task move "$DRAGOMAN_TASK" review --reason "all done"
"""


def test_started_agent_uses_the_command_line_with_no_option(
    program: Program, tmp_path: Path
) -> None:
    script = tmp_path / "agent"
    script.write_text(AGENT.replace("PYTHON", sys.executable))
    script.chmod(0o755)
    program.prepare("init")
    (program.data / "dragoman.toml").write_text(f'[agents.ada]\ncommand = ["{script}"]\n')
    program.prepare("task", "create", "Other", "--id", "T-other", "--ready", "--assignee", "ben")
    program.prepare(*("task", "create", "Mine", "--id", "T-mine", "--ready", "--assignee", "ada"))
    with run_hub(program):
        wait_for_event(
            program,
            "T-mine",
            lambda one: one["body"].get("to") in ("review", "ready", "deadletter"),
        )
        shown = program.ask("task", "show", "T-mine")
        entries = [json.loads(line) for line in program.run("events", "--json").out.splitlines()]
    assert shown["status"] == "review"
    mine = [one for one in entries if one["actor"] == "agent:ada" and one["via"] == "cli"]
    assert {one["type"] for one in mine} >= {"task.noted", "mail.posted"}, mine
    run = next(program.data.rglob("list.json")).parent
    assert "ada" in (run / "other.txt").read_text(), "its token is for its own task"
    assert ELSEWHERE in (run / "verify.txt").read_text()
    assert not list(run.rglob("dragoman.db"))


# --- following --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("events", "--follow", "--after", "-1", "--json"), "task.created"),
        (("mail", "inbox", "--watch", "--agent", "a-human", "--json"), "Hello"),
        (("status", "--watch", "--json"), "position"),
        (("watch", "T-9", "--after", "0"), "created"),
    ],
    ids=range(4),
)
def test_commands_that_follow_work_from_elsewhere(
    elsewhere: Elsewhere, tmp_path: Path, args: tuple[str, ...], expected: str
) -> None:
    with follower(elsewhere, tmp_path, *args) as lines:
        assert any(expected in line for line in lines)


def test_follower_sees_what_comes_and_ends_with_the_hub(tmp_path: Path, program: Program) -> None:
    token = program.ask_here("agent", "add", "ada")["token"]
    with run_hub(program) as hub:
        there = Elsewhere(program, hub, {"agent": token})
        with follower(there, tmp_path, "events", "--follow", "--type", "task", "--json") as lines:
            for title in ("One", "Two"):
                assert program.run("task", "create", title).code == 0
                assert json.loads(next(lines))["body"]["title"] == title
            hub.stop()
            assert list(lines) == []


def test_follower_ends_when_its_token_is_revoked(tmp_path: Path, program: Program) -> None:
    token = program.ask_here("agent", "add", "ada")["token"]
    with run_hub(program) as hub:
        there = Elsewhere(program, hub, {"agent": token})
        with follower(there, tmp_path, "events", "--follow", "--json") as lines:
            next(lines)
            assert program.run("agent", "revoke", "ada").code == 0
            assert "token.revoked" in list(lines)[-1]


LIMIT_S = 60.0
"""Time after which a command that follows is ended, whatever it waits for."""


@contextmanager
def follower(elsewhere: Elsewhere, folder: Path, *args: str) -> Generator[Iterator[str]]:
    """Start a command that follows; its lines, until it ends."""
    process = subprocess.Popen(
        (*COMMAND, *args),
        cwd=folder,
        env=elsewhere_environment(elsewhere, elsewhere.tokens["agent"]),
        stdout=subprocess.PIPE,
        text=True,
    )
    limit = Timer(LIMIT_S, process.kill)
    limit.start()
    with process:
        try:
            assert process.stdout is not None
            yield iter(process.stdout.readline, "")
        finally:
            limit.cancel()
            process.kill()


def elsewhere_environment(elsewhere: Elsewhere, token: str) -> dict[str, str]:
    variables = elsewhere.program.environment(
        {"DRAGOMAN_URL": elsewhere.hub.url, "DRAGOMAN_TOKEN": token}
    )
    del variables["DRAGOMAN_DATA"]
    return variables

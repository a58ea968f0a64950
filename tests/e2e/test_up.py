"""`dragoman up`: the hub in its own process, and commands that go through it."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from dragoman.bootstrap.open_hub import build_hub
from dragoman.config import HttpSettings
from dragoman.core.errors import DragomanError
from dragoman.surfaces.cli.commands.up import describe_address
from dragoman.surfaces.http.auth import hub_url
from tests.e2e.hub_process import (
    get_json,
    get_readiness,
    run_hub,
    wait_until_claimed,
    wait_until_done,
    working_agents,
)
from tests.e2e.program import Program, wait_for_exit
from tests.requirements import proves
from tests.servers import mortal_postgres

WORKER = """
import json, os, sys
task = os.environ["DRAGOMAN_TASK"]
print("at work on", task)
print("AOF/1 " + json.dumps({
    "protocol": "aof", "version": 1, "type": "completion.report", "taskId": task,
    "fromAgent": "ada", "toAgent": "dispatcher", "sentAt": "2026-02-09T20:57:00Z",
    "payload": {"outcome": "done", "summaryRef": "outputs/summary.md",
                "tests": {"total": 0, "passed": 0, "failed": 0}, "notes": "ok"},
}))
"""


def get_unready(url: str) -> Any:
    with pytest.raises(urllib.error.HTTPError) as refused:
        get_readiness(url)
    assert refused.value.code == 503
    return json.load(refused.value)


@proves("HUB-UP")
def test_up_prints_url_data_token_and_next_command(program: Program) -> None:
    with run_hub(program) as running:
        assert running.startup["ok"] is True
        assert running.url.startswith("http://127.0.0.1:")
        assert running.startup["data"] == str(program.data)
        assert running.startup["store"] == f"sqlite:///{program.data}/dragoman.db"
        assert str(program.data / "token") in running.startup["token"]
        assert f"`dragoman agent add NAME --data {program.data}`" in running.startup["token"]
        assert f'create "First" --ready --data {program.data}; ' in running.startup["next"]
        assert (program.data / "token").stat().st_mode & 0o077 == 0
        assert get_readiness(running.url)["ready"] is True
        ended = running.stop()
    assert (ended.code, ended.err) == (0, "the hub has stopped\n")


@proves("HUB-UP")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "0.0.0.0", "::", ""])  # noqa: S104
def test_up_warns_that_it_listens_on_every_address(host: str) -> None:
    text = describe_address(hub_url(HttpSettings(host=host), 4747), host)
    assert (", and at every address of this machine (" in text) is (host in {"0.0.0.0", "::", ""})  # noqa: S104


@proves("HUB-TROUBLE", "CHECKPOINT-REMOVED")
def test_missing_checkpoints_are_reported_while_writes_go_on(program: Program) -> None:
    program.prepare("task", "create", "One")
    program.prepare("task", "create", "Two")
    (program.data / "checkpoints.jsonl").unlink()
    with run_hub(program) as running:
        stderr = running.process.stderr
        assert stderr is not None
        assert "2 checkpoints were issued" in stderr.readline()
        readiness = get_readiness(running.url)
        assert readiness["ready"] is True
        assert [name for name, state in readiness["services"].items() if state != "ok"] == [
            "checkpoint"
        ]
        program.prepare("task", "create", "Three")
        assert not (program.data / "checkpoints.jsonl").exists()
        program.prepare("checkpoints", "accept")
        program.prepare("task", "create", "Four")
        assert stderr.readline() == "recovered: checkpoint\n"
        assert running.stop().code == 0


@proves("HUB-TROUBLE")
def test_unwritable_files_are_reported_by_readyz_and_stderr(
    program: Program,
) -> None:
    program.prepare("task", "create", "One", "--id", "TASK-2026-02-09-001", "--ready")
    obstacle = program.data / "runs" / "TASK-2026-02-09-001" / "run.json"
    (obstacle / "mine").mkdir(parents=True)
    with run_hub(program) as running:
        stderr = running.process.stderr
        assert stderr is not None
        program.prepare("task", "claim", "TASK-2026-02-09-001", "--agent", "ada")
        assert stderr.readline().startswith("trouble: projection: the files of a task (task:TASK-")
        readiness = get_readiness(running.url)
        assert readiness["ready"] is True
        assert [name for name, state in readiness["services"].items() if state != "ok"] == [
            "projection"
        ]
        (obstacle / "mine").rmdir()
        obstacle.rmdir()
        assert stderr.readline() == "recovered: projection\n"
        assert set(get_readiness(running.url)["services"].values()) == {"ok"}
        lock = program.data / "projection.lock"
        lock.unlink()
        lock.mkdir()
        program.prepare("task", "create", "Two")
        lines = {stderr.readline(), stderr.readline()}
        assert {line.partition(":")[0] for line in lines} == {"trouble"}
        assert all("the files lag behind the ledger" in line for line in lines)
        assert get_unready(running.url)["store"] == "ok"
        lock.rmdir()
        lines = {stderr.readline(), stderr.readline()}
        assert lines == {"recovered: file-watch\n", "recovered: projection\n"}
        assert get_readiness(running.url)["ready"] is True
        ended = running.stop()
    assert ended.code == 0
    assert program.run("verify").code == 0


@proves("HUB-TROUBLE")
def test_lost_store_is_reported_once_for_all_services(
    program: Program,
) -> None:
    # A dispatcher reads the agents that may get a task from the store.
    program.data.mkdir(mode=0o700)
    (program.data / "dragoman.toml").write_text('[agents.ada]\ncommand = ["true"]\n')
    with mortal_postgres() as server, run_hub(program, "--store", server.url) as running:
        stderr = running.process.stderr
        assert stderr is not None
        server.kill()
        assert stderr.readline().startswith("trouble: store: ")
        while get_unready(running.url)["services"]["dispatch"] == "ok":
            threading.Event().wait(0.1)  # polling without a pause is rate-limited
        server.start()
        assert stderr.readline() == "recovered: store\n"
        ended = running.stop()
    assert "trouble" not in ended.err


@proves("HUB-UP")
def test_up_prints_seven_lines_for_people(program: Program) -> None:
    process = program.start("up", "--port", "0")
    assert process.stdout is not None
    lines = [process.stdout.readline().split()[0] for _ in range(7)]
    process.send_signal(signal.SIGINT)
    assert lines == ["listens", "open", "data", "token", "agents", "apart", "next"]
    assert wait_for_exit(process).code == 0


@proves("HUB-UP")
@pytest.mark.parametrize("named", ["{}/elsewhere.db", "elsewhere.db"])
def test_external_store_is_printed_with_the_data_directory(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.chdir(tmp_path)
    elsewhere = f"sqlite:///{tmp_path}/elsewhere.db"
    process = program.start("up", "--port", "0", "--store", f"sqlite:///{named.format(tmp_path)}")
    assert process.stdout is not None
    data = [process.stdout.readline() for _ in range(3)][2]
    process.send_signal(signal.SIGINT)
    assert data.split(maxsplit=1)[1] == f"{program.data}, with the store {elsewhere}\n"
    assert wait_for_exit(process).code == 0


@proves("HUB-CLI")
def test_commands_go_through_the_hub_and_files_are_current_on_return(
    program: Program,
) -> None:
    with run_hub(program) as running:
        made = program.ask("task", "create", "One", "--ready")["id"]
        claimed = program.ask("task", "claim", "--agent", "ada", "--session", "s1")
        assert claimed["task"] == made
        assert (program.data / "tasks" / "in-progress" / f"{made}.md").exists()
        refused = program.ask("task", "claim", made, "--agent", "ben", code=1)
        assert refused["code"] == "already_claimed"
        beat = program.ask("task", "heartbeat", made, "--agent", "ada")
        heartbeat = json.loads((program.data / "runs" / made / "run_heartbeat.json").read_bytes())
        assert heartbeat["expiresAt"] == beat["expiresAt"]
        assert program.run("call", "session_end", '{"sessionId":"s1"}').code == 0
        assert program.ask("verify")["found"] == 0
        running.stop()
    assert program.ask("verify")["found"] == 0
    assert program.ask("task", "show", made)["status"] == "in-progress"


@proves("HUB-CLI")
def test_commands_beside_a_hub_use_its_store_and_settings(program: Program, tmp_path: Path) -> None:
    config = tmp_path / "my.toml"
    config.write_text("[tasks]\nreview_required = false\n")
    store = f"sqlite:///{tmp_path}/other.db"
    with run_hub(program, "--store", store, "--config", str(config)):
        made = program.ask("task", "create", "One", "--ready")["id"]
        shown = program.ask("task", "show", made)
        assert shown["reviewRequired"] is False
        elsewhere = f"sqlite:///{tmp_path}/third.db"
        refused = program.ask("task", "list", "--store", elsewhere, code=1)
        assert refused["code"] == "hub_running"
        assert "leave out --store" in refused["detail"]
        assert not (program.data / "dragoman.db").exists()
        assert (program.data / "hub.lock").stat().st_mode & 0o077 == 0


def _thought_event(number: int, chunk: str, *, is_final: bool) -> str:
    payload = {"type": "THOUGHT_STREAM", "agent_id": "developer", "turn_index": 0}
    return json.dumps(
        {
            "event_id": f"01890a5d-ac96-774b-bcce-b30209{number:06x}",
            "session_id": "s-1",
            "payload": {**payload, "chunk": chunk, "is_final": is_final},
        }
    )


@proves("HUB-CLI", "SAOP-MASKED")
def test_value_known_only_to_the_hub_is_masked_across_two_commands(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.data.mkdir(mode=0o700)
    (program.data / "dragoman.toml").write_text('[redaction]\nvariables = ["PHRASE"]\n')
    monkeypatch.setenv("PHRASE", "correct horse battery 9staple")
    with run_hub(program):
        monkeypatch.delenv("PHRASE")
        first = _thought_event(1, "I use correct horse ", is_final=False)
        last = _thought_event(2, "battery 9staple now", is_final=True)
        args = ("call", "saop.event", "--as", "developer")
        assert program.run(*args, first).json["masked"] is False
        called = program.run(*args, "-", stdin=last)
        assert called.json["masked"] is True
        assert "a secret was masked: payload.chunk (phrase)" in called.err
        sent = program.run("send", "--as", "developer", "--json", stdin=last)
        assert sent.json["reply"]["position"] == called.json["position"]
        created = program.run("task", "create", "Say correct horse battery 9staple")
        assert "a secret was masked: title (phrase)" in created.err
        refused = program.run(*args, _thought_event(1, "other words", is_final=False))
        assert (refused.code, refused.json["ok"]) == (1, False)
    found = program.ask("call", "saop.events", '{"session_id": "s-1"}')["events"]
    text = "".join(one["payload"]["chunk"] for one in found)
    assert re.fullmatch(r"I use \[REDACTED:phrase:\w+\] now", text)


@proves("HUB-CLI")
def test_command_in_an_agent_folder_creates_no_second_hub(program: Program, tmp_path: Path) -> None:
    inside = {"DRAGOMAN_URL": "http://127.0.0.1:1", "DRAGOMAN_TOKEN": "drga_x"}
    environment = {**program.environment(), **inside}
    del environment["DRAGOMAN_DATA"]
    ended = subprocess.run(
        (sys.executable, "-m", "dragoman", "task", "create", "Lost"),
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "hub_unreachable" in ended.stderr
    assert list(tmp_path.iterdir()) == []


@proves("HUB-CLI", "CLI-NOW")
def test_now_option_beside_a_running_hub_is_refused(program: Program) -> None:
    with run_hub(program):
        reply = program.ask("task", "list", "--now", "2026-02-09T12:00:00Z", code=1)
    assert reply["code"] == "hub_running"
    assert "leave out --now" in reply["detail"]
    assert program.run("up", "--now", "2026-02-09T12:00:00Z").code == 2


@proves("HUB-UP", "STORE-SECOND-HUB")
def test_second_hub_of_a_directory_is_refused(program: Program) -> None:
    with run_hub(program) as running:
        refused = program.ask("up", "--port", "0", code=1)
    assert refused["code"] == "hub_running"
    assert f"process {running.process.pid}" in refused["detail"]


@proves("HUB-UP")
def test_port_in_use_is_named(program: Program, tmp_path: Path, bytecode: Path) -> None:
    with run_hub(program) as running:
        port = running.url.rpartition(":")[2]
        other = Program(tmp_path / "other", bytecode)
        refused = other.ask("up", "--port", port, code=1)
    assert refused["code"] == "invalid_settings"
    assert f"port {port}" in refused["detail"]


@proves("HUB-UP", "HUB-CLI")
def test_directory_of_a_killed_hub_can_be_used_again(program: Program) -> None:
    with run_hub(program) as running:
        made = program.ask("task", "create", "One", "--ready")["id"]
        running.process.kill()
        running.process.communicate()
    assert program.ask("task", "show", made)["status"] == "ready"
    with run_hub(program) as again:
        assert get_readiness(again.url)["ready"] is True
        assert again.stop(signal.SIGINT).code == 0


@proves("HUB-UP")
@pytest.mark.parametrize("location", ["data", "elsewhere"])
def test_configured_agent_is_started_and_its_report_applied(
    program: Program, location: str
) -> None:
    program.data.mkdir(mode=0o700)
    folder = program.data if location == "data" else program.data.parent
    settings = folder / "dragoman.toml"
    command = json.dumps([sys.executable, "-c", WORKER])
    settings.write_text(f"[agents.ada]\ncommand = {command}\n", encoding="utf-8")
    args = () if location == "data" else ("--config", str(settings))
    with run_hub(program, *args) as running:
        assert running.startup["agents"] == "ada"
        made = program.ask("task", "create", "One", "--ready", "--no-review")["id"]
        wait_until_done(program, made)
        assert program.ask("task", "show", made)["status"] == "done"
        assert b"at work on" in (program.data / "runs" / made / "output.log").read_bytes()
        assert running.stop().code == 0


REPORTER = """
import json, os, urllib.request
def ask(path, body=None):
    request = urllib.request.Request(
        os.environ["DRAGOMAN_URL"] + "/v1/tasks/" + os.environ["DRAGOMAN_TASK"] + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": "Bearer " + os.environ["DRAGOMAN_TOKEN"],
                 "Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["status"]
print("answered", ask("/report", {"outcome": "done", "notes": "all of it"}))
for _ in range(50):
    status = ask("")
print("pushed when it was", status)
"""


@proves("RUN-LEAVE")
def test_agent_that_reports_over_http_gets_its_reply_and_finishes(program: Program) -> None:
    program.data.mkdir(mode=0o700)
    command = json.dumps([sys.executable, "-c", REPORTER])
    (program.data / "dragoman.toml").write_text(f"[agents.ada]\ncommand = {command}\n")
    with run_hub(program) as running:
        made = program.ask("task", "create", "One", "--ready", "--no-review")["id"]
        log = program.data / "runs" / made / "output.log"
        wait_until_done(program, made)
        ended = running.stop()
    output = log.read_text()
    assert ended.code == 0
    assert "out answered done" in output
    assert "out pushed when it was done" in output


@proves("HUB-UP", "AGENT-PAUSE")
def test_stop_names_working_agents_and_assigns_no_more_tasks(program: Program) -> None:
    program.data.mkdir(mode=0o700)
    agent = '[agents.ada]\ncommand = ["sleep", "1000"]\n[agents.ben]\ncommand = ["./nobody"]\n'
    settings = agent + "takes_unassigned = false\n[hub]\ndrain_ms = 3600000\n"
    (program.data / "dragoman.toml").write_text(settings)
    with run_hub(program) as running:
        assert [one["name"] for one in program.ask("agent", "list")["agents"]] == [
            "ada",
            "ben",
            "owner",
        ]
        made = program.ask("task", "create", "One", "--ready")["id"]
        wait_until_claimed(program, made)
        other = program.ask("task", "create", "Two", "--ready", "--assignee", "ben")["id"]
        stderr = running.process.stderr
        assert stderr is not None
        assert "ben could not be started: " in stderr.readline()
        # It would be tried again after a second.
        program.ask("task", "move", other, "cancelled")
        while working_agents(program, running.url) != ["ada"]:
            continue
        running.process.send_signal(signal.SIGTERM)
        output = stderr.readline()
        assert (
            output == "stopping: 1 agent works, and may go on for 1h; Ctrl-C again does not wait\n"
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            get_json(f"{running.url}/readyz", program.data)
        assert "the hub is stopping" in json.load(refused.value)["services"]["dispatch"]
        assert running.stop(signal.SIGINT).code == 0
    assert program.ask("task", "show", made)["status"] == "ready"


@proves("HUB-UP")
def test_failed_start_leaves_nothing_open(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(DragomanError):
        build_hub(data, "", "127.0.0.1", taken.getsockname()[1], None)
    links = [
        descriptor.readlink()
        for descriptor in Path("/proc/self/fd").iterdir()
        if descriptor.is_symlink()
    ]
    assert not [link for link in links if link.is_relative_to(data)]


@proves("REDACT-KNOWN")
def test_password_in_the_store_option_is_masked(program: Program, postgres_url: str) -> None:
    password = "correcthorse-battery"
    with run_hub(
        program, "--store", postgres_url.replace("postgres:@", f"postgres:{password}@")
    ) as running:
        owner = (program.data / "token").read_text().strip()
        request = urllib.request.Request(  # noqa: S310
            f"{running.url}/v1/tasks",
            json.dumps({"title": f"Log in with {password}"}).encode(),
            {"Authorization": f"Bearer {owner}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310
            assert "[REDACTED:url_password:" in json.load(reply)["title"]


@proves("HUB-UP")
def test_missing_settings_file_is_named(program: Program) -> None:
    refused = program.ask("up", "--config", "/nowhere/at/all.toml", code=1)
    assert refused["code"] == "invalid_settings"
    assert "/nowhere/at/all.toml" in refused["detail"]

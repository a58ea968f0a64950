"""`dragoman up`: the hub in a process of its own, and the command line that goes through it."""

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.program import Ended, Program, end_of
from tests.requirements import proves

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


class Running:
    """A hub that runs, and what it said first."""

    def __init__(self, process: subprocess.Popen[str], said: dict[str, Any]) -> None:
        self.process = process
        self.said = said
        self.url = str(said["url"])

    def stop(self, how: signal.Signals = signal.SIGTERM) -> Ended:
        """Tell it to stop, and wait until it has."""
        self.process.send_signal(how)
        return end_of(self.process)


@contextmanager
def hub(program: Program, *words: str) -> Generator[Running]:
    process = program.start("up", "--port", "0", "--json", *words)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    try:
        yield Running(process, json.loads(line))
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def ready(url: str) -> Any:
    with urllib.request.urlopen(f"{url}/readyz", timeout=30) as answer:  # noqa: S310  our own hub
        return json.load(answer)


@proves("HUB-UP")
def test_it_says_where_it_listens_where_the_data_is_and_what_to_do_next(program: Program) -> None:
    with hub(program) as running:
        assert running.said["ok"] is True
        assert running.url.startswith("http://127.0.0.1:")
        assert running.said["data"] == str(program.data)
        assert str(program.data / "token") in running.said["token"]
        assert (program.data / "token").stat().st_mode & 0o077 == 0
        assert ready(running.url)["ready"] is True
        ended = running.stop()
    assert (ended.code, ended.err) == (0, "the hub has stopped\n")


@proves("HUB-UP")
def test_people_are_told_in_five_lines(program: Program) -> None:
    process = program.start("up", "--port", "0")
    assert process.stdout is not None
    lines = [process.stdout.readline().split()[0] for _ in range(5)]
    process.send_signal(signal.SIGINT)
    assert lines == ["listens", "data", "token", "agents", "next"]
    assert end_of(process).code == 0


@proves("HUB-CLI")
def test_commands_go_through_the_hub_and_all_files_are_level_when_they_return(
    program: Program,
) -> None:
    with hub(program) as running:
        made = program.ask("task", "create", "One", "--ready")["id"]
        claimed = program.ask("task", "claim", "--agent", "ada", "--session", "s1")
        assert claimed["task"] == made
        assert (program.data / "tasks" / "in-progress" / f"{made}.md").exists()
        refused = program.ask("task", "claim", made, "--agent", "ben", code=1)
        assert refused["code"] == "already_claimed"
        beat = program.ask("task", "heartbeat", made, "--agent", "ada")
        heart = json.loads((program.data / "runs" / made / "run_heartbeat.json").read_bytes())
        assert heart["expiresAt"] == beat["expiresAt"]
        assert program.run("call", "session_end", '{"sessionId":"s1"}').code == 0
        assert program.ask("verify")["found"] == 0
        running.stop()
    assert program.ask("verify")["found"] == 0
    assert program.ask("task", "show", made)["status"] == "in-progress"


@proves("HUB-CLI", "CLI-NOW")
def test_the_clock_of_a_running_hub_is_its_own(program: Program) -> None:
    with hub(program):
        told = program.ask("task", "list", "--now", "2026-02-09T12:00:00Z", code=1)
    assert told["code"] == "hub_running"
    assert "leave --now away" in told["detail"]
    assert program.run("up", "--now", "2026-02-09T12:00:00Z").code == 2


@proves("HUB-UP", "STORE-SECOND-HUB")
def test_a_second_hub_of_the_directory_is_told_of_the_first(program: Program) -> None:
    with hub(program) as running:
        refused = program.ask("up", "--port", "0", code=1)
    assert refused["code"] == "hub_running"
    assert f"process {running.process.pid}" in refused["detail"]


@proves("HUB-UP")
def test_a_port_that_is_taken_is_named(program: Program, tmp_path_factory: Any) -> None:
    with hub(program) as running:
        port = running.url.rpartition(":")[2]
        other = Program(tmp_path_factory.mktemp("other"), tmp_path_factory.mktemp("code"))
        refused = other.ask("up", "--port", port, code=1)
    assert refused["code"] == "invalid_settings"
    assert f"port {port}" in refused["detail"]


@proves("HUB-UP", "HUB-CLI")
def test_a_killed_hub_leaves_the_directory_to_whoever_comes_next(program: Program) -> None:
    with hub(program) as running:
        made = program.ask("task", "create", "One", "--ready")["id"]
        running.process.kill()
        running.process.communicate()
    assert program.ask("task", "show", made)["status"] == "ready"
    with hub(program) as again:
        assert ready(again.url)["ready"] is True
        assert again.stop(signal.SIGINT).code == 0


@proves("HUB-UP")
@pytest.mark.parametrize("where", ["data", "elsewhere"])
def test_an_agent_of_the_settings_is_started_with_its_task_and_heard(
    program: Program, where: str
) -> None:
    program.data.mkdir()
    at = program.data if where == "data" else program.data.parent
    settings = at / "dragoman.toml"
    command = json.dumps([sys.executable, "-c", WORKER])
    settings.write_text(f"[agents.ada]\ncommand = {command}\n", encoding="utf-8")
    words = () if where == "data" else ("--config", str(settings))
    with hub(program, *words) as running:
        assert running.said["agents"] == "ada"
        made = program.ask("task", "create", "One", "--ready", "--no-review")["id"]
        follow = program.start("events", "--follow", "--task", made, "--json")
        assert follow.stdout is not None
        for line in iter(follow.stdout.readline, ""):
            if json.loads(line)["body"].get("to") == "done":
                break
        follow.kill()
        follow.communicate()
        assert program.ask("task", "show", made)["status"] == "done"
        assert b"at work on" in (program.data / "runs" / made / "output.log").read_bytes()
        assert running.stop().code == 0


@proves("HUB-UP")
def test_a_settings_file_that_is_not_there_is_named(program: Program) -> None:
    refused = program.ask("up", "--config", "/nowhere/at/all.toml", code=1)
    assert refused["code"] == "invalid_settings"
    assert "/nowhere/at/all.toml" in refused["detail"]

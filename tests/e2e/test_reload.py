"""Reload: agents of changed settings start without a restart, and faults change nothing."""

import fcntl
import json
import os
import pty
import signal
import subprocess
import termios
from pathlib import Path

import pytest

from tests.e2e.hub_process import run_hub, wait_for_event, wait_until_claimed
from tests.e2e.program import COMMAND, Program, restore_signal_handlers
from tests.requirements import proves

pytestmark = proves("HUB-RELOAD")


def agent(name: str, script: str, more: str = "") -> str:
    """Section of an agent that runs a script."""
    command = json.dumps(["sh", "-c", script])
    return f"[agents.{name}]\ncommand = {command}\ntakes_unassigned = false\n{more}\n"


def write(program: Program, *sections: str) -> None:
    (program.data / "dragoman.toml").write_text("\n".join(sections))


def make(program: Program, id: str, assignee: str) -> None:
    assert (
        program.run("task", "create", id, "--id", id, "--ready", "--assignee", assignee).code == 0
    )


def wait_until_ended(program: Program, task: str) -> str:
    """Wait until the attempt has ended; the status of the task."""
    ends = ("review", "done", "ready", "deadletter", "blocked")
    wait_for_event(program, task, lambda one: one["body"].get("to") in ends)
    return program.ask("task", "show", task)["status"]


def test_agents_are_added_changed_and_removed_while_others_run(
    program: Program, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    program.prepare("init")
    waiting = agent("ada", f"until [ -e {go} ]; do sleep 0.05; done; echo old > {tmp_path}/ada")
    write(program, waiting, agent("eve", "true"))
    with run_hub(program):
        make(program, "T-1", "ada")
        wait_until_claimed(program, "T-1")
        make(program, "T-2", "ben")
        write(
            program,
            agent("ada", f"echo new > {tmp_path}/ada"),
            agent("ben", f'echo "$SECRET_WORD" > {tmp_path}/ben'),
            "[retry]\nbase_ms = 5",
        )
        assert program.ask("reload") == {
            "ok": True,
            "added": ["ben"],
            "changed": ["ada"],
            "removed": ["eve"],
            "needs_restart": ["retry"],
        }
        assert wait_until_ended(program, "T-2") == "review"
        assert (tmp_path / "ben").exists()
        go.touch()
        assert wait_until_ended(program, "T-1") == "review"
        assert (tmp_path / "ada").read_text() == "old\n", "what ran has gone on"
        make(program, "T-3", "ada")
        assert wait_until_ended(program, "T-3") == "review"
        assert (tmp_path / "ada").read_text() == "new\n"
        make(program, "T-4", "eve")
        agents = {one["name"]: one["activity"] for one in program.ask("agent", "list")["agents"]}
        assert (agents["eve"], agents["ben"]["attempts"]) == (None, 1)
        assert "[retry]" in program.run("reload").out
    assert program.ask("task", "show", "T-4")["status"] == "ready"


def test_first_agent_of_a_hub_without_agents_starts(program: Program) -> None:
    program.prepare("init")
    with run_hub(program):
        make(program, "T-1", "ada")
        assert program.run("reload").out == "no agent was added, changed or removed\n"
        write(program, agent("ada", "true"))
        assert program.run("reload").out == "added: ada\n"
        assert wait_until_ended(program, "T-1") == "review"


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ("[agents.ben]\ncommand = true false\n", "line 2"),
        ("[agents.ben]\ncomand = ['true']\n", "agents.ben"),
        ("[agents.ben]\n", "agents.ben needs a command"),
        ("[agents.ben]\ncommand = ['true']\nspeaks = ['klingon']\n", "'klingon' is not a dialect"),
        ("[http]\nport = 'x'\n", "http.port"),
    ],
    ids=range(5),
)
def test_settings_with_a_fault_change_nothing(program: Program, settings: str, fault: str) -> None:
    program.prepare("init")
    write(program, agent("ada", "true"))
    with run_hub(program) as hub:
        write(program, settings)
        refused = program.ask("reload", code=1)
        assert refused["code"] == "invalid_settings"
        assert fault in refused["detail"]
        assert "nothing was changed" in refused["detail"]
        hub.process.send_signal(signal.SIGHUP)
        assert hub.process.stderr is not None
        assert "warning: the settings were not reloaded" in hub.process.stderr.readline()
        write(program, agent("ada", "true"))
        make(program, "T-1", "ada")
        assert wait_until_ended(program, "T-1") == "review"


def test_secret_of_an_added_agent_is_masked(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_PASSWORD", "zebra-mango-kettle-9")
    program.prepare("init")
    with run_hub(program):
        before = program.ask("task", "create", "say zebra-mango-kettle-9")
        write(program, agent("ada", "true", 'environment = ["SERVICE_PASSWORD"]'))
        assert program.run("reload").code == 0
        after = program.ask("task", "create", "now zebra-mango-kettle-9")
    assert "kettle" in before["title"]
    assert "[REDACTED:service_password:" in after["title"]


def test_signal_reloads_and_the_end_of_the_terminal_stops(program: Program) -> None:
    program.prepare("init")
    master, slave = pty.openpty()
    process = subprocess.Popen(
        (*COMMAND, "up", "--port", "0", "--json"),
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=program.environment(),
        start_new_session=True,
        preexec_fn=take_terminal,  # noqa: PLW1509  it calls no lock
    )
    os.close(slave)
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["ok"]
        write(program, agent("ada", "true"))
        process.send_signal(signal.SIGHUP)
        assert process.stderr.readline() == "added: ada\n"
        os.close(master)
        assert process.wait() == 0
        assert "the hub has stopped" in process.stderr.read()


def take_terminal() -> None:
    """Make standard input the controlling terminal of this process."""
    restore_signal_handlers()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_reload_without_a_hub_and_by_others_is_refused(program: Program) -> None:
    program.prepare("init")
    assert program.ask("reload", code=1)["code"] == "hub_unreachable"
    token = program.ask_here("agent", "add", "ada", "--role", "orchestrator")["token"]
    with run_hub(program) as hub:
        there = {"DRAGOMAN_URL": hub.url, "DRAGOMAN_TOKEN": token}
        refused = program.run("reload", more=there)
        assert (refused.code, "may not reload the settings" in refused.err) == (1, True)
        owner = {**there, "DRAGOMAN_TOKEN": (program.data / "token").read_text().strip()}
        assert program.run("reload", more=owner).code == 0

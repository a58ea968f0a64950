"""Separation of agents as `up` and `doctor` tell it, and a directory that is open to others."""

import json
import stat
import sys

import pytest

from tests.agents.test_separation import STRANGER, shell_agent
from tests.e2e.hub_process import run_hub, wait_until_done
from tests.e2e.program import Program
from tests.requirements import proves
from tests.surfaces.cli.console import Console


@proves("RUN-SEPARATED", "HUB-UP", "CLI-DOCTOR")
def test_up_and_doctor_say_what_separates_agents_and_refuse_what_cannot(
    program: Program,
) -> None:
    program.data.mkdir(mode=0o700)
    settings = program.data / "dragoman.toml"
    settings.write_text(shell_agent("ada", "true"))
    with run_hub(program) as running:
        assert running.startup["apart"].startswith("ada by nothing: as the hub's user")
        checks = {one["name"]: one for one in program.ask("doctor")["checks"]}
        assert checks["separation"]["found"] == running.startup["apart"]
    settings.write_text(shell_agent("ada", "true", user="no-such-user"))
    refused = program.ask("up", "--port", "0", code=1)
    assert "agents.ada.user: this machine has no user 'no-such-user'" in refused["detail"]
    doctor = program.ask("doctor", code=1)
    assert doctor["detail"] == "bad: settings"


@proves("RUN-SEPARATED", "HUB-UP")
@pytest.mark.parametrize("mode", [0o755, 0o770, 0o711])
def test_up_closes_a_data_directory_that_others_can_use(program: Program, mode: int) -> None:
    program.data.mkdir()
    program.data.chmod(mode)
    with run_hub(program) as running:
        assert stat.S_IMODE(program.data.stat().st_mode) == 0o700
        told = running.stop().err
    found = f"others on this machine could use {program.data} (mode {mode:03o})"
    assert told == f"warning: {found}: it is closed to them now\nthe hub has stopped\n"


@proves("RUN-USER", "CLI-DOCTOR")
def test_doctor_takes_the_ways_of_users_for_private(program: Program) -> None:
    program.prepare("init")
    program.data.chmod(0o711)
    find = {one["name"]: one for one in program.ask_here("doctor")["checks"]}
    assert find["directory"]["state"] == "warning"
    (program.data / "dragoman.toml").write_text(shell_agent("ada", "true", user=STRANGER))
    result = Console(program.data)("doctor", "--json")
    find = {one["name"]: one for one in result.json["checks"]}
    assert find["directory"]["state"] == "ok"
    program.data.chmod(0o755)
    result = Console(program.data)("doctor", "--json")
    assert {one["name"]: one for one in result.json["checks"]}["directory"]["state"] == "warning"


CALLER = """
import json, os, urllib.request
def call(path, body=None):
    headers = {"Authorization": "Bearer " + os.environ["DRAGOMAN_TOKEN"]}
    headers["Content-Type"] = "application/json"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ["DRAGOMAN_URL"] + path, data, headers)
    return json.load(urllib.request.urlopen(request))
task = os.environ["DRAGOMAN_TASK"]
data = os.environ["DRAGOMAN_FOLDER"].partition("/tasks/")[0]
found = sorted(os.listdir(data))
call(f"/v1/tasks/{task}/report", {"outcome": "done", "notes": " ".join(found)})
"""


@proves("RUN-SANDBOX", "RUN-SEPARATED")
def test_agent_in_a_sandbox_reports_at_the_address_of_its_hub(program: Program) -> None:
    program.data.mkdir(mode=0o700)
    python = [sys.executable, "-c", CALLER]
    shown = sorted({sys.prefix, sys.base_prefix})
    (program.data / "dragoman.toml").write_text(
        f"[agents.ada]\ncommand = {json.dumps(python)}\nsandbox = 'bwrap'\n"
        f"sandbox_readable = {json.dumps(shown)}\n"
    )
    with run_hub(program) as running:
        assert running.startup["apart"] == "ada by a sandbox (bwrap)"
        made = program.ask("task", "create", "One", "--ready", "--no-review")["id"]
        wait_until_done(program, made)
        shown_task = program.ask("task", "show", made)
        assert "inbox runs tasks" in json.dumps(shown_task)

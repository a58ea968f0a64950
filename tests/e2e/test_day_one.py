"""A day with a fleet: twenty agents, thirty tasks, and a person who looks at `status` alone.

The person runs the commands that `status` suggests, word for word, with an answer in the place of
the dots. That brings every task to its end, whatever the agents do.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.hub_process import run_hub, wait_until_claimed
from tests.e2e.program import Program
from tests.requirements import proves

DAY_S = 240
"""The day is given up after so long; it takes less than a minute where little else runs."""

SECRET = "ghp_" + "a1B2" * 9

AGENT = str(Path(__file__).with_name("day_agent.py"))

SHELL = """
while :; do
  claimed=$(dragoman task claim --agent $1 --wait 60 --json) || continue
  id=$(printf %s "$claimed" | sed 's/.*"task": "\\([^"]*\\)".*/\\1/')
  notes=painted
  case $1 in
    shell-asks)
      notes=$(dragoman task ask $id "Red or blue for $id?" --agent $1 --wait 60) || continue;;
    shell-leaks) dragoman task log $id "signed in with SECRET" --as $1;;
  esac
  dragoman task complete $id --agent $1 --notes "$notes"
done
""".replace("SECRET", SECRET)

TASKS: Mapping[str, int] = {
    "shell-1": 2,
    "shell-below": 2,
    "shell-asks": 2,
    "shell-leaks": 1,
    "shell-2": 1,
    "sdk-asks": 2,
    "sdk-silent": 1,
    "sdk-1": 2,
    "sdk-2": 2,
    "sdk-3": 1,
    "mcp-1": 2,
    "mcp-2": 2,
    "started": 2,
    "hangs": 1,
    "spends": 2,
    "folder-1": 1,
    "folder-2": 1,
    "mail-1": 1,
    "mail-2": 1,
}
"""Agent -> its number of tasks; one more is anybody's, whose first agent is killed."""


def plan() -> str:
    """Write the plan: the tasks of an agent wait for each other, some for those of another."""
    lines = ['[[tasks]]\nid = "anybodys"\ntitle = "Anybody\'s"\nready = true\nreview = false']
    for number, (agent, count) in enumerate(TASKS.items()):
        for which in range(1, count + 1):
            waits = [f"{agent}.{which - 1}"] if which > 1 else []
            waits += ["shell-1.1"] if agent == "sdk-3" else []
            review = "true" if number % 2 and which == count else "false"
            lines.append(
                f'[[tasks]]\nid = "{agent}.{which}"\ntitle = "Part {which} of {agent}"\n'
                f'assignee = "{agent}"\nready = true\nreview = {review}\n'
                f"blocked_by = {json.dumps(waits)}"
            )
    return "\n\n".join(lines)


def settings(folder: Path) -> str:
    """Write the settings: short limits, and three agents that the hub starts."""
    command = [sys.executable, AGENT, "started"]
    agents = {"started": "", "hangs": "attempt_ms = 3000", "spends": "attempts_per_day = 1"}
    started = (
        f"[agents.{name}]\ncommand = {json.dumps([*command, name, str(folder)])}\n"
        f'takes_unassigned = false\nenvironment = ["PYTHONPATH"]\n{more}\n'
        for name, more in agents.items()
    )
    return "\n".join(
        (
            "[attempts]\nquiet_ms = 5000\nescalate_ms = 60000",
            "[retry]\nbase_ms = 100",
            '[aof]\napply_completion = "immediately"',
            "[dispatch]\npoll_ms = 200",
            *started,
        )
    )


class Day:
    """The hub of a project, its agents, and the person."""

    def __init__(self, project: Path, program: Program, running: ExitStack) -> None:
        self.project = project
        self.program = program
        self._running = running
        bin_folder = project / "bin"
        bin_folder.mkdir()
        wrapper = bin_folder / "dragoman"
        wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -m dragoman "$@"\n')
        wrapper.chmod(0o700)
        path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
        self.environment = program.environment({"PATH": path})
        self.done: list[str] = []
        """Commands that the person has run."""

    def start(self, *command: str, folder: str = ".", **more: str) -> "subprocess.Popen[bytes]":
        """Start the process of an agent, in a group of its own."""
        process = subprocess.Popen(
            command,
            cwd=self.project / folder,
            env=self.environment | more,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._running.callback(end_group, process)
        return process

    def start_agents(self) -> None:
        """Start everybody whom the hub does not start itself."""
        for name in TASKS:
            kind = name.partition("-")[0]
            if kind == "shell":
                below = name == "shell-below"
                self._start_shell(name, "src/deep" if below else ".", finds_data=below)
            elif kind == "sdk":
                token = self.program.ask("agent", "add", name)["token"]
                self._start_program(kind, name, DRAGOMAN_TOKEN=token)
            elif kind in ("mcp", "folder", "mail"):
                self._start_program(kind, name)

    def _start_shell(self, name: str, folder: str, *, finds_data: bool) -> None:
        unset = ("env", "-u", "DRAGOMAN_DATA") if finds_data else ()
        self.start(*unset, "sh", "-c", SHELL, "sh", name, folder=folder)

    def _start_program(self, kind: str, name: str, **more: str) -> None:
        self.start(sys.executable, AGENT, kind, name, str(self.project), **more)

    def status(self) -> Any:
        """Look at the status."""
        return self.program.ask("status")

    def follow_suggestions(self, status: Any) -> None:
        """Run what the status suggests, word for word, with an answer in the place of the dots."""
        for item in status["attention"]:
            if item["kind"] == "unknown_assignee":
                continue  # an agent that has not spoken yet
            command = item["command"].replace("…", "blue")
            self.done.append(command)
            subprocess.run(("sh", "-c", command), env=self.environment, check=False)


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """End a process with all that it has started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def working_day(project: Path, bytecode: Path) -> Generator[Day]:
    """Give a project with a running hub, whose agents are ended with the day."""
    (project / "src" / "deep").mkdir(parents=True)
    data = project / ".dragoman"
    program = Program(data, bytecode)
    assert program.run("init").code == 0
    (data / "dragoman.toml").write_text(settings(project))
    with run_hub(program), ExitStack() as running:
        yield Day(project, program, running)


@proves("DAY-ONE", "SEE-STATUS", "BRIEFING", "QUESTION-WAIT", "NOTIFY-ATTENTION")
def test_a_person_with_the_status_alone_brings_all_work_to_its_end(
    tmp_path: Path, bytecode: Path
) -> None:
    with working_day(tmp_path / "project", bytecode) as day:
        (day.project / "plan.toml").write_text(plan())
        made = day.program.run("task", "create", "--file", str(day.project / "plan.toml"))
        assert made.code == 0, made
        killed = day.start("sh", "-c", "dragoman task claim anybodys --agent killed --ttl 2 && cat")
        wait_until_claimed(day.program, "anybodys")
        os.killpg(killed.pid, signal.SIGKILL)
        day.start_agents()
        end = time.monotonic() + DAY_S
        status = day.status()
        while status["counts"].get("done") != sum(TASKS.values()) + 1:
            assert time.monotonic() < end, (status, day.done)
            day.follow_suggestions(status)
            status = day.status()
        check_day(day)


def check_day(day: Day) -> None:
    """Check what the day has left behind."""
    verbs = {" ".join(command.split()[1:3]) for command in day.done}
    assert {"task answer", "task approve", "agent resume", "task move"} <= verbs
    tasks = day.program.ask("task", "list", "--limit", "100")["tasks"]
    attempts = {task["id"]: task["attempt"] for task in tasks}
    assert min(attempts[task] for task in ("anybodys", "hangs.1", "sdk-silent.1")) >= 2
    asked = day.program.ask("task", "show", "shell-asks.1")
    assert asked["report"]["notes"] == asked["answers"][0]["answer"] == "blue"
    assert not (day.project / "src" / ".dragoman").exists()
    assert not (day.project / "src" / "deep" / ".dragoman").exists()
    for file in (day.project / ".dragoman").rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file
    assert day.program.run("verify").code == 0

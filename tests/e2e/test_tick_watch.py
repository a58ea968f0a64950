"""`tick --watch`: one process is the hub of a directory, and a second one is refused."""

import signal
import subprocess

from tests.e2e.program import Program
from tests.requirements import proves


def wait_for_output(process: subprocess.Popen[str], expected: str) -> None:
    """Read the output until it contains this text."""
    assert process.stdout is not None
    assert any(expected in line for line in iter(process.stdout.readline, ""))


def stop(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGINT)
    process.communicate()
    return process.returncode


@proves("STORE-SECOND-HUB", "CLI-TICK")
def test_second_hub_is_refused_with_the_name_of_the_first(program: Program) -> None:
    program.prepare("task", "create", "One")
    program.prepare("task", "create", "Two")
    first = program.start("tick", "--watch", "--json")
    program.run("task", "create", "Three", "--ready")
    program.run("task", "claim", "--agent", "ada", "--ttl", "1s")
    wait_for_output(first, '"lease-expiry": 1')

    refused = program.ask("tick", "--watch", code=1)
    others = program.ask("task", "list")

    assert refused["code"] == "hub_running"
    assert f"process {first.pid}" in refused["detail"]
    assert len(others["tasks"]) == 3
    assert stop(first) == 130
    assert program.ask("tick")["ok"]


@proves("STORE-SECOND-HUB")
def test_killed_hub_leaves_the_directory_free(program: Program) -> None:
    program.prepare("task", "create", "One", "--ready")
    program.prepare(
        "task", "claim", "--agent", "ada", "--ttl", "1s", "--now", "2026-02-09T12:00:00Z"
    )
    first = program.start("tick", "--watch", "--json")
    wait_for_output(first, '"lease-expiry": 1')
    first.kill()
    first.communicate()

    second = program.start("tick", "--watch", "--json")
    wait_for_output(second, '"retry-promotion": 1')
    assert stop(second) == 130

"""A hub in its own process, and functions that wait for events in it."""

import json
import signal
import subprocess
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.program import ProcessResult, Program, wait_for_exit


class HubProcess:
    """Running hub, and the JSON line that it printed at startup."""

    def __init__(self, process: subprocess.Popen[str], startup: dict[str, Any]) -> None:
        self.process = process
        self.startup = startup
        self.url = str(startup["url"])

    def stop(self, signum: signal.Signals = signal.SIGTERM) -> ProcessResult:
        """Send a signal and wait for the exit."""
        self.process.send_signal(signum)
        return wait_for_exit(self.process)


@contextmanager
def run_hub(program: Program, *args: str) -> Generator[HubProcess]:
    process = program.start("up", "--port", "0", "--json", *args)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    try:
        yield HubProcess(process, json.loads(line))
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def get_json(url: str, data: Path | None = None) -> Any:
    """GET a URL of the hub; with `data`, as its owner."""
    headers = {"Authorization": f"Bearer {(data / 'token').read_text().strip()}"} if data else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310
        return json.load(reply)


def get_readiness(url: str) -> Any:
    return get_json(f"{url}/readyz")


def working_agents(program: Program, url: str) -> list[str]:
    """Names of agents that have running attempts."""
    agents = get_json(f"{url}/v1/agents", program.data)["agents"]
    return [one["name"] for one in agents if one["activity"] and one["activity"]["running"]]


def wait_until_claimed(program: Program, task: str) -> None:
    """Wait until a task is claimed."""
    wait_for_event(program, task, lambda line: line["type"] == "task.claimed")


def wait_until_done(program: Program, task: str) -> None:
    """Wait until a task is done."""
    wait_for_event(program, task, lambda line: line["body"].get("to") == "done")


def wait_for_event(program: Program, task: str, matches: Callable[[Any], bool]) -> None:
    """Follow the events of a task until one matches."""
    follow = program.start("events", "--follow", "--task", task, "--json")
    assert follow.stdout is not None
    for line in iter(follow.stdout.readline, ""):
        if matches(json.loads(line)):
            break
    follow.kill()
    follow.communicate()

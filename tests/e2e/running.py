"""A hub in a process of its own, and ways to wait for what happens in it."""

import json
import signal
import subprocess
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.program import Ended, Program, end_of


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


def look(url: str, data: Path | None = None) -> Any:
    """What our own hub answers; `data`: to its owner."""
    headers = {"Authorization": f"Bearer {(data / 'token').read_text().strip()}"} if data else {}
    asked = urllib.request.Request(url, headers=headers)  # noqa: S310
    with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310
        return json.load(answer)


def ready(url: str) -> Any:
    return look(f"{url}/readyz")


def at_work(program: Program, url: str) -> list[str]:
    """The agents that have something to do."""
    agents = look(f"{url}/v1/agents", program.data)["agents"]
    return [one["name"] for one in agents if one["started"] and one["started"]["running"]]


def until_claimed(program: Program, task: str) -> None:
    """Wait until somebody works on it."""
    until_told(program, task, lambda line: line["type"] == "task.claimed")


def until_done(program: Program, task: str) -> None:
    """Wait until it is done."""
    until_told(program, task, lambda line: line["body"].get("to") == "done")


def until_told(program: Program, task: str, is_it: Callable[[Any], bool]) -> None:
    """Follow what happens to a task until it is so."""
    follow = program.start("events", "--follow", "--task", task, "--json")
    assert follow.stdout is not None
    for line in iter(follow.stdout.readline, ""):
        if is_it(json.loads(line)):
            break
    follow.kill()
    follow.communicate()

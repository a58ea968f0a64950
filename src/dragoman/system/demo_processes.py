"""Processes of `dragoman demo`: the hub, and the agents beside it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep
from typing import Final

from dragoman.core.errors import DragomanError

AGENTS_FILE: Final = Path(__file__).with_name("demo_agents.py")


def agent_command(name: str, pause: float) -> list[str]:
    """Command that starts an agent."""
    return [sys.executable, str(AGENTS_FILE), name, str(pause)]


def kill(process: int) -> None:
    """Kill a process, which gets no time to say anything."""
    os.kill(process, signal.SIGKILL)


class DemoProcesses:
    """The hub and agents; each has a log in the data directory."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._environ = {
            name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")
        }

    def start_hub(self) -> str:
        """Start the hub; its URL."""
        module = [sys.executable, "-m", "dragoman", "up", "--port", "0", "--json"]
        self._start("hub", [*module, "--data", str(self._data)])
        hub = self._started["hub"]
        assert hub.stdout is not None, "it is a pipe"
        line = hub.stdout.readline()
        if not line:
            hub.wait()
            self._check()
        return json.loads(line)["url"]

    def start_agent(self, name: str, pause: float, url: str, token: str) -> None:
        """Start an agent that knows the hub and its own token."""
        variables = {"DRAGOMAN_URL": url, "DRAGOMAN_TOKEN": token}
        self._start(name, agent_command(name, pause), variables)

    def wait(self, seconds: float) -> None:
        """Wait; DragomanError if one of them has failed."""
        sleep(seconds)
        self._check()

    def stop(self) -> None:
        """Stop all of them, the hub last."""
        for process in reversed(self._started.values()):
            process.terminate()
            process.communicate()

    def _start(
        self, name: str, command: list[str], variables: dict[str, str] | None = None
    ) -> None:
        with self._log(name).open("wb") as log:
            self._started[name] = subprocess.Popen(
                command,
                env=self._environ | (variables or {}),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def _check(self) -> None:
        for name, process in self._started.items():
            if process.poll():
                problem = self._log(name).read_text(errors="replace").strip()
                raise DragomanError(f"{name} has failed: {problem}")

    def _log(self, name: str) -> Path:
        return self._data / f"{name}.log"

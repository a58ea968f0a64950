"""An office of agents that speak AOF/1: the command line, and the files that it leaves."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.surfaces.cli.console import CommandResult, Console
from tests.surfaces.cli.message_files import MessageFiles

BACKEND = "swe-backend"
QA = "swe-qa"

SESSION = "s-office"
"""The session of a claim that names no other: a report in it waits for its end."""


class AofHub:
    """One data directory, what is said to it, and what lies in it."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.console = Console(data)
        self.message_file = MessageFiles(data.with_name("letters"))

    def try_send(self, message: Mapping[str, Any] | str | bytes, *args: str) -> CommandResult:
        """Send a message; whatever comes of it."""
        return self.console("send", self.message_file(message), *args, "--json")

    def send(self, message: Mapping[str, Any] | str | bytes, *args: str) -> Any:
        """Send a message that is accepted."""
        result = self.try_send(message, *args)
        assert result.code == 0, result
        return result.json

    def refusal_code(self, message: Mapping[str, Any] | str | bytes, *args: str) -> str:
        """Send a message that is refused; with which code."""
        result = self.try_send(message, *args)
        assert result.code == 1, result
        assert result.json["ok"] is False
        assert result.json["detail"]
        return str(result.json["code"])

    def create_ready(self, task: str, *args: str) -> None:
        """Make a task that is ready."""
        self.console.make("A task", "--id", task, "--ready", *args)

    def create_claimed(self, task: str, agent: str, *args: str, session: str = SESSION) -> None:
        """Make a task and put it into an agent's hands."""
        self.create_ready(task, *args)
        self.claim(task, agent, session=session)

    def claim(self, task: str, agent: str, *args: str, session: str = SESSION) -> Any:
        """Take a task for an agent."""
        session_option = ("--session", session)
        return self.console.ask("task", "claim", task, "--agent", agent, *session_option, *args)

    def status(self, task: str) -> str:
        """The status of a task; its file stands in that folder and in no other."""
        status = str(self.console.ask("task", "show", task)["status"])
        folders = [path.parent.name for path in self.data.glob(f"tasks/*/{task}.md")]
        task_folders = [path.parent.name for path in self.data.glob(f"tasks/*/{task}")]
        assert folders == [status]
        assert task_folders == [status]
        return status

    def task_file(self, task: str) -> str:
        """A task's file."""
        (path,) = self.data.glob(f"tasks/*/{task}.md")
        return path.read_text()

    def task_folder(self, task: str) -> Path:
        """A task's companion folder."""
        (path,) = self.data.glob(f"tasks/*/{task}")
        return path

    def run_artifact(self, task: str, name: str) -> Any:
        """A run artifact."""
        return json.loads((self.data / "runs" / task / name).read_text())

    def event_lines(self) -> list[dict[str, Any]]:
        """Every event line, in order."""
        return [
            json.loads(line)
            for path in sorted((self.data / "events").glob("*.jsonl"))
            for line in path.read_text().splitlines()
        ]

    def event_types(self, task: str = "") -> list[str]:
        """The types of the event lines about a task, or of all."""
        return [str(e["type"]) for e in self.event_lines() if not task or e.get("taskId") == task]

    def events_of_type(self, kind: str) -> list[dict[str, Any]]:
        """The event lines of a type."""
        return [line for line in self.event_lines() if line["type"] == kind]

    def assert_verified(self) -> None:
        """Everything is as the ledger says, and eventIds rise."""
        verdict = self.console.ask("verify")
        assert verdict["findings"] == []
        ids = [line["eventId"] for line in self.event_lines()]
        assert ids == sorted(set(ids))

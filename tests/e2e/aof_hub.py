"""Hub of agents that speak AOF/1: the command line, and the files that it leaves."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.surfaces.cli.console import CommandResult, Console
from tests.surfaces.cli.message_files import MessageFiles

BACKEND = "swe-backend"
QA = "swe-qa"

SESSION = "s-office"
"""Default session of a claim: a report in it waits for the end of the session."""


class AofHub:
    """A data directory, the messages sent to it, and its files."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.console = Console(data)
        self.message_file = MessageFiles(data.with_name("letters"))

    def try_send(self, message: Mapping[str, Any] | str | bytes, *args: str) -> CommandResult:
        """Send a message, accepted or not."""
        return self.console("send", self.message_file(message), *args, "--json")

    def send(self, message: Mapping[str, Any] | str | bytes, *args: str) -> Any:
        """Send a message that must be accepted."""
        result = self.try_send(message, *args)
        assert result.code == 0, result
        return result.json

    def refusal_code(self, message: Mapping[str, Any] | str | bytes, *args: str) -> str:
        """Send a message that must be refused and return the code."""
        result = self.try_send(message, *args)
        assert result.code == 1, result
        assert result.json["ok"] is False
        assert result.json["detail"]
        return str(result.json["code"])

    def create_ready(self, task: str, *args: str) -> None:
        """Create a ready task."""
        self.console.make("A task", "--id", task, "--ready", *args)

    def create_claimed(self, task: str, agent: str, *args: str, session: str = SESSION) -> None:
        """Create a task and claim it for an agent."""
        self.create_ready(task, *args)
        self.claim(task, agent, session=session)

    def claim(self, task: str, agent: str, *args: str, session: str = SESSION) -> Any:
        """Claim a task for an agent."""
        session_option = ("--session", session)
        return self.console.ask("task", "claim", task, "--agent", agent, *session_option, *args)

    def status(self, task: str) -> str:
        """Status of a task, after checking that its file is in that folder only."""
        status = str(self.console.ask("task", "show", task)["status"])
        folders = [path.parent.name for path in self.data.glob(f"tasks/*/{task}.md")]
        task_folders = [path.parent.name for path in self.data.glob(f"tasks/*/{task}")]
        assert folders == [status]
        assert task_folders == [status]
        return status

    def task_file(self, task: str) -> str:
        """Content of a task file."""
        (path,) = self.data.glob(f"tasks/*/{task}.md")
        return path.read_text()

    def task_folder(self, task: str) -> Path:
        """Folder of a task."""
        (path,) = self.data.glob(f"tasks/*/{task}")
        return path

    def run_artifact(self, task: str, name: str) -> Any:
        """Content of a run artifact."""
        return json.loads((self.data / "runs" / task / name).read_text())

    def event_lines(self) -> list[dict[str, Any]]:
        """Every event line, in order."""
        return [
            json.loads(line)
            for path in sorted((self.data / "events").glob("*.jsonl"))
            for line in path.read_text().splitlines()
        ]

    def event_types(self, task: str = "") -> list[str]:
        """Types of the event lines about a task, or of all."""
        return [str(e["type"]) for e in self.event_lines() if not task or e.get("taskId") == task]

    def events_of_type(self, kind: str) -> list[dict[str, Any]]:
        """Event lines of a type."""
        return [line for line in self.event_lines() if line["type"] == kind]

    def assert_verified(self) -> None:
        """Check that files equal the ledger and that event ids rise."""
        verdict = self.console.ask("verify")
        assert verdict["findings"] == []
        ids = [line["eventId"] for line in self.event_lines()]
        assert ids == sorted(set(ids))

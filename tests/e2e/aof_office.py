"""An office of agents that speak AOF/1: the command line, and the files that it leaves."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.surfaces.cli.console import Console, Said
from tests.surfaces.cli.letters import Letters

BACKEND = "swe-backend"
QA = "swe-qa"

STAY = "s-office"
"""The session of a claim that names no other: a report in it waits for its end."""


class Office:
    """One data directory, what is said to it, and what lies in it."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.console = Console(data)
        self.letter = Letters(data.with_name("letters"))

    def say(self, message: Mapping[str, Any] | str | bytes, *words: str) -> Said:
        """Send a message; whatever comes of it."""
        return self.console("send", self.letter(message), *words, "--json")

    def send(self, message: Mapping[str, Any] | str | bytes, *words: str) -> Any:
        """Send a message that is accepted."""
        said = self.say(message, *words)
        assert said.code == 0, said
        return said.json

    def refused(self, message: Mapping[str, Any] | str | bytes, *words: str) -> str:
        """Send a message that is refused; with which code."""
        said = self.say(message, *words)
        assert said.code == 1, said
        assert said.json["ok"] is False
        assert said.json["detail"]
        return str(said.json["code"])

    def ready(self, task: str, *words: str) -> None:
        """Make a task that is ready."""
        self.console.make("A task", "--id", task, "--ready", *words)

    def held(self, task: str, agent: str, *words: str, session: str = STAY) -> None:
        """Make a task and put it into an agent's hands."""
        self.ready(task, *words)
        self.claim(task, agent, session=session)

    def claim(self, task: str, agent: str, *words: str, session: str = STAY) -> Any:
        """Take a task for an agent."""
        stay = ("--session", session)
        return self.console.ask("task", "claim", task, "--agent", agent, *stay, *words)

    def status(self, task: str) -> str:
        """The status of a task; its file stands in that folder and in no other."""
        status = str(self.console.ask("task", "show", task)["status"])
        folders = [path.parent.name for path in self.data.glob(f"tasks/*/{task}.md")]
        companions = [path.parent.name for path in self.data.glob(f"tasks/*/{task}")]
        assert folders == [status]
        assert companions == [status]
        return status

    def page(self, task: str) -> str:
        """A task's file."""
        (path,) = self.data.glob(f"tasks/*/{task}.md")
        return path.read_text()

    def folder(self, task: str) -> Path:
        """A task's companion folder."""
        (path,) = self.data.glob(f"tasks/*/{task}")
        return path

    def run(self, task: str, name: str) -> Any:
        """A run artifact."""
        return json.loads((self.data / "runs" / task / name).read_text())

    def lines(self) -> list[dict[str, Any]]:
        """Every event line, in order."""
        return [
            json.loads(line)
            for path in sorted((self.data / "events").glob("*.jsonl"))
            for line in path.read_text().splitlines()
        ]

    def types(self, task: str = "") -> list[str]:
        """The types of the event lines about a task, or of all."""
        return [str(e["type"]) for e in self.lines() if not task or e.get("taskId") == task]

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The event lines of a type."""
        return [line for line in self.lines() if line["type"] == kind]

    def verified(self) -> None:
        """Everything is as the ledger says, and eventIds rise."""
        verdict = self.console.ask("verify")
        assert verdict["findings"] == []
        ids = [line["eventId"] for line in self.lines()]
        assert ids == sorted(set(ids))
